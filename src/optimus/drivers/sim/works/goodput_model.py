"""The goodput of data-parallel training: what a job knows of its own speed, fitted to what it has measured.

    T_grad = a_c + b_c m            m samples on each device
    T_sync = a_r + b_r (K - 2)      K replicas on one node; a_n, b_n across nodes; nothing for one replica
    T_iter = s T_grad + (T_grad^g + T_sync^g)^(1/g)        s accumulation steps
    throughput = M / T_iter         M = K m (s + 1)
    efficiency = (phi + M0) / (phi + M)                    phi: gradient noise scale
    goodput = throughput x efficiency

Source: Qiao et al., Pollux, OSDI'21, sections 3 and 4.1 (also for the priors: what was not measured is taken for
free, but across nodes never better than inside one).
Differences: the gradient of the fit is written out by hand; the optimiser is the same (L-BFGS-B).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LEAST = 1e-8
_CANDIDATES = 50
"""Batch sizes that are tried, evenly spaced by ratio."""


class StepTimes(Struct, frozen=True):
    """The fitted constants, in seconds."""

    a_compute: float
    b_compute: float
    a_network: float
    b_network: float
    a_node: float
    b_node: float
    gamma: float


class BatchRange(Struct, frozen=True, kw_only=True):
    initial: int
    most: int
    least_local: int
    most_local: int


class GoodputModel(Struct, frozen=True):
    times: StepTimes
    grad_sqr: float
    grad_var: float
    batches: BatchRange

    def best(self, nodes: Ints, replicas: Ints) -> tuple[Floats, Ints, Ints]:
        """For each size: the best goodput, and the local batch and accumulation steps that give it."""
        limits = self.batches
        least = np.maximum(limits.initial, limits.least_local * replicas)
        ratio = np.linspace(0.0, 1.0, _CANDIDATES)[:, None]
        batch = np.exp(np.log(least) * (1 - ratio) + np.log(limits.most) * ratio)
        batch[0], batch[-1] = least, limits.most
        local = batch / replicas
        steps = np.ceil(local / limits.most_local - _LEAST) - 1
        alone = (replicas == 1) & (local > limits.initial + _LEAST)  # one mini-batch says nothing about the noise
        steps = np.where(alone, np.maximum(steps, 1), steps).astype(np.int64)
        atomic = np.ceil(local / (steps + 1) - _LEAST).astype(np.int64)
        goodput = self.goodput(nodes, replicas, atomic, steps)
        goodput = np.where((atomic >= limits.least_local) & (atomic <= limits.most_local), goodput, 0.0)
        at = np.argmax(goodput, axis=0), np.arange(goodput.shape[1])
        return goodput[at], atomic[at], steps[at]

    def goodput(self, nodes: Ints, replicas: Ints, atomic: Ints, steps: Ints) -> Floats:
        compute = self.times.a_compute + self.times.b_compute * atomic
        network = _network(self.times, nodes, replicas)
        gamma = self.times.gamma
        last = np.exp(np.log(compute**gamma + network**gamma) / gamma)
        batch = replicas * atomic * (steps + 1)
        scale = batch / self.batches.initial
        rest = self.grad_var / scale + self.grad_sqr
        gain = np.where(rest > 0, (self.grad_var + self.grad_sqr) / np.where(rest > 0, rest, 1.0), 1.0)
        result: Floats = batch / (steps * compute + last) * gain / scale
        return result


def _network(times: StepTimes, nodes: Ints, replicas: Ints) -> Floats:
    inside = np.where(replicas > 1, times.a_node, _LEAST)
    more_inside = np.where(replicas > 1, times.b_node, _LEAST)
    start = np.where(nodes > 1, times.a_network, inside)
    more = np.where(nodes > 1, times.b_network, more_inside)
    result: Floats = start + more * np.maximum(replicas - 2, _LEAST)
    return result


class Measured(Struct, frozen=True):
    nodes: int
    replicas: int
    local_batch: int
    step_s: float
    sync_s: float


@lru_cache(maxsize=50_000)
def fit(measured: tuple[Measured, ...]) -> StepTimes:
    """Constants that explain the measurements best. Jobs of one application often measure the same things."""
    from scipy.optimize import Bounds, minimize  # noqa: PLC0415  (an extra: only who simulates such jobs needs it)

    nodes = np.array([m.nodes for m in measured])
    replicas = np.array([m.replicas for m in measured])
    local = np.array([m.local_batch for m in measured], dtype=np.float64)
    step = np.array([m.step_s for m in measured])
    compute = step - np.array([m.sync_s for m in measured])
    across, inside = nodes > 1, (nodes == 1) & (replicas > 1)
    start = np.array([1e-1, 1e-2] * 3 + [1.001])
    low = np.array([_LEAST] * 6 + [1.0])
    high = np.array([np.inf] * 6 + [10.0])

    def settle(at: int, value: float) -> None:
        start[at] = low[at] = high[at] = value

    if len(np.unique(local)) == 1:  # constant and slope cannot be told apart: half and half
        settle(0, float(compute.mean()) / 2)
    if not across.any():
        settle(2, _LEAST)
        settle(3, _LEAST)
    if not inside.any():
        settle(4, _LEAST)
        settle(5, _LEAST)
    if not (replicas > 2).any():
        settle(3, _LEAST)
        settle(5, _LEAST)
    error = _FitError(across, inside, replicas, local, np.log(compute), np.log(step))
    found = minimize(error, start, jac=True, method="L-BFGS-B", bounds=Bounds(low, high, keep_feasible=True)).x
    if not across.any():  # across nodes is never better than inside one
        found[2] = max(found[2], found[4] * 1.1)
        found[3] = max(found[3], found[5] * 1.1)
    return StepTimes(*(float(x) for x in found))


class _FitError:
    """Root mean square error of log times, with a pull towards no overlap and no slow-down by more replicas."""

    def __init__(
        self,
        across: NDArray[np.bool_],
        inside: NDArray[np.bool_],
        replicas: Ints,
        local: Floats,
        compute: Floats,
        step: Floats,
    ) -> None:
        self._local = local
        self._compute, self._step = compute, step
        self._across, self._inside = across.astype(np.float64), inside.astype(np.float64)
        self._alone = 1.0 - self._across - self._inside
        self._beyond = np.maximum(replicas - 2, _LEAST)

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        a_c, b_c, a_n, b_n, a_r, b_r, gamma = x
        compute = a_c + b_c * self._local
        network = self._across * (a_n + b_n * self._beyond) + self._inside * (a_r + b_r * self._beyond)
        network += self._alone * (_LEAST + _LEAST * self._beyond)
        off_compute = np.log(compute) - self._compute
        log_compute, log_network = np.log(compute), np.log(network)
        power_c, power_n = np.exp(gamma * log_compute), np.exp(gamma * log_network)
        total = power_c + power_n
        log_step = np.log(total) / gamma
        off_step = log_step - self._step
        count = len(self._local)
        error_c = max(float(np.sqrt((off_compute**2).mean())), 1e-12)
        error_s = max(float(np.sqrt((off_step**2).mean())), 1e-12)
        value = error_c + error_s + 1e-3 * (gamma - 1) ** 2 + 1e-2 * ((b_n / a_n) ** 2 + (b_r / a_r) ** 2)
        weight_c, weight_s = off_compute / (count * error_c), off_step / (count * error_s)
        by_compute = weight_c / compute + weight_s * power_c / (total * compute)
        by_network = weight_s * power_n / (total * network)
        by_gamma = weight_s * ((power_c * log_compute + power_n * log_network) / (total * gamma) - log_step / gamma)
        gradient = np.array(
            [
                by_compute.sum(),
                (by_compute * self._local).sum(),
                (by_network * self._across).sum() - 2e-2 * b_n**2 / a_n**3,
                (by_network * self._across * self._beyond).sum() + 2e-2 * b_n / a_n**2,
                (by_network * self._inside).sum() - 2e-2 * b_r**2 / a_r**3,
                (by_network * self._inside * self._beyond).sum() + 2e-2 * b_r / a_r**2,
                by_gamma.sum() + 2e-3 * (gamma - 1),
            ]
        )
        return float(value), gradient
