"""What makes a description unusable, said in sentences: the checks that need nothing but the description.

Why: files, Kubernetes objects and the state all take the same nouns; what is wrong with one is decided here, once.
Owns: the rules for one node, pool, queue or workload, and for what they say about each other.
Must not: raise for a bad description, stop at the first problem, or know where the description came from.

Legal on purpose, because somebody means it:
- a limit below the guarantee: the guarantee counts only up to the limit;
- guarantees that add up to more than the pool: whoever is inside its guarantee keeps it;
- a weight of zero: no part of what is left over, but idle room is still lent;
- a role whose minimum is zero, as long as another role is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from optimus.model.findings import Findings
from optimus.model.gang_validation import gang_problems
from optimus.model.nodes import WHOLE_DEVICE_MILLI, Node, Taint, Toleration
from optimus.model.pools import DEFAULT_POOL, HOST_LEVEL, NVLINK_LEVEL, NodePool
from optimus.model.problems import Problem
from optimus.model.queues import Queue
from optimus.model.units import format_gpu
from optimus.model.workloads import ANY_POOL, Group, Topology, Workload, WorkloadClass

LARGEST_DEVICE_INDEX = 1023
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
ALWAYS_LEVELS = (HOST_LEVEL, NVLINK_LEVEL)
_CLASSES = tuple(str(member) for member in WorkloadClass)


def node_problems(node: Node) -> list[Problem]:
    found = Findings(f"node {node.name}")
    if not node.name:
        found.add("name", "a node needs a name")
    found.amount("cpu_milli", node.cpu_milli)
    found.amount("memory_mib", node.memory_mib)
    for name, count in node.accelerators.items():
        found.amount(f"accelerators.{name}", count)
    for i, taint in enumerate(node.taints):
        _check_effect(found, f"taints.{i}", taint)
    found.distinct("devices.{}.index", [device.index for device in node.devices], "device index")
    found.distinct("devices.{}.uuid", [device.uuid or i for i, device in enumerate(node.devices)], "device")
    for i, device in enumerate(node.devices):
        found.amount(f"devices.{i}.index", device.index, most=LARGEST_DEVICE_INDEX)
        found.amount(f"devices.{i}.memory_mib", device.memory_mib)
        for profile, instances in device.mig.items():
            found.amount(f"devices.{i}.mig.{profile}", instances)
    foreign = node.foreign
    found.amount("foreign.cpu_milli", foreign.cpu_milli)
    found.amount("foreign.memory_mib", foreign.memory_mib)
    for name, count in foreign.accelerators.items():
        found.amount(f"foreign.accelerators.{name}", count)
    known = {device.index for device in node.devices}
    for index, milli in foreign.gpu_milli.items():
        if index not in known:
            found.add(f"foreign.gpu_milli.{index}", f"there is no device {index}")
        found.amount(f"foreign.gpu_milli.{index}", milli, most=WHOLE_DEVICE_MILLI, show=format_gpu)
    return found.problems


def pool_problems(pool: NodePool) -> list[Problem]:
    found = Findings(f"pool {pool.name}")
    if not pool.name:
        found.add("name", "a pool needs a name")
    if pool.name == ANY_POOL:
        found.add("name", f"{ANY_POOL} stands for all pools and cannot be the name of one")
    found.distinct("levels.{}", pool.levels, "level")
    for i, level in enumerate(pool.levels):
        if level in ALWAYS_LEVELS:
            found.add(f"levels.{i}", f"{level} is always there, below the others; leave it out")
        if not level:
            found.add(f"levels.{i}", "a level is a label key and cannot be empty")
    for name in pool.strategy:
        if name not in (*_CLASSES, "default"):
            found.add(f"strategy.{name}", f"unknown class {name}; known are {', '.join(_CLASSES)} and default")
    found.amount("interference_limit_milli", pool.interference_limit_milli)
    return found.problems


def queue_problems(queue: Queue) -> list[Problem]:
    found = Findings(f"queue {queue.name}")
    if not queue.name:
        found.add("name", "a queue needs a name")
    found.distinct("quotas.{}.pool", [quota.pool for quota in queue.quotas], "pool")
    for i, pool_quota in enumerate(queue.quotas):
        if pool_quota.pool in ("", ANY_POOL):
            found.add(f"quotas.{i}.pool", "a quota is for one pool; name it")
        for resource, quota in pool_quota.resources.items():
            place = f"quotas.{i}.resources.{resource}"
            found.amount(f"{place}.guarantee", quota.guarantee)
            found.amount(f"{place}.limit", quota.limit)
            found.amount(f"{place}.weight", quota.weight)
    policy = queue.policy
    found.number("policy.max_priority", policy.max_priority)
    found.amount("policy.max_wait_ms", policy.max_wait_ms)
    found.amount("policy.max_runtime_ms", policy.max_runtime_ms, least=1)
    found.amount("policy.max_gpu_milli_per_workload", policy.max_gpu_milli_per_workload)
    found.amount("policy.min_runtime_before_preempt_ms", policy.min_runtime_before_preempt_ms)
    found.amount("policy.min_runtime_before_reclaim_ms", policy.min_runtime_before_reclaim_ms)
    found.amount("policy.idle_timeout_ms", policy.idle_timeout_ms, least=1)
    for i, name in enumerate(policy.allowed_classes):
        if name not in _CLASSES:
            found.add(f"policy.allowed_classes.{i}", f"unknown class {name}; known are {', '.join(_CLASSES)}")
    return found.problems


def workload_problems(workload: Workload) -> list[Problem]:
    found = Findings(f"workload {workload.id}")
    namespace, slash, name = workload.id.partition("/")
    if not (namespace and slash and name):
        found.add("id", "a workload is called namespace/name")
    if not workload.queue:
        found.add("queue", "a workload needs a queue")
    if not workload.pools:
        found.add("pools", f"name at least one pool, or {ANY_POOL}")
    found.distinct("pools.{}", workload.pools, "pool")
    for i, toleration in enumerate(workload.tolerations):
        _check_effect(found, f"tolerations.{i}", toleration)
    if workload.checkpoint is not None:
        found.amount("checkpoint.grace_ms", workload.checkpoint.grace_ms)
        found.amount("checkpoint.interval_ms", workload.checkpoint.interval_ms, least=1)
    found.number("priority", workload.priority)
    found.number("submitted_ms", workload.submitted_ms)
    found.amount("restart_cost_ms", workload.restart_cost_ms)
    found.amount("loss_grace_ms", workload.loss_grace_ms)
    found.amount("expected_duration_ms", workload.expected_duration_ms, least=1)
    found.amount("max_runtime_ms", workload.max_runtime_ms, least=1)
    found.amount("deadline_ms", workload.deadline_ms)
    for i, percent in enumerate(workload.speedup_percent):
        found.amount(f"speedup_percent.{i}", percent)
    found.problems.extend(gang_problems(found.subject, workload.gang))
    return found.problems


def queue_tree_problems(queues: Iterable[Queue], taking_work: Iterable[str] = ()) -> list[Problem]:
    """What a set of queues gets wrong together. `taking_work` names the queues that workloads ask for."""
    by_name: dict[str, Queue] = {}
    found: list[Problem] = []
    for queue in queues:
        if queue.name in by_name:
            found.append(Problem(f"queue {queue.name}", "name", "is there twice; the first one counts"))
        else:
            by_name[queue.name] = queue
    for queue in by_name.values():
        if queue.parent and queue.parent not in by_name:
            found.append(Problem(f"queue {queue.name}", "parent", f"there is no queue {queue.parent}"))
        circle = _circle_through(queue.name, by_name)
        if circle:
            message = "queues are below each other: " + " -> ".join(circle)
            found.append(Problem(f"queue {queue.name}", "parent", message))
    inner = {queue.parent for queue in by_name.values()} & set(taking_work)
    message = "takes workloads, but has queues below it; only leaves take work"
    found.extend(Problem(f"queue {name}", "", message) for name in sorted(inner & by_name.keys()))
    return found


def reference_problems(workload: Workload, queues: Mapping[str, Queue], pools: Mapping[str, NodePool]) -> list[Problem]:
    """Names in a workload that lead nowhere: its queue, its pools, its topology levels."""
    subject = f"workload {workload.id}"
    found = []
    if workload.queue and workload.queue not in queues:
        found.append(Problem(subject, "queue", f"there is no queue {workload.queue}"))
    usable: list[NodePool] = []
    for i, name in enumerate(workload.pools):
        if name == ANY_POOL:
            usable = list(pools.values()) or [NodePool(name=DEFAULT_POOL)]
        elif name in pools or name == DEFAULT_POOL:
            usable.append(pools.get(name, NodePool(name=name)))
        else:
            found.append(Problem(subject, f"pools.{i}", f"there is no pool {name}"))
    known = {*ALWAYS_LEVELS, *(level for pool in usable or pools.values() for level in pool.levels)}
    for path, topology in topologies(workload.gang):
        for field in ("required", "preferred"):
            level = getattr(topology, field)
            if level and level not in known:
                message = f"no pool it may use has a topology level {level}; known are {', '.join(sorted(known))}"
                found.append(Problem(subject, f"{path}.{field}", message))
    return found


def topologies(gang: Group, path: str = "gang") -> list[tuple[str, Topology]]:
    """Every topology rule of a gang with its path."""
    found = [(f"{path}.topology", gang.topology)]
    found.extend((f"{path}.roles.{i}.topology", role.topology) for i, role in enumerate(gang.roles))
    for i, child in enumerate(gang.groups):
        found.extend(topologies(child, f"{path}.groups.{i}"))
    return found


def _circle_through(name: str, queues: Mapping[str, Queue]) -> list[str]:
    """The way from a queue up to itself, if its ancestors lead back to it."""
    walked = {name: None}
    while True:
        parent = queues[next(reversed(walked))].parent
        if parent == name:
            return [*walked, name]
        if parent not in queues or parent in walked:
            return []
        walked[parent] = None


def _check_effect(found: Findings, path: str, rule: Taint | Toleration) -> None:
    if isinstance(rule, Taint) and not rule.key:
        found.add(f"{path}.key", "a taint needs a key")
    if rule.effect not in TAINT_EFFECTS and (isinstance(rule, Taint) or rule.effect):
        found.add(f"{path}.effect", f"unknown effect {rule.effect!r}; known are {', '.join(TAINT_EFFECTS)}")
