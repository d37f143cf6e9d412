"""Views: what is shown of jobs, queues, pools and nodes of a cluster.

Why: all tables and programs read the records of docs/reference/http.md; a cluster tells the same, from its objects.
Owns: how records follow from objects. Names are those of gangs (docs/reference/grouping.md): `job/train`.
Must not: change anything, or say what nobody knows: a kubelet does not tell which devices a container got, so nodes
show how many are given and not which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from optimus.drivers.kube.describing import DEFAULT_QUEUE, UNIFIED, read_time
from optimus.drivers.kube.desk.sight import Sight
from optimus.drivers.kube.desk.told import told_on_pods
from optimus.drivers.kube.desk.unified_view import phase_said, reason_said, said_by_job
from optimus.drivers.kube.grouping import Group
from optimus.drivers.kube.grouping.expressions import look, place_of, read_path
from optimus.drivers.kube.grouping.kinds import kind_name
from optimus.drivers.kube.grouping.overrides import SUSPENDED, word_on
from optimus.drivers.kube.objects import Anything, Pod
from optimus.engine.kept_room import Kept, held_milli
from optimus.lives import JobPhase
from optimus.model.nodes import WHOLE_DEVICE_MILLI, Node
from optimus.model.queues import GPU, Queue
from optimus.model.units import UnitError, parse_gpu
from optimus.model.workloads import Request, Workload, share_milli

View = dict[str, Any]
FAILED = ("Failed", "Aborted", "Terminated", "FailureTarget")
TEMPLATE = read_path("spec.template")
HELD_BY = "requests and limits of its pods, by the kubelet"


# -- jobs -----------------------------------------------------------------------------------------------------------


def job_views(sight: Sight) -> dict[str, View]:
    """By id, the oldest first."""
    found = {gang: view for gang in sight.mirror.groups.ids() if (view := job_view(sight, gang)) is not None}
    return dict(sorted(found.items(), key=lambda pair: (pair[1]["submittedMs"], pair[0])))


def job_view(sight: Sight, gang: str) -> View | None:
    """None if there is no such gang, or it is somebody else's."""
    mirror = sight.mirror
    group = mirror.groups.group(gang)
    if group is None or not mirror.is_for_us(group):
        return None
    pods = [mirror.pods[uid] for uid in sorted(mirror.groups.members(gang)) if uid in mirror.pods]
    live = [pod for pod in pods if pod.spec.node_name and not pod.over]
    workload, owner = mirror.workloads.get(gang), owner_of(sight, group)
    phase = _phase(sight, group, pods, live, owner)
    requests = {role.name: role.request for role in workload.gang.roles} if workload else {}
    replicas = [_replica(sight, pod, requests) for pod in live]
    starts = [at for pod in pods if (at := read_time(pod.status.start_time))]
    started = min([*starts, *([at] if (at := _status_time(owner, "startTime")) and starts else [])], default=None)
    ended = _ended_ms(owner, pods) if phase.final else None
    restarts = [one.restart_count for pod in pods for one in pod.status.container_statuses or ()]
    failed = sum(pod.status.phase == "Failed" for pod in pods)
    namespace, _, name = gang.partition("/")
    view = {
        "name": name,
        "namespace": namespace,
        "uid": group.object.uid if group.object else pods[0].metadata.uid if pods else "",
        "jobType": group.kind.rpartition("/")[2],
        "queue": workload.queue if workload else group.queue or DEFAULT_QUEUE,
        "jobClass": group.workload_class.value,
        "priority": workload.effective_priority if workload else group.priority or 0,
        "phase": phase.value,
        "reason": _reason(sight, group, phase, owner),
        "minReplicas": sum(role.min for role in group.roles),
        "maxReplicas": sum(max(role.count, role.min) for role in group.roles),
        "roles": {role.name: max(role.count, role.min) for role in group.roles},
        "sizes": [],  # what a kind of Kubernetes has no field for
        "runningReplicas": sum(one["state"] == "running" for one in replicas),
        "gpuMilli": sum(map(_milli_of(sight, requests), live)) or _least_milli(group, requests),
        "attempt": 1 + max(restarts, default=0) if starts else 0,
        "failures": sum(restarts) + max(failed, _status_number(owner, "failed")),
        "preemptions": 0,
        "submittedMs": read_time(group.created),
        "startedMs": started,
        "endedMs": ended,
        "ranMs": max(ended - started, 0) if ended and started else 0,
        "sinceMs": min((read_time(p.status.start_time) for p in live if p.status.start_time), default=None),
        "suspended": group.suspended and not group.admit,
        "command": command_of(sight, owner),
        "replicas": sorted(replicas, key=lambda one: (one["role"], one["ordinal"])),
        "parts": [],
        "counts": {},
        "final": phase.final,
        "progress": None,
        "held": [_held(kept, list(kept.devices)) for kept in sight.holds if kept.workload == gang],
    }
    return {**view, **said_by_job(group, owner)} if group.kind == UNIFIED and owner is not None else view


