"""Claims of devices: which devices match, what a pod takes and where it may be, and the choice on a node."""

from __future__ import annotations

from typing import Any

import pytest

from optimus.drivers.kube.claiming import Claimed, claimed_by, configs_of, read_ask
from optimus.drivers.kube.device_objects import ResourceClaim
from optimus.drivers.kube.devices import Catalog, allocate, written
from optimus.drivers.kube.nodes import read_node
from optimus.drivers.kube.pods import read_pod
from optimus.drivers.kube.spare import Spare
from optimus.drivers.kube.volumes import Around
from optimus.model.nodes import Node
from optimus.model.reasons import Code
from optimus.model.rules import PLENTY, Where
from tests.pods.claiming import (
    ANY,
    GPUS,
    NVIDIA,
    around,
    asking,
    catalog,
    claim,
    device,
    device_class,
    given,
    gpu,
    slices,
    template,
    using,
)
from tests.pods.writing import node, pod

NICS = device_class("nics", 'device.driver == "nic.example.com"')
Numbers = dict[str, dict[str, int]]
H100 = 'device.attributes["gpu.nvidia.com"].productName.contains("H100")'


def chosen(known: Catalog, one: ResourceClaim, name: str = "n0", taken: Any = ()) -> list[str] | None:
    """`request:device`."""
    ask, _ = read_ask(one.spec, one.metadata.name, known)
    found = allocate([ask], read_node(node(name)), taken, known)
    return None if found is None else [f"{x.wanted.request}:{x.offered.device.name}" for x in found[0]]


def told(claimed: Claimed) -> tuple[Code, str]:
    return claimed.obstacles[0].code, claimed.obstacles[0].text()


# -- what there is ----------------------------------------------------------------------------------------------------


def test_devices_are_taken_in_the_order_of_pools_slices_and_names() -> None:
    known = catalog(
        GPUS,
        slices("n0", [gpu("b"), gpu("a")], part=1, count=2),
        slices("n0", [gpu("c")], part=0, count=2),
        slices("n1", [gpu("z")]),
    )
    assert chosen(known, claim("mine", asking(count=3))) == ["gpu:c", "gpu:b", "gpu:a"]
    assert chosen(known, claim("mine", asking()), "n1") == ["gpu:z"]
    assert chosen(known, claim("mine", asking(count=4))) is None
    assert chosen(known, claim("mine", asking(count=2)), taken={f"{NVIDIA}/n0/b"}) == ["gpu:c", "gpu:a"]


def test_a_pool_counts_when_all_of_its_newest_generation_is_there() -> None:
    known = catalog(GPUS, slices("n0", [gpu("a")], count=2))
    assert chosen(known, claim("mine", asking())) is None
    assert known.offer.unfinished == [f"pool n0 of {NVIDIA} (1 of 2 slices)"]
    assert len(known.offer.gpus["n0"]) == 1, "but it is a GPU of the node: somebody may run on it"
    assert [*spare(known, "n0", claims=(claim("mine", asking()),))["n0"].values()] == [0]
    known = catalog(GPUS, slices("n0", [gpu("old")], part=0), slices("n0", [gpu("new")], part=1, generation=2))
    assert chosen(known, claim("mine", asking())) == ["gpu:new"]
    known = catalog(GPUS, slices("n0", [gpu("a")], part=0, count=2), slices("n0", [gpu("a")], part=1, count=2))
    assert chosen(known, claim("mine", asking())) is None, "a name that is there twice is nobody's"


def test_slices_say_which_nodes_reach_their_devices() -> None:
    here = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}]}
    known = catalog(
        NICS,
        slices("s", [device("port")], "nic.example.com", nodeSelector=here),
        slices("t", [device("cloud")], "nic.example.com", allNodes=True),
    )
    one = claim("mine", asking("nics", 2))
    assert chosen(known, one) is None
    ask, _ = read_ask(one.spec, "mine", known)
    found = allocate([ask], read_node(node(labels={"rack": "r1"})), (), known)
    assert found is not None
    allocation = written(found[0], [], {})
    assert allocation["nodeSelector"] == {"nodeSelectorTerms": [here["nodeSelectorTerms"][0]]}
    everywhere = allocate([ask], read_node(node(labels={"rack": "r2"})), (), known)
    assert everywhere is None


