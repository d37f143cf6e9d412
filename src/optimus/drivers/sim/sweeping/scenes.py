"""Scenes: one trace at one load with one seed on one cluster, ready to be played by everybody.

Why: schedulers are compared on the same jobs; whatever is done to a trace is done once, before any of them sees it.
Owns: the order of shaping (what fits, the first jobs, load, what is told and assumed), and the names of scenes.
Must not: know who plays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from msgspec import Struct, structs

from optimus.drivers.sim.setup import Setup
from optimus.drivers.sim.sweeping.assuming import Assumptions, assume, in_words
from optimus.drivers.sim.sweeping.clusters import Cluster
from optimus.drivers.sim.sweeping.complaints import Complaint, SweepError, misused, unusable
from optimus.drivers.sim.sweeping.fitting import leave_out_too_large, missing_queues
from optimus.drivers.sim.sweeping.sources import Source, digest, encoded, files_of, read
from optimus.drivers.sim.traces import shaping
from optimus.drivers.sim.traces.trace import Trace, TraceError, setup_on

_AFTER_THE_LAST_MS = 3_600_000
"""Jobs that never end are watched this long after the last of them was submitted."""


class Wishes(Struct, frozen=True, kw_only=True):
    """What the command line says of all traces."""

    cluster: Cluster | None = None
    loads: tuple[float, ...] = ()
    """Empty: as the trace is."""
    seeds: tuple[int, ...] = ()
    first_jobs: int | None = None
    sigma: float | None = None
    """Schedulers are told run times with this error; None: nothing."""
    interval_ms: int | None = None
    tick_ms: int | None = None
    decision_ms: int = 0
    assumed: Assumptions = Assumptions()


class Scene(Struct, frozen=True, kw_only=True):
    name: str
    load: float | None
    """As asked for; None: as the trace is."""
    trace: Trace
    setup: Setup
    own_rhythm: bool
    """Nobody named an interval, so that whoever has a rhythm of its own keeps it."""
    until_ms: int | None = None
    assumptions: tuple[tuple[str, str], ...] = ()
    """What stopping, failing and sharing cost, in words."""
    digest: str
    """Of everything above."""
    files: tuple[tuple[str, str], ...] = ()
    """Names and digests of the files it came from."""


def scenes(sources: Sequence[Source], wishes: Wishes) -> tuple[Scene, ...]:
    """By load, then by source, then by seed. SweepError with everything that is wrong."""
    _demand_sense(sources, wishes)
    wrong: list[Complaint] = []
    by_load: dict[float | None, list[Scene]] = {load: [] for load in wishes.loads or (None,)}
    for source in sources:
        try:
            for scene in _of(source, wishes):
                by_load[scene.load].append(scene)
        except SweepError as error:
            wrong += error.complaints
        except TraceError as error:
            wrong.append(Complaint(message=str(error)))
    if wrong:
        raise SweepError(dict.fromkeys(wrong))
    return tuple(_named(scene, found, wishes) for found in by_load.values() for scene in found)


def _demand_sense(sources: Sequence[Source], wishes: Wishes) -> None:
    if len(wishes.seeds) < 2 or wishes.sigma:
        return
    listed = [source.text for source in sources if not source.drawn]
    if listed:
        raise misused(
            "--seed",
            f"{listed[0]} is a list: another seed does not change its jobs, and the same jobs twice are no more proof; "
            "name one seed, several traces, or --predict SIGMA, whose errors are drawn",
        )


def _of(source: Source, wishes: Wishes) -> Iterator[Scene]:
    listed: Trace | None = None
    files = (*files_of(source), *(wishes.cluster.files if wishes.cluster else ()))
    for seed in wishes.seeds or (None,):
        if source.drawn or listed is None:
            listed = _read(source, wishes.cluster, seed)
        setup = _setup(source, listed, wishes, seed)
        fitting = leave_out_too_large(listed, setup.nodes, source)
        if wishes.cluster is not None and wishes.cluster.queues:
            missing = missing_queues(fitting, wishes.cluster)
            if missing:
                raise SweepError(missing)
        if wishes.first_jobs is not None:
            fitting = shaping.first_jobs(fitting, wishes.first_jobs)
        if not fitting.jobs:
            raise unusable(_nothing_left(source, fitting))
        mark = digest(listed)
        for load in wishes.loads or (None,):
            yield structs.replace(_scene(fitting, setup, wishes, load, mark), files=files)


def _read(source: Source, cluster: Cluster | None, seed: int | None) -> Trace:
    """What is wrong with a list stands in its file; what is drawn was typed."""
    try:
        return read(source, cluster, seed)
    except TraceError as error:
        if not source.drawn:
            raise
        raise misused("TRACE", f"{source.text}: {error}") from None


def _scene(trace: Trace, setup: Setup, wishes: Wishes, load: float | None, mark: str) -> Scene:
    if load is not None:
        trace = shaping.at_load(trace, load, sum(len(node.devices) for node in setup.nodes))
    if wishes.sigma is not None:
        trace = shaping.with_predictions(trace, wishes.sigma, setup.seed)
    trace, setup = assume(trace, setup, wishes.assumed)
    until = trace.jobs[-1].submit_ms + _AFTER_THE_LAST_MS if trace.endless else None
    whole = [mark, setup, load, wishes.first_jobs, wishes.sigma, until]
    if wishes.assumed != Assumptions():
        whole.append(wishes.assumed)
    return Scene(
        name=trace.name,
        load=load,
        trace=trace,
        setup=setup,
        own_rhythm=wishes.interval_ms is None and not setup.interval_ms,
        until_ms=until,
        assumptions=in_words(trace.jobs, setup, wishes.assumed),
        digest=hashlib.sha256(encoded(whole)).hexdigest(),
    )


def _setup(source: Source, trace: Trace, wishes: Wishes, seed: int | None) -> Setup:
    cluster = wishes.cluster
    if cluster is not None:
        setup = setup_on(trace, cluster.nodes)
        setup = structs.replace(
            setup, pools=cluster.pools, queues=cluster.queues or trace.queues, settings=cluster.settings
        )
    elif trace.setup is not None:
        setup = trace.setup
    else:
        raise misused("TRACE", f"{source.text}: does not say on what cluster; give --nodes 60x8 or --cluster FILE")
    number = seed if seed is not None else int(source.options.get("seed", 0)) if source.drawn else 0
    return structs.replace(
        setup,
        seed=number,
        interval_ms=setup.interval_ms if wishes.interval_ms is None else wishes.interval_ms,
        tick_ms=setup.tick_ms if wishes.tick_ms is None else wishes.tick_ms,
        decision_ms=wishes.decision_ms,
    )


def _nothing_left(source: Source, trace: Trace) -> str:
    if not trace.problems:
        return f"{source.text}: no job in it"
    more = len(trace.problems) - 3
    told = "".join(f"\n  {problem}" for problem in trace.problems[:3]) + (f"\n  and {more} more" if more > 0 else "")
    return f"{source.text}: no job is left of {trace.rows} rows:{told}"


def _named(scene: Scene, together: Sequence[Scene], wishes: Wishes) -> Scene:
    """Apart from the others at the same load."""
    same = [other for other in together if other.trace.name == scene.trace.name]
    if len(same) < 2:
        return scene
    if len({other.setup.seed for other in same}) == len(same) and wishes.seeds:
        return structs.replace(scene, name=f"{scene.name}, seed {scene.setup.seed}")
    return structs.replace(scene, name=f"{scene.name} ({together.index(scene) + 1})")
