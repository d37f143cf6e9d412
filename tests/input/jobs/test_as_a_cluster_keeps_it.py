"""What a cluster stores of a UnifiedJob is a part of what people may write, in forms that are read here as well."""

from __future__ import annotations

import re
from typing import Any

import pytest

from optimus.api.building.submitted import read_cluster_job
from optimus.api.crds import definitions, spec_schema
from optimus.api.specs.cluster_jobs import ClusterJobSpec
from optimus.api.specs.fields import Spec
from optimus.api.specs.jobs import JobCheckpointSpec, JobDocument, JobSpec
from optimus.api.submitting import load_submission_data
from optimus.model.jobs import JobType
from tests.kube.jobs.good_jobs import GOOD
from tests.kube.jobs.wrong_jobs import job

WORDS_OF_RULES = re.compile(r"self\.([a-zA-Z]+)")


def test_every_field_of_it_is_a_field_of_the_document() -> None:
    assert set(_fields(ClusterJobSpec)) <= set(_fields(JobSpec))


def _fields(model: type[Spec], path: str = "") -> list[str]:
    found = []
    for name, field in model.model_fields.items():
        full = f"{path}.{field.alias or name}"
        found.append(full)
        inner = _model_in(field.annotation)
        if inner is not None and not full.startswith(".template"):
            found += _fields(inner, full)
    return found


def _model_in(annotation: Any) -> type[Spec] | None:
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return annotation
    return next((found for part in getattr(annotation, "__args__", ()) if (found := _model_in(part))), None)


@pytest.mark.parametrize("name", GOOD)
def test_whatever_it_takes_is_read_by_both(name: str) -> None:
    spec = ClusterJobSpec.model_validate(GOOD[name]["spec"])
    document = JobDocument.model_validate(GOOD[name])
    assert (spec.job_type, spec.suspend, spec.on_loss) == (
        document.spec.job_type,
        document.spec.suspend,
        document.spec.on_loss,
    )
    read, wrong = read_cluster_job(GOOD[name], submitted_ms=0)
    assert wrong == [] and read is not None


def test_rules_name_fields_that_there_are() -> None:
    """A word that is nowhere would make the server refuse the definition, or a rule never hold."""
    [made] = [one for one in definitions() if one["spec"]["names"]["kind"] == "UnifiedJob"]
    schema = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert schema == spec_schema(ClusterJobSpec)
    for path, one in _mappings(schema):
        for rule in one.get("x-kubernetes-validations", ()):
            named = set(WORDS_OF_RULES.findall(rule["rule"]))
            assert named <= set(one.get("properties", ())) | FUNCTIONS, (path, rule["rule"])
            assert rule["message"][-1] not in ".:", "a message is no sentence of its own"


FUNCTIONS = {"all", "matches", "startsWith", "filter", "map", "exists"}


def _mappings(schema: dict[str, Any], path: str = "spec") -> list[tuple[str, dict[str, Any]]]:
    found = [(path, schema)]
    for name, one in schema.get("properties", {}).items():
        found += _mappings(one, f"{path}.{name}")
    return found


def test_signals_it_takes_are_signals_here() -> None:
    [rule] = [
        one["rule"]
        for one in spec_schema(ClusterJobSpec)["properties"]["checkpoint"]["properties"]["signal"][
            "x-kubernetes-validations"
        ]
        if "USR1" in one["rule"]
    ]
    names = rule.split("(SIG)?(")[1].split(")")[0].split("|")
    caught = [name for name in names if name not in ("KILL", "STOP")]
    assert [JobCheckpointSpec.model_validate({"signal": name}).signal for name in caught] == [f"SIG{n}" for n in caught]


def test_one_machine_runs_three_of_its_types() -> None:
    for job_type in JobType:
        [error] = load_submission_data(job("x", jobType=str(job_type))).errors or (None,)
        runs = job_type in (JobType.JOB, JobType.PYTORCH_ELASTIC, JobType.INTERACTIVE)
        assert (error is None) == runs
        assert runs or f"this version cannot run {job_type} jobs" in str(error)


@pytest.mark.parametrize(
    ("gpu", "says"),
    [
        ({"models": ["A100"], "speeds": {"H100": 2}}, "speeds names H100, which is not among models"),
        ({"models": ["A100"], "speeds": {"A100": "fast"}}, "must be a number"),
    ],
)
def test_speeds_of_models(gpu: dict[str, Any], says: str) -> None:
    _, wrong = read_cluster_job(job("x", replicaSpec={"gpu": gpu}), submitted_ms=0)
    assert len(wrong) == 1 and says in wrong[0]
