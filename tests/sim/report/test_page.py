"""One file to share: complete, self-contained, safe, small, and the same for the same input."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from msgspec import structs

from optimus.drivers.sim.measuring import Provenance, Study, provenance_of, study
from optimus.drivers.sim.measuring.watching import Fragments
from optimus.drivers.sim.report import page
from optimus.drivers.sim.traces.trace import Trace, TraceProblem, Verdict
from tests.sim.measuring.worlds import FOUR_GPUS, job, measured
from tests.sim.report.stories import IN_ORDER, JOBS, both, many_jobs, small_study

VOID = {"meta", "link", "br"}


class Balanced(HTMLParser):
    """Complains about what is opened and not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.links += [value or "" for key, value in attrs if key in ("src", "href")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(html: str) -> Balanced:
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []
    return parser


def drawings(html: str) -> list[str]:
    found = re.findall(r"<svg .*?</svg>", html)
    for drawing in found:
        ElementTree.fromstring(drawing)
        assert "nan" not in re.sub(
            r"<text.*?</text>|<title>.*?</title>|data-chart=\"[^\"]*\"|aria-label=\"[^\"]*\"", "", drawing
        )
    return found


def test_it_is_complete() -> None:
    html = page(small_study())
    text = " ".join(read(html).text)
    for words in ("three jobs", "in order", "short first", "Completion time", "Jobs waiting", "GPUs held", "Fairness"):
        assert words in text
    for words in ("Slowdown", "Largest winners", "Settings and provenance", "no duration", "every job"):
        assert words.lower() in text.lower()
    assert len(drawings(html)) >= 11


def test_it_needs_no_network() -> None:
    html = page(small_study())
    assert all(link.startswith("data:") for link in read(html).links)
    assert not re.search(r"url\(|@import|fetch\(|XMLHttp|https?://(?!www\.w3\.org/2000/svg)", html)


def test_the_same_study_gives_the_same_bytes() -> None:
    assert page(small_study()) == page(small_study())


def test_names_from_a_trace_cannot_become_markup() -> None:
    evil = '<script>alert("x")</script>'
    jobs = [job("a" + evil, 0, 1, 10, queue="q" + evil), job("b", 0, 1, 10, queue="r&")]
    ran = {each.name: [(0.0, 10.0)] for each in jobs}
    late = {each.name: [(5.0, 15.0)] for each in jobs}
    told = study(
        [[measured("s" + evil, jobs, ran), measured("late", jobs, late)]],
        FOUR_GPUS,
        Provenance(trace=evil, source=evil, problems=(evil,), command=evil, policies=((evil, evil),), notes=(evil,)),
    )
    html = page(told)
    assert html.count("<script") == 1
    read(html)
    drawings(html)


def test_sixty_thousand_jobs_fit_into_two_megabytes() -> None:
    html = page(many_jobs(3000, 3))
    assert len(html.encode()) < 700_000  # curves do not grow with the number of jobs
    assert "all other queues" in html
    assert "Every job" not in html
    drawings(html)


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(study([both()[:1]], FOUR_GPUS, Provenance(trace="x")), id="one scheduler"),
        pytest.param(study([[measured("idle", [], {})]], FOUR_GPUS, Provenance(trace="x")), id="no job"),
        pytest.param(study([[measured("stuck", JOBS, {})]], FOUR_GPUS, Provenance(trace="x")), id="nothing ran"),
        pytest.param(
            study([[measured("a", JOBS, IN_ORDER), measured("b", JOBS, {})]], FOUR_GPUS, Provenance(trace="x")),
            id="one side finished nothing",
        ),
        pytest.param(study([both()] * 10, FOUR_GPUS, Provenance(trace="x")), id="ten traces"),
        pytest.param(many_jobs(1), id="one job"),
        pytest.param(many_jobs(30, 10), id="more schedulers than colours"),
    ],
)
def test_it_can_be_drawn_whatever_happened(told: Study) -> None:
    html = page(told)
    read(html)
    drawings(html)


def test_fragments_are_shown_where_they_were_watched() -> None:
    seen = Fragments(
        time_ms=np.array([0.0, 1_800_000.0]),
        free_gpus=np.array([2.0, 1.0]),
        fragment_gpus=np.array([1.0, 0.5]),
        largest=np.array([2.0, 1.0]),
    )
    told = small_study()
    assert "Fragmentation" not in page(told)
    watched = structs.replace(told, measured=(structs.replace(told.measured[0], fragments=seen), *told.measured[1:]))
    assert "Fragmentation" in page(watched)


def test_the_kind_of_interval_is_told() -> None:
    assert "over the jobs of one trace" in page(small_study())
    assert "over 10 traces" in page(study([both()] * 10, FOUR_GPUS, Provenance(trace="x")))


def test_a_trace_tells_its_provenance() -> None:
    problem = TraceProblem(file="jobs.csv", line=3, verdict=Verdict.LEFT_OUT, message="no duration")
    trace = Trace(name="jobs", jobs=tuple(JOBS), rows=4, problems=(problem,), source=Path("/somewhere/jobs.csv"))
    told = provenance_of(trace, command="optimus simulate jobs.csv")
    assert told.source == "jobs.csv: 4 rows read, 1 left out, 0 changed"
    assert told.problems == ("jobs.csv:3: left out: no duration",)


def test_traces_need_the_same_schedulers() -> None:
    with pytest.raises(ValueError, match="every trace needs the same schedulers"):
        study([both(), both()[::-1]], FOUR_GPUS, Provenance(trace="x"))


def test_the_reference_can_be_chosen() -> None:
    told = study([both()], FOUR_GPUS, Provenance(trace="x"), reference="short first")
    assert [m.name for m in told.measured] == ["short first", "in order"]
    with pytest.raises(ValueError, match="there are in order, short first"):
        study([both()], FOUR_GPUS, Provenance(trace="x"), reference="fastest")
