"""The numbers of a controller, for Prometheus.

Why: whether teams get what they are due, and whether the scheduler itself is well, must be seen from outside.
Owns: the list of metrics (docs/reference/metrics.md, kept true by a test), the histograms, counts that outlive a lead.
Must not: measure what others count already (client, reflectors, brain): it is read when somebody asks.

Names of queues, pools and models become labels; names of workloads, namespaces and nodes do not, since there is no end
to them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from optimus import __version__
from optimus.drivers.kube.acting import Acting
from optimus.drivers.kube.brain import Brain
from optimus.drivers.kube.describing import read_time
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.objects import Pod
from optimus.drivers.kube.standing import NO_QUEUE_LABEL, Share, Standing, look
from optimus.kube import Election, Reflector
from optimus.kube.counting import BOUNDS_S, Counters
from optimus.kube.events import Recorder
from optimus.model.nodes import WHOLE_DEVICE_MILLI
from optimus.model.plans import Evict, Grow, Plan, Shrink, Start
from optimus.model.reasons import Code
from optimus.telemetry import Family, Histogram, Kind, Metric, process
from optimus.telemetry.exposition import LONG_SECONDS, Sample

LOOK_SHARE = 20
"""Looking at queues and pools takes one part in so many of the time: after each turn where it is cheap, and less often
in a large cluster with ten turns a second."""


STUCK_S = 300.0


def _counter(name: str, about: str, *labels: str) -> Metric:
    return Metric(f"optimus_{name}_total", Kind.COUNTER, about, labels)


def _gauge(name: str, about: str, *labels: str) -> Metric:
    return Metric(f"optimus_{name}", Kind.GAUGE, about, labels)


def _histogram(name: str, about: str, *labels: str) -> Metric:
    return Metric(f"optimus_{name}_duration_seconds", Kind.HISTOGRAM, about, labels)


BUILD = _gauge("build_info", "Always 1; the version is a label.", "version")
LEADER = _gauge("leader", "1 while this process leads.")
SYNCED = _gauge("synced", "1 once everything that is there has been read.")

DECISION = _histogram("decision", "From facts to a plan.")
ACTIONS = _counter("plan_actions", "What plans asked for: Start, Grow, Hold, Shrink, Evict, Drop, Reject.", "action")
CUT_PLANS = _counter("incomplete_plans", "Plans that the work budget cut short.")
PROBLEMS = _counter("unusable_facts", "Facts the brain could not use; the log says which.")
ASIDE = _gauge("objects_put_aside", "Objects that could not be taken in; the log says why.", "kind")
PREEMPTIONS = _counter(
    "preemptions", "Workloads stopped or made smaller by a decision, by the queue they are of.", "queue", "reason"
)

BIND = _histogram("bind", "From the decision that places a pod until the watch shows it bound.")
WAITED = _histogram("pod_scheduling", "From the creation of a pod until it is bound.", "queue")
FAILED_BINDS = _counter("bind_failures", "Binds that did not come about; their places were given back.")
STUCK = _gauge(
    "evictions_stuck",
    "Pods that should have left five minutes ago: refused (the server does not let them be told to end), terminating"
    " (told, and still there).",
    "state",
)
UNSETTLED = _gauge("unsettled_writes", "Binds and departures of which the end is not known yet.")

RUNNING = _gauge("workloads_running", "Workloads that have room.", "queue")
WAITING = _gauge("workloads_pending", "Workloads that wait, by the reason they are told.", "queue", "reason")
ALLOCATED = _gauge("queue_gpus_allocated", "GPUs that work of the queue has.", "queue", "pool")
GUARANTEE = _gauge("queue_gpus_guarantee", "GPUs that are always its own.", "queue", "pool")
LIMIT = _gauge("queue_gpus_limit", "GPUs it may have at most; not told where there is no limit.", "queue", "pool")
BORROWED = _gauge("queue_gpus_borrowed", "GPUs it has above its guarantee.", "queue", "pool")
SHARE = _gauge("queue_gpus_share", "GPUs it is due right now.", "queue", "pool")
DEMAND = _gauge("queue_gpus_demand", "GPUs its work asks for, running or not.", "queue", "pool")
POOL_NODES = _gauge("pool_nodes", "Nodes, by whether they take work (usable, unusable).", "pool", "state")
POOL_GPUS = _gauge("pool_gpus", "GPUs of all nodes.", "pool", "model")
POOL_FREE = _gauge("pool_gpus_free", "GPUs that nobody has, on nodes that take work.", "pool", "model")
POOL_FRAGMENTED = _gauge("pool_gpus_fragmented", "Of the free GPUs, those on nodes of which others are in use.", "pool")
CONDITIONS = _gauge("conditions", "1 for each trouble with the set-up of queues, pools or policy.", "subject", "code")

WATCH_SYNCED = _gauge("watch_synced", "1 once everything of this kind has been read.", "kind")
BEGUN_ANEW = _counter("parts_restarted", "Times that a part which tells people of decisions had to begin anew.", "part")
LAG = _gauge("watch_lag_seconds", "Since the server said anything of this kind; up to two minutes are usual.", "kind")
RELISTS = _counter("watch_relists", "Times that everything of this kind was read anew.", "kind")
WATCH_FAILURES = _counter("watch_failures", "Watches that broke off or were refused.", "kind")
CHANGES = _counter("watch_changes", "Changes heard.", "kind")
UNREADABLE = _counter("watch_unreadable", "Objects that could not be read.", "kind")
REQUESTS = _counter(
    "api_requests", "Requests by verb and status; without an answer, why there is none.", "verb", "code"
)
REQUEST_TIME = _histogram("api_request", "From asking until the answer begins.", "verb")
IN_FLIGHT = _gauge("api_requests_in_flight", "Requests under way, without watches.")
RENEWED = _counter("credentials_renewed", "Times that a token was refused and read again.")
DROPPED_EVENTS = _counter("events_dropped", "Events of Kubernetes that were not written.")

METRICS = (
    *(
        BUILD,
        LEADER,
        SYNCED,
        DECISION,
        ACTIONS,
        CUT_PLANS,
        PROBLEMS,
        ASIDE,
        PREEMPTIONS,
        BIND,
        WAITED,
        FAILED_BINDS,
        STUCK,
        UNSETTLED,
    ),
    *(RUNNING, WAITING, ALLOCATED, GUARANTEE, LIMIT, BORROWED, SHARE, DEMAND),
    *(POOL_NODES, POOL_GPUS, POOL_FREE, POOL_FRAGMENTED, CONDITIONS),
    *(WATCH_SYNCED, BEGUN_ANEW),
    *(LAG, RELISTS, WATCH_FAILURES, CHANGES, UNREADABLE, REQUESTS, REQUEST_TIME, IN_FLIGHT, RENEWED, DROPPED_EVENTS),
    *process.METRICS,
)


class Metrics:
    """What it is given to look at may be missing: a controller begins with nothing and leads only at times."""

    def __init__(self, mirror: Mirror, clock: Callable[[], float] = time.monotonic) -> None:
        self.counters: list[Counters] = []
        self.reflectors: Mapping[str, Reflector[Any]] = {}
        self.synced = False
        self.begun_anew: Counter[str] = Counter()
        self.election: Election | None = None
        self.leads: Callable[[], bool] = lambda: False
        self.standing: Standing | None = None
        """As it was after the last turn; None while another one leads."""
        self._mirror, self._clock = mirror, clock
        self._engine: Brain | None = None
        self._acting: Acting | None = None
        self._recorder: Recorder | None = None
        self._look_after = 0.0
        self._decided_at: dict[str, float] = {}
        """By workload: when it was last given places."""
        self._decision, self._bind = Histogram(), Histogram()
        self._waited: dict[tuple[str, ...], Histogram] = {}
        self._actions: Counter[tuple[str, ...]] = Counter()
        self._preemptions: Counter[tuple[str, ...]] = Counter()
        self._cut = self._problems = self._failed = self._dropped = 0

    # -- what happens -------------------------------------------------------------------------------------------------

    def lead(self, engine: Brain, acting: Acting, recorder: Recorder, leads: Callable[[], bool]) -> None:
        """From now on, until `lead_over`."""
        self.leads, self._engine, self._acting, self._recorder = leads, engine, acting, recorder

    def decided(self, plan: Plan) -> None:
        """A turn is over, and the next one has not begun."""
        assert self._engine is not None
        now = self._clock()
        self._decision.observe(self._engine.took_s)
        self._cut += not plan.complete
        self._problems += len(self._engine.problems)
        for action in plan.actions:
            self._actions[(type(action).__name__,)] += 1
            if isinstance(action, Start | Grow):
                self._decided_at[action.workload] = now
            elif isinstance(action, Evict | Shrink) and action.cause.code is not Code.SUSPENDED:  # that is a wish
                self._preemptions[self._queue_of(action.workload), str(action.cause.code)] += 1
        if now >= self._look_after:
            self.standing = look(self._engine, plan, self._mirror.workloads)
            ended = self._clock()
            self._look_after = ended + (ended - now) * LOOK_SHARE
            self._decided_at = {w: at for w, at in self._decided_at.items() if w in self._mirror.workloads}

    def heard(self, before: Pod | None, pod: Pod) -> None:
        """Of a pod, as it was and as it is: one that we have placed is bound now."""
        if before is None or before.spec.node_name or not pod.spec.node_name or not self._mirror.is_ours(pod):
            return
        workload = self._mirror.groups.group_of(pod.metadata.uid) or ""
        if (since := self._decided_at.get(workload)) is None:
            return  # another one leads, and decided it
        self._bind.observe(self._clock() - since)
        waited_ms = time.time() * 1000 - read_time(pod.metadata.creation_timestamp)
        queue = (self._queue_of(workload),)
        self._waited.setdefault(queue, Histogram(LONG_SECONDS)).observe(max(waited_ms / 1000, 0.0))

    def lead_over(self) -> None:
        self._failed, self._dropped = self._failed_binds(), self._dropped_events()
        self._engine, self._acting, self._recorder, self.standing = None, None, None, None
        self.leads, self._look_after = lambda: False, 0.0
        self._decided_at.clear()

    def _failed_binds(self) -> int:
        return self._failed + (self._acting.failed_binds if self._acting is not None else 0)

    def _dropped_events(self) -> int:
        return self._dropped + (self._recorder.dropped if self._recorder is not None else 0)

    def _queue_of(self, workload: str) -> str:
        known = self._mirror.workloads.get(workload)
        return known.queue if known is not None and known.queue in self._mirror.tenants.queues else NO_QUEUE_LABEL

    # -- what is told -------------------------------------------------------------------------------------------------

    def families(self) -> list[Family]:
        return [
            Family(BUILD, {(__version__,): 1}),
            Family(LEADER, {(): int(self.leads())}),
            Family(SYNCED, {(): int(self.synced)}),
            Family(DECISION, {(): self._decision}),
            Family(ACTIONS, dict(self._actions)),
            Family(CUT_PLANS, {(): self._cut}),
            Family(PROBLEMS, {(): self._problems}),
            Family(ASIDE, {(kind,): count for kind, count in self._mirror.aside.counts().items()}),
            Family(PREEMPTIONS, dict(self._preemptions)),
            Family(BIND, {(): self._bind}),
            Family(WAITED, dict(self._waited)),
            Family(FAILED_BINDS, {(): self._failed_binds()}),
            Family(STUCK, self._stuck()),
            Family(UNSETTLED, {(): self._acting.unsettled if self._acting is not None else 0}),
            Family(DROPPED_EVENTS, {(): self._dropped_events()}),
            *_standing_families(self.standing or Standing((), ())),
            *self._watch_families(),
            *self._request_families(),
            *process.families(),
        ]

    def _stuck(self) -> dict[tuple[str, ...], Sample]:
        if self._acting is None:
            return {}
        due_ms = (time.time() - STUCK_S) * 1000
        gone = (
            read_time(pod.metadata.deletion_timestamp)  # when its grace is over
            for pod in self._mirror.pods.values()
            if pod.metadata.deletion_timestamp and pod.spec.node_name and not pod.over and self._mirror.is_ours(pod)
        )
        return {
            ("refused",): self._acting.refused_to_leave(STUCK_S),
            ("terminating",): sum(at_ms < due_ms for at_ms in gone),
        }

    def _watch_families(self) -> list[Family]:
        seen = {(name,): one.reflection for name, one in self.reflectors.items()}
        return [
            Family(WATCH_SYNCED, {(name,): int(one.synced.is_set()) for name, one in self.reflectors.items()}),
            Family(BEGUN_ANEW, {(part,): count for part, count in self.begun_anew.items()}),
            Family(LAG, {kind: one.quiet_s() for kind, one in seen.items()}),
            Family(RELISTS, {kind: one.fillings for kind, one in seen.items()}),
            Family(WATCH_FAILURES, {kind: one.failures + one.expired for kind, one in seen.items()}),
            Family(CHANGES, {kind: one.changes for kind, one in seen.items()}),
            Family(UNREADABLE, {kind: one.unreadable for kind, one in seen.items()}),
        ]

    def _request_families(self) -> list[Family]:
        requests: Counter[tuple[str, ...]] = Counter()
        times: dict[tuple[str, ...], Histogram] = {}
        for one in self.counters:
            requests.update(one.requests)
            for verb, counts in one.took.items():
                times.setdefault((verb,), Histogram(BOUNDS_S)).add(counts, one.seconds[verb])
        return [
            Family(REQUESTS, dict(requests)),
            Family(REQUEST_TIME, dict(times)),
            Family(IN_FLIGHT, {(): sum(one.in_flight for one in self.counters)}),
            Family(RENEWED, {(): sum(one.renewed_credentials for one in self.counters)}),
        ]


def _standing_families(standing: Standing) -> list[Family]:
    gpus = [((queue.name, share.pool), share) for queue in standing.queues for share in queue.gpus()]

    def told(metric: Metric, of: Callable[[Share], int | None]) -> Family:
        found = ((labels, of(share)) for labels, share in gpus)
        return Family(metric, {labels: amount / WHOLE_DEVICE_MILLI for labels, amount in found if amount is not None})

    troubles = {one for queue in standing.queues for one in queue.conditions}
    troubles |= {one for pool in standing.pools for one in pool.conditions} | set(standing.policies)
    nodes: dict[tuple[str, ...], Sample] = {(pool.name, "usable"): pool.usable for pool in standing.pools}
    nodes |= {(pool.name, "unusable"): pool.nodes - pool.usable for pool in standing.pools}
    return [
        Family(RUNNING, {(queue.name,): queue.running for queue in standing.queues}),
        Family(WAITING, {(q.name, code): count for q in standing.queues for code, count in q.waiting.items()}),
        told(ALLOCATED, lambda share: share.allocated),
        told(GUARANTEE, lambda share: share.guarantee),
        told(LIMIT, lambda share: share.limit),
        told(BORROWED, lambda share: share.borrowed),
        told(SHARE, lambda share: share.share),
        told(DEMAND, lambda share: share.demand),
        Family(POOL_NODES, nodes),
        Family(POOL_GPUS, {(p.name, model): n for p in standing.pools for model, n in p.models.items()}),
        Family(
            POOL_FREE, {(p.name, m): free / WHOLE_DEVICE_MILLI for p in standing.pools for m, free in p.free.items()}
        ),
        Family(POOL_FRAGMENTED, {(p.name,): p.fragmented / WHOLE_DEVICE_MILLI for p in standing.pools}),
        Family(CONDITIONS, {(one.subject, one.code): 1 for one in troubles}),
    ]
