"""Synthetic traces: jobs as large clusters publish them, drawn by a seed, without any data.

Why: everything must run on a fresh machine, and a policy must be tried on more clusters than have published a trace.
Owns: the mixes (arrivals, sizes, durations, tenants, classes, families) and what they are calibrated to.
Must not: read a file, or depend on anything but its arguments.

Published, and what the mix is calibrated to (GPU jobs; durations in seconds; `big`: 8 GPUs or more):

    trace                    jobs   median    mean  ratio  mean GPUs   1 GPU   big jobs  their GPU time
    Philly, Jeon '19      112,956      874  18,006   20.6       1.93
    Philly until 5 Nov     55,803    1,443  13,971    9.7       1.21    95 %      1.6 %            61 %
    Helios, Hu '21      1,580,464      206   6,652   32.3       3.72
    Seren, Hu '24         663,813      122   1,414   11.6       5.68
    PAI, Weng '22       1,037,085      481   4,787   10.0       0.68
    ITP 07, Gu '23         12,699    7,399  25,881    3.5       1.84    78 %      7.4 %            69 %
    ITP 02, Gu '23          5,778    6,182  22,970    3.7       2.04    85 %      7.6 %            62 %
    this mix                          1,130  12,200   10.7       1.96    81 %      6.2 %            60 %

Philly as a whole, Helios, Seren and PAI are from the summary published with AcmeTrace; the other rows are counted from
the published lists. Our own row is the mean of ten seeds with 20,000 jobs on 512 GPUs.

    intensity(t) = day rhythm x week rhythm      most jobs come on working days, in the afternoon; nights are quiet
    tenant ~ Zipf ─► family ~ Zipf within it ─► class, GPUs and usual duration ─► one job, log-normal around it

Families are dealt over the quantiles of sizes and durations by their weight, so that two seeds differ in who does what,
and hardly in how much there is to do. The load is met inside the window in which jobs are submitted (see `filling`);
for that no job is longer than half of it, which a trace of three weeks does not notice, and jobs that would not fill a
day are made longer.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from optimus.drivers.sim.jobs import Job
from optimus.drivers.sim.setup import Setup
from optimus.drivers.sim.traces import filling
from optimus.drivers.sim.traces.gathering import split_gpus, weighted_queue
from optimus.drivers.sim.traces.shaping import demand_load, demand_span
from optimus.drivers.sim.traces.trace import Trace, TraceError, TraceProblem, Verdict
from optimus.drivers.sim.traces.traits import Traits, demand_sense, draw_traits
from optimus.drivers.sim.works.steady import Steady
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.workloads import WorkloadClass

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DAY_MS = 86_400_000
MOST_JOBS = 2_000_000
"""More than any cluster has published; beyond it memory is full before anything is seen."""
LEAST_DAYS = 1
"""Fewer show no rhythm: jobs that would be over sooner are made longer."""
MOST_DAYS, MOST_GPUS, MOST_PER_NODE, MOST_TENANTS = 3_650, 1_000_000, 1_000, 10_000
SIZES = (1, 2, 4, 8)
"""What families usually ask for."""
_SIZE_SHARES = (0.77, 0.075, 0.075, 0.08)
"""Of unattended jobs; with the other classes about four jobs in five have one GPU."""
_LARGER = (0.75, 0.15, 0.075, 0.025)
"""Of jobs of families of 8 GPUs: 8, 16, 32, 64."""
_BANDS = ((1, 2, 1.0, 1.0), (2, 8, 1.6, 1.0), (8, 9, 15.0, 0.6))
"""From so many GPUs to below so many: usual durations are so many times longer, and differ by so much less. They are
spread evenly inside each band, so that chance does not decide who takes the cluster."""
_GOLDEN = (math.sqrt(5) - 1) / 2
_FAMILIES = 60
"""Of each tenant."""
_SMALLER_SHARE = 0.1
"""Of jobs that are one size below what is usual in their family: somebody tries something."""
_BATCH = 256
_CPU_MILLI, _MEMORY_MIB = 8_000, 65_536
"""For each GPU."""


class _Kind(Struct, frozen=True):
    workload_class: WorkloadClass
    share: float
    median_s: float
    between: float
    """Sigma of the logarithm of the usual durations of families."""
    within: float
    """And of jobs of one family: small beside the other, so that history helps."""
    longest_s: float
    most_gpus: int
    night: float
    """How many come in the quietest hour, of those in the busiest."""


_KINDS = (
    _Kind(WorkloadClass.UNATTENDED, 0.85, 620, 2.4, 0.6, 10 * 86_400, SIZES[-1], 0.35),
    _Kind(WorkloadClass.INTERACTIVE, 0.12, 1_800, 0.7, 0.7, 12 * 3_600, 1, 0.05),
    _Kind(WorkloadClass.INFERENCE, 0.03, 30_000, 0.8, 0.5, 7 * 86_400, 2, 0.7),
)
_ATTENDED = 1
"""Which of them somebody sits before."""
_WEEKEND = 0.5
_BUSIEST_HOUR = 15.0


class Mix(Struct, frozen=True, kw_only=True):
    """Of jobs and days one is enough, and the other follows from the load. With both, durations are scaled to it."""

    jobs: int | None = None
    days: float | None = None
    gpus: int = 64
    gpus_per_node: int = 8
    load: float = 0.8
    """GPUs that are busy while jobs are submitted, if each starts at once, as part of those of the cluster."""
    tenants: int = 8
    elastic: float = 0.0
    """Part of the jobs that can change their size; this and the next three are described in `traits`."""
    shared: float = 0.0
    deadlines: float = 0.0
    models: tuple[str, ...] = ()
    seed: int = 0


def generate(mix: Mix) -> Trace:
    """Same mix, same trace. It begins on a Monday at 0:00."""
    _demand_sense(mix)
    draw = np.random.default_rng(mix.seed)
    families = _families(mix, draw)
    drawn = _draw_jobs(mix, families, draw)
    nights = np.array([kind.night for kind in _KINDS])[families.kind[drawn.family]]
    traits = draw_traits(
        seed=mix.seed,
        elastic=mix.elastic,
        shared=mix.shared,
        deadlines=mix.deadlines,
        models=mix.models,
        gpus=drawn.gpus,
        attended=families.kind[drawn.family] == _ATTENDED,
        families=len(families.weight),
        largest=_largest(mix),
    )
    busy, gpus = mix.load * mix.gpus, drawn.gpus * traits.milli / WHOLE_DEVICE_MILLI
    if mix.days is not None:
        span_ms = mix.days * DAY_MS
    else:
        span_ms = max(filling.span_for(gpus, drawn.duration_ms, busy), LEAST_DAYS * DAY_MS)
    demand_span(span_ms, mix.load)
    submit_ms = _arrivals(nights, span_ms, draw)
    duration_ms = filling.lengthened(gpus, drawn.duration_ms, submit_ms, span_ms, busy)
    met = filling.inside(gpus, duration_ms, submit_ms) / mix.gpus
    problems = () if met > 0.98 * mix.load else (_too_few(mix, met),)
    return _trace(mix, families, Drawn(drawn.family, drawn.gpus, duration_ms), submit_ms, traits, problems)


def _too_few(mix: Mix, met: float) -> TraceProblem:
    message = f"{mix.jobs} jobs are too few for load {mix.load:g} on {mix.gpus} GPUs: it is {met:.2g}; write more jobs"
    return TraceProblem(file=_name(mix), line=0, verdict=Verdict.NOTE, message=message)


def _demand_sense(mix: Mix) -> None:
    if mix.jobs is not None and not 1 <= mix.jobs <= MOST_JOBS:
        raise TraceError(f"jobs is {mix.jobs}; write 1 to {MOST_JOBS}")
    if mix.days is not None and not 0 < mix.days <= MOST_DAYS:
        raise TraceError(f"days is {mix.days:g}; write more than 0 and at most {MOST_DAYS}")
    demand_load(mix.load)
    if not 1 <= mix.gpus_per_node <= MOST_PER_NODE or mix.gpus > MOST_GPUS:
        what = f"gpus is {mix.gpus}, gpus_per_node {mix.gpus_per_node}"
        raise TraceError(f"{what}; write at most {MOST_GPUS}, and 1 to {MOST_PER_NODE} of each node")
    if mix.gpus < 1 or mix.gpus % mix.gpus_per_node:
        raise TraceError(f"gpus is {mix.gpus}; expected a multiple of the {mix.gpus_per_node} GPUs of a node")
    if not 1 <= mix.tenants <= MOST_TENANTS:
        raise TraceError(f"tenants is {mix.tenants}; write 1 to {MOST_TENANTS}")
    parts = {"elastic": mix.elastic, "shared": mix.shared, "deadlines": mix.deadlines}
    demand_sense(parts, mix.models, mix.gpus // mix.gpus_per_node)
    if mix.jobs is None and mix.days is None:
        raise TraceError("neither jobs nor days are given; say how much is to be generated")


# ------------------------------------------------------------------------------------------- who does what


class Families(Struct, frozen=True):
    """Columns, one row for each."""

    tenant: Ints
    weight: Floats
    kind: Ints
    gpus: Ints
    usual_s: Floats


def zipf(count: int, power: float = 1.0) -> Floats:
    weights: Floats = np.arange(1, count + 1, dtype=np.float64) ** -power
    weights /= float(weights.sum())
    return weights


def _families(mix: Mix, draw: np.random.Generator) -> Families:
    tenant = np.repeat(np.arange(mix.tenants), _FAMILIES)
    weight = np.outer(zipf(mix.tenants), zipf(_FAMILIES, 0.5)).ravel()
    kind = _dealt(weight, np.array([k.share for k in _KINDS]), draw)
    gpus = np.ones_like(tenant)
    usual = np.zeros_like(weight)
    for number, of_kind in enumerate(_KINDS):
        rows = np.flatnonzero(kind == number)
        if not len(rows):
            continue
        shares = np.array(_SIZE_SHARES[: sum(size <= of_kind.most_gpus for size in SIZES)])
        size = np.array(SIZES)[_dealt(weight[rows], shares / shares.sum(), draw)]
        gpus[rows] = size
        for low, high, longer, narrower in _BANDS:
            band = draw.permutation(rows[(low <= gpus[rows]) & (gpus[rows] < high)])
            band = band[np.argsort(gpus[band], kind="stable")]
            order = np.argsort((draw.random() + np.arange(len(band)) * _GOLDEN) % 1)  # each size gets short and long
            spread = np.array([NormalDist().inv_cdf(q) for q in _quantiles(weight[band], order)])
            usual[band] = of_kind.median_s * longer * np.exp(of_kind.between * narrower * spread)
    return Families(tenant, weight, kind, gpus, usual)


def _quantiles(weight: Floats, order: Ints) -> Floats:
    """The middle of each one's part of 0 to 1, in this order: together they cover it evenly."""
    ends = np.cumsum(weight[order]) / weight.sum()
    result: Floats = np.empty_like(ends)
    result[order] = ends - weight[order] / weight.sum() / 2
    return result


