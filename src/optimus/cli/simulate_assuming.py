"""What `optimus simulate` is told to assume of starts, checkpoints, failures, spreading and neighbours."""

from __future__ import annotations

from difflib import get_close_matches

import typer

from optimus.drivers.sim.sweeping import Assumptions, neighbours_of
from optimus.drivers.sim.sweeping.assuming import NEVER
from optimus.model.units import UnitError, parse_duration

LONGEST_MS = 30 * 86_400_000
"""Of a start, and of writing a checkpoint."""
LEAST_EVERY_MS = 1_000


def assumptions_of(
    start: str,
    restart: str,
    checkpoint: str,
    checkpoint_cost: str,
    job_failures: float,
    node_failures: str,
    racks: int,
    spreading: str,
    neighbours: str,
) -> Assumptions:
    """Texts as they are typed; empty: as the trace has it."""
    mtbf, repair = _failing(node_failures)
    across_nodes, across_racks = _spread(spreading, racks)
    every = _every(checkpoint)
    cost = _short("--checkpoint-cost", checkpoint_cost)
    if cost and not (every and every > 0):
        raise typer.BadParameter(
            "saying how often is --checkpoint 30m; without it none is written", param_hint="--checkpoint-cost"
        )
    shared = _words("--neighbours", neighbours, ("devices", "network"), bare=("devices",))
    return Assumptions(
        start_ms=_short("--start", start),
        restart_ms=_short("--restart", restart),
        checkpoint_ms=every,
        checkpoint_cost_ms=cost,
        job_failures=job_failures,
        node_mtbf_ms=mtbf,
        node_repair_ms=repair,
        racks=racks,
        across_nodes=across_nodes,
        across_racks=across_racks,
        neighbours=neighbours_of("devices" in shared, _part("--neighbours", "network", shared.get("network", "0"))),
    )


def _every(text: str) -> int | None:
    if not text:
        return None
    if text == "never":
        return NEVER
    every = _time("--checkpoint", text)
    if 0 < every < LEAST_EVERY_MS:
        raise typer.BadParameter(
            f"{text} is too often; write 30m, 0 (always up to date) or never", param_hint="--checkpoint"
        )
    return every


def _failing(text: str) -> tuple[int, int]:
    said = _words("--node-failures", text, ("mtbf", "repair"))
    if not said:
        return 0, 0
    if set(said) != {"mtbf", "repair"}:
        raise typer.BadParameter("write both, such as mtbf=30d,repair=2h", param_hint="--node-failures")
    mtbf, repair = (_time("--node-failures", said[name]) for name in ("mtbf", "repair"))
    if mtbf < LEAST_EVERY_MS or repair < LEAST_EVERY_MS:
        raise typer.BadParameter("both are at least 1s, such as mtbf=30d,repair=2h", param_hint="--node-failures")
    return mtbf, repair


def _spread(text: str, racks: int) -> tuple[float, float]:
    said = _words("--spreading", text, ("nodes", "racks"))
    if "racks" in said and not racks:
        raise typer.BadParameter("racks cost nothing where there are none; add --racks 4", param_hint="--spreading")
    speeds = [_part("--spreading", name, said.get(name, "1")) for name in ("nodes", "racks")]
    if 0.0 in speeds:
        raise typer.BadParameter("a speed is more than 0, such as 0.8", param_hint="--spreading")
    return speeds[0], speeds[1]


def _words(option: str, text: str, known: tuple[str, ...], bare: tuple[str, ...] = ()) -> dict[str, str]:
    said: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        key, _, value = part.partition("=")
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise typer.BadParameter(f"{part}: {key} is none of {', '.join(known)}{hint}", param_hint=option)
        if bool(value) == (key in bare) or key in said:
            wrong = "is there twice" if key in said else "has no value" if key in bare else "needs a value"
            raise typer.BadParameter(f"{part}: {key} {wrong}", param_hint=option)
        said[key] = value
    return said


def _part(option: str, name: str, text: str) -> float:
    try:
        part = float(text)
    except ValueError:
        part = -1.0
    if not 0 <= part <= 1:
        raise typer.BadParameter(f"{name} is {text}; write a part, 0 to 1", param_hint=option)
    return part


def _short(option: str, text: str) -> int | None:
    if not text:
        return None
    time = _time(option, text)
    if time > LONGEST_MS:
        raise typer.BadParameter(f"{text} is too long; write at most 30d", param_hint=option)
    return time


def _time(option: str, text: str) -> int:
    try:
        return parse_duration(text)
    except UnitError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
