"""A command on a cluster that has no UnifiedJobs: an indexed Job, or words about what a Job cannot say."""

from __future__ import annotations

from typing import Any

import pytest

from optimus.client import JobError
from optimus.drivers.kube.desk.commands import job_of


def command(**spec: Any) -> dict[str, Any]:
    written = {"command": ["echo", "hi"], "queue": "vision", "gpu": 2, "replicas": 1, "image": "none", **spec}
    return {"metadata": {"name": "hello", "namespace": "team"}, "spec": written}


def test_a_range_of_replicas() -> None:
    made = job_of(command(replicas={"min": 1, "max": 2}, env={"A": "b"}), "optimus")
    assert made["metadata"]["labels"] == {"optimus.dev/queue": "vision"}
    assert made["metadata"]["annotations"] == {"optimus.dev/min-members": "1"}
    assert (made["spec"]["parallelism"], made["spec"]["completions"]) == (2, 2)
    pod = made["spec"]["template"]["spec"]
    assert pod["schedulerName"] == "optimus"
    (main,) = pod["containers"]
    assert main["env"] == [{"name": "A", "value": "b"}] and main["resources"]["limits"] == {"nvidia.com/gpu": "2"}


def test_an_array() -> None:
    spec = job_of(command(arraySize=5, restart={"backoffLimit": 1}), "optimus")["spec"]
    assert (spec["completions"], spec["backoffLimitPerIndex"], spec["completionMode"]) == (5, 1, "Indexed")
    assert [one["name"] for one in spec["template"]["spec"]["containers"][0]["env"]] == ["OPTIMUS_PART"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"gpu": 0.5}, "parts of a GPU are not on a cluster yet"),
        ({"arraySize": 5, "replicas": 2}, "--array with --replicas"),
        ({"topology": "rack"}, "--topology: not on a cluster yet"),
    ],
)
def test_what_a_job_cannot_say(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(JobError, match=words):
        job_of(command(**spec), "optimus")
