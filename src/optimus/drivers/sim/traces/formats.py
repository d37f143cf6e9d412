"""The formats: one entry for all of them, and a line about each.

Why: whoever has a file should not have to know which module reads it.
Owns: the table of formats, telling them apart, and the options that all of them share.
Must not: read a row.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from optimus.drivers.sim.traces import chronus, gavel, itp, openb, philly, pollux, shaping, shockwave
from optimus.drivers.sim.traces.mapped import load_csv
from optimus.drivers.sim.traces.recorded import load_journal
from optimus.drivers.sim.traces.rows import Table
from optimus.drivers.sim.traces.trace import Trace, TraceError


class Format(Struct, frozen=True):
    name: str
    doc: str
    read: Callable[..., Trace]
    columns: tuple[str, ...] = ()
    """By which it is recognised; empty: by something else."""

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(self._parameters())

    def _parameters(self) -> dict[str, inspect.Parameter]:
        parameters = inspect.signature(self.read).parameters
        return {name: p for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY}

    def load(self, path: Path, options: dict[str, object]) -> Trace:
        known = self._parameters()
        for name in options:
            if name not in known:
                raise TraceError(f"{self.name} has no option {name}; it has {', '.join(known) or 'none'}")
        for name, parameter in known.items():
            if parameter.default is parameter.empty and options.get(name) is None:
                raise TraceError(f"{self.name} needs the option {name}")
        return self.read(path, **{n: _converted(n, value, str(known[n].annotation)) for n, value in options.items()})


_ALL = (
    Format("philly", "Microsoft Philly 2017: times, GPUs, virtual clusters", philly.load_philly, philly.COLUMNS),
    Format("itp2021", "Microsoft ITP 2021: times, GPUs, models; rigid jobs", itp.load_itp, itp.COLUMNS),
    Format("elasticflow", "the same list with throughputs: jobs that can change their size", itp.load_elasticflow),
    Format("shockwave", "Shockwave: Gavel's kinds of jobs with durations", shockwave.load_shockwave, shockwave.COLUMNS),
    Format("gavel", "Gavel: steps of known models on V100, P100 and K80", gavel.load_gavel, gavel.COLUMNS),
    Format("pollux", "Pollux: measured applications; rigid, scaling or adaptive", pollux.load_pollux, pollux.COLUMNS),
    Format("chronus", "Chronus: deadlines, CPU jobs, costs of spreading", chronus.load_chronus, chronus.COLUMNS),
    Format("openb", "Alibaba openb: pods that share GPUs, and their nodes", openb.load_openb, openb.COLUMNS),
    Format("journal", "a journal folder of this scheduler: what really ran", load_journal),
    Format("csv", "any CSV, with a mapping file that says which column is what", load_csv),
)
FORMATS = {form.name: form for form in _ALL}
"""By name; what stands first is tried first where columns would fit two."""


def load(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  (as people call it)
    min_duration_ms: int = 0,
    from_ms: int | None = None,
    until_ms: int | None = None,
    first_jobs: int | None = None,
    tenants: int | None = None,
    target_load: float | None = None,
    prediction_sigma: float | None = None,
    seed: int = 0,
    **options: object,
) -> Trace:
    """Jobs of a file or folder; TraceError if it cannot be used at all.

    The shared options are applied in the order above, after loading; a target load needs a cluster (`cluster_gpus`,
    or the one the trace comes with). `options` are those of the format; None stands for its default.
    """
    path = Path(path)
    options = {name: value for name, value in options.items() if value is not None}
    chosen = _named(format) if format else detect(path, options)
    with _without_collecting():
        trace = chosen.load(path, options)
        if min_duration_ms:
            trace = shaping.at_least(trace, min_duration_ms)
        if from_ms is not None or until_ms is not None:
            trace = shaping.within(trace, from_ms or 0, (1 << 62) if until_ms is None else until_ms)
        if first_jobs is not None:
            trace = shaping.first_jobs(trace, first_jobs)
        if tenants is not None:
            trace = shaping.with_tenants(trace, tenants, seed)
        if target_load is not None:
            trace = shaping.at_load(trace, target_load, _gpus_of(trace))
        if prediction_sigma is not None:
            trace = shaping.with_predictions(trace, prediction_sigma, seed)
    return trace


def detect(path: Path, options: dict[str, object] | None = None) -> Format:
    """The format of a file or folder, by its columns and by the options that only one format has."""
    options = options or {}
    if not path.exists():
        raise TraceError(f"{path}: there is no such file or folder")
    if path.is_dir():
        if any(path.glob("*.journal")):
            return FORMATS["journal"]
        if any((path / name).exists() for name in openb.POD_LISTS):
            return FORMATS["openb"]
        raise TraceError(f"{path}: neither a journal nor the openb lists; name the file in it that holds the jobs")
    if "mapping" in options:
        return FORMATS["csv"]
    table = Table(path)
    for form in _ALL:
        if form.columns and all(column in table for column in form.columns):
            return FORMATS["elasticflow"] if form.name == "itp2021" and "throughputs" in options else form
    known = "; ".join(f"{form.name}: {', '.join(form.columns)}" for form in _ALL if form.columns)
    raise TraceError(
        f"{path}: its columns are of no known format; found {', '.join(table.columns[:20])}; expected one of {known}; "
        "for any other list give a mapping file"
    )


def _named(name: str) -> Format:
    if name not in FORMATS:
        raise TraceError(f"{name} is no format; formats are {', '.join(FORMATS)}")
    return FORMATS[name]


def _gpus_of(trace: Trace) -> int:
    gpus = sum(len(node.devices) for node in trace.setup.nodes) if trace.setup else 0
    if not gpus:
        raise TraceError(f"{trace.name}: a target load needs a cluster; give cluster_gpus")
    return gpus


def _converted(name: str, value: object, annotation: str) -> object:
    """Options may come from a command line, as text."""
    if not isinstance(value, str):
        return value
    if "Path" in annotation:
        return Path(value)
    if "bool" in annotation:
        if value not in ("true", "false"):
            raise TraceError(f"{name} is {value}; write true or false")
        return value == "true"
    if "int" in annotation:
        try:
            return int(value)
        except ValueError:
            raise TraceError(f"{name} is {value}; write a whole number") from None
    return value


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Many small objects that all stay: searching them for cycles would take longer than making them."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
