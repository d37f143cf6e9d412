"""The pod of a replica: its template as it was written, and what is added to it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kube.jobs.worlds import World, job_spec


def pod(least: int = 1, *, template: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The first one of a job that was just started."""
    spec = job_spec(least, **more)
    if template is not None:
        spec["template"] = template
    world = World(spec)
    world.target(least)
    assert world.pods, world.status.get("message")
    return world.pods["train-worker-0"]


def main(found: dict[str, Any]) -> dict[str, Any]:
    container: dict[str, Any] = found["spec"]["containers"][0]
    return container


def env(found: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in main(found)["env"]}


def with_container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", "image": "trainer:1", **fields}]}}


def test_who_it_is() -> None:
    found = pod(2)
    meta = found["metadata"]
    assert (meta["name"], meta["namespace"]) == ("train-worker-0", "team")
    assert meta["labels"] == {
        "optimus.dev/job": "train",
        "optimus.dev/role": "worker",
        "optimus.dev/index": "0",
        "optimus.dev/attempt": "1",
    }
    (owner,) = meta["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"], owner["blockOwnerDeletion"]) == (
        "UnifiedJob",
        "train",
        True,
        True,
    )
    assert meta["finalizers"] == ["optimus.dev/ended"]
    assert found["spec"]["schedulerName"] == "optimus"
    assert found["spec"]["restartPolicy"] == "Never"


def test_what_people_wrote_is_what_runs() -> None:
    template: dict[str, Any] = {
        "metadata": {"labels": {"team": "vision"}, "annotations": {"note": "mine"}},
        "spec": {
            "serviceAccountName": "trainer",
            "securityContext": {"runAsNonRoot": True},
            "nodeSelector": {"disk": "fast"},
            "volumes": [{"name": "data", "emptyDir": {}}],
            "initContainers": [{"name": "fetch", "image": "fetch:1"}],
            "containers": [
                {
                    "name": "main",
                    "image": "trainer:1",
                    "args": ["--fast"],
                    "envFrom": [{"secretRef": {"name": "keys"}}],
                    "env": [
                        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
                        {"name": "OPTIMUS_RANK", "value": "mine"},
                    ],
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                },
                {"name": "side", "image": "side:1"},
            ],
        },
    }
    found = pod(template=template)
    spec = found["spec"]
    for field in ("serviceAccountName", "securityContext", "nodeSelector", "volumes", "initContainers"):
        assert spec[field] == template["spec"][field], field
    assert spec["containers"][1] == {"name": "side", "image": "side:1"}
    for field in ("args", "envFrom", "volumeMounts", "image"):
        assert main(found)[field] == template["spec"]["containers"][0][field], field
    assert main(found)["env"][:2] == template["spec"]["containers"][0]["env"]
    assert [one["name"] for one in main(found)["env"]].count("OPTIMUS_RANK") == 1
    assert found["metadata"]["labels"]["team"] == "vision"
    assert found["metadata"]["annotations"]["note"] == "mine"
    assert "terminationGracePeriodSeconds" not in spec, "without a checkpoint its own grace holds"


def test_amounts_that_only_the_job_says() -> None:
    spec = {"minReplicas": 1, "gpu": {"count": 2}, "cpu": "500m", "memory": "16Gi"}
    found = main(pod(replicaSpec=spec))
    assert found["resources"] == {
        "requests": {"cpu": "500m", "memory": "16384Mi"},
        "limits": {"memory": "16384Mi", "nvidia.com/gpu": "2"},
    }


def test_amounts_that_the_container_says_stay() -> None:
    resources = {"requests": {"cpu": "2"}, "limits": {"nvidia.com/gpu": "1"}}
    found = main(pod(template=with_container(resources=resources), replicaSpec={"minReplicas": 1}))
    assert found["resources"] == resources