def _dealt(weight: Floats, shares: Floats, draw: np.random.Generator) -> Ints:
    """One of the choices for each, so that the weights come close to the shares."""
    edges = np.cumsum(shares)[:-1]
    return np.searchsorted(edges, _quantiles(weight, draw.permutation(len(weight)))).astype(np.int64)


# ------------------------------------------------------------------------------------------------ the jobs


class Drawn(Struct, frozen=True):
    """Columns, one row for each job, in no order of time."""

    family: Ints
    gpus: Ints
    duration_ms: Floats


def _draw_jobs(mix: Mix, families: Families, draw: np.random.Generator) -> Drawn:
    """So many, or as many as meet the load in so many days."""
    if mix.jobs is not None:
        return _batch(mix, families, mix.jobs, draw)
    assert mix.days is not None
    span_ms, busy = mix.days * DAY_MS, mix.load * mix.gpus
    parts: list[Drawn] = []
    filled = 0.0
    while filled < busy:
        parts.append(_batch(mix, families, _BATCH, draw))
        filled += float(filling.expected(parts[-1].gpus, parts[-1].duration_ms, span_ms).sum())
        if len(parts) * _BATCH > MOST_JOBS:
            raise TraceError(
                f"{mix.days:g} days at load {mix.load:g} on {mix.gpus} GPUs are more than {MOST_JOBS} jobs; "
                "write fewer days or a smaller cluster"
            )
    drawn = Drawn(
        np.concatenate([p.family for p in parts]),
        np.concatenate([p.gpus for p in parts]),
        np.concatenate([p.duration_ms for p in parts]),
    )
    count = int(np.searchsorted(np.cumsum(filling.expected(drawn.gpus, drawn.duration_ms, span_ms)), busy)) + 1
    return Drawn(drawn.family[:count], drawn.gpus[:count], drawn.duration_ms[:count])