def owner_of(sight: Sight, group: Group) -> Anything | None:
    return sight.mirror.owners.get(group.object.uid) if group.object else None


def command_of(sight: Sight, owner: Anything | None) -> list[str]:
    """Of the first container of its first role, as its owner says it."""
    kind = sight.mirror.kinds.get(kind_name(owner.api_version, owner.kind)) if owner else None
    if owner is None or kind is None:
        return []
    whole = [rule for rule in kind.roles if rule.each is None and rule.at is None]
    paths = [path for rule in whole for path in rule.template] or [TEMPLATE]
    for template in (look(path, place_of(owner)) for path in paths):
        containers = ((template or {}).get("spec") or {}).get("containers") if isinstance(template, dict) else None
        if containers and isinstance(containers[0], dict):
            words = [*(containers[0].get("command") or ()), *(containers[0].get("args") or ())]
            return [str(word) for word in words]
    return []


def _phase(sight: Sight, group: Group, pods: list[Pod], live: list[Pod], owner: Anything | None) -> JobPhase:
    if group.kind == UNIFIED and (said := phase_said(owner)) is not None:
        return JobPhase.ADMITTED if said is JobPhase.PENDING and group.id in sight.promised else said
    if group.over or (pods and all(pod.over for pod in pods) and group.id not in sight.mirror.workloads):
        return JobPhase.FAILED if _has_failed(owner, pods) else JobPhase.SUCCEEDED
    staying = [pod for pod in live if pod.metadata.deletion_timestamp is None]
    if live and not staying:
        return JobPhase.STOPPING
    if staying and not group.suspended:
        runs = sum(pod.status.phase == "Running" for pod in staying)
        return JobPhase.RUNNING if runs and runs >= min(group.min_members, len(staying)) else JobPhase.STARTING
    if staying:
        return JobPhase.STOPPING
    if group.suspended and not group.admit:
        return JobPhase.SUSPENDED
    if group.id in sight.promised:
        return JobPhase.ADMITTED
    taken = owner is not None and word_on(owner.metadata, SUSPENDED) == "true"
    return JobPhase.PREEMPTED if taken and group.admit else JobPhase.PENDING


def _reason(sight: Sight, group: Group, phase: JobPhase, owner: Anything | None) -> View | None:
    if group.kind == UNIFIED and owner is not None and phase is JobPhase.FAILED:
        return reason_said(owner)
    if phase.final:
        failed = _failure(owner) if phase is JobPhase.FAILED else ""
        return {"code": "Failed", "text": failed} if failed else None
    if phase not in (JobPhase.PENDING, JobPhase.PREEMPTED, JobPhase.ADMITTED, JobPhase.SUSPENDED):
        return None
    why = sight.waiting.get(group.id)
    if why is not None:
        return {"code": str(why.code), "text": why.text()}
    return None if sight.whole else told_on_pods(sight.mirror.waiting_pods(group.id))


def _has_failed(owner: Anything | None, pods: list[Pod]) -> bool:
    if owner is None or not isinstance(owner.status, dict):
        return any(pod.status.phase == "Failed" for pod in pods)
    said = [one for one in _conditions(owner) if one.get("status") == "True"]
    words = [str(one.get("type")) for one in said]
    state = owner.status.get("state")
    words += [str(owner.status.get("jobDeploymentStatus")), str(state.get("phase")) if isinstance(state, dict) else ""]
    return any(word in FAILED for word in words)


def _failure(owner: Anything | None) -> str:
    for one in _conditions(owner) if owner else ():
        if one.get("type") in FAILED and one.get("status") == "True":
            return str(one.get("message") or one.get("reason") or "")
    return ""


