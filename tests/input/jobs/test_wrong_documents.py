"""Wrong UnifiedJobs: every mistake in exact words, at its place, and nothing else lost."""

from __future__ import annotations

import pytest

from optimus.api.errors import LoadError
from optimus.api.submitting import load_submission_data, load_submission_text
from tests.input.jobs.wrong_documents import DOCUMENTS, SPECS

HEAD = "kind: UnifiedJob\nmetadata: {name: train}\nspec: "


@pytest.mark.parametrize(("spec", "words"), SPECS.values(), ids=SPECS)
def test_a_wrong_spec_is_answered_in_exact_words(spec: str, words: str) -> None:
    submission = load_submission_text(f"{HEAD}{spec}\n", "job.yaml")
    (error,) = submission.errors
    assert str(error) == f"job.yaml:3:{error.column}: job train: {words}"
    assert error.set_aside == "job train"
    assert submission.jobs == ()


@pytest.mark.parametrize(("text", "words"), DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_wrong_document_is_answered_in_exact_words(text: str, words: list[str]) -> None:
    errors = load_submission_text(text, "job.yaml").errors
    assert [str(error).removeprefix("job.yaml:") for error in errors] == words


def test_the_table_is_large() -> None:
    assert len(SPECS) + len(DOCUMENTS) >= 100


def test_a_word_and_a_variable_are_found_at_their_lines() -> None:
    submission = load_submission_text("""\
kind: UnifiedJob
metadata: {name: train}
spec:
  command:
    - python
    - true
  env:
    GOOD: 1
    BAD: false
""")
    assert [(error.line, error.column, error.place) for error in submission.errors] == [
        (6, 7, "job train: spec.command[1]"),
        (9, 10, "job train: spec.env.BAD"),
    ]


def test_data_of_a_program_has_paths_instead_of_lines() -> None:
    bad = {"kind": "UnifiedJob", "metadata": {"name": "train"}, "spec": {"command": ["x"], "gpu": {"count": -1}}}
    (error,) = load_submission_data(bad).errors
    assert str(error) == "job train: spec.gpu.count: must not be negative: -1"
    assert (error.path, error.line, error.column) == ("", 0, 0)
    errors = load_submission_data([bad, 4, {"kind": "UnifiedJob", "spec": object()}]).errors
    assert [str(error) for error in errors] == [
        "[0]: job train: spec.gpu.count: must not be negative: -1",
        "[1]: a document must be a mapping with kind, metadata and spec, not 4",
        "[2]: holds a object, which is no plain data",
    ]


def test_twins_in_data_are_named_by_their_place() -> None:
    job = {"kind": "UnifiedJob", "metadata": {"name": "train"}, "spec": {"command": ["x"]}}
    submission = load_submission_data({"kind": "List", "items": [job, job]})
    assert [str(error) for error in submission.errors] == [
        (
            "items[1]: job train: metadata.name: job default/train is there twice; first in items[0]"
            " (give it another name, or leave one of them out)"
        )
    ]
    assert len(submission.jobs) == 1


def test_data_that_is_too_deep_is_refused() -> None:
    deep: dict[str, object] = {}
    for _ in range(500):
        deep = {"a": deep}
    (error,) = load_submission_data(deep).errors
    assert str(error) == "is nested more than 64 levels deep"


def test_half_a_character_cannot_be_given_to_a_process() -> None:
    job = {"kind": "UnifiedJob", "metadata": {"name": "train"}, "spec": {"command": ["x", "\ud800"]}}
    (error,) = load_submission_data(job).errors
    assert error.message == "contains half a character (a surrogate), which cannot be written as UTF-8"


def test_errors_can_be_raised_together() -> None:
    with pytest.raises(LoadError) as caught:
        load_submission_text(f"{HEAD}{{gpu: -1, cpu: -1}}").or_raise()
    assert len(caught.value.errors) == 3


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            "{template: {spec: {containers: [{command: [x]}, {name: side}]}}}",
            "spec.template.spec.containers[1]: only the first of 2 containers is run on one machine",
        ),
        (
            "{template: {spec: {containers: [{command: [x], comand: [y]}]}}}",
            (
                "spec.template.spec.containers[0].comand: Kubernetes knows no field comand here; it has no effect"
                " (did you mean command?)"
            ),
        ),
        (
            "{template: {spec: {containers: [{command: [x]}], volumes: [{name: v}]}}}",
            "spec.template.spec.volumes: are not mounted on one machine: the program sees the folders of the machine",
        ),
        (
            "{template: {spec: {containers: [{command: [x], resources: {limits: {google.com/tpu: 4}}}]}}}",
            (
                "spec.template.spec.containers[0].resources.limits.google.com/tpu: is not counted on one machine"
                " (what shall be counted goes into replicaSpec.accelerators)"
            ),
        ),
        (
            "{command: python train.py > log}",
            (
                "spec.command: is split into words and not given to a shell: > is an ordinary word"
                " (write [sh, -c, '…'] if a shell shall read it)"
            ),
        ),
        (
            "{command: x, maxRuntime: 1h, expectedDurationSeconds: 7200}",
            "spec.expectedDurationSeconds: is longer than maxRuntime: it would be stopped before it is done",
        ),
        ("{command: x, deadline: -1h}", "spec.deadline: lies in the past: 2026-01-05T11:00:00Z"),
    ],
)
def test_what_has_no_effect_is_a_warning(spec: str, words: str) -> None:
    submission = load_submission_text(f"{HEAD}{spec}\n", "job.yaml", now_ms=1_767_614_400_000)
    (warning,) = submission.warnings
    assert str(warning) == f"job.yaml:3:{warning.column}: job train: {words}"
    assert submission.errors == ()
    assert len(submission.jobs) == 1
