"""Sources: what stands in the place of TRACE on a command line, and the jobs it gives.

    jobs.csv.gz                        a file of a known format, or a folder
    synthetic                          jobs drawn by a seed
    synthetic:jobs=2000,load=0.9       … with options of the mix

Options are checked before anything is read: a file may take a minute, a typing error should not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct, structs

from optimus.drivers.sim.sweeping.clusters import Cluster
from optimus.drivers.sim.sweeping.complaints import misused, unusable
from optimus.drivers.sim.sweeping.digests import text_digest
from optimus.drivers.sim.traces import formats, rows, synthetic
from optimus.drivers.sim.traces.trace import Trace, TraceError

SYNTHETIC = "synthetic"
JOBS = 500
"""Of a synthetic trace about which nothing is said."""
_WHOLE = ("jobs", "gpus", "gpus_per_node", "tenants", "seed")
_SHARED = ("min_duration_ms", "from_ms", "until_ms", "tenants")
"""Options of all formats that have no option of the command."""
_OF_THE_COMMAND = {
    "first_jobs": "--jobs",
    "target_load": "--load",
    "prediction_sigma": "--predict",
    "seed": "--seed",
    "format": "--format",
}
_MEMORY = ("_times", "_stats", "_between")
"""What a measured application remembers of earlier questions; it is no part of what it is."""


class Source(Struct, frozen=True, kw_only=True):
    text: str
    """As it was typed."""
    path: Path | None = None
    """None: it is drawn."""
    form: str = ""
    options: dict[str, Any] = {}

    @property
    def drawn(self) -> bool:
        return self.path is None


def source_of(text: str, form: str = "", options: Mapping[str, str] | None = None) -> Source:
    """SweepError if it cannot be understood."""
    name, colon, rest = text.partition(":")
    if name == SYNTHETIC and not Path(text).exists():
        return Source(text=text, options=_mix(text, rest if colon else ""))
    path = Path(text)
    if not path.exists():
        near = " (did you mean synthetic?)" if get_close_matches(name, [SYNTHETIC]) else ""
        raise misused("TRACE", f"{text}: there is no such file or folder{near}; write a path, or synthetic:jobs=2000")
    if form and form not in formats.FORMATS:
        close = get_close_matches(form, formats.FORMATS, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise misused("--format", f"{form} is no format; {hint}Formats are {', '.join(formats.FORMATS)}")
    given: dict[str, Any] = dict(options or {})
    try:
        chosen = formats.FORMATS[form] if form else formats.detect(path, given)
    except TraceError as error:
        raise unusable(str(error)) from None
    return Source(text=text, path=path, form=chosen.name, options=_checked(chosen, given))


def _mix(text: str, written: str) -> dict[str, Any]:
    known = synthetic.Mix.__struct_fields__
    mix: dict[str, Any] = {}
    for part in filter(None, written.split(",")):
        key, equals, value = part.partition("=")
        if key not in known or not equals:
            near = get_close_matches(key, known, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            what = f"has no option {key}{hint}" if key not in known else f"{key} has no value"
            raise misused("TRACE", f"{text}: {what}; write synthetic:jobs=2000,load=0.9; options: {', '.join(known)}")
        try:
            mix[key] = tuple(value.split("+")) if key == "models" else int(value) if key in _WHOLE else float(value)
        except ValueError:
            kind = "a whole number" if key in _WHOLE else "a number"
            raise misused("TRACE", f"{text}: {key} is {value}; write {kind}") from None
    return mix


def _checked(chosen: formats.Format, given: dict[str, Any]) -> dict[str, Any]:
    known = (*chosen.options, *_SHARED)
    options = dict(given)
    for key, value in given.items():
        if key in _OF_THE_COMMAND and key not in chosen.options:
            raise misused("--option", f"{key} is an option of the command: {_OF_THE_COMMAND[key]} {value}")
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise misused("--option", f"the format {chosen.name} has no option {key}{hint}; it has {', '.join(known)}")
        if key in _SHARED:
            if not str(value).isdecimal():
                unit = " of milliseconds" if key.endswith("_ms") else ""
                raise misused("--option", f"{key} is {value}; write a whole number{unit}")
            options[key] = int(value)
    return options


def read(source: Source, cluster: Cluster | None, seed: int | None) -> Trace:
    """The jobs as they are written or drawn. TraceError if there are none to be had."""
    if source.path is None:
        return synthetic.generate(_mix_for(source, cluster, seed))
    options = dict(source.options)
    if cluster is not None:
        options = _shape(formats.FORMATS[source.form], cluster) | options
    return formats.load(source.path, format=source.form, **options)


def _mix_for(source: Source, cluster: Cluster | None, seed: int | None) -> synthetic.Mix:
    """On a cluster that was named, the mix is drawn for its size unless it says otherwise."""
    options = dict(source.options)
    if not options.keys() & {"jobs", "days"}:
        options["jobs"] = JOBS
    if cluster is not None and not options.keys() & {"gpus", "gpus_per_node"}:
        options |= {"gpus": cluster.gpus, "gpus_per_node": cluster.usual_node}
        options["gpus"] -= options["gpus"] % options["gpus_per_node"]
    if seed is not None:
        options["seed"] = seed
    return synthetic.Mix(**options)


def _shape(chosen: formats.Format, cluster: Cluster) -> dict[str, Any]:
    """Lists without nodes split their jobs for these; what is too large is then told with its line."""
    if not {"cluster_gpus", "gpus_per_node"} <= set(chosen.options):
        return {}
    whole = {"cluster_gpus": cluster.gpus} if cluster.uniform else {}
    return {"gpus_per_node": cluster.largest_node} | whole


def digest(trace: Trace) -> str:
    """The same jobs have the same; so has a file that was copied, and not one that was changed."""
    kinds = sorted({type(job.work).__name__ for job in trace.jobs})
    return hashlib.sha256(encoded([kinds, trace.jobs, trace.queues, trace.setup])).hexdigest()


def files_of(source: Source) -> tuple[tuple[str, str], ...]:
    """The files that were named, and what stands in them; without folders, since a report travels and they do not."""
    named = [source.path] if source.path else []
    named += [Path(value) for value in source.options.values() if isinstance(value, str) and Path(value).exists()]
    return tuple((path.name, text_digest(path)) for path in named)


def encoded(value: object) -> bytes:
    return msgspec.json.encode(value, enc_hook=_plain)


def _plain(value: object) -> object:
    """Objects that are no structs, such as measured applications and models of neighbours."""
    if isinstance(value, np.ndarray):
        return [value.shape, value.ravel().tolist()]
    held = {name: inner for name, inner in getattr(value, "__dict__", {}).items() if name not in _MEMORY}
    return [type(value).__qualname__, held]


def lines_of(source: Source, names: set[str]) -> Iterator[tuple[str, int]]:
    """The line of each of these jobs in the file, where it can be found."""
    if source.path is None or not source.path.is_file() or not names:
        return
    with rows.open_text(source.path) as file:
        for number, line in enumerate(file, start=1):
            for cell in line.replace(";", ",").replace("\t", ",").split(","):
                name = cell.strip().strip('"')
                if name in names:
                    yield name, number
                    break


def without(trace: Trace, names: set[str]) -> Trace:
    return structs.replace(trace, jobs=tuple(job for job in trace.jobs if job.name not in names))
