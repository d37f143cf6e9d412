"""Files of `optimus simulate`: the page, and what programs read.

Several loads are on one page; what programs read has a file for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from optimus.drivers.sim.report import AtLoad, as_json, jobs_csv, loads_page, metrics_csv, page
from optimus.drivers.sim.sweeping import Told
from optimus.drivers.sim.sweeping.complaints import unusable

WITHOUT_EFFECT = {
    "--html": True,
    "--report": True,
    "--json": True,
    "--csv": True,
    "--jobs-csv": True,
    "--journal": True,
    "--keep": True,
    "--processes": True,
    "-o": True,
    "--output": True,
    "--quiet": False,
    "-q": False,
}
"""Options that change no number, and whether a value follows."""


class Files(Struct, frozen=True, kw_only=True):
    html: Path | None = None
    json: Path | None = None
    csv: Path | None = None
    jobs_csv: Path | None = None

    def asked(self) -> Iterator[tuple[str, Path]]:
        named = (("--html", self.html), ("--json", self.json), ("--csv", self.csv), ("--jobs-csv", self.jobs_csv))
        for option, path in named:
            if path is not None:
                yield option, path

    def write(self, told: Sequence[Told]) -> Iterator[Path]:
        """Each as soon as it is there. SweepError if one cannot be written."""
        for path, text in self._texts(told):
            try:
                path.write_text(text, encoding="utf-8")
            except OSError as error:
                raise unusable(f"{path}: cannot be written: {error.strerror}") from None
            yield path

    def _texts(self, told: Sequence[Told]) -> Iterator[tuple[Path, str]]:
        studies = [(one.load, one.study) for one in told if one.study is not None]
        if self.html is not None and studies:
            yield self.html, loads_page(at_loads(told)) if len(studies) > 1 else page(studies[0][1])
        for path, text in ((self.json, as_json), (self.csv, metrics_csv), (self.jobs_csv, jobs_csv)):
            if path is not None:
                for load, study in studies:
                    yield path_for(path, load, several=len(told) > 1), text(study)


def at_loads(told: Sequence[Told]) -> list[AtLoad]:
    """The studies of a sweep over loads."""
    return [AtLoad(one.load, one.study) for one in told if one.study is not None and one.load is not None]


def path_for(path: Path, load: float | None, *, several: bool) -> Path:
    """`report.json` at load 0.5 is `report-load-0.5.json`."""
    return path.with_name(f"{path.stem}-load-{load:g}{path.suffix}") if several else path
