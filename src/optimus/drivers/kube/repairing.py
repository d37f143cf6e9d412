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
from collections.abc import Callable, Iterable

from msgspec import Struct

from optimus.drivers.kube.acting import Acting
from optimus.drivers.kube.grouping import Group
from optimus.drivers.kube.grouping.overrides import TERM, word_on
from optimus.drivers.kube.mirror import Mirror, amounts_of
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

    @property
    def on_trial(self) -> int:
        return len(self._trials)

    def look(self) -> None:
        """Once a turn, before outcomes are forgotten (`Acting.facts`)."""
        for uid in sorted(self._mirror.take_bound()):
            self._begin(uid)
        if not self._trials:
            return
        for node in sorted({one.node for one in self._trials.values()}):
            self._judge_node(node)
        for one in list(self._trials.values()):
            if one.uid in self._trials:
                self._judge(one)

    # -- trials -------------------------------------------------------------------------------------------------------

    def _begin(self, uid: str) -> None:
        pod, workload = self._mirror.pods.get(uid), self._mirror.groups.group_of(uid)
        if pod is None or workload is None or not _is_there(pod):
            return
        late = self._is_late(pod)
        if late:
            self.late += 1
            LOG.warning("%s was bound to %s in a former term, and lands in ours", pod.key, pod.spec.node_name)
        self._trials[uid] = Trial(uid, workload, pod.spec.node_name or "", late, self._clock())

    def _is_late(self, pod: Pod) -> bool:
        written = word_on(pod.metadata, TERM) or ""
        return self._term is not None and written.isdecimal() and int(written) < self._term

    def _judge_node(self, node: str) -> None:
        """Those on trial leave one by one, until the node has what it has given away."""
        over = self._mirror.surplus(node)
        here = [one for one in self._trials.values() if one.node == node]
        for one in sorted(here, key=lambda one: (one.late, one.since, one.uid), reverse=True):
            if not over:
                return
            pod = self._mirror.pods.get(one.uid)
            if pod is None or one.uid not in self._trials:
                continue
            takes = amounts_of(self._mirror.needs_of(pod).request)
            if helps := sorted(name for name in over if takes.get(name)):
                self._undo(one, reason(Code.OVERBOOKED, node=node, given=_too_many(over, helps)))
                over = self._mirror.surplus(node, without=self._acting.leaving)

    def _judge(self, one: Trial) -> None:
        pod = self._mirror.pods.get(one.uid)
        if pod is None or not _is_there(pod) or one.uid in self._acting.leaving:
            del self._trials[one.uid]
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
            del self._trials[one.uid]

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
        pods = [pod for pod in self._mirror.pods_of(one.workload) if pod.metadata.uid in self._trials]
        whole = group is not None and self._falls(group, one, pods)
        leaving = pods if whole else [pod for pod in pods if pod.metadata.uid == one.uid]
        self.undone += len(leaving) or 1
        LOG.warning("%s: %s: %s", one.workload, why.code, why.text())
        self._tell(one.workload, why)
        if whole:
            self._acting.stop(one.workload)
        else:
            self._acting.send_away(leaving or [self._mirror.pods[one.uid]])
        for uid in [one.uid, *(pod.metadata.uid for pod in leaving)]:
            self._trials.pop(uid, None)

    def _falls(self, group: Group, one: Trial, on_trial: Iterable[Pod]) -> bool:
        """Whether the whole gang goes: without this pod it is too small, and all of it has only just begun."""
        if group.fragile_why:
            return True
        young = {pod.metadata.uid for pod in on_trial}
        if any(pod.metadata.uid not in young for pod in self._mirror.pods_of(group.id)):
            return False
        slot = self._mirror.groups.slot_of(one.uid)
        seated = self._mirror.roles_seated(group.id)
        return slot is not None and any(
            seated.count(role.name) - (role.name == slot.role) < role.needed for role in group.roles
        )


def _too_many(over: dict[str, int], names: list[str]) -> str:
    """`1 of nvidia.com/gpu too many`. A whole GPU is counted twice, as thousandths and as a piece: said once."""
    pieces = [name for name in names if name.startswith(COUNTER)]
    told = [f"{over[name]} of {name.removeprefix(COUNTER)}" for name in pieces]
    told += [f"{over[name]} {_UNITS.get(name, name)}" for name in names if name not in pieces + (["GPUs"] if pieces else [])]
    return f"{', '.join(told)} too many"


_UNITS = {"GPUs": "thousandths of a GPU", "CPU": "thousandths of a CPU", "memory": "MiB"}


def _is_there(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and not pod.over and pod.metadata.deletion_timestamp is None


def _is_made_anew(pod: Pod) -> bool:
    return any(owner.controller for owner in pod.metadata.owner_references or ())
