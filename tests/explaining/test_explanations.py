"""Why it waits, who is ahead, when it starts: one record for everybody who asks."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from msgspec import structs
from rich.console import Console

from optimus.cli.explain_report import report
from optimus.cli.showing import Printer
from optimus.drivers.sim.forecasting.grounds import AT_LEAST, GUESS, RANGE
from optimus.engine.copying import CopyError, copy_of, engine_of, read_copy
from optimus.engine.engine import Engine
from optimus.engine.journal_past import Past, gathered
from optimus.explaining import Ask, Explanation, explain
from optimus.explaining.page import plain
from optimus.explaining.seen import ReplicaSeen, WhySeen
from optimus.explaining.starts import FORECAST, NEVER, NOW, UNKNOWN
from optimus.model.observations import SlotFailed, WorkloadEnded, WorkloadSeen
from optimus.model.progress import Remaining
from tests.explaining.worlds import Moment, moment, of_example, seen_of

LINE = """
cluster: [{name: n, gpus: 1}]
workloads:
  - {name: runs, gpu: 1, running: {on: n, since: -1h}, expectedDuration: 2h}
  - {name: waits, gpu: 1, submitted: -10m, expectedDuration: 30m}
  - {name: longer, gpu: 1, submitted: -5m, expectedDuration: 3h}
"""


def test_the_reason_comes_with_its_numbers() -> None:
    told = of_example().explain("over-the-limit")
    assert told.why is not None and told.why.code == "OverLimit"
    assert told.why.facts["used"] == 12_000 and "12 in use, 8 asked" in told.why.text
    assert [(one.in_use_milli, one.limit_milli) for one in told.queue_gpus] == [(12_000, 16_000)]


def test_who_is_ahead_in_its_queue_and_when_it_starts() -> None:
    told = moment(LINE).explain("longer", Ask(samples=10, seconds=PATIENT_S))
    assert told.ahead == ("default/waits",)
    start = told.start
    assert start is not None and start.state == FORECAST and start.behind == ("default/waits",)
    assert start.p50 is not None and start.p90 is not None and 0 < start.p50.in_ms <= start.p90.in_ms
    assert start.rests_on == {"declared": 1} and start.samples == 10


PATIENT_S = 600.0
"""However busy the machine is."""
GUARANTEED = "queues: [{name: default, gpu: {guarantee: 1}}]"
UNKNOWN_RUN_TIMES = """
cluster: [{name: n, gpus: 1}]
workloads:
  - {name: runs, gpu: 1, running: {on: n, since: -1h}}
  - {name: waits, gpu: 1, submitted: -10m}
"""


def crowd(now_ms: int) -> Past:
    """Twelve came in the last twelve minutes, which is all that is known."""
    came = [
        structs.replace(moment(LINE).workload("waits"), id=f"default/came-{n}", submitted_ms=now_ms - n * 60_000)
        for n in range(12)
    ]
    return gathered(came, (), begin_ms=now_ms - 12 * 60_000, now_ms=now_ms)


def page(told: Explanation) -> str:
    out = StringIO()
    report(Printer(Console(file=out, width=200)), told, wide=False)
    return out.getvalue()


@pytest.mark.parametrize("name", ["runs", "waits", "longer"])
def test_the_plain_page_is_what_a_pipe_gets(name: str) -> None:
    told = moment(LINE).explain(name, Ask(samples=2, seconds=PATIENT_S))
    told = structs.replace(told, notes=("something is not known",))
    assert plain(told) + "\n" == page(told)
    assert ("What would start it now" in page(told)) == (name != "runs")


def test_a_range_says_when_nothing_is_known_of_who_else_comes() -> None:
    now = moment(LINE)
    alone, crowded = (
        now.explain("longer", Ask(samples=3, seconds=PATIENT_S)),
        now.explain("longer", Ask(samples=3, seconds=PATIENT_S, past=crowd(now.now_ms))),
    )
    assert alone.start is not None and alone.start.claim == AT_LEAST
    assert "or later: nothing is known of who else comes" in page(alone)
    assert crowded.start is not None and crowded.start.claim == RANGE
    assert "or later" not in page(crowded) and "60 newcomers an hour as in the last 12m" in page(crowded)


def test_where_run_times_are_guesses_they_are_called_so() -> None:
    told = moment(UNKNOWN_RUN_TIMES).explain("waits", Ask(samples=9, seconds=PATIENT_S))
    start = told.start
    assert start is not None and start.claim == GUESS and start.earliest is not None and start.p50 is not None
    assert 0 < start.earliest.in_ms < start.p50.in_ms
    assert "hardly before in" in page(told) and "nothing is known about how long work here takes" in page(told)
    assert "a guess is in" in page(told)


def test_a_reservation_is_told_beside_the_forecast_and_does_not_contradict_it() -> None:
    """The engine allows what runs its cautious day; its own words say it is over in minutes."""
    now = moment(GUARANTEED + UNKNOWN_RUN_TIMES)
    said = Remaining(left_ms=180_000, at_ms=now.now_ms, measured_ms=3_600_000)
    copied = structs.replace(now.copy(), remaining={"default/runs": said})
    told = explain(seen_of(now.workload("waits")), now.now_ms, copied, Ask(samples=9, seconds=PATIENT_S))
    start = told.start
    assert start is not None and start.reserved is not None and start.p90 is not None
    assert start.p90.in_ms < 600_000 < start.reserved.in_ms
    assert "a start by about" in page(told) and "at the latest, counted cautiously" in page(told)


def test_a_reservation_that_may_not_hold_says_on_what_it_rests() -> None:
    told = moment(GUARANTEED + LINE).explain("waits", Ask(samples=20, seconds=PATIENT_S))
    start = told.start
    assert start is not None and start.reserved is not None and start.p90 is not None
    assert start.reserved.in_ms < start.p90.in_ms
    assert "if what it waits for ends as expected" in page(told)


def test_what_time_does_not_change_is_never_and_is_not_played() -> None:
    told = of_example().explain("larger-than-all", Ask(samples=1_000_000))
    assert told.start is not None and told.start.state == NEVER


def test_who_is_in_no_line_is_behind_nobody() -> None:
    assert of_example().explain("stopped-queue").ahead is None


def test_without_a_forecast_nothing_is_played() -> None:
    told = moment(LINE).explain("waits")
    assert told.start is not None and told.start.state == UNKNOWN


def test_a_forecast_without_time_says_so() -> None:
    told = moment(LINE).explain("waits", Ask(samples=1_000_000, seconds=0.001))
    assert told.start is not None and "were over" in told.start.note


def test_what_the_next_decision_starts_needs_no_suggestion() -> None:
    now = moment("{cluster: [{name: n, gpus: 2}], workloads: [{name: w, gpu: 1, submitted: -1m}]}")
    now.engine = Engine(settings=now.scenario.settings)
    now.engine.observe(now.scenario.opening, now.now_ms)  # seen, and nothing decided yet
    told = now.explain("w", Ask(samples=1_000_000))
    assert told.start is not None and told.start.state == NOW
    assert (told.why, told.suggestions) == (None, ())


def test_an_array_is_explained_by_its_first_part_that_waits() -> None:
    now = moment("""
