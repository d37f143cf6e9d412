"""Rules about neighbours: near, apart and spread; in gangs, across pools, and when others leave to make room."""

from __future__ import annotations

from collections import Counter

from msgspec import structs

from optimus.engine.engine import Engine
from optimus.model.nodes import Device, ForeignUsage, Node, Taint, Toleration
from optimus.model.observations import NodeSeen, Observation, PoolSeen, QueueSeen, SlotGone, SlotRunning, WorkloadSeen
from optimus.model.plans import Evict, Hold, Plan, Start
from optimus.model.pools import NodePool
from optimus.model.queues import GPU, PoolQuota, Queue, Quota
from optimus.model.reasons import Code, reason
from optimus.model.rules import EVERYWHERE, Bond, NeighbourRule, NodeRequirement, Operator, Where
from optimus.model.workloads import Group, Request, Role, Workload

ZONE, HOST = "zone", "hostname"
APART_FROM_WEB = NeighbourRule(bond=Bond.APART, counter="~near/web", level=HOST, told="app=web")


def node(name: str, zone: str, *, gpus: int = 8, labels: dict[str, str] | None = None, **more: object) -> Node:
    devices = tuple(Device(index=i, model="a100") for i in range(gpus))
    known = {HOST: name, ZONE: zone, **(labels or {})}
    made = Node(name=name, labels=known, devices=devices, cpu_milli=64_000, memory_mib=65_536)
    return structs.replace(made, **more)


def work(
    name: str,
    replicas: int = 1,
    *,
    rules: tuple[NeighbourRule, ...] = (),
    counted: tuple[str, ...] = (),
    gpu: int = 1,
    queue: str = "q",
    where: Where | None = None,
) -> Workload:
    request = Request(gpu_count=gpu, accelerators=tuple((one, 1) for one in sorted(counted)))
    rules_too = structs.replace(where or Where(), neighbours=rules)
    role = Role(name="worker", min=replicas, max=replicas, request=request, where=rules_too)
    return Workload(id=f"team/{name}", queue=queue, gang=Group(roles=(role,)))


def decided(nodes: list[Node], *works: Workload, pools: tuple[NodePool, ...] = ()) -> Plan:
    engine = Engine()
    facts: list[Observation] = [
        *map(PoolSeen, pools),
        *map(NodeSeen, nodes),
        QueueSeen(Queue(name="q")),
        *map(WorkloadSeen, works),
    ]
    plan = engine.step(facts, 0)
    assert engine.problems == []
    assert engine.step([], 1).actions == (), "a plan is complete"
    return plan


def places(plan: Plan) -> dict[str, list[str]]:
    return {a.workload: [p.node for p in a.placements] for a in plan.actions if isinstance(a, Start)}


def reasons(plan: Plan) -> dict[str, Code]:
    return {wait.workload: wait.reason.code for wait in plan.waiting}


def test_a_gang_that_keeps_apart_from_itself_gets_a_node_each() -> None:
    nodes = [node(f"n{i}", "a") for i in range(4)]
    plan = decided(nodes, work("web", 3, rules=(APART_FROM_WEB,), counted=("~near/web",)))
    assert len(set(places(plan)["team/web"])) == 3


def test_one_replica_too_many_waits_with_the_rule_in_words() -> None:
    nodes = [node(f"n{i}", "a") for i in range(2)]
    plan = decided(nodes, work("web", 3, rules=(APART_FROM_WEB,), counted=("~near/web",)))
    assert places(plan) == {}
    (wait,) = plan.waiting
    assert wait.reason.code is Code.NEIGHBOURS
    assert wait.reason.text() == (
        "there is room in pool default, but not where its rule about others allows it: "
        "apart from app=web in each hostname"
    )


def test_apart_holds_against_those_placed_in_the_same_plan_and_against_work_of_others() -> None:
    nodes = [
        node("n0", "a", foreign=ForeignUsage(accelerators={"~near/web": 1})),
        node("n1", "a"),
        node("n2", "a"),
    ]
    plan = decided(
        nodes,
        work("first", counted=("~near/web",)),
        work("second", 1, rules=(APART_FROM_WEB,)),
    )
    taken = places(plan)
    assert set(taken["team/second"]).isdisjoint({"n0", *taken["team/first"]})


