"""Claims of whole devices, on a real server with Kubernetes' own resourceclaim controller.

Slices are written by the story: it does what a driver does, and nothing else.
"""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

import yaml

from tests.kube.body.claims import (
    NVIDIA,
    all_given,
    asking,
    claim,
    claims,
    delete,
    device,
    device_class,
    given,
    gpu,
    gpu_class,
    places,
    pod,
    publish,
    template,
    told,
)
from tests.kube.body.clusters import Stand, until

FINALIZER = "resource.kubernetes.io/delete-protection"
NIC = "nic.example.com"


def nics(stand: Stand) -> str:
    return device_class(stand, "nic", f'device.driver == "{NIC}"')


def give(stand: Stand, name: str, node: str, one: str, driver: str, consumers: list[Any] = []) -> None:  # noqa: B006
    """As another scheduler does it."""
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    request = claims(stand)[name]["spec"]["devices"]["requests"][0]["name"]
    result = {"request": request, "driver": driver, "pool": node, "device": one}
    allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [here]}}
    status = {"status": {"allocation": allocation, "reservedFor": consumers}}
    words = ("patch", "resourceclaim", name, "-n", stand.namespace, "--subresource=status", "--type=merge")
    subprocess.run(stand.plane.kubectl(*words, f"-p={json.dumps(status)}"), check=True, capture_output=True)


def test_a_pod_gets_the_device_that_it_claims(stand: Stand) -> None:
    nodes = stand.nodes(2, gpus=0)
    publish(stand, nodes[1], [gpu(0), gpu(1)])
    kind = gpu_class(stand)
    claim(stand, "mine", asking(kind))
    stand.start()
    pod(stand, "trainer", uses="mine")
    until(lambda: places(stand) == [nodes[1]], "it is where the device is")
    mine = claims(stand)["mine"]
    assert given(mine) == [f"{nodes[1]}/gpu-0"]
    assert mine["metadata"]["finalizers"] == [FINALIZER]
    uid = stand.pods()[0]["metadata"]["uid"]
    assert mine["status"]["reservedFor"] == [{"resource": "pods", "name": "trainer", "uid": uid}]
    claim(stand, "more", asking(kind, 2))
    pod(stand, "greedy", uses="more")
    told(stand, "greedy", "2 GPUs")
    assert given(claims(stand)["more"]) == [], "one is free, and one of two is none"
    delete(stand, "pod", "trainer")
    until(lambda: len(given(claims(stand)["more"])) == 2, "Kubernetes takes back what nobody uses, and others get it")
    assert given(claims(stand)["mine"]) == []


def test_a_gang_over_nodes_has_all_its_devices_or_none(stand: Stand) -> None:
    """Room for all is on no node; claims are made from a template, one for each pod."""
    nodes = stand.nodes(2, gpus=0)
    for node in nodes:
        publish(stand, node, [gpu(0), gpu(1)])
    template(stand, "two", asking(gpu_class(stand), 2))
    stand.start()
    for number in range(2):
        pod(stand, f"train-{number}", own="two", group="train", of=2)
    until(lambda: places(stand, "train") == nodes, "each node has one of them")
    assert all_given(stand) == [f"{node}/gpu-{n}" for node in nodes for n in range(2)]
    for number in range(3):
        pod(stand, f"more-{number}", own="two", group="more", of=3)
    told(stand, "more-0", "GPUs")
    stand.delete_gang("train")
    until(lambda: len(all_given(stand)) == 0, "what the first gang had is free again")
    time.sleep(2)
    assert places(stand, "more") == [] and all_given(stand) == [], "two of three have room: nobody gets anything"
    stand.nodes(1, gpus=0, first=2)
    publish(stand, f"{stand.namespace}-2", [gpu(0), gpu(1)])
    until(lambda: len(places(stand, "more")) == 3, "until all have it")
    assert len(set(all_given(stand))) == len(all_given(stand)) == 6