def test_a_slice_that_nobody_can_read_does_not_disturb_others() -> None:
    strange = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "x", "operator": "Near", "values": []}]}]}
    known = catalog(
        GPUS,
        slices("n0", [gpu("a")]),
        slices("odd", [gpu("b")], nodeSelector=strange),
        slices("none", [gpu("c")], allNodes=False),
        slices("empty", []),
    )
    assert chosen(known, claim("mine", asking())) == ["gpu:a"]
    assert chosen(known, claim("mine", asking(count=2))) is None


@pytest.mark.parametrize(
    ("special", "words"),
    [
        ({"consumesCounters": [{"counterSet": "x", "counters": {}}]}, "a part of another"),
        ({"allowMultipleAllocations": True}, "several claims"),
        ({"bindingConditions": ["ready"]}, "conditions before"),
    ],
)
def test_devices_that_are_not_whole_are_refused_with_words(special: dict[str, Any], words: str) -> None:
    known = catalog(GPUS, slices("n0", [gpu("a", **special)]))
    code, text = told(using(around(known, claim("mine", asking())), "mine"))
    assert code is Code.UNSUPPORTED and words in text and "device gpu.nvidia.com/n0/a" in text
    known = catalog(GPUS, slices("n0", [gpu("a", **special), gpu("b")]))
    assert chosen(known, claim("mine", asking())) == ["gpu:b"], "those beside them are as good as any"


# -- what is chosen ---------------------------------------------------------------------------------------------------


def test_class_and_request_select_together() -> None:
    bare = {**gpu("c"), "attributes": {}}
    known = catalog(GPUS, slices("n0", [bare]))
    code, text = told(using(around(known, claim("mine", asking())), "mine"))
    assert code is Code.MALFORMED and "device gpu.nvidia.com/n0/c: type is not there; ask for it with has()" in text
    known = catalog(GPUS, slices("n0", [bare, gpu("a"), gpu("b", "NVIDIA H100")]))
    assert chosen(known, claim("mine", asking(count=2))) == ["gpu:a", "gpu:b"], "others answer"
    assert chosen(known, claim("mine", asking(count=3))) is None
    numbers = device_class("any", 'device.attributes["d.example.com"].n > 0')
    some = catalog(numbers, slices("n0", [device("x", n=1), device("y")], "d.example.com"))
    assert chosen(some, claim("mine", asking("any", 0))) is None, "nobody can say what all of them are"
    guarded = device_class("gpus", f'device.driver == "{NVIDIA}" && has(device.attributes["{NVIDIA}"].type)')
    known.classes["gpus"] = guarded
    assert chosen(known, claim("mine", asking("gpus", 1, H100))) == ["gpu:b"]
    known.classes["gpus"] = device_class("gpus", f'device.driver == "{NVIDIA}"', "nonsense(device)")
    code, text = told(using(around(known, claim("mine", asking())), "mine"))
    assert code is Code.UNSUPPORTED and "'nonsense(device)' (the function nonsense is not known)" in text


def test_a_device_with_a_taint_is_for_those_who_tolerate_it() -> None:
    def tainted(effect: str) -> Catalog:
        return catalog(GPUS, slices("n0", [gpu("a", taints=[{"key": "sick", "value": "yes", "effect": effect}])]))

    assert chosen(tainted("NoSchedule"), claim("mine", asking())) is None
    assert chosen(tainted("NoExecute"), claim("mine", asking())) is None
    assert chosen(tainted("None"), claim("mine", asking())) == ["gpu:a"]
    tolerant = asking(tolerations=[{"key": "sick", "operator": "Exists"}])
    assert chosen(tainted("NoSchedule"), claim("mine", tolerant)) == ["gpu:a"]
    other = asking(tolerations=[{"key": "sick", "operator": "Equal", "value": "no"}])
    assert chosen(tainted("NoSchedule"), claim("mine", other)) is None