def test_near_goes_where_the_others_are_and_the_first_goes_anywhere() -> None:
    near = NeighbourRule(bond=Bond.NEAR, counter="~near/db", level=ZONE, alone_is_fine=True)
    nodes = [node(f"n{i}", zone, gpus=2) for i, zone in enumerate("aabb")]
    plan = decided(nodes, work("db", 4, rules=(near,), counted=("~near/db",)))
    zones = dict(zip(["n0", "n1", "n2", "n3"], "aabb", strict=True))
    assert len({zones[name] for name in places(plan)["team/db"]}) == 1


def test_near_others_that_are_not_there_waits() -> None:
    near = NeighbourRule(bond=Bond.NEAR, counter="~near/db", level=ZONE)
    plan = decided([node("n0", "a")], work("app", rules=(near,)))
    assert reasons(plan) == {"team/app": Code.NEIGHBOURS}


def test_spread_stays_even_between_zones() -> None:
    spread = NeighbourRule(bond=Bond.SPREAD, counter="~near/w", level=ZONE, max_skew=1)
    nodes = [node("a0", "a"), node("b0", "b"), node("c0", "c")]
    plan = decided(nodes, work("w", 7, rules=(spread,), counted=("~near/w",)))
    assert sorted(Counter(places(plan)["team/w"]).values()) == [2, 2, 3]


def test_spread_counts_domains_it_could_be_in_only() -> None:
    spread = NeighbourRule(bond=Bond.SPREAD, counter="~near/w", level=ZONE, max_skew=1)
    only_b = Where(any_of=((NodeRequirement(ZONE, Operator.IN, ("b",)),),))
    nodes = [node("a0", "a"), node("b0", "b")]
    plan = decided(nodes, work("w", 4, rules=(spread,), counted=("~near/w",), where=only_b))
    assert places(plan)["team/w"] == ["b0"] * 4


def test_spread_with_too_few_domains_counts_from_nothing() -> None:
    spread = NeighbourRule(bond=Bond.SPREAD, counter="~near/w", level=ZONE, max_skew=1, min_domains=2)
    plan = decided([node("a0", "a")], work("w", 2, rules=(spread,), counted=("~near/w",)))
    assert places(plan) == {}


def test_domains_do_not_end_at_pools() -> None:
    pools = (NodePool(name="one", selector={"pool": "one"}), NodePool(name="two", selector={"pool": "two"}))
    nodes = [
        node("n1", "a", labels={"pool": "one"}, foreign=ForeignUsage(accelerators={"~near/web": 1})),
        node("n2", "a", labels={"pool": "two"}),
        node("n3", "b", labels={"pool": "two"}),
    ]
    apart = structs.replace(APART_FROM_WEB, level=ZONE)
    plan = decided(nodes, structs.replace(work("app", rules=(apart,)), pools=("two",)), pools=pools)
    assert places(plan) == {"team/app": ["n3"]}


def test_room_is_made_by_sending_the_neighbour_away() -> None:
    """One whose queue is inside its guarantee may not share a zone with work above its own: that leaves."""
    engine = Engine()
    quotas = (PoolQuota(pool="default", resources={GPU: Quota(guarantee=4000)}),)
    apart = structs.replace(APART_FROM_WEB, level=ZONE)
    nor_it_us = structs.replace(apart, counter="~near/loners", told="those who keep apart")
    borrower = work("borrower", counted=("~near/web",), rules=(nor_it_us,), queue="poor")
    engine.step(
        [
            NodeSeen(node("n0", "a")),
            QueueSeen(Queue(name="rich", quotas=quotas)),
            QueueSeen(Queue(name="poor")),
            WorkloadSeen(borrower),
            SlotRunning(borrower.id, "worker", 0, "n0", (0,), 0),
        ],
        0,
    )
    asked = engine.step([WorkloadSeen(work("asker", rules=(apart,), counted=("~near/loners",), queue="rich"))], 1_000)
    assert [a.workload for a in asked.actions if isinstance(a, Evict)] == [borrower.id]
    plan = engine.step([SlotGone(borrower.id, "worker", 0)], 2_000)
    assert places(plan) == {"team/asker": ["n0"]}
    assert reasons(plan) == {borrower.id: Code.NEIGHBOURS}


