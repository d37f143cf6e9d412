"""A tenant with few rights sees its namespace, and what its containers write."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.kube.body.clusters import until
from tests.kube.cli.conftest import JOB, Town
from tests.kube.cli.kubelets import Kubelet

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}, labels: {{optimus.dev/group: talk}}}}
spec:
  schedulerName: {scheduler}
  nodeName: {node}
  containers: [{{name: main, image: none}}]
---
"""
SEEN_BY_AN_OWNER = (
    "nodes,namespaces,pods,events.events.k8s.io,jobs.batch,persistentvolumes,persistentvolumeclaims,"
    "replicationcontrollers,replicasets.apps,deployments.apps,statefulsets.apps,daemonsets.apps,"
    "queues.optimus.dev,nodepools.optimus.dev,unifiedjobs.optimus.dev"
)
DEVICES = ",".join(
    f"{kind}.resource.k8s.io"
    for kind in ("resourceclaims", "resourceclaimtemplates", "deviceclasses", "resourceslices")
)


def test_a_tenant_sees_its_namespace_with_the_reasons_written_there(town: Town, grant: Callable[..., None]) -> None:
    grant("alice", "get,list,create,patch,delete", "pods,jobs.batch,events.events.k8s.io")
    mine = JOB.format(
        name="mine",
        namespace=town.namespace,
        queue=town.queue,
        pods=4,
        gpus=2,
        suspend="false",
        scheduler=town.scheduler,
    )
    assert town.cli("submit", "-", stdin=mine, user="alice").code == 0
    town.job("no-pods", 7, suspend=True)
    for name in ("mine", "no-pods"):
        until(lambda name=name: town.told(name), f"the controller says why {name} waits")  # type: ignore[misc]
    said = town.cli("get", "jobs", "-o", "json", user="alice")
    rows = {row["name"]: row["reason"] for row in said.rows()}
    assert rows == {f"job/{name}": town.told(name) for name in ("mine", "no-pods")}, "as the controller wrote it"
    assert rows == {row["name"]: row["reason"] for row in town.cli("get", "jobs", "-o", "json").rows()}
    missing = "no right to list nodepools.optimus.dev, nodes, pods, queues.optimus.dev in the cluster"
    assert missing in said.err, said.err
    told = json.loads(town.cli("explain", "mine", "-o", "json", user="alice").out)
    assert told["why"]["code"] == "AboveLimit" and missing in told["notes"][0]
    refused = town.cli("submit", "-", stdin="kind: Queue\nmetadata: {name: own}\nspec: {}\n", user="alice")
    assert refused.code == 1 and "no right to change queues" in refused.err
    for words in (
        ("get", "nodes"),
        ("get", "queues"),
        ("what-if", "--add-nodes", "1"),
        ("delete", "queue", town.queue),
    ):
        denied = town.cli(*words, user="alice")
        assert denied.code == 1 and ("no right to" in denied.err or "403" in denied.err), denied
    assert town.cli("cancel", "mine", user="alice").out == f"{town.namespace}/job/mine: cancelled (Pending before)\n"


def test_who_may_see_all_but_priority_classes_goes_on_and_is_told_that_it_is_less_exact(
    town: Town, everywhere: Callable[[str, str], None]
) -> None:
    everywhere("alice", f"{SEEN_BY_AN_OWNER},storageclasses.storage.k8s.io,csinodes.storage.k8s.io,{DEVICES}")
    town.job("train", 2)
    town.reaches("train", "Running")
    said = town.cli("get", "jobs", "-o", "json", user="alice")
    assert [row["phase"] for row in said.rows() if row["namespace"] == town.namespace] == ["Running"]
    assert "may be less exact: no right to list " in said.err and "priorityclasses.scheduling.k8s.io" in said.err
    changes = town.target("alice").changes()
    assert next(changes)["jobs"][f"{town.namespace}/job/train"]["phase"] == "Running", "also what changes is followed"
    changes.close()  # type: ignore[attr-defined]


