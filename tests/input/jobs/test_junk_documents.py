"""Whatever is handed over, the answer is errors, never an exception."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from optimus.api.specs.jobs import JobCheckpointSpec, JobSpec, ReplicaSpec
from optimus.api.specs.templates import ContainerSpec, PodSpec
from optimus.api.submitting import load_submission_data, load_submission_text
from optimus.api.writing import to_yaml

KEYS = [
    *(str(field.alias) for spec in (JobSpec, ReplicaSpec, JobCheckpointSpec) for field in spec.model_fields.values()),
    *(str(field.alias) for spec in (ContainerSpec, PodSpec) for field in spec.model_fields.values()),
    "spec",
    "limits",
    "nvidia.com/gpu",
    "min",
    "max",
]
atoms = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
atoms |= st.sampled_from(["any", "powersOfTwo", "Job", "Interactive", "1h", "16Gi", "SIGUSR1", "python train.py", "'"])
junk = st.recursive(
    atoms,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner),
    max_leaves=12,
)


@st.composite
def documents(draw: st.DrawFn) -> Any:
    spec = draw(st.dictionaries(st.sampled_from(KEYS), junk, max_size=6) | junk)
    metadata = draw(st.just({"name": "a"}) | junk)
    return {"kind": draw(st.sampled_from(["UnifiedJob", "Queue", "NodePool"])), "metadata": metadata, "spec": spec}


@settings(max_examples=150)
@given(document=documents() | junk)
def test_junk_is_answered(document: Any) -> None:
    submission = load_submission_data([document], now_ms=5)
    found = len(submission.jobs) + len(submission.queues) + len(submission.pools)
    assert found + bool(submission.errors) == (document is not None)


@settings(max_examples=50)
@given(document=documents())
def test_junk_in_a_file_is_answered(document: dict[str, Any]) -> None:
    submission = load_submission_text(to_yaml(document), now_ms=5)
    assert all(error.line >= 1 and error.column >= 1 for error in submission.errors)