def _batch(mix: Mix, families: Families, count: int, draw: np.random.Generator) -> Drawn:
    family = draw.choice(len(families.weight), size=count, p=families.weight)
    kind = families.kind[family]
    gpus = families.gpus[family]
    smaller = (draw.random(count) < _SMALLER_SHARE) & (gpus > 1)
    gpus = np.where(smaller, gpus // 2, gpus)
    larger = 2 ** draw.choice(len(_LARGER), size=count, p=_LARGER)
    gpus = np.minimum(np.where(gpus == SIZES[-1], gpus * larger, gpus), _largest(mix))
    within = np.array([k.within for k in _KINDS])[kind]
    longest = np.array([k.longest_s for k in _KINDS])[kind]
    seconds = families.usual_s[family] * np.exp(draw.normal(0.0, 1.0, count) * within)
    return Drawn(family, gpus, np.clip(seconds, 10.0, longest) * 1000)


def _largest(mix: Mix) -> int:
    """No job takes more than half of the cluster; on a small one the largest sizes are missing."""
    return 1 << max((mix.gpus // 2).bit_length() - 1, 0)


def _arrivals(nights: Floats, span_ms: float, draw: np.random.Generator) -> Floats:
    """A Poisson process given the number of its points, thinned to the rhythm: what does not fit is drawn again."""
    at = np.zeros(len(nights))
    left = np.arange(len(nights))
    while len(left):
        at[left] = draw.random(len(left)) * span_ms
        refused = draw.random(len(left)) > _intensity(at[left], nights[left])
        left = left[refused]
    return at


def _intensity(at_ms: Floats, nights: Floats) -> Floats:
    hour = at_ms / 3_600_000 % 24
    wave = (1 + np.cos((hour - _BUSIEST_HOUR) / 24 * 2 * math.pi)) / 2
    weekend = (at_ms // DAY_MS % 7) >= 5
    result: Floats = (nights + (1 - nights) * wave) * np.where(weekend, _WEEKEND, 1.0)
    return result


def _name(mix: Mix) -> str:
    return f"synthetic-{mix.seed}"


def _trace(
    mix: Mix,
    families: Families,
    drawn: Drawn,
    submit_ms: Floats,
    traits: Traits,
    problems: tuple[TraceProblem, ...],
) -> Trace:
    order = np.argsort(submit_ms, kind="stable")
    width = len(str(len(order) - 1))
    jobs = []
    for number, row in enumerate(order):
        family = int(drawn.family[row])
        kind = _KINDS[int(families.kind[family])]
        total, duration_ms = int(drawn.gpus[row]), round(float(drawn.duration_ms[row]))
        replicas, gpus = (total, 1) if traits.single_gpus else split_gpus(total, mix.gpus_per_node)
        more = traits.of(int(row), family, int(submit_ms[row]), duration_ms, replicas)
        jobs.append(
            Job(
                name=f"{kind.workload_class}-{number:0{width}d}",
                submit_ms=int(submit_ms[row]),
                work=Steady(duration_ms=duration_ms, replicas=replicas, **more.pop("work")),
                queue=f"tenant-{int(families.tenant[family]) + 1}",
                family=f"family-{family + 1}",
                workload_class=kind.workload_class,
                replicas=replicas,
                gpus=gpus,
                cpu_milli=_CPU_MILLI * gpus,
                memory_mib=_MEMORY_MIB * gpus,
                **more,
            )
        )
    # weights fall more slowly than demand does, so that large tenants want more than their share
    queues = tuple(weighted_queue(f"tenant-{i}", round(100 / math.sqrt(i))) for i in range(1, mix.tenants + 1))
    nodes = traits.nodes(mix.gpus // mix.gpus_per_node, mix.gpus_per_node)
    return Trace(
        name=_name(mix),
        jobs=tuple(jobs),
        rows=len(jobs),
        problems=problems,
        queues=queues,
        setup=Setup(nodes=nodes, queues=queues),
    )
