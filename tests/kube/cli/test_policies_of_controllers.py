"""A controller that decides by another policy than the default one: whoever asks the cluster is answered by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.kube.body.clusters import until
from tests.kube.cli.conftest import Town

CONTROLLER = ("--policy=fifo", "--lease-seconds=3")
OURS = """
def small_first(workloads):
    return workloads.size_milli
"""


def explained(town: Town, name: str, **more: Any) -> dict[str, Any]:
    said = town.cli("explain", name, "--samples", "2", "-o", "json", **more)
    assert said.code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return {**found, "said": " ".join(said.err.split())}


def a_long_one_before_a_short_one(town: Town) -> None:
    """Both wait for what `first` has."""
    town.job("first", 6)
    town.reaches("first", "Running")
    town.job("long", 4, lasts="10h")
    until(lambda: town.told("long"), "it waits")
    town.job("short", 3, lasts="1m")
    until(lambda: town.told("short"), "it waits behind it, or before it")


def policy_of(town: Town) -> str:
    path = f"/apis/optimus.dev/v1alpha1/queues/{town.queue}"
    return str(json.loads(town.plane.get(path)).get("status", {}).get("policy"))


def waiting_in(town: Town) -> tuple[int, Any]:
    status = json.loads(town.plane.get(f"/apis/optimus.dev/v1alpha1/queues/{town.queue}"))["status"]
    return status["waiting"], status.get("waitingFor")


def start_with(town: Town, policy: str) -> None:
    for one in town.controllers:
        one.terminate()
        one.wait()
    town.start(f"--policy={policy}", "--lease-seconds=3")
    until(lambda: policy_of(town) == policy, f"queues tell {policy}")


def test_what_is_asked_is_answered_by_the_policy_of_the_controller(town: Town) -> None:
    until(lambda: policy_of(town) == "fifo", "queues tell it")
    a_long_one_before_a_short_one(town)
    job = f"{town.namespace}/job/"
    told = explained(town, "short")
    assert (told["policy"], told["ahead"]) == ("fifo", [f"{job}long"])
    assert "policy" not in told["said"]
    by_default = explained(town, "short", policy="default")
    assert (by_default["policy"], by_default["ahead"]) == ("default", []), "the default one would let it go first"

    forecast = json.loads(town.cli("forecast", "--samples", "2", "-o", "json").out)
    assert forecast["policy"] == "fifo"
    assert [one["name"] for one in forecast["workloads"]] == [f"{job}long", f"{job}short"]
    other = json.loads(town.cli("forecast", "--policy", "shortest-first", "--samples", "2", "-o", "json").out)
    assert other["policy"] == "shortest-first"

    words = ("what-if", "--policy", "shortest-first", "--samples", "2", "--horizon", "2d", "-o", "json")
    effect = json.loads(town.cli(*words).out)["effect"]
    assert (effect["today"]["policy"], effect["changed"]["policy"]) == ("fifo", "shortest-first")
    assert {one["workload"] for one in effect["moved"]} == {f"{job}long", f"{job}short"}, "they change places"

    town.cli("cancel", "first")
    town.reaches("long", "Running")  # the controller does what was said
    assert town.view("short")["phase"] == "Pending"
    town.cli("cancel", "short")
    until(lambda: waiting_in(town) == (0, None), "queues tell it when nobody waits any more")


def test_more_nodes_on_a_copy_of_the_cluster(town: Town) -> None:
    town.job("first", 6)
    town.reaches("first", "Running")
    town.job("wide", 6, queue=town.other)
    until(lambda: town.told("wide"), "there is no room for it")
    words = ("what-if", "--add-nodes", "1", "--samples", "2", "--horizon", "12h")
    told = json.loads(town.cli(*words, "-o", "json").out)
    assert told["effect"]["startsNow"] == [f"{town.namespace}/job/wide"] or told["effect"]["gain"] == 1, told["effect"]
    assert [one["workload"] for one in told["effect"]["moved"]] == [f"{town.namespace}/job/wide"]
    assert "add 1 node" in " ".join(told["changes"]) or told["changes"], told["changes"]
    assert town.cli(*words).code == 0
    assert town.cli("what-if", "--add-nodes", "0").code != 0
    assert town.view("wide")["phase"] == "Pending", "nothing was done, only tried"
    assert len(town.mine()) == 1


def test_a_policy_from_a_file_is_named_and_never_loaded_by_itself(town: Town, tmp_path: Path) -> None:
    ours = tmp_path / "ours.py"
    ours.write_text(OURS)
    start_with(town, f"{ours}:small_first")
    a_long_one_before_a_short_one(town)
    told = explained(town, "short")
    assert told["policy"] == "default"
    assert f"the controller decides by {ours}:small_first, and answers here are by the default policy" in told["said"]
    assert "OPTIMUS_CONTROLLER_POLICY" in told["said"]
    given = explained(town, "long", policy=f"{ours}:small_first")
    assert given["policy"] == f"{ours}:small_first" and given["ahead"] == [f"{town.namespace}/job/short"]
    assert "by the default policy" not in given["said"]
    wrong = town.cli("explain", "long", policy="nothing")
    assert wrong.code == 1 and "OPTIMUS_CONTROLLER_POLICY: there is no policy 'nothing'" in " ".join(wrong.err.split())