def test_devices_that_must_be_alike_are() -> None:
    numa = [device(f"{kind}{i}", numa=i) for kind in "ab" for i in range(2)]
    known = catalog(ANY, slices("n0", numa, "d.example.com"))
    alike = [{"matchAttribute": "d.example.com/numa"}]
    assert chosen(known, claim("mine", asking("any", 2), constraints=alike)) == ["gpu:a0", "gpu:b0"]
    assert chosen(known, claim("mine", asking("any", 3), constraints=alike)) is None
    assert chosen(known, claim("mine", asking("any", 1), constraints=[{"matchAttribute": "d.example.com/x"}])) is None
    two = [asking("any", 1, name="one"), asking("any", 2, name="two")]
    only = [{"requests": ["two"], "matchAttribute": "d.example.com/numa"}]
    assert chosen(known, claim("mine", *two, constraints=only)) == ["one:a0", "two:a1", "two:b1"]


def test_all_devices_are_all_or_none() -> None:
    known = catalog(ANY, slices("n0", [device("a"), device("b")], "d.example.com"))
    everything = claim("mine", asking("any", 0))
    assert chosen(known, everything) == ["gpu:a", "gpu:b"]
    assert chosen(known, everything, taken={"d.example.com/n0/b"}) is None
    assert chosen(known, everything, "n1") is None
    known = catalog(
        ANY, slices("n0", [device("a")], "d.example.com"), slices("n0", [device("b")], "e.example.com", count=2)
    )
    assert chosen(known, claim("mine", asking("any", 1))) == ["gpu:a"]
    assert chosen(known, everything) is None, "more are being published: nobody can say what all of them are"


def test_the_first_way_that_is_there_is_taken() -> None:
    known = catalog(ANY, slices("n0", [device("slow", speed=1), device("slower", speed=1)], "d.example.com"))
    ways = [
        {"name": name, "deviceClassName": "any", "count": n, "selectors": [{"cel": {"expression": text}}]}
        for name, n, text in (
            ("best", 1, 'device.attributes["d.example.com"].speed > 1'),
            ("rest", 2, 'device.attributes["d.example.com"].speed == 1'),
        )
    ]
    one = claim("mine", {"name": "fast", "firstAvailable": ways})
    assert chosen(known, one) == ["fast/rest:slow", "fast/rest:slower"]


def test_two_requests_share_out_what_both_could_have() -> None:
    known = catalog(ANY, slices("n0", [device("a", fast=True), device("b", fast=False)], "d.example.com"))
    fast = 'device.attributes["d.example.com"].fast'
    assert chosen(known, claim("mine", asking("any", name="x"), asking("any", 1, fast, name="y"))) == ["x:b", "y:a"]


def test_an_allocation_carries_the_configuration_of_classes_and_claim() -> None:
    opaque = {"opaque": {"driver": NVIDIA, "parameters": {"kind": "x"}}}
    known = catalog(device_class("gpus", config=[opaque]), slices("n0", [gpu("a")]))
    mine = claim("mine", asking(), config=[{**opaque, "requests": ["gpu"]}, {**opaque, "requests": ["other"]}])
    ask, _ = read_ask(mine.spec, "mine", known)
    configs = configs_of(mine, [ask.requests[0][0]], known)
    assert [(one["source"], one.get("requests")) for one in configs] == [("FromClass", ["gpu"]), ("FromClaim", ["gpu"])]


# -- what follows for a pod -------------------------------------------------------------------------------------------


def test_gpus_that_are_claimed_are_gpus() -> None:
    known = catalog(GPUS, slices("n0", [gpu("a"), gpu("b")]))
    claims = around(known, claim("mine", asking(count=2)))
    needs = read_pod(pod(resourceClaims=[{"name": "c", "resourceClaimName": "mine"}]), Around(devices=claims))
    assert needs.request.gpu_count == 2 and needs.obstacles == ()
    half = pod(resourceClaims=[{"name": "c", "resourceClaimName": "mine"}], notes={"optimus.dev/gpu-fraction": "0.5"})
    assert "choose one" in read_pod(half, Around(devices=claims)).obstacles[0].text()
    seen = read_node(node(), claimed=known.offer.gpus["n0"])
    assert [(one.model, one.memory_mib) for one in seen.devices] == [("a100", 81920), ("a100", 81920)]
    both = catalog(ANY, slices("n0", [gpu("a")]), slices("n0", [device("x")], "d.example.com"))
    assert "both GPUs and other devices" in told(using(around(both, claim("mine", asking("any"))), "mine"))[1]
    assert "all GPUs of a node" in told(using(around(known, claim("mine", asking("gpus", 0))), "mine"))[1]


