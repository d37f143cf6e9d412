"""A study: records of the same jobs under several schedulers, with what is needed to do it again.

Why: tables, files and the page are drawn from one object, so that they cannot disagree.
Owns: the object, and its provenance.
Must not: read a clock or a file. What a caller wants to be told (a date, a command) it passes in.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

import optimus
from optimus.drivers.sim.measuring.averaging import averaged
from optimus.drivers.sim.measuring.capacity import total_gpus
from optimus.drivers.sim.measuring.comparing import Comparison, compare
from optimus.drivers.sim.measuring.metrics import VERSION, Measured, Metrics
from optimus.drivers.sim.setup import Setup
from optimus.drivers.sim.traces.trace import Trace


class Provenance(Struct, frozen=True, kw_only=True, rename="camel"):
    trace: str
    """Its name; with several, the name of the set."""
    traces: tuple[str, ...] = ()
    """With several, the name of each."""
    source: str = ""
    problems: tuple[str, ...] = ()
    """Of the trace file, one sentence each."""
    policies: tuple[tuple[str, str], ...] = ()
    """Name, and what it is: its settings, its source, whether it knows what nobody can know."""
    assumptions: tuple[tuple[str, str], ...] = ()
    """What starting, saving, failing, spreading and sharing cost: what, and how much."""
    files: tuple[tuple[str, str], ...] = ()
    """Every file that was named, traces, tables, clusters and policies, and its SHA-256."""
    played: tuple[tuple[str, str], ...] = ()
    """Each trace as it was played, with its cluster, load and seed, and the SHA-256 of all that."""
    command: str = ""
    created: str = ""
    """As it shall be shown; empty leaves it out, and the same input gives the same bytes."""
    notes: tuple[str, ...] = ()


def provenance_of(
    trace: Trace,
    *,
    policies: tuple[tuple[str, str], ...] = (),
    command: str = "",
    created: str = "",
    notes: tuple[str, ...] = (),
) -> Provenance:
    """What a trace says of itself; its file by name only, since a report travels and folders do not."""
    read = f"{trace.rows} rows read, {trace.left_out} left out, {trace.changed} changed"
    return Provenance(
        trace=trace.name,
        source=f"{trace.source.name}: {read}" if trace.source else read,
        problems=tuple(str(problem) for problem in trace.problems),
        policies=policies,
        command=command,
        created=created,
        notes=notes,
    )


class Cluster(Struct, frozen=True, kw_only=True, rename="camel"):
    nodes: int
    gpus: int
    shapes: tuple[str, ...]
    """`16 x 4 T4`."""
    queues: tuple[str, ...]
    interval_ms: int
    decision_ms: int
    """On the clock of the simulation, as it was asked for."""
    outages: int
    neighbours: str
    seed: int


class Study(Struct, frozen=True, kw_only=True, eq=False):
    version: int
    optimus: str
    provenance: Provenance
    cluster: Cluster
    setup: Setup
    seed: int
    """Of the intervals."""
    measured: tuple[Measured, ...]
    """Of the first trace; the reference is the first."""
    each: tuple[tuple[Metrics, ...], ...]
    """By trace, in the same order of schedulers."""
    mean: tuple[Metrics, ...]
    """Over traces; with one trace, its own."""
    comparisons: tuple[Comparison, ...]
    """Each of the others against the reference, over all traces."""


def study(
    traces: Sequence[Sequence[Measured]],
    setup: Setup,
    provenance: Provenance,
    *,
    reference: str = "",
    seed: int = 0,
) -> Study:
    """One row of records per trace, each with the same schedulers. The reference is the first one unless named."""
    rows = [list(row) for row in traces]
    names = [measured.name for measured in rows[0]]
    if reference:
        if reference not in names:
            raise ValueError(f"there is no record of {reference}; there are {', '.join(names)}")
        first = names.index(reference)
        rows = [[row[first], *row[:first], *row[first + 1 :]] for row in rows]
    for row in rows[1:]:
        if [measured.name for measured in row] != [measured.name for measured in rows[0]]:
            raise ValueError(f"every trace needs the same schedulers in the same order: {', '.join(names)}")
    if len(set(names)) != len(names):
        raise ValueError(f"schedulers need names of their own to be compared: {', '.join(names)}")
    columns = list(zip(*rows, strict=True))
    return Study(
        version=VERSION,
        optimus=optimus.__version__,
        provenance=provenance,
        cluster=cluster(setup),
        setup=setup,
        seed=seed,
        measured=tuple(rows[0]),
        each=tuple(tuple(measured.metrics for measured in row) for row in rows),
        mean=tuple(averaged([measured.metrics for measured in column]) for column in columns),
        comparisons=tuple(compare(columns[0], other, seed=seed) for other in columns[1:]),
    )


def cluster(setup: Setup) -> Cluster:
    shapes: dict[str, int] = {}
    for node in setup.nodes:
        models = sorted({device.model for device in node.devices})
        shape = f"{len(node.devices)} {'+'.join(models)}".strip() if models else "no GPUs"
        shapes[shape] = shapes.get(shape, 0) + 1
    return Cluster(
        nodes=len(setup.nodes),
        gpus=total_gpus(setup),
        shapes=tuple(f"{count} × {shape}" for shape, count in sorted(shapes.items())),
        queues=tuple(queue.name for queue in setup.queues),
        interval_ms=setup.interval_ms,
        decision_ms=setup.decision_ms,
        outages=len(setup.outages),
        neighbours=type(setup.neighbours).__name__ if setup.neighbours else "",
        seed=setup.seed,
    )