def test_a_suspended_job_starts_when_its_devices_are_there(stand: Stand) -> None:
    """It has no pods and no claims before it is started: its template says what they will ask for."""
    nodes = stand.nodes(1, gpus=0)
    template(stand, "one", asking(gpu_class(stand)))
    stand.start()
    container = {"name": "main", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}
    spec = {
        "schedulerName": stand.scheduler,
        "restartPolicy": "Never",
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
        "containers": [container],
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "train",
            "namespace": stand.namespace,
            "labels": {"optimus.dev/queue": "default"},
            "annotations": {"optimus.dev/min-members": "2"},
        },
        "spec": {"suspend": True, "parallelism": 2, "completions": 2, "template": {"spec": spec}},
    }
    stand.apply(yaml.safe_dump(job))
    time.sleep(3)
    assert stand.pods() == [], "there is no device yet"
    publish(stand, nodes[0], [gpu(0)])
    time.sleep(3)
    assert stand.pods() == [], "and one is not enough for both"
    publish(stand, nodes[0], [gpu(0), gpu(1)], generation=2)
    until(lambda: places(stand, "train") == [nodes[0]] * 2, "now it is started, and has them")
    assert all_given(stand) == [f"{nodes[0]}/gpu-0", f"{nodes[0]}/gpu-1"]


def test_pods_that_share_a_claim_share_its_device(stand: Stand) -> None:
    nodes = stand.nodes(2, gpus=0)
    publish(stand, nodes[1], [device("port-0")], NIC)
    claim(stand, "ours", asking(nics(stand)))
    stand.start()
    for number in range(3):
        pod(stand, f"reader-{number}", uses="ours")
    until(lambda: places(stand) == [nodes[1]] * 3, "all are where it is")
    assert len(claims(stand)["ours"]["status"]["reservedFor"]) == 3
    assert all_given(stand) == [f"{nodes[1]}/port-0"]


def test_gpus_that_pods_share_are_counted_by_one_of_them(stand: Stand) -> None:
    nodes = stand.nodes(1, gpus=0)
    publish(stand, nodes[0], [gpu(0)])
    kind = gpu_class(stand)
    claim(stand, "ours", asking(kind))
    stand.start()
    for number in range(2):
        pod(stand, f"reader-{number}", uses="ours")
    until(lambda: places(stand) == [nodes[0]] * 2, "one GPU is enough for both")
    for number in range(2):
        pod(stand, f"gang-{number}", uses="ours", group="gang", of=2)
    told(stand, "gang-0", "the GPUs of one resource claim (ours) for several pods of a role")


def test_selectors_constraints_and_taints_choose_the_node(stand: Stand) -> None:
    nodes = stand.nodes(3, gpus=0)
    h100 = "NVIDIA H100 80GB HBM3"

    def on(number: int, numa: int, **more: Any) -> dict[str, Any]:
        return gpu(number, h100, attributes={"numa": {"int": numa}}, **more)

    publish(stand, nodes[0], [gpu(0), gpu(1)])
    publish(stand, nodes[1], [on(0, 0), on(1, 1)])
    publish(stand, nodes[2], [on(0, 0), on(1, 1, taints=[{"key": "sick", "effect": "NoSchedule"}]), on(2, 1), on(3, 1)])
    kind = gpu_class(stand)
    only = f'device.attributes["{NVIDIA}"].productName.contains("H100")'
    claim(stand, "alike", asking(kind, 2, only), alike=f"{NVIDIA}/numa")
    claim(stand, "none", asking(kind, 1, f'device.attributes["{NVIDIA}"].productName.contains("B200")'))
    claim(stand, "odd", asking(kind, 1, f'device.attributes["{NVIDIA}"].numa == 0'))
    stand.start()
    for name in ("alike", "none"):
        pod(stand, name, uses=name)
    until(lambda: places(stand) == [nodes[2]], "only there are two alike that are well")
    assert given(claims(stand)["alike"]) == [f"{nodes[2]}/gpu-2", f"{nodes[2]}/gpu-3"]
    told(stand, "none", "1 device of class")
    pod(stand, "odd", uses="odd")
    until(lambda: len(places(stand)) == 2, "a device that does not say what is asked for is not the one")
    assert given(claims(stand)["odd"])[0].rpartition("/")[2] == "gpu-0"


