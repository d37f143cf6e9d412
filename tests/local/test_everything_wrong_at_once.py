"""A file with mistakes of every kind: one answer names them all, each with its line, and nothing of it is done."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local.machines import Up

FILE = """\
kind: Queue
metadata: {name: vision}
spec: {parent: reserach, weight: many}
---
kind: Queue
metadata: {name: speech}
spec: {parent: nowhere}
---
kind: UnifiedJob
metadata: {name: train}
spec: {command: [sleep, "1"], gpu: -1, queue: speach}
---
kind: UnifiedJob
metadata: {name: in-a-queue-that-comes-with-it}
spec: {command: [sleep, "1"], queue: vision}
---
kind: UnifiedJob
metadata: {name: here}
spec: {command: [sleep, "1"]}
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = Up(tmp_path_factory.mktemp("wrong") / "store")
    try:
        research = "kind: Queue\nmetadata: {name: research}\nspec: {}\n"
        here = 'kind: UnifiedJob\nmetadata: {name: here}\nspec: {command: [sleep, "600"]}\n'
        up.api.post("/v1/submit", f"{research}---\n{here}".encode())
        yield up
    finally:
        up.end()


def test_all_of_it_is_told_at_once(machine: Up) -> None:
    ran = machine.cli("submit", "-", stdin=FILE)
    assert ran.returncode == 1
    for told in (
        "-:3:16: queue vision: spec.parent: there is no queue reserach (did you mean research?)",
        "-:7:16: queue speech: spec.parent: there is no queue nowhere",
        "-:11:36: job train: spec.gpu: must not be negative: -1",
        "-:11:47: job train: spec.queue: there is no queue speach (did you mean speech?)",
        "-: default/here is there and ",
        "queue vision: spec.weight",
    ):
        assert told in ran.stderr, ran.stderr
    assert "in-a-queue-that-comes-with-it" not in ran.stderr
    assert {row["name"] for row in machine.api.get("/v1/queues")} == {"default", "research"}
    assert [row["name"] for row in machine.api.get("/v1/jobs")] == ["here"]


def test_a_circle_through_queues_that_are_there(machine: Up) -> None:
    machine.api.post("/v1/submit", b"kind: Queue\nmetadata: {name: lab}\nspec: {parent: research}\n")
    ran = machine.cli("submit", "-", stdin="kind: Queue\nmetadata: {name: research}\nspec: {parent: lab}\n")
    assert ran.returncode == 1
    assert "queue research: spec.parent: queues are below each other: research -> lab -> research" in ran.stderr


def test_a_queue_that_is_nowhere_is_refused_by_run_too(machine: Up) -> None:
    ran = machine.cli("run", "--queue", "nowhere", "--", "true")
    assert ran.returncode == 1
    assert ran.stderr == "Error: there is no queue nowhere; known are default, lab, research\n"
