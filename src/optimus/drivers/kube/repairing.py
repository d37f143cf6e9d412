"""Binds on trial: what two who could not know of each other have done to one node is undone.

Why: a bind is a promise that nobody can take back, and three can come at the wrong moment: one of a leader that was
frozen while it was sending it, and lands in the term of the next; one of a scheduler that is not ours; and our own,
sent while another's was on its way to us. The server refuses none of them: it does not count.
Owns: which binds are on trial, and the judgement.
Must not: ask anybody to leave who has been accepted. What a node loses later (a sick device) is the brain's business.

Every bind carries the term of the leader that sent it (TERM). One that the watch tells with an older term than ours is
*late*: its sender was not the leader any more, or its news was slower than the lease. Late or ours, a bind is on trial
for TRIAL_S from the moment the watch tells it:

    its node has more given away than it has ──► undone at once; late ones first, then the newest       Overbooked
    late, elsewhere than our plan puts it, and its gang must be close together ──► undone                BoundLate
    late, and at the end of its trial its gang is not whole ──► undone, if an owner makes its pod anew   BoundLate
    otherwise ──► accepted; the brain has counted it since the watch told it

Undone is a pod that is asked to leave, or, where its gang has been on trial as a whole or a single lost pod would fail
it, the gang: it has only just begun, and half of it would wait for the rest. The brain is told by the same watch: the
replicas stop, are gone, and wait again. From the news to the request to leave, that is one turn (below a second while
binds are on trial), or TRIAL_S and a turn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from optimus.drivers.kube.acting import Acting
from optimus.drivers.kube.grouping import Group
from optimus.drivers.kube.grouping.overrides import kept_term
from optimus.drivers.kube.mirror import Mirror
from optimus.drivers.kube.nodes import amounts_of
from optimus.drivers.kube.objects import Pod
from optimus.model.reasons import Code, Reason, reason
from optimus.model.rules import COUNTER

LOG = logging.getLogger(__name__)
TRIAL_S = 5.0
Tell = Callable[[str, Reason], None]
"""Of a workload, why something of it is undone."""


class Trial(Struct, frozen=True):
    uid: str
    workload: str
    node: str
    late: bool
    since: float


class Repairing:
    def __init__(
        self, mirror: Mirror, acting: Acting, tell: Tell, clock: Callable[[], float], term: int | None
    ) -> None:
        self.undone = 0
        """Pods."""
        self.late = 0
        """Binds of former terms that were seen."""
        self._mirror, self._acting, self._tell, self._clock, self._term = mirror, acting, tell, clock, term
        self._trials: dict[str, Trial] = {}
        self._on: dict[str, set[str]] = {}
        """By node: uids on trial."""
        self._going: dict[str, Trial] = {}
        """Those that are undone, until they leave: the same again after TRIAL_S, if the request was lost."""

    @property
    def on_trial(self) -> int:
        return len(self._trials) + len(self._going)

    def look(self) -> None:
        """Once a turn, before outcomes are forgotten (`Acting.facts`)."""
        came, touched = self._mirror.take_bound()
        for uid in sorted(came):
            self._begin(uid)
        self._look_after_those_who_go()
        for node in sorted(touched & self._on.keys()):
            self._judge_node(node)
        for one in list(self._due()):
            self._judge(one)

    def _look_after_those_who_go(self) -> None:
        for uid, one in list(self._going.items()):
            pod = self._mirror.pods.get(uid)
            if pod is None or not _is_there(pod):
                del self._going[uid]
            elif self._clock() - one.since > TRIAL_S:
                self._put(self._going.pop(uid))
                self._judge_node(one.node)

    def _due(self) -> Iterator[Trial]:
        """Those whose trial ends, oldest first, and all late ones: there are few of these, and thousands of ours."""
        for one in self._trials.values():
            if one.late:
                yield one
        for one in self._trials.values():
            if self._clock() - one.since < TRIAL_S:
                return
            if not one.late:
                yield one

    def _put(self, one: Trial) -> None:
        self._trials[one.uid] = one
        self._on.setdefault(one.node, set()).add(one.uid)

    def _end(self, uid: str) -> Trial | None:
        one = self._trials.pop(uid, None)
        if one is not None:
            self._on[one.node].discard(uid)
            if not self._on[one.node]:
                del self._on[one.node]
        return one

    # -- trials -------------------------------------------------------------------------------------------------------

    def _begin(self, uid: str) -> None:
        pod, workload = self._mirror.pods.get(uid), self._mirror.groups.group_of(uid)
        if pod is None or workload is None or not _is_there(pod):
            return
        late = self._is_late(pod)
        if late:
            self.late += 1
            LOG.warning("%s was bound to %s in a former term, and lands in ours", pod.key, pod.spec.node_name)
        self._put(Trial(uid, workload, pod.spec.node_name or "", late, self._clock()))

    def _is_late(self, pod: Pod) -> bool:
        written = kept_term(pod.metadata)
        return self._term is not None and written is not None and written < self._term

    def _judge_node(self, node: str) -> None:
        """Those on trial leave one by one, until the node has what it has given away."""
        over = self._mirror.surplus(node, without=self._going)
        here = [self._trials[uid] for uid in self._on.get(node, ())]
        for one in sorted(here, key=lambda one: (one.late, one.since, one.uid), reverse=True):
            if not over:
                return
            pod = self._mirror.pods.get(one.uid)
            if pod is None or one.uid not in self._trials:
                continue
            takes = amounts_of(self._mirror.needs_of(pod).request)
            if helps := sorted(name for name in over if takes.get(name)):
                self._undo(one, reason(Code.OVERBOOKED, node=node, given=_too_many(over, helps)))
                over = self._mirror.surplus(node, without=self._going)

    def _judge(self, one: Trial) -> None:
        pod = self._mirror.pods.get(one.uid)
        if one.uid not in self._trials:
            return
        if pod is None or not _is_there(pod):
            self._end(one.uid)
            return
        if one.late and self._is_astray(one, pod):
            self._undo(one, reason(Code.BOUND_LATE, node=one.node, why="its gang is placed elsewhere"))
            return
        if self._clock() - one.since < TRIAL_S:
            return
        missing = self._missing(one.workload) if one.late and _is_made_anew(pod) else 0
        if missing:
            self._undo(one, reason(Code.BOUND_LATE, node=one.node, why=f"{missing} of its gang have no place"))
        else:
            self._end(one.uid)

    def _is_astray(self, one: Trial, pod: Pod) -> bool:
        known, place = self._mirror.workloads.get(one.workload), self._acting.place_of(one.uid)
        closely = known is not None and bool(known.gang.topology.required)
        return closely and place is not None and place != one.node and _is_made_anew(pod)

    def _missing(self, workload: str) -> int:
        """How many of its least members neither run nor are being bound."""
        group = self._mirror.groups.group(workload)
        if group is None:
            return 0
        there: dict[str, int] = {}
        for role in [*self._mirror.roles_seated(workload), *self._acting.roles_coming(workload)]:
            there[role] = there.get(role, 0) + 1
        return sum(max(role.needed - there.get(role.name, 0), 0) for role in group.roles)

    # -- undoing ------------------------------------------------------------------------------------------------------

    def _undo(self, one: Trial, why: Reason) -> None:
        group = self._mirror.groups.group(one.workload)
        there = {pod.metadata.uid: pod for pod in self._mirror.pods_of(one.workload)}
        whole = group is not None and self._falls(group, one, there)
        leaving = {one.uid: self._mirror.pods[one.uid], **(there if whole else {})}
        self.undone += len(leaving)
        LOG.warning("%s: %s: %s", one.workload, why.code, why.text())
        self._tell(one.workload, why)
        if whole:
            self._acting.stop(one.workload, why)
        else:
            self._acting.send_away(leaving.values())
        for uid, pod in leaving.items():
            ended = self._end(uid) or one
            self._going[uid] = Trial(uid, one.workload, pod.spec.node_name or "", ended.late, self._clock())

    def _falls(self, group: Group, one: Trial, there: Iterable[str]) -> bool:
        """Whether the whole gang goes: without this pod it is too small, and all of it has only just begun."""
        if group.fragile_why:
            return True
        if any(uid not in self._trials for uid in there):
            return False
        slot = self._mirror.groups.slot_of(one.uid)
        left = self._mirror.roles_seated(group.id)
        return slot is not None and any(
            left.count(role.name) - (role.name == slot.role) < role.needed for role in group.roles
        )


def _too_many(over: dict[str, int], names: list[str]) -> str:
    """`1 of nvidia.com/gpu too many`. A whole GPU is counted twice, as thousandths and as a piece: it is said once."""
    pieces = {name: name.removeprefix(COUNTER) for name in names if name.startswith(COUNTER)}
    units = {name: unit for name, unit in _UNITS.items() if name in names and not (pieces and name == "GPUs")}
    return f"{', '.join(f'{over[name]} of {unit}' for name, unit in {**pieces, **units}.items()) or names} too many"


_UNITS = {"GPUs": "a thousand parts of a GPU", "CPU": "a thousand parts of a CPU", "memory": "memory (MiB)"}


def _is_there(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and not pod.over and pod.metadata.deletion_timestamp is None


def _is_made_anew(pod: Pod) -> bool:
    return any(owner.controller for owner in pod.metadata.owner_references or ())