def test_what_others_have_is_not_free(stand: Stand) -> None:
    """Whoever gave it to whom: a claim of nobody's pod, and a pool that is being published."""
    nodes = stand.nodes(2, gpus=0)
    publish(stand, nodes[0], [gpu(0)])
    publish(stand, nodes[1], [gpu(0)], slices=2)
    kind = gpu_class(stand)
    claim(stand, "theirs", asking(kind))
    give(stand, "theirs", nodes[0], "gpu-0", NVIDIA)
    claim(stand, "mine", asking(kind))
    stand.start()
    pod(stand, "waits", uses="mine")
    told(stand, "waits", "1 GPU")
    assert places(stand) == []
    publish(stand, nodes[1], [gpu(1)], slices=2, part=1)
    until(lambda: places(stand) == [nodes[1]], "the pool is complete")
    pod(stand, "guest", uses="theirs")
    until(lambda: places(stand) == nodes, "whoever uses a claim that has its device goes there")


def test_another_leader_goes_on_or_takes_back(stand: Stand) -> None:
    """The first one has given devices to a gang and dies before it binds: that is written here as it would have been,
    for two pods of three, on a node that has no room for all."""
    nodes = stand.nodes(2, gpus=0)
    publish(stand, nodes[0], [device(f"port-{i}") for i in range(2)], NIC)
    publish(stand, nodes[1], [device(f"port-{i}") for i in range(3)], NIC)
    template(stand, "port", asking(nics(stand)))
    for number in range(3):
        here: dict[str, Any] = {"affinity": _only(nodes[1])} if number == 2 else {}
        pod(stand, f"train-{number}", own="port", group="train", of=3, **here)
    until(lambda: len(claims(stand)) == 3, "their claims are made")
    for number, one in enumerate(stand.pods()[:2]):
        meta = one["metadata"]
        name = one["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
        consumer = {"resource": "pods", "name": meta["name"], "uid": meta["uid"]}
        give(stand, name, nodes[0], f"port-{number}", NIC, [consumer])
    stand.start()
    until(lambda: len(places(stand, "train")) == 3, "the next leader goes on")
    for one in stand.pods():
        name = one["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
        assert [x.partition("/")[0] for x in given(claims(stand)[name])] == [one["spec"]["nodeName"]]
    assert len(set(all_given(stand))) == 3


def test_leaders_that_are_killed_leave_nothing_behind(stand: Stand) -> None:
    """Each while it gives devices to a gang: in the end every pod has devices of its own, on its own node."""
    nodes = stand.nodes(4, gpus=0)
    for node in nodes:
        publish(stand, node, [gpu(number) for number in range(4)])
    template(stand, "two", asking(gpu_class(stand), 2))
    for gang, wait_s in enumerate((0.0, 0.02, 0.05, 0.1)):
        before = len(all_given(stand))
        leader = stand.start("--lease-seconds=3")
        for number in range(2):
            pod(stand, f"g{gang}-{number}", own="two", group=f"g{gang}", of=2)
        until(lambda: len(all_given(stand)) > before, "it has begun")  # noqa: B023
        time.sleep(wait_s)
        leader.kill()
        leader.wait()
    stand.start("--lease-seconds=3")
    until(lambda: len(places(stand)) == 8, "all run")
    assert len(set(all_given(stand))) == len(all_given(stand)) == 16
    for one in stand.pods():
        name = one["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
        assert {x.partition("/")[0] for x in given(claims(stand)[name])} == {one["spec"]["nodeName"]}
        reserved = claims(stand)[name]["status"]["reservedFor"]
        assert [x["uid"] for x in reserved] == [one["metadata"]["uid"]]


def test_a_draft_that_nobody_uses_is_taken_back(stand: Stand) -> None:
    nodes = stand.nodes(1, gpus=0)
    publish(stand, nodes[0], [device("port")], NIC)
    template(stand, "port", asking(nics(stand)))
    pod(stand, "late", own="port", schedulingGates=[{"name": "example.com/wait"}])
    until(lambda: len(claims(stand)) == 1, "its claim is made")
    name, meta = next(iter(claims(stand))), stand.pods()[0]["metadata"]
    give(stand, name, nodes[0], "port", NIC, [{"resource": "pods", "name": "late", "uid": meta["uid"]}])
    stand.start()
    until(lambda: all_given(stand) == [], "it waits for something else, and others may have the device")
    claim(stand, "mine", asking(device_class(stand, "nic", f'device.driver == "{NIC}"')))
    pod(stand, "now", uses="mine")
    until(lambda: places(stand) == [nodes[0]], "and have it")


def test_malformed_slices_and_claims_do_not_disturb_others(stand: Stand) -> None:
    nodes = stand.nodes(1, gpus=0)
    publish(stand, nodes[0], [gpu(0), {"name": "bare"}])
    publish(stand, f"{stand.namespace}-nowhere", [gpu(0)])
    bad = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "x", "operator": "Exists"}]}]}}
    publish(stand, f"{stand.namespace}-net", [device("port")], NIC, where=bad)
    kind = gpu_class(stand)
    guarded = device_class(stand, "guarded", f'device.driver == "{NVIDIA}" && has(device.attributes["{NVIDIA}"].type)')
    claim(stand, "bad", asking(kind, 1, f'device.attributes["{NVIDIA}"].colour == "red"'))
    claim(stand, "unknown", asking("nobody-made-this"))
    claim(stand, "good", asking(guarded))
    claim(stand, "admin", asking(guarded, 0))
    stand.start()
    for name in ("bad", "unknown", "admin", "good", "missing"):
        pod(stand, name, uses=name)
    until(lambda: places(stand) == [nodes[0]], "whoever asks for what is there gets it")
    told(stand, "bad", "colour is not there; ask for it with has() first")
    told(stand, "unknown", "device class nobody-made-this does not exist")
    told(stand, "admin", "all GPUs of a node")
    told(stand, "missing", "resource claim missing does not exist")
    assert given(claims(stand)["good"]) == [f"{nodes[0]}/gpu-0"]


