"""The story of a world, cycle by cycle, in lines that a person can follow. For failing seeds."""

from __future__ import annotations

from collections.abc import Iterator

from optimus.model import observations as seen
from optimus.model.plans import Action, Drop, Evict, Grow, Hold, Placement, Reject, Shrink, Start
from optimus.model.workloads import Group, Request, Workload
from optimus.testing.body import Cycle
from optimus.testing.gang_rules import lines
from optimus.testing.ledger import Ledger
from optimus.testing.worlds import World


def tell_world(world: World) -> Iterator[str]:
    yield f"world {world.seed} ({world.size})  {world.settings}"
    for pool in world.pools:
        bound = pool.interference_limit_milli
        yield f"  pool {pool.name}: {pool.selector} levels {pool.levels} {pool.strategy} bound {bound}"
    for node in world.nodes:
        yield f"  {_fact(seen.NodeSeen(node))}"
    for queue in world.queues:
        yield f"  {_fact(seen.QueueSeen(queue))}"
    for workload in world.workloads:
        runs = ", ".join(f"{r.role}/{r.ordinal}@{r.node}{list(r.devices)}" for r in world.running.get(workload.id, ()))
        yield f"  {tell_workload(workload)}" + (f"  RUNS {runs}" if runs else "  waits")


def tell_workload(workload: Workload) -> str:
    extras = []
    if workload.node_selector:
        extras.append(f"selector {dict(workload.node_selector)}")
    if workload.suspended:
        extras.append("suspended")
    extras.append(f"{workload.on_loss} {workload.loss_grace_ms}")
    kind = f"{workload.workload_class} p{workload.effective_priority} preemptible={workload.preemptible}"
    ready = "no checkpoint" if workload.checkpoint is None else f"grace {workload.checkpoint.grace_ms}"
    gang = _gang(workload.gang)
    return f"{workload.id} in {workload.queue} pools {list(workload.pools)} {kind} {ready}: {gang} {' '.join(extras)}"


def tell_cycle(cycle: Cycle, start_ms: int) -> Iterator[str]:
    yield f"cycle {cycle.number} at +{(cycle.now_ms - start_ms) / 1000:g} s"
    for fact in cycle.observations if cycle.number > 1 else ():
        yield f"    seen   {_fact(fact)}"
    for action in cycle.plan.actions:
        yield f"    plan   {tell_action(action)}"
    for wait in cycle.plan.waiting:
        yield f"    waits  {wait.workload}: {wait.reason.code}: {wait.reason.text()}"
    for reservation in cycle.plan.reservations:
        at = (reservation.at_ms - start_ms) / 1000
        yield f"    later  {reservation.workload} at +{at:g} s in {reservation.pool} on {list(reservation.nodes)}"
    for line in tell_ledger(cycle.after):
        yield f"    then   {line}"


def tell_ledger(ledger: Ledger) -> Iterator[str]:
    for name, record in sorted(ledger.records.items()):
        there = [f"{r.stage} {r.role}/{r.ordinal}@{r.node}{list(r.devices)}" for r in record.live.values()]
        there += [f"{r.stage} {r.role}/{r.ordinal}@{r.node}{list(r.devices)}" for r in record.leaving.values()]
        if there:
            yield f"{name}: {', '.join(there)}"


def tell_action(action: Action) -> str:
    match action:
        case Start() | Grow():
            return f"{type(action).__name__} {action.workload} {_places(action.placements)}"
        case Hold():
            return f"Hold {action.workload} {_places(action.placements)} waits for {list(action.waits_for)}"
        case Shrink():
            return (
                f"Shrink {action.workload} {action.slots} for {action.beneficiary or 'nobody'}: {action.cause.text()}"
            )
        case Evict():
            marks = " moved" * action.moved + " final" * action.final
            return f"Evict {action.workload}{marks} for {action.beneficiary or 'nobody'}: {action.cause.text()}"
        case Drop():
            return f"Drop {action.workload} {action.slots}: {action.cause.text()}"
        case Reject():
            return f"Reject {action.workload}: {action.cause.text()}"


