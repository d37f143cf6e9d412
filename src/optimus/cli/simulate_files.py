"""Files of `optimus simulate`: the page, and what programs read. With several loads each has a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from optimus.drivers.sim.measuring import Study
from optimus.drivers.sim.report import as_json, jobs_csv, metrics_csv, page
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
        for option, path, _ in self._kinds():
            if path is not None:
                yield option, path

    def write(self, told: Sequence[Told]) -> list[Path]:
        """SweepError if one cannot be written."""
        written = []
        for _, path, text in self._kinds():
            for one in told if path is not None else ():
                if one.study is not None and path is not None:
                    target = path_for(path, one.load, several=len(told) > 1)
                    try:
                        target.write_text(text(one.study), encoding="utf-8")
                    except OSError as error:
                        raise unusable(f"{target}: cannot be written: {error.strerror}") from None
                    written.append(target)
        return written

    def _kinds(self) -> tuple[tuple[str, Path | None, Callable[[Study], str]], ...]:
        return (
            ("--html", self.html, page),
            ("--json", self.json, as_json),
            ("--csv", self.csv, metrics_csv),
            ("--jobs-csv", self.jobs_csv, jobs_csv),
        )


def path_for(path: Path, load: float | None, *, several: bool) -> Path:
    """`report.html` at load 0.5 is `report-load-0.5.html`."""
    return path.with_name(f"{path.stem}-load-{load:g}{path.suffix}") if several else path