def test_claimed_gpus_count_in_queues(stand: Stand) -> None:
    """What is lent is taken back for whoever has a guarantee, as with a device plugin."""
    stand.serve_queues()
    owner, borrower = f"{stand.namespace}-own", f"{stand.namespace}-lend"
    stand.make_queue(owner, {"gpu": {"guarantee": 2, "limit": 2}})
    stand.make_queue(borrower, {"gpu": {"guarantee": 0}})
    nodes = stand.nodes(1, gpus=0)
    publish(stand, nodes[0], [gpu(0), gpu(1)])
    kind = gpu_class(stand)
    template(stand, "one", asking(kind))
    stand.start()
    for number in range(2):
        pod(stand, f"lent-{number}", own="one", queue=borrower)
    until(lambda: len(places(stand, "lent")) == 2, "idle GPUs are lent")
    template(stand, "two", asking(kind, 2))
    pod(stand, "mine-0", own="two", queue=owner)
    until(lambda: places(stand, "mine") == nodes, "and taken back")
    claim(stand, "more", asking(kind))
    pod(stand, "more-0", uses="more", queue=owner)
    told(stand, "more-0", f"queue {owner} is at its limit of 2 GPU")
    assert len(all_given(stand)) == 2


def _only(node: str) -> dict[str, Any]:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