def test_who_is_not_known_is_told_to_log_in(town: Town, tmp_path_factory: pytest.TempPathFactory) -> None:
    config = json.loads(town.plane.kubeconfig().read_text())
    config["users"][0]["user"]["token"] = "wrong"
    file = tmp_path_factory.mktemp("stranger") / "config"
    file.write_text(json.dumps(config))
    from typer.testing import CliRunner

    from optimus.cli.main import app

    said = CliRunner(env={"KUBECONFIG": str(file), "OPTIMUS_TARGET": "kube:"}).invoke(app, ["get", "jobs"])
    assert said.exit_code == 1 and "does not know who asks (401)" in said.stderr, said.stderr


# -- output -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def kubelet(town: Town) -> Iterator[Kubelet]:
    made = Kubelet(town.plane.folder)
    yield made
    made.end()


def test_output_of_all_replicas_with_their_names(town: Town, kubelet: Kubelet) -> None:
    node = f"{town.namespace}-{kubelet.port}"
    town.apply(kubelet.node(node))
    pods = ("talk-0", "talk-1")
    town.apply("".join(POD.format(name=n, namespace=town.namespace, scheduler=town.scheduler, node=node) for n in pods))
    kubelet.write("talk-0", 1, "one")
    kubelet.write("talk-0", 1, "one, in the same moment")
    kubelet.write("talk-0", 2, "")
    kubelet.write("talk-1", 1, "uno")
    said = town.cli("logs", "talk")
    assert said.code == 0, said.err
    assert sorted(said.out.splitlines()) == [
        "pod-0 │ ",
        "pod-0 │ one",
        "pod-0 │ one, in the same moment",
        "pod-1 │ uno",
    ]
    assert town.cli("logs", "talk", "--replica", "pod-1").out == "pod-1 │ uno\n"
    assert len(town.cli("logs", "talk", "--tail", "1").out.splitlines()) == 2
    assert "no replica pod-7; known are pod-0, pod-1" in town.cli("logs", "talk", "--replica", "pod-7").err


def test_following_ends_with_the_job_and_loses_nothing(town: Town, kubelet: Kubelet) -> None:
    node = f"{town.namespace}-{kubelet.port}"
    town.apply(kubelet.node(node))
    town.apply(POD.format(name="talk-0", namespace=town.namespace, scheduler=town.scheduler, node=node))
    kubelet.write("talk-0", 1, "first")
    told = town.target().output("talk", follow=True)
    assert next(told)["text"] == "first"
    for text in ("second", "third"):
        kubelet.write("talk-0", 1, text)  # in the same moment as the first
    assert [next(told)["text"], next(told)["text"]] == ["second", "third"]
    kubelet.cut = len(kubelet.asked)  # as if a connection had broken
    kubelet.write("talk-0", 1, "fourth")
    kubelet.write("talk-0", 2, "fifth")
    assert [next(told)["text"], next(told)["text"]] == ["fourth", "fifth"]
    assert len(kubelet.asked) == 2 and kubelet.asked[1]["sinceTime"], "only what is missing is asked for again"
    kubelet.write("talk-0", 3, "last")
    kubelet.ended.add("talk-0")
    done = '{"status": {"phase": "Succeeded"}}'
    words = ("patch", "pod", "talk-0", "-n", town.namespace, "--subresource=status", "-p", done)
    subprocess.run(town.plane.kubectl(*words), check=True, capture_output=True)
    assert [(line["text"], line["number"]) for line in told] == [("last", 6)]


def test_following_begins_before_the_job_does_and_may_be_left(town: Town, kubelet: Kubelet) -> None:
    """Somebody looks at the last lines of a job that goes on, and goes."""
    node = f"{town.namespace}-{kubelet.port}"
    town.apply(kubelet.node(node))
    town.apply(POD.format(name="talk-0", namespace=town.namespace, scheduler=town.scheduler, node=node))
    for second in range(5):
        kubelet.write("talk-0", second, f"line {second}")
    told = town.target().output("talk", follow=True, tail=2)
    assert [next(told)["text"], next(told)["text"]] == ["line 3", "line 4"]
    told.close()  # type: ignore[attr-defined]
    assert "tails" not in {thread.name for thread in threading.enumerate()}


def test_nodes_that_only_seem_to_be_there_have_nothing_to_tell(town: Town) -> None:
    town.job("train", 1)
    town.reaches("train", "Running")
    said = town.cli("logs", "train")
    assert said.code == 1 and "does not tell its output" in said.err, "the server's own words follow"