def _places(placements: tuple[Placement, ...]) -> str:
    return " ".join(f"{p.role}/{p.ordinal}@{p.node}{list(p.devices)}x{p.gpu_milli}" for p in placements)


def _fact(fact: seen.Observation) -> str:
    match fact:
        case seen.NodeSeen(node):
            devices = " ".join(
                f"{d.index}:{d.model}{'' if d.healthy else '!'}{'m' if d.mig else ''}g{d.nvlink_group}"
                for d in node.devices
            )
            marks = [
                m
                for m, on in (
                    ("counted", not node.assignable),
                    ("unready", not node.ready),
                    ("cordoned", node.cordoned),
                )
                if on
            ]
            extra = f" {dict(node.accelerators)}" if node.accelerators else ""
            extra += f" taints {[t.key for t in node.taints]}" if node.taints else ""
            extra += f" foreign {node.foreign}" if node.foreign.cpu_milli or node.foreign.gpu_milli else ""
            room = f"{node.cpu_milli}m {node.memory_mib}Mi [{devices}]"
            return f"node {node.name} {node.labels} {room}{extra} {' '.join(marks)}"
        case seen.QueueSeen(queue):
            quotas = "; ".join(
                f"{q.pool} " + ", ".join(f"{r} g{e.guarantee} l{e.limit} w{e.weight}" for r, e in q.resources.items())
                for q in queue.quotas
            )
            place = f"in {queue.parent or 'top'} rank {queue.rank} {queue.state}"
            return f"queue {queue.name} {place}: {quotas} {_policy(queue.policy)}"
        case seen.WorkloadSeen(workload):
            return tell_workload(workload)
        case _:
            return str(fact)


def _policy(policy: object) -> str:
    text = str(policy)
    usual = ("max_wait_ms=None", "max_wait_action='first'", "max_runtime_ms=None", "max_gpu_milli_per_workload=None",
             "allowed_classes=()", "min_runtime_before_preempt_ms=0", "min_runtime_before_reclaim_ms=0",
             "idle_timeout_ms=None", "order=''", "max_priority=None",
             "max_wait_action=<WaitAction.FIRST: 'first'>")  # fmt: skip
    inside = text[text.index("(") + 1 : -1]
    return ", ".join(part for part in inside.split(", ") if part not in usual)


def _gang(gang: Group) -> str:
    parts = []
    for name, line in lines(gang).items():
        above = "/".join(f"{g.name}×{g.min}..{g.max}{_rule(g.topology)}" for g in line.groups)
        role = line.role
        sizes = f" of {list(role.sizes)}" if role.sizes else ""
        count = f"{role.min}" if role.min == role.max else f"{role.min}..{role.max}{sizes}"
        parts.append(f"{above + '/' if above else ''}{name}×{count} {_request(role.request)}{_rule(role.topology)}")
    return "; ".join(parts) + _rule(gang.topology)


def _rule(topology: object) -> str:
    required, preferred = getattr(topology, "required", ""), getattr(topology, "preferred", "")
    return f" in one {required}" if required else f" near {preferred}" if preferred else ""


def _request(request: Request) -> str:
    gpu = f"{request.gpu_count}gpu" if request.gpu_count else ""
    if request.gpu_memory_mib:
        gpu += f" with {request.gpu_memory_mib}Mi"
    elif request.gpu_count and request.gpu_milli != 1000:
        gpu += f"x{request.gpu_milli}"
    models = f" {[m.model for m in request.models]}" if request.models else ""
    named = f" {dict(request.accelerators)}" if request.accelerators else ""
    activity = f" activity {request.activity_milli}" if request.activity_milli else ""
    return f"({gpu}{models}{named}{activity} {request.cpu_milli}m {request.memory_mib}Mi)"
