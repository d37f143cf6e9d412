"""What would start it now: every suggestion works when it is carried out, and nothing else is suggested."""

from __future__ import annotations

import pytest
from msgspec import structs

from optimus.api.loading import load_text
from optimus.engine.copying import engine_of
from optimus.explaining.quotas import guaranteed, quota_of, with_quota
from optimus.explaining.sizes import smaller
from optimus.explaining.suggesting import suggestions
from optimus.explaining.trying import Change, Trials, granted
from optimus.model.observations import WorkloadSeen
from optimus.model.plans import Hold, Start
from optimus.model.queues import GPU, PoolQuota, Queue, Quota
from tests.explaining.worlds import Moment, moment, of_example

BEHIND = """
cluster: [{name: n, gpus: 8}]
workloads:
  - {name: first, replicas: 5, gpu: 1, running: {on: n}, expectedDuration: 2h}
  - {name: waits, replicas: 8, gpu: 1, submitted: -10m}
"""


@pytest.fixture(scope="module")
def example() -> Moment:
    return of_example()


@pytest.mark.parametrize(
    ("name", "kind", "field"),
    [
        ("next-in-line", "gpus", "gpu: 2"),
        ("next-in-line", "guarantee", "gpu: {guarantee: 9}"),
        ("scattered", "class", "class: interactive"),
        ("scattered", "priority", "priority: 101"),
        ("over-the-limit", "gpus", "gpu: 2"),
        ("too-large", "replicas", "replicas: 4"),
        ("larger-than-all", "replicas", "replicas: 4"),
        ("wrong-model", "models", "gpu without models"),
        ("one-rack", "topology", "topology: {preferred: rack}"),
        ("one-rack", "replicas", "replicas: 2"),
        ("asleep", "resume", "suspend: false"),
    ],
)
def test_what_helps_is_suggested(example: Moment, name: str, kind: str, field: str) -> None:
    assert example.suggested(name)[kind] == field


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("over-the-limit", {"class", "priority", "guarantee", "limit"}),  # a higher limit brings no room
        ("too-large", {"class", "priority", "guarantee"}),
        ("wrong-model", {"gpus", "class", "priority", "guarantee"}),
        ("not-preemptible", {"preemptible"}),  # preemptible it finds no room either
        ("stopped-queue", {"resume", "gpus", "class", "priority", "guarantee"}),
        ("asleep", {"class", "priority"}),
    ],
)
def test_what_does_not_help_is_not(example: Moment, name: str, kinds: set[str]) -> None:
    assert not kinds & example.suggested(name).keys()


def test_the_largest_gang_that_starts_is_named() -> None:
    found = moment(BEHIND).explain("waits").suggestions
    assert (found[0].words, found[0].outcome.held, found[0].outcome.replicas) == ("3 replicas instead of 8", False, 3)


def test_stopping_others_is_said_and_by_name() -> None:
    found = {one.kind: one.outcome for one in moment(BEHIND).explain("waits").suggestions}
    assert found["class"].held and found["class"].stopped == ("default/first",)


def test_those_that_disturb_nobody_come_first() -> None:
    held = [one.outcome.held for one in moment(BEHIND).explain("waits").suggestions]
    assert held == sorted(held) and True in held


def test_elastic_work_may_begin_smaller_and_still_grow() -> None:
    now = moment(BEHIND.replace("replicas: 8, gpu", "replicas: {min: 6, max: 8}, gpu"))
    trials = Trials(engine_of(now.copy()), ("default/waits",), now.now_ms)
    assert [one.field for one in smaller(trials)] == ["replicas: 3"]


def test_another_pool() -> None:
    now = moment("""
cluster:
  nodes: [{name: a, gpus: 4, labels: {kind: a}}, {name: b, gpus: 4, labels: {kind: b}}]
pools: [{name: pa, selector: {kind: a}}, {name: pb, selector: {kind: b}}]
workloads:
  - {name: runs, gpu: 4, running: {on: a}, preemptible: false, priority: 500}
  - {name: waits, gpu: 4, pools: [pa], submitted: -1m}
""")
    found = {one.kind: one for one in now.explain("waits").suggestions}
    assert found["pools"].field == "pools: [any]" and found["pools"].outcome.pool == "pb"


def test_a_limit_is_raised_where_it_alone_stands_in_the_way() -> None:
    now = moment("""
cluster: [{name: n, gpus: 8}]
queues: [{name: q, gpu: {limit: 4}}]
workloads:
  - {name: runs, queue: q, gpu: 3, running: {on: n}}
  - {name: waits, queue: q, gpu: 2, submitted: -1m}
""")
    assert now.suggested("waits")["limit"] == "gpu: {limit: 5}"