cluster: [{name: n, gpus: 1}]
workloads:
  - {name: runs, gpu: 1, running: {on: n}}
  - {name: part, gpu: 1, submitted: -1m}
""")
    workload = now.workload("part")
    parts = [WorkloadSeen(structs.replace(workload, id=f"default/sweep/{number}")) for number in range(3)]
    now.engine.step([WorkloadEnded("default/part"), *parts], now.now_ms)
    seen = structs.replace(seen_of(workload), name="sweep", counts={"Pending": 3})
    told = explain(seen, now.now_ms, now.copy())
    assert (told.part, told.ahead) == ("0", ())


def test_what_runs_or_is_over_needs_no_copy() -> None:
    seen = seen_of(moment(LINE).workload("runs"), "Running")
    seen = structs.replace(seen, replicas=(ReplicaSeen(node="n", devices=(0,), state="running"),), since_ms=5)
    told = explain(seen, 10)
    assert (told.state, told.since_ms, told.start, told.suggestions) == ("running", 5, None, ())
    over = structs.replace(
        seen, final=True, phase="Failed", reason=WhySeen("Failed", "exited with code 3"), replicas=()
    )
    assert explain(over, 10).state == "over"


def test_a_policy_that_is_not_here_is_a_note_and_no_crash() -> None:
    now = moment(LINE)
    copied = structs.replace(now.copy(), policy="no-such-policy")
    told = explain(seen_of(now.workload("waits")), now.now_ms, copied)
    assert "no policy 'no-such-policy'" in told.notes[0] and told.suggestions == ()


def test_a_policy_from_a_file_is_named_with_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text("def order(columns):\n    return columns.submitted_ms\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    copied = Moment(moment(LINE).scenario, policy="mine.py:order").copy()
    monkeypatch.chdir("/")
    assert copied.policy_file and copied.policy == f"{tmp_path / 'mine.py'}:order"
    assert engine_of(copied).policy.name


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x81", b"not msgpack at all"])
def test_junk_is_refused_in_words(data: bytes) -> None:
    with pytest.raises(CopyError, match="cannot be read"):
        read_copy(data)


def test_a_state_of_another_version_is_refused_in_words() -> None:
    with pytest.raises(CopyError, match="cannot be read"):
        engine_of(structs.replace(moment(LINE).copy(), state=b"\x80"))


def test_a_copy_decides_as_the_engine_it_was_taken_from() -> None:
    now = of_example()
    copied = engine_of(read_copy(copy_of(now.engine, now.now_ms)))
    ours, theirs = now.engine.decide(now.now_ms), copied.decide(now.now_ms)
    assert structs.replace(ours, version=0) == structs.replace(theirs, version=0)


def test_what_is_under_way_is_said_and_nothing_is_suggested() -> None:
    now = moment("""
cluster: [{name: n, gpus: 2}]
workloads:
  - {name: runs, gpu: 2, running: {on: n, since: -1h}, checkpoint: {grace: 30s}}
  - {name: fails, gpu: 0, submitted: -1m}
""")
    urgent = structs.replace(now.workload("fails"), id="default/urgent", gang=now.workload("runs").gang, priority=900)
    failed = SlotFailed("default/fails", now.workload("fails").gang.roles[0].name, 0, "no such image", 60_000)
    now.engine.step([WorkloadSeen(urgent), failed], now.now_ms)
    held = explain(seen_of(urgent, "Admitted"), now.now_ms, now.copy())
    assert held.why is not None and held.why.code == "WaitingForRoom" and "default/runs" in held.why.text
    assert held.suggestions == ()
    backing = now.explain("fails")
    assert backing.why is not None and backing.why.code == "BackingOff" and "no such image" in backing.why.text
    assert backing.suggestions == () and backing.ahead is None