def test_ports_of_a_node_are_given_once() -> None:
    nodes = [node("n0", "a"), node("n1", "a")]
    plan = decided(nodes, *(_with_port(f"w{i}", "~port/TCP/80", 1000) for i in range(3)))
    assert sorted(name for names in places(plan).values() for name in names) == ["n0", "n1"]
    (wait,) = plan.waiting
    assert "port TCP/80" in wait.reason.text()


def test_counters_are_no_use_of_a_queue() -> None:
    plan = decided([node("n0", "a", accelerators={"~pods": 110})], work("w", counted=("~pods", "~near/x")))
    assert {share.resource for share in plan.shares if share.allocated} == {"gpu"}
    assert places(plan) == {"team/w": ["n0"]}


def _with_port(name: str, counter: str, amount: int) -> Workload:
    request = Request(gpu_count=1, accelerators=((counter, amount),))
    return Workload(id=f"team/{name}", queue="q", gang=Group(roles=(Role(name="worker", request=request),)))


def test_affinity_speaks_of_labels_and_names() -> None:
    nodes = [node("n0", "a"), node("n1", "b", labels={"gen": "7"}), node("n2", "b", labels={"gen": "9"})]
    newer = Where(any_of=((NodeRequirement("gen", Operator.GREATER, ("7",)),),))
    assert places(decided(nodes, work("w", where=newer))) == {"team/w": ["n2"]}
    named = Where(any_of=((NodeRequirement("metadata.name", Operator.IN, ("n1",)),),))
    assert places(decided(nodes, work("w", where=named))) == {"team/w": ["n1"]}
    pinned = Where(
        all_of=(((NodeRequirement(ZONE, Operator.IN, ("b",)),),), ((NodeRequirement("gen", Operator.LESS, ("8",)),),))
    )
    assert places(decided(nodes, work("w", where=pinned))) == {"team/w": ["n1"]}
    nowhere = Where(any_of=((NodeRequirement("gen", Operator.EXISTS), NodeRequirement(ZONE, Operator.NOT_IN, ("b",))),))
    assert reasons(decided(nodes, work("w", where=nowhere))) == {"team/w": Code.NO_MATCHING_NODE}


def test_tolerations_of_a_role_and_cordoned_nodes() -> None:
    nodes = [node("n0", "a", taints=(Taint("only", "us"),)), node("n1", "a", cordoned=True)]
    assert reasons(decided(nodes, work("w"))) == {"team/w": Code.NO_MATCHING_NODE}
    tolerant = Where(tolerations=(Toleration("only", "us", equal=True),))
    assert places(decided(nodes, work("w", where=tolerant))) == {"team/w": ["n0"]}
    empty_is_not_any = Where(tolerations=(Toleration("only", "", equal=True),))
    assert places(decided(nodes, work("w", where=empty_is_not_any))) == {}
    everything = Where(tolerations=(Toleration("node.kubernetes.io/unschedulable"),))
    assert places(decided(nodes, work("w", where=everything))) == {"team/w": ["n1"]}


def test_a_rule_for_everywhere_allows_one_in_the_whole_cluster() -> None:
    """A volume that only one pod may use: neither nodes nor pools make a difference."""
    only = NeighbourRule(bond=Bond.APART, counter="~near/disk", level=EVERYWHERE, told="others that use disk")
    pools = (NodePool(name="one", selector={"pool": "one"}), NodePool(name="two", selector={"pool": "two"}))
    nodes = [node(f"n{i}", "a", labels={"pool": pool}) for i, pool in enumerate(("one", "two"))]
    users = [work(name, rules=(only,), counted=("~near/disk",)) for name in ("first", "second")]
    plan = decided(nodes, *users, pools=pools)
    assert list(places(plan)) == ["team/first"]
    (wait,) = plan.waiting
    assert wait.reason.text().endswith("its rule about others allows it: apart from others that use disk")
    assert places(decided(nodes, work("gang", 2, rules=(only,), counted=("~near/disk",)), pools=pools)) == {}