def test_devices_that_are_given_pin_the_pod_and_count() -> None:
    known = catalog(GPUS, slices("n1", [gpu("a"), gpu("b")]))
    mine = claim("mine", asking(count=2), allocation=given(f"{NVIDIA}/n1/a", f"{NVIDIA}/n1/b", node="n1"))
    found = using(around(known, mine), "mine")
    assert found.gpus == 2 and found.counters == () and found.obstacles == ()
    assert not Where(all_of=found.all_of).accepts(read_node(node("n0")))
    assert Where(all_of=found.all_of).accepts(read_node(node("n1")))
    assert using(around(known, mine), "mine", "mine").gpus == 2, "also if it is named twice"
    going = claim(
        "mine", asking(), allocation=given(f"{NVIDIA}/n1/a"), meta={"deletionTimestamp": "2026-01-01T00:00:00Z"}
    )
    assert using(around(known, going), "mine", nodeName="n1").gpus == 1, "who runs with it has it"


def test_an_allocation_for_a_pod_on_no_node_is_a_draft() -> None:
    known = catalog(GPUS, slices("n1", [gpu("a")]))
    reserved = [{"resource": "pods", "name": "p", "uid": "uid-p"}]
    mine = claim("mine", asking(), allocation=given(f"{NVIDIA}/n1/a", node="n1"), reservedFor=reserved)
    draft = using(around(known, mine, unbound={"uid-p"}), "mine")
    assert draft.all_of == () and draft.gpus == 1 and len(draft.counters) == 1
    others = using(around(known, mine), "mine")
    assert len(others.all_of) == 1 and others.counters == ()


def test_a_server_without_claims_of_that_version_is_not_said_to_miss_one() -> None:
    known = around(catalog(GPUS), served=False)
    code, words = told(using(known, "mine"))
    assert code is Code.UNSUPPORTED
    assert "this server does not serve resource.k8s.io/v1" in words and "exist" not in words
    assert using(known).obstacles == (), "who claims nothing hears nothing"