def _conditions(owner: Anything) -> list[Mapping[str, Any]]:
    found = owner.status.get("conditions") if isinstance(owner.status, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _ended_ms(owner: Anything | None, pods: list[Pod]) -> int | None:
    told = _status_time(owner, "completionTime")
    if not told and owner is not None:
        told = max((_time(one.get("lastTransitionTime")) for one in _conditions(owner)), default=0)
    if not told:
        states = [one.state for pod in pods for one in pod.status.container_statuses or () if one.state]
        told = max((read_time(one.terminated.finished_at) for one in states if one.terminated), default=0)
    return told or None


def _status_time(owner: Anything | None, field: str) -> int:
    return _time(owner.status.get(field)) if owner is not None and isinstance(owner.status, dict) else 0


def _time(value: Any) -> int:
    try:
        return read_time(value) if isinstance(value, str) else 0
    except ValueError:
        return 0


def _status_number(owner: Anything | None, field: str) -> int:
    found = owner.status.get(field) if owner is not None and isinstance(owner.status, dict) else 0
    return found if isinstance(found, int) else 0


def _replica(sight: Sight, pod: Pod, requests: Mapping[str, Request]) -> View:
    slot = sight.mirror.groups.slot_of(pod.metadata.uid)
    role, ordinal = (slot.role, slot.ordinal) if slot else (pod.metadata.name, 0)
    request = requests.get(role)
    leaving = pod.metadata.deletion_timestamp is not None
    return {
        "start": pod.metadata.uid,
        "part": "",
        "role": role,
        "ordinal": ordinal,
        "node": pod.spec.node_name or "",
        "devices": [],
        "gpuMilli": request.gpu_milli if request and request.gpu_count else 0,
        "state": "leaving" if leaving else "running" if pod.status.phase == "Running" else "starting",
        "startedMs": read_time(pod.status.start_time) or None,
    }


def _milli_of(sight: Sight, requests: Mapping[str, Request]) -> Any:
    def milli(pod: Pod) -> int:
        slot = sight.mirror.groups.slot_of(pod.metadata.uid)
        request = requests.get(slot.role) if slot else None
        return request.gpu_count * share_milli(request, 0) if request else 0

    return milli


def _least_milli(group: Group, requests: Mapping[str, Request]) -> int:
    return sum(
        role.min * requests[role.name].gpu_count * min(share_milli(requests[role.name], 0), WHOLE_DEVICE_MILLI)
        for role in group.roles
        if role.name in requests
    )


# -- queues, nodes, pools -------------------------------------------------------------------------------------------


def queue_views(sight: Sight, jobs: Mapping[str, View]) -> list[View]:
    running: Counter[str] = Counter()
    waiting: Counter[str] = Counter()
    there: Counter[tuple[str, str]] = Counter()
    pool_of = sight.pool_of()
    for view in jobs.values():
        if not view["final"]:
            (running if view["replicas"] else waiting)[view["queue"]] += 1
            there.update({(view["queue"], pool_of.get(one["node"], "")) for one in view["replicas"]})
    shares = {(s.queue, s.pool): s for s in (sight.plan.shares if sight.plan else ()) if s.resource == GPU}
    held = held_milli(sight.holds, {name: queue.parent for name, queue in sight.mirror.tenants.queues.items()})
    found = []
    for name, queue in sorted(sight.mirror.tenants.queues.items()):
        quotas = {quota.pool: quota.resources[GPU] for quota in queue.quotas if GPU in quota.resources}
        written = _written(sight, queue)
        rows = []
        for pool in sorted({*quotas, *written, *(pool for one, pool in shares if one == name)}):
            quota, share = quotas.get(pool), shares.get((name, pool))
            now = (
                {"share": share.share, "allocated": share.allocated, "demand": share.demand}
                if share
                else written.get(pool, {})
            )
            rows.append(
                {
                    "pool": pool,
                    "guaranteeMilli": quota.guarantee if quota else 0,
                    "limitMilli": quota.limit if quota else None,
                    "weight": quota.weight if quota else 1,
                    "shareMilli": now.get("share", 0),
                    "allocatedMilli": now.get("allocated", 0),
                    "demandMilli": now.get("demand", 0),
                    "heldMilli": held[name, pool],
                    "running": there[name, pool],
                }
            )
        counts = (running[name], waiting[name]) if sight.whole else _counted(sight, queue)
        if not sight.whole and len(rows) == 1:  # who sees one namespace is told of all by what is written
            rows[0]["running"] = counts[0]
        found.append(
            {
                "name": name,
                "parent": queue.parent,
                "state": queue.state.value,
                "gpu": rows,
                "running": counts[0],
                "waiting": counts[1],
            }
        )
    return found


def _written(sight: Sight, queue: Queue) -> dict[str, dict[str, int]]:
    """By pool, from the status of the queue: for those who may not see what it follows from."""
    shares = sight.statuses.get(queue.name, {}).get("shares") if not sight.whole else None
    found: dict[str, dict[str, int]] = {}
    for share in shares if isinstance(shares, list) else ():
        if share.get("resource") == GPU:
            found[str(share.get("pool"))] = {
                name: _gpu_milli(share.get(name)) for name in ("share", "allocated", "demand")
            }
    return found


def _gpu_milli(text: Any) -> int:
    try:
        return parse_gpu(str(text)) if text is not None else 0
    except UnitError:
        return 0


def _counted(sight: Sight, queue: Queue) -> tuple[int, int]:
    status = sight.statuses.get(queue.name, {})
    running, waiting = status.get("running", 0), status.get("waiting", 0)
    return (running if isinstance(running, int) else 0, waiting if isinstance(waiting, int) else 0)


def node_views(sight: Sight) -> list[View]:
    here: dict[str, list[tuple[str, int]]] = {}
    for gang, workload in sight.mirror.workloads.items():
        for pod in sight.mirror.pods_of(gang):
            here.setdefault(pod.spec.node_name or "", []).append((gang, _gpus_of(sight, workload, pod)))
    kept: dict[str, list[Kept]] = {}
    for one in [*sight.holds, *sight.reserved]:
        kept.setdefault(one.node, []).append(one)
    return [_node_view(node, here.get(name, []), kept.get(name, [])) for name, node in sorted(sight.nodes.items())]


def _held(kept: Kept, devices: list[int]) -> View:
    return {
        "node": kept.node,
        "job": kept.workload,
        "queue": kept.queue,
        "devices": devices,
        "gpuMilli": kept.gpu_milli,
        "atMs": kept.at_ms,
        "reason": {"code": str(kept.why.code), "text": kept.why.text()},
    }


def _gpus_of(sight: Sight, workload: Workload, pod: Pod) -> int:
    requests = {role.name: role.request for role in workload.gang.roles}
    slot = sight.mirror.groups.slot_of(pod.metadata.uid)
    return requests[slot.role].gpu_count if slot and slot.role in requests else 0


def _node_view(node: Node, ours: list[tuple[str, int]], kept: list[Kept]) -> View:
    """Which device is whose is not known here, only how many: they are told in order, then those that are held."""
    used = [node.foreign.gpu_milli.get(device.index, 0) for device in node.devices]
    who: list[list[str]] = [["others"] if milli else [] for milli in used]
    free = [index for index, milli in enumerate(used) if not milli]
    for gang, count in sorted(ours):
        taken, free = free[:count], free[count:]
        for index in taken:
            used[index] = WHOLE_DEVICE_MILLI
            who[index].append(gang)
    held = []
    for one in kept:
        idle, free = free[: len(one.devices)], free[len(one.devices) :]
        held.append(_held(one, idle))
    return {
        "name": node.name,
        "ready": node.ready and not node.cordoned,
        "cpuMilli": node.cpu_milli,
        "memoryMib": node.memory_mib,
        "models": [device.model for device in node.devices],
        "gone": [],
        "usedMilli": used,
        "jobs": who,
        "held": held,
        "labels": dict(node.labels),
        "virtual": False,
        "machine": "",
        "limits": HELD_BY,
    }


def pool_views(sight: Sight) -> list[View]:
    return [
        {
            "name": pool.name,
            "selector": dict(pool.selector),
            "levels": list(pool.levels),
            "strategy": {name: strategy.value for name, strategy in pool.strategy.items()},
            "interferenceLimitMilli": pool.interference_limit_milli,
        }
        for _, pool in sorted(sight.mirror.tenants.pools.items())
    ]
