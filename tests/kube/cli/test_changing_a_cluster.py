"""Changing what is there, with the rights of who asks; the server checks, and the controller follows."""

from __future__ import annotations

import json

from tests.kube.body.clusters import until
from tests.kube.cli.conftest import JOB, Town

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: {namespace}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web, optimus.dev/queue: {queue}}}}}
    spec:
      schedulerName: {scheduler}
      containers: [{{name: main, image: none, resources: {{limits: {{nvidia.com/gpu: "1"}}}}}}]
"""


def test_the_life_of_a_job(town: Town) -> None:
    town.job("train", 2)
    town.reaches("train", "Running")
    said = town.cli("suspend", "train").out
    assert said.startswith(f"{town.namespace}/job/train: suspended (Running before); it saves nothing: ")
    assert said.endswith(" of work are lost, and it begins anew when it is resumed\n")
    view = town.reaches("train", "Suspended")
    assert view["replicas"] == [] and view["suspended"]
    assert "suspended already" in town.cli("suspend", "train").out
    assert "resumed" in town.cli("resume", "train").out
    town.reaches("train", "Running")
    assert town.view("train")["preemptions"] == 0, "nobody but its owner has stopped it"
    assert town.cli("scale", "train", "--replicas", "1").out.endswith("1 replicas from now on (2 before)\n")
    until(lambda: town.view("train")["runningReplicas"] == 1, "it is smaller")
    assert town.cli("cancel", "job", "train", "nothing").code == 1, "one of the two is not there"
    until(lambda: town.cli("get", "jobs").out.count("train") == 0, "it is gone")


def test_pods_that_are_jobs_by_themselves(town: Town) -> None:
    town.apply(DEPLOYMENT.format(namespace=town.namespace, queue=town.queue, scheduler=town.scheduler))
    until(lambda: len(town.cli("get", "jobs", "--phase", "Running", "-o", "json").rows()) == 2, "both run")
    pod = town.cli("get", "jobs", "-o", "json").rows()[0]["name"]
    refused = town.cli("cancel", pod)
    assert refused.code == 1 and "belongs to Deployment web, which would create it again" in refused.err
    assert "a Deployment has no field for that" in town.cli("suspend", pod).err
    assert town.cli("scale", "deployment/web", "--replicas", "1").out == (
        f"{town.namespace}/deployment/web: 1 replicas from now on (2 before)\n"
    )
    until(lambda: len(town.cli("get", "jobs", "-o", "json").rows()) == 1, "one is left")
    assert "cancelled" in town.cli("cancel", "deployment/web").out
    until(lambda: not town.cli("get", "jobs", "-o", "json").rows(), "and gone")


def test_a_file_is_checked_as_a_whole_before_any_of_it_is_done(town: Town) -> None:
    good = JOB.format(
        name="good",
        namespace=town.namespace,
        queue=town.queue,
        pods=1,
        gpus=1,
        suspend="false",
        scheduler=town.scheduler,
    )
    wrong = (
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: wrong}\nspec: {paralelism: 2}\n---\n"
        "kind: UnifiedJob\nmetadata: {name: later}\nspec: {command: [x]}\n---\n"
        "kind: Queue\nmetadata: {name: odd}\nspec: {gpu: {guarantee: -1}}\n---\n"
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: words}\n"
    )
    refused = town.cli("submit", "-", stdin=good + wrong)
    assert refused.code == 1 and refused.out == ""
    lines = refused.err.splitlines()
    assert any("Job wrong" in line and "paralelism" in line for line in lines), refused.err
    assert any("UnifiedJob later: " in line for line in lines), refused.err
    assert any("Queue odd" in line and "guarantee" in line for line in lines), refused.err
    assert any("ConfigMap words: it is no work" in line for line in lines)
    assert town.cli("get", "jobs", "-o", "json").rows() == [], "nothing of it was done"
    said = town.cli("submit", "-", stdin=good)
    assert said.out == f"job {town.namespace}/job/good submitted\n" and said.err == ""
    assert "it is there already" in town.cli("submit", "-", stdin=good).err
    elsewhere = town.cli("submit", "-", stdin=good.replace("good", "stray").replace(town.scheduler, "another"))
    assert elsewhere.code == 0 and "its pods name the scheduler another" in elsewhere.err
    stock = good.replace(town.scheduler, "default-scheduler")
    assert "or opt the namespace in" in town.cli("submit", "-", stdin=stock.replace("good", "stock")).err
    town.label("optimus.dev/scheduler=enabled")
    assert town.cli("submit", "-", stdin=stock.replace("good", "opted")).err == "", "the server names us on its pods"
    town.label("optimus.dev/scheduler-")


def test_a_command_becomes_a_job(town: Town) -> None:
    words = ("run", "--queue", town.queue, "--gpus", "2", "--replicas", "1-2", "-d", "--name", "hello")
    assert "--image: is missing" in town.cli(*words, "--", "echo", "hi").err
    made = town.cli(*words, "--image", "none", "-e", "A=b", "--", "echo", "hi")
    assert made.out == f"job {town.namespace}/unifiedjob/hello submitted\n", made.err
    view = town.reaches("hello", "Running")
    assert (view["command"], view["queue"], view["minReplicas"]) == (["echo", "hi"], town.queue, 1)
    until(lambda: town.view("hello")["gpuMilli"] == 4000, "both replicas have their GPUs")
    document = town.cli("get", "job", "hello", "-o", "yaml").out
    assert "schedulerName: " + town.scheduler in document and "status:" not in document


def test_parts_of_an_array_start_as_there_is_room(town: Town) -> None:
    words = ("run", "--queue", town.queue, "--gpus", "2", "--array", "5", "--retries", "1", "--image", "none", "-d")
    assert "arraySize" in town.cli(*words, "--replicas", "2", "--name", "x", "--", "true").err
    made = town.cli(*words, "--name", "sweep", "--", "sh", "-c", "echo $OPTIMUS_PART")
    assert made.code == 0, made.err
    until(lambda: town.view("sweep")["gpuMilli"] == 6000, "as many parts run as the limit of the queue allows")
    parts = {pod["metadata"]["labels"]["optimus.dev/part"] for pod in town.pods() if "sweep" in pod["metadata"]["name"]}
    assert parts == {"0", "1", "2"}


def test_queues(town: Town) -> None:
    town.job("train", 1)
    town.reaches("train", "Running")
    kept = town.cli("delete", "queue", town.queue)
    assert kept.code == 1 and f"has jobs: cancel them or let them end: {town.namespace}/job/train" in kept.err
    name = f"{town.namespace}-new"
    text = f"kind: Queue\nmetadata: {{name: {name}}}\nspec: {{gpu: {{guarantee: 1}}}}\n"
    assert town.cli("submit", "-", stdin=text).out == f"queue {name} submitted\n"
    assert town.cli("submit", "-", stdin=text.replace("guarantee: 1", "guarantee: 2")).code == 0, "it is changed"
    rows = {row["name"]: row for row in town.cli("get", "queues", "-o", "json").rows()}
    assert rows[name]["gpu"][0]["guaranteeMilli"] == 2000
    assert town.cli("delete", "queue", name).out == f"queue {name} deleted\n"
    assert f"there is no queue {name}" in town.cli("delete", "queue", name).err


def test_changes_are_told_as_they_come(town: Town) -> None:
    from optimus.drivers.kube.desk.following import watched
    from optimus.drivers.kube.grouping import shipped_kinds
    from optimus.kube import load

    changes = watched(load(str(town.plane.kubeconfig())), shipped_kinds(), town.scheduler)
    first = next(changes)
    assert first["jobs"] == {} and {row["name"] for row in first["queues"]} >= {town.queue}
    town.job("train", 2)
    job, phases = f"{town.namespace}/job/train", []
    for told in changes:
        if job in told["jobs"]:
            phases.append(told["jobs"][job]["phase"])
        if phases[-1:] == ["Running"]:
            break
    assert phases[-1] == "Running"
    assert json.dumps(told, ensure_ascii=False), "it is what programs read"
    town.cli("cancel", "train")
    assert next(told for told in changes if told["jobs"].get(job, 0) is None), "it is told that it is gone"
    changes.close()