def test_what_a_pod_waits_for() -> None:
    known = catalog(GPUS)

    def code_and_words(*made: Any, **more: Any) -> tuple[Code, str]:
        return told(using(around(known, *made), "mine", **more))

    assert "mine does not exist" in code_and_words()[1]
    assert "class none does not exist" in code_and_words(claim("mine", asking("none")))[1]
    gone = claim("mine", asking(), meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert "is being deleted" in code_and_words(gone)[1]
    many = [{"uid": f"u{i}"} for i in range(256)]
    full = claim("mine", asking(), allocation=given(), reservedFor=many)
    assert "in use by 256 pods" in code_and_words(full)[1]
    wanted = [{"name": "c", "resourceClaimTemplateName": "of-mine"}]
    own = pod(resourceClaims=wanted)
    mine = around(known, template("of-mine", asking()))
    assert "has not been made from its template yet" in told(claimed_by(own, mine))[1]
    nothing = pod(resourceClaims=wanted, status={"resourceClaimStatuses": [{"name": "c"}]})
    assert claimed_by(nothing, mine).obstacles == ()
    made = pod(resourceClaims=wanted, status={"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "made"}]})
    stolen = around(known, claim("made", asking()))
    assert "belongs to somebody else" in told(claimed_by(made, stolen))[1]
    thought_of = pod(resourceClaims=wanted, meta={"uid": ""})
    assert len(claimed_by(thought_of, mine).counters) == 1


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (asking(adminAccess=True), "adminAccess"),
        (asking(capacity={"requests": {"memory": "1Gi"}}), "a part of a device"),
        (asking(allocationMode="Some"), "allocationMode Some"),
        ({"name": "new"}, "a kind of request that is not known"),
        ({"name": "x", "exactly": {"deviceClassName": "gpus", "selectors": [{"new": {}}]}}, "no CEL expression"),
    ],
)
def test_what_is_not_supported_is_said(request_: dict[str, Any], words: str) -> None:
    known = catalog(GPUS, slices("n0", [gpu("a")]))
    code, text = told(using(around(known, claim("mine", request_)), "mine"))
    assert code is Code.UNSUPPORTED and words in text
    distinct = claim("mine", asking(), constraints=[{"distinctAttribute": "x/y"}])
    assert "other than matchAttribute" in told(using(around(known, distinct), "mine"))[1]
    assert "more than 32" in told(using(around(known, claim("mine", asking(count=33))), "mine"))[1]


# -- what nodes have to spare -----------------------------------------------------------------------------------------


def spare(known: Catalog, *names: str, claims: tuple[ResourceClaim, ...], counted: Any = ()) -> Numbers:
    """Of the counters of a pod that uses the first claim."""
    here = Around(devices=around(known, *claims))
    counting, nodes = Spare(), {name: seen(known, name) for name in names}
    needs = counting.see(read_pod(pod(resourceClaims=[{"name": "c", "resourceClaimName": "mine"}]), here))
    counting.recount(nodes, here, counted)
    asked = [name for name, _ in needs.devices.counters]
    return {name: {one: counting.counters(name).get(one, 0) for one in asked} for name in names}


def seen(known: Catalog, name: str) -> Node:
    return read_node(node(name), claimed=known.offer.gpus.get(name, ()))


def test_a_node_has_what_is_free_and_what_our_pods_have() -> None:
    known = catalog(NICS, slices("n0", [device(f"p{i}") for i in range(4)], "nic.example.com"))
    mine = claim("mine", asking("nics"))
    taken = claim("theirs", asking("nics"), allocation=given("nic.example.com/n0/p0", node="n0"))
    assert [*spare(known, "n0", claims=(mine,))["n0"].values()] == [4]
    assert [*spare(known, "n0", claims=(mine, taken))["n0"].values()] == [3]
    ours = pod("runs", resourceClaims=[{"name": "c", "resourceClaimName": "ours"}], nodeName="n0")
    held = claim("ours", asking("nics"), allocation=given("nic.example.com/n0/p1"), reservedFor=[{"uid": "uid-runs"}])
    request = read_pod(
        pod(resourceClaims=[{"name": "c", "resourceClaimName": "mine"}]), Around(devices=around(known, mine))
    ).request
    assert [*spare(known, "n0", claims=(mine, taken, held), counted=[(ours, request)])["n0"].values()] == [3]
    assert [*spare(known, "n0", claims=(mine, taken, held))["n0"].values()] == [2]


def test_where_all_gpus_are_of_a_kind_they_are_counted_as_gpus() -> None:
    known = catalog(
        GPUS,
        slices("n0", [gpu("a"), gpu("b")]),
        slices("n1", [gpu("a"), gpu("b", "NVIDIA H100")]),
        slices("n2", [gpu("a", "NVIDIA H100")]),
    )
    any_gpu = spare(known, "n0", "n1", "n2", claims=(claim("mine", asking()),))
    assert [*any_gpu["n0"].values(), *any_gpu["n1"].values()] == [PLENTY, PLENTY]
    special = spare(known, "n0", "n1", "n2", claims=(claim("mine", asking("gpus", 1, H100)),))
    assert [[*special[name].values()] for name in ("n0", "n1", "n2")] == [[0], [1], [PLENTY]]


def test_a_claim_that_others_use_too_needs_its_devices_beside_ones_own() -> None:
    known = catalog(NICS, slices("n0", [device(f"p{i}") for i in range(2)], "nic.example.com"))
    made = claim("mine", asking("nics", 2)), claim("ours", asking("nics"))
    here = Around(devices=around(known, *made, users={"team/ours": ["uid-x", "uid-p"]}))
    counting = Spare()
    wanted = [{"name": name, "resourceClaimName": name} for name in ("mine", "ours")]
    needs = counting.see(read_pod(pod(resourceClaims=wanted), here))
    counting.recount({"n0": seen(known, "n0")}, here, ())
    assert sorted(counting.counters("n0").get(name, 0) for name, _ in needs.devices.counters) == [0, 2]


def test_what_must_be_alike_is_counted_together() -> None:
    numa = [device(f"{kind}{i}", numa=i) for kind in "abc" for i in range(2)]
    known = catalog(ANY, slices("n0", numa, "d.example.com"))
    pairs = claim("mine", asking("any", 2), constraints=[{"matchAttribute": "d.example.com/numa"}])
    found = spare(known, "n0", claims=(pairs,))["n0"]
    assert sorted(found.values()) == [2, 6], "six devices, and two pairs that are alike"
