"""The examples of docs/reference/unifiedjob.md are jobs, and every field has its row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from optimus.api.specs.jobs import JobCheckpointSpec, JobSpec, ReplicaSpec, RestartSpec
from optimus.api.submitting import load_submission_text

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "unifiedjob.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_example_is_a_job(text: str) -> None:
    submission = load_submission_text(text)
    assert (submission.errors, submission.warnings) == ((), ())
    assert len(submission.jobs) == 1


def test_every_field_is_described() -> None:
    tables = re.sub(r"```yaml\n.*?```", "", PAGE, flags=re.DOTALL)
    described = set(re.findall(r"[A-Za-z]+", " ".join(re.findall(r"`([^`]+)`", tables))))
    fields = {
        str(field.alias): name
        for spec in (JobSpec, ReplicaSpec, JobCheckpointSpec, RestartSpec)
        for name, field in spec.model_fields.items()
    }
    missing = [alias for alias in fields if alias not in described and f"{alias}Seconds" not in described]
    assert missing == []