def test_a_volume_says_where_it_can_be_and_not_what_it_spreads_over() -> None:
    """Zone a has one already; b is empty, but cannot be reached: the skew counts all the same."""
    spread = NeighbourRule(bond=Bond.SPREAD, counter="~near/w", level=ZONE, max_skew=1)
    nodes = [node("a0", "a", foreign=ForeignUsage(accelerators={"~near/w": 1})), node("b0", "b")]
    in_a = ((NodeRequirement(ZONE, Operator.IN, ("a",)),),)
    by_volume = work("v", rules=(spread,), counted=("~near/w",), where=Where(all_of=(in_a,)))
    assert reasons(decided(nodes, by_volume)) == {"team/v": Code.NEIGHBOURS}
    by_affinity = work("w", rules=(spread,), counted=("~near/w",), where=Where(any_of=in_a))
    assert places(decided(nodes, by_affinity)) == {"team/w": ["a0"]}


def test_volumes_of_a_driver_have_no_end_where_a_node_declares_none() -> None:
    nodes = [node("n0", "a", accelerators={"~attach/disks": 1}), node("n1", "a", gpus=0)]
    request = Request(accelerators=(("~attach/disks", 2),))
    role = Role(name="worker", request=request)
    both = Workload(id="team/w", queue="q", gang=Group(roles=(role,)))
    assert places(decided(nodes, both)) == {"team/w": ["n1"]}
    assert reasons(decided(nodes[:1], both)) == {"team/w": Code.NO_SUCH_DEVICE}


def test_numbers_of_nodes_are_decimals_of_64_bits() -> None:
    above = NodeRequirement("gen", Operator.GREATER, ("7",))
    for written, accepted in {"8": True, "1_0": False, "٩": False, "+9": True, "9" * 30: False}.items():
        assert above.accepts(node("n", "a", labels={"gen": written})) is accepted, written


def test_what_the_body_knows_against_it_is_the_one_reason_and_goes_away() -> None:
    obstacle = reason(Code.NOT_READY, missing="volume claim data is not bound to a volume")
    engine = Engine()
    held_up = structs.replace(work("w"), obstacle=obstacle)
    others = [work(f"other-{i}") for i in range(2)]
    plan = engine.step(
        [NodeSeen(node("n0", "a")), QueueSeen(Queue(name="q")), *map(WorkloadSeen, (*others, held_up))], 0
    )
    assert set(places(plan)) == {"team/other-0", "team/other-1"}, "those that ask for the same are not held up"
    assert [wait.reason for wait in plan.waiting] == [obstacle]
    assert places(engine.step([WorkloadSeen(structs.replace(held_up, obstacle=None))], 1)) == {"team/w": ["n0"]}
    assert engine.step([WorkloadSeen(held_up)], 2).actions == (), "work that runs goes on"


def test_a_full_node_says_so_by_places_for_pods() -> None:
    full = [node("n0", "a", accelerators={"~pods": 1}, foreign=ForeignUsage(accelerators={"~pods": 1}))]
    (wait,) = decided(full, work("w", gpu=0, counted=("~pods",))).waiting
    assert wait.reason.text() == "no node of pool default has a place for a pod on one node"


def test_who_is_in_the_way_by_a_rule_has_to_have_left_though_there_is_room_for_both() -> None:
    """Preemption finds the place as if the victim were gone; until it is, it is a neighbour."""
    older = work("older", rules=(APART_FROM_WEB,), counted=("~near/web",), gpu=0)
    urgent = work("urgent", rules=(APART_FROM_WEB,), counted=("~near/web",), gpu=0)
    engine = Engine()
    begun = engine.step([NodeSeen(node("n0", "a")), QueueSeen(Queue(name="q")), WorkloadSeen(older)], 0)
    assert places(begun) == {"team/older": ["n0"]}
    engine.step([SlotRunning("team/older", "worker", 0, "n0")], 1)
    plan = engine.step([WorkloadSeen(structs.replace(urgent, priority=1_000))], 2)
    assert [type(one) for one in plan.actions] == [Evict, Hold]
    assert engine.step([], 3).actions == (), "it is still there"
    plan = engine.step([SlotGone("team/older", "worker", 0)], 4)
    assert places(plan) == {"team/urgent": ["n0"]}
