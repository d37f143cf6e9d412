"""Gangs as real processes in real containers."""

from __future__ import annotations

import functools
from pathlib import Path

from hack.controlplane.real_nodes.images import PYTHON
from tests.kube.body.clusters import until
from tests.kube.real_nodes.ground import Ground, places

MEETING = """
touch /shared/here-$OPTIMUS_RANK
until [ "$(ls /shared | grep -c here-)" = 4 ]; do sleep 0.1; done
echo "rank $OPTIMUS_RANK: all are here"
until [ -e /shared/go-home ]; do sleep 0.1; done
"""
UNTIL_TOLD = ["sh", "-c", "until [ -e /shared/go-home ]; do sleep 0.1; done"]
FOREVER = ["sleep", "1000000"]
TRAINING = Path(__file__).with_name("training.py").read_text()


def test_a_gang_starts_together_and_can_be_heard(ground: Ground) -> None:
    ground.job("meeting", 4, ["sh", "-c", MEETING])
    until(lambda: len(ground.running("meeting")) == 4, "four containers run")
    pods = ground.running("meeting")
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"optimus"}, "no manifest says so: the server does"
    for pod in pods:
        name = pod["metadata"]["name"]
        rank = pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        until(functools.partial(says, ground, name, f"rank {rank}: all are here\n"), f"{name} is heard")
        assert ground.kubectl("exec", "-n", ground.namespace, name, "--", "hostname") == f"meeting-{rank}\n"
    heard = ground.optimus("logs", "meeting")
    assert sorted(line.partition("rank")[2] for line in heard.splitlines()) == [f" {n}: all are here" for n in range(4)]
    (ground.folder / "go-home").touch()
    ground.completes("meeting")
    assert ground.told() == []


def says(ground: Ground, pod: str, text: str) -> bool:
    return ground.kubectl("logs", "-n", ground.namespace, pod) == text


def test_who_lends_is_asked_to_leave_saves_and_goes_on_where_it_was(ground: Ground) -> None:
    queues = {team: f"{ground.namespace}-{team}" for team in ("vision", "speech")}
    for queue in queues.values():
        assert ground.make_queue(queue, {"gpu": {"guarantee": 4}, "namespaces": [ground.namespace]})
    train = ["python", "-c", TRAINING]
    ground.job(
        "borrower",
        8,
        train,
        image=PYTHON,
        queue=queues["speech"],
        environment={"OPTIMUS_CHECKPOINT_DIR": "/shared/checkpoints", "OPTIMUS_REPLICAS": "8"},
    )
    until(lambda: len(begun(ground)) == 8, f"all have begun: {ground.told()}")
    ground.job("owner", 4, ["sleep", "1"], queue=queues["vision"])
    ground.completes("owner")
    (ground.folder / "hurry").touch()
    ground.completes("borrower")

    lines = [line.split() for line in (ground.folder / "story").read_text().splitlines()]
    for rank in map(str, range(8)):
        mine = [(word, int(step)) for who, word, step in lines if who == rank]
        began = [step for word, step in mine if word == "begins"]
        assert len(began) == 2 and began[0] == 0 < began[1], f"rank {rank} was stopped once, and resumed: {began}"
        done = [step for word, step in mine if word == "did"]
        assert done == list(range(len(done))), f"rank {rank} did no step twice and left none out"
        assert ("left", began[1]) in mine, "asked by SIGTERM, it saved what it had done and left in time"
    assert ground.told() == []


def begun(ground: Ground) -> set[str]:
    """Ranks that have done a step."""
    story = ground.folder / "story"
    lines = story.read_text().splitlines() if story.exists() else []
    return {line.split()[0] for line in lines if "did" in line.split()}


def test_a_node_whose_kubelet_is_killed_gets_nothing_new_until_it_is_back(ground: Ground) -> None:
    nodes, (steady, dying) = ground.real, ground.real.nodes
    ground.job("keeper", 1, FOREVER, node=dying.name, grace_s=1)
    until(lambda: ground.running("keeper"), "one runs there already")
    [before] = ground.running("keeper")

    dying.kubelet.kill()
    try:
        nodes.wait_until_ready(dying, ready=False)
        ground.job("small", 3, FOREVER, grace_s=1)
        until(lambda: len(ground.running("small")) == 3, "the other node takes work")
        assert places(ground.running("small")) == [steady.name] * 3
        ground.job("large", 4, FOREVER, grace_s=1)
        until(lambda: ground.condition(first(ground, "large")), "it is told why it waits")
        assert ground.bound("large") == [], "one GPU is free where it may go, and three where nobody answers"
    finally:
        dying.kubelet.start()
    until(lambda: len(ground.running("large")) == 4, "what is back is used again")
    assert places(ground.running("large")) == [steady.name, *[dying.name] * 3]
    [after] = ground.running("keeper")
    assert containers(after) == containers(before), "its container never stopped"
    assert ground.over_committed() == {}
    assert ground.told() == []


def first(ground: Ground, job: str) -> str:
    names = [pod["metadata"]["name"] for pod in ground.pods() if pod["metadata"]["labels"].get("job-name") == job]
    return str(min(names, default=""))


def containers(pod: dict) -> list[tuple[str, int]]:
    return [(one["containerID"], one["restartCount"]) for one in pod["status"]["containerStatuses"]]


def test_kubelets_refuse_nothing_on_nodes_that_are_full_to_the_brim(ground: Ground) -> None:
    """A quarter of a node for each pod: all of its CPU, memory and GPUs are given away, and given again as soon as they
    are free. A pod that its kubelet does not admit (OutOfcpu, UnexpectedAdmissionError …) fails its Job."""
    quarter = quarter_of_a_node(ground)
    for name in ("deaf", "hears"):  # the first is process 1 without a handler: it ignores SIGTERM and is killed
        ground.job(name, 4, FOREVER if name == "deaf" else UNTIL_TOLD, requests=quarter, grace_s=2)
    until(lambda: len(ground.running("deaf") + ground.running("hears")) == 8, "both nodes are full")
    waves = [f"wave-{number}" for number in range(3)]
    for name in waves:
        ground.job(name, 4, ["sleep", "1"], requests=quarter)
    until(lambda: ground.condition(first(ground, waves[-1])), "they are told why they wait")
    assert len(ground.bound()) == 8
    for node in ground.real:  # so that we know that a refusal would be seen
        assert ground.refusal(node.name).startswith("OutOf"), "who goes past the scheduler finds no room"
    ground.delete("deaf")
    (ground.folder / "go-home").touch()
    for name in ("hears", *waves):
        ground.completes(name)
        assert ground.over_committed() == {}
    assert ground.told() == []


def quarter_of_a_node(ground: Ground) -> dict[str, str]:
    has = ground.real.allocatable(ground.real[0])
    assert has["cpu"].isdigit() and has["memory"].endswith("Ki"), has
    memory_mib = int(has["memory"].removesuffix("Ki")) // 1024  # the brain counts in MiB
    return {"cpu": f"{int(has['cpu']) * 250}m", "memory": f"{memory_mib // 4}Mi"}