def test_what_is_suggested_for_a_queue_keeps_what_it_has_elsewhere() -> None:
    now = moment("""
cluster: [{name: a, gpus: 8, pool: a}, {name: b, gpus: 8, pool: b}]
queues:
  - name: q
    pools:
      - {name: a, gpu: {guarantee: 1, weight: 2}, memory: {limit: 1Ti}}
      - {name: b, gpu: {guarantee: 2, limit: 3}}
workloads: [{name: waits, queue: q, gpu: 2, pools: [a], preemptible: false, submitted: -1m}]
""")
    field = now.suggested("waits")["guarantee"]
    assert field == (
        "pools: [{name: a, gpu: {guarantee: 2, weight: 2}, memory: {limit: 1Ti}}, "
        "{name: b, gpu: {guarantee: 2, limit: 3}}]"
    )
    nodes = "cluster: [{name: a, gpus: 8, pool: a}, {name: b, gpus: 8, pool: b}]\n"
    again = load_text(f"{nodes}queues: [{{name: q, {field}}}]").or_raise()
    (before,), (after,) = now.scenario.queues, again.queues
    assert after.quotas == with_quota(before, "a", Quota(guarantee=2000, weight=2)).quotas, "as it was tried"


def test_work_that_may_not_be_stopped_is_told_that_it_could() -> None:
    now = moment("""
cluster: [{name: n, gpus: 8}]
queues: [{name: q, gpu: {guarantee: 1}}]
workloads: [{name: waits, queue: q, gpu: 2, preemptible: false, submitted: -1m}]
""")
    found = now.suggested("waits")
    assert found["preemptible"] == "preemptible: true"
    assert found["guarantee"] == "gpu: {guarantee: 2}", "the smallest that is enough"


def test_no_guarantee_is_suggested_that_the_pool_cannot_keep() -> None:
    now = moment("""
cluster: [{name: n, gpus: 8}]
queues: [{name: q, gpu: {guarantee: 1}}, {name: other, gpu: {guarantee: 7}}]
workloads: [{name: waits, queue: q, gpu: 2, preemptible: false, submitted: -1m}]
""")
    assert "guarantee" not in now.suggested("waits")


def test_guarantees_of_a_tree_are_counted_once() -> None:
    def queue(name: str, gpus: int, parent: str = "") -> Queue:
        quotas = (PoolQuota(pool="default", resources={GPU: Quota(guarantee=gpus)}),)
        return Queue(name=name, parent=parent, quotas=quotas)

    tree = [queue("a", 4), queue("b", 3, "a"), queue("c", 3, "a"), queue("d", 2)]
    assert guaranteed(tree, "default") == 8
    assert quota_of(with_quota(tree[3], "default", Quota(guarantee=5)), "default").guarantee == 5


def test_every_suggestion_works_when_it_is_carried_out(example: Moment) -> None:
    """On an engine that is only told of the change, as a body would: the job ends and comes again."""
    for name in ("scattered", "too-large", "one-rack", "next-in-line"):
        trials = Trials(engine_of(example.copy()), (f"default/{name}",), example.now_ms)
        for one in smaller(trials):
            engine = engine_of(example.copy())
            before = example.workload(name)
            number = int(one.field.split()[-1])
            role = before.gang.roles[0]
            if one.kind == "gpus":
                role = structs.replace(role, request=structs.replace(role.request, gpu_count=number))
            else:
                role = structs.replace(role, min=number, max=number)
            gang = structs.replace(before.gang, roles=(role,))
            after = structs.replace(before, id=f"{before.id}-again", gang=gang, submitted_ms=example.now_ms)
            engine.observe([WorkloadSeen(structs.replace(before, suspended=True)), WorkloadSeen(after)], example.now_ms)
            assert granted(engine.decide(example.now_ms), (after.id,)), f"{name}: {one.words}"


def test_trying_leaves_nothing_behind(example: Moment) -> None:
    engine = engine_of(example.copy())
    before = engine.decide(example.now_ms)
    for workload in example.scenario.workloads:
        trials = Trials(engine, (workload.id,), example.now_ms)
        reasons = {wait.workload: wait.reason for wait in trials.plan.waiting}
        suggestions(trials, reasons.get(workload.id))
    after = engine.decide(example.now_ms)
    assert structs.replace(after, version=0) == structs.replace(before, version=0)
    assert not [action for action in after.actions if isinstance(action, Start | Hold)]


def test_decisions_are_bounded_and_the_same_each_time(example: Moment) -> None:
    one, two = example.explain("too-large"), example.explain("too-large")
    assert one == two and 0 < one.decisions <= 60
    trials = Trials(engine_of(example.copy()), ("default/too-large",), example.now_ms, most=1)
    assert trials.outcome(Change()) is None and trials.left == 0
    assert smaller(trials) == [] and trials.decisions == 1


def test_less_gpu_memory_where_no_device_has_so_much() -> None:
    now = moment("""
cluster: [{name: a, gpus: {count: 2, model: A100, memory: 40Gi}}, {name: t, gpus: {count: 2, model: T4, memory: 16Gi}}]
workloads: [{name: large, gpu: {memory: 60Gi}}, {name: fits, gpu: {memory: 40Gi}, running: {on: a}}]
""")
    told = now.explain("large")
    assert told.why is not None and told.why.text.endswith("1 GPU with 60Gi of its memory: the largest has 40Gi")
    assert now.suggested("large")["gpuMemory"] == "gpu: {memory: 40Gi}"