@pytest.mark.parametrize(
    ("gpu", "notes"),
    [
        ({"fraction": {"request": 0.5}}, {"optimus.dev/gpu-fraction": "0.5"}),
        ({"memory": "10Gi"}, {"optimus.dev/gpu-memory": "10240Mi"}),
        ({"count": 1, "models": ["A100", "H100"]}, {"optimus.dev/gpu-models": "A100,H100"}),
    ],
)
def test_parts_of_a_gpu_and_models_are_said_by_annotations(gpu: dict[str, Any], notes: dict[str, str]) -> None:
    found = pod(replicaSpec={"minReplicas": 1, "gpu": gpu})["metadata"]["annotations"]
    assert notes.items() <= found.items()


def test_one_is_alone_and_several_find_each_other() -> None:
    alone = World(job_spec(1))
    alone.target(1)
    assert alone.services == []
    assert "subdomain" not in alone.pods["train-worker-0"]["spec"]
    several = World(job_spec(2))
    several.target(2)
    assert several.services == ["train"]
    spec = several.pods["train-worker-1"]["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("train-worker-1", "train")


def test_the_contract() -> None:
    found = pod(2, checkpoint={"graceSeconds": 90, "path": "/data/train"}, queue="vision")
    told = env(found)
    assert told["OPTIMUS_JOB"] == "team/train"
    assert told["OPTIMUS_QUEUE"] == "vision"
    assert (told["OPTIMUS_RANK"], told["OPTIMUS_REPLICAS"], told["OPTIMUS_ATTEMPT"]) == ("0", "2", "1")
    assert told["OPTIMUS_REASON"] == "first start"
    assert told["OPTIMUS_CHECKPOINT_DIR"] == "/data/train"
    assert (told["OPTIMUS_CHECKPOINT_SIGNAL"], told["OPTIMUS_GRACE_SECONDS"]) == ("SIGTERM", "90")
    assert told["OPTIMUS_STATUS_FILE"] == main(found)["terminationMessagePath"] == "/dev/termination-log"
    assert found["spec"]["terminationGracePeriodSeconds"] == 90
    assert "lifecycle" not in main(found), "SIGTERM needs nothing"


def test_no_folder_is_named_where_nobody_named_one() -> None:
    assert "OPTIMUS_CHECKPOINT_DIR" not in env(pod(checkpoint={"graceSeconds": 30}))


def test_another_signal_is_sent_by_a_hook_that_waits() -> None:
    found = main(pod(checkpoint={"signal": "SIGUSR1"}))
    (shell, _, line) = found["lifecycle"]["preStop"]["exec"]["command"]
    assert shell == "sh"
    assert line.startswith("kill -s USR1 1;")
    assert "while kill -0 1" in line


def test_a_command_that_saves_is_a_hook() -> None:
    found = main(pod(checkpoint={"command": ["save", "--now"]}))
    assert found["lifecycle"] == {"preStop": {"exec": {"command": ["save", "--now"]}}}


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (
            {
                "checkpoint": {"signal": "SIGUSR1"},
                "template": with_container(lifecycle={"preStop": {"exec": {"command": ["x"]}}}),
            },
            "the template has one of its own",
        ),
        ({"arraySize": 3, "replicaSpec": {"minReplicas": 2}}, "each part of an array is one pod"),
        ({"template": None}, "spec.template: is missing"),
        (
            {
                "replicaSpec": {"minReplicas": 1, "gpu": {"count": 2}},
                "template": with_container(resources={"limits": {"nvidia.com/gpu": "1"}}),
            },
            "nvidia.com/gpu",
        ),
    ],
)
def test_what_cannot_be_made_is_said(spec: dict[str, Any], says: str) -> None:
    world = World({**job_spec(1), **spec})
    world.settle()
    assert says in world.status["message"]
    assert world.pods == {}


def test_an_interactive_job_has_a_name_and_an_address() -> None:
    template = with_container(ports=[{"containerPort": 8888}])
    world = World(job_spec(1, jobType="Interactive", template=template))
    world.target(1)
    assert world.services == ["train"]
    assert "url" not in world.status
    world.run()
    assert world.status["url"] == "http://train.team.svc:8888"
    world.target(0, "Idle: used no GPU for 1h")
    world.leaves("train-worker-0", 0)
    assert world.phase == "Preempted", "who is stopped has not finished, whatever it says"
    assert "url" not in world.status
