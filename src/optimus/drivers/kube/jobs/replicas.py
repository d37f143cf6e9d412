"""Replicas: pods as the life of a job sees them, and whose doing each end was.

    phase Succeeded                                      ended well
    phase Failed    DisruptionTarget, Evicted, shutdown  evicted, or its node was lost
                    OutOf…, and nothing has run          turned away by the kubelet
                    OOMKilled                            out of memory
                    anything else                        its own
    being deleted   it never had a node                  gone before it began
                    its kubelet has let it go            gone; how it ended is not known
                    its node does not answer             lost with its node, once its grace has passed

Why: only what is the user's own error may count against the job.
Owns: that table.
Must not: know the job (`lives` draws the consequences), or wait for a pod whose node is dead.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from optimus.drivers.kube.jobs.last_words import main_status
from optimus.drivers.kube.jobs.times import read_time
from optimus.drivers.kube.objects import Condition, Pod, Terminated
from optimus.lives import Blame, Ended, Replica

DISRUPTED = "DisruptionTarget"
OF_LOST_NODES = ("DeletionByTaintManager", "DeletionByPodGC")
LOST = ("NodeLost",)
EVICTED = ("Evicted", "Preempting", "Terminated", "NodeShutdown", "Shutdown")
REJECTED = ("UnexpectedAdmissionError", "NodeAffinity", "NodePorts", "NodeName", "TopologyAffinityError")
OUT_OF = "OutOf"
OUT_OF_MEMORY = "OOMKilled"
KILLED = 137
STRANDED_MS = 5_000
"""So long after its grace, a pod on a node that does not answer is given up."""
LONGEST_WORDS = 300
_ORDINAL = re.compile(r"0|[1-9][0-9]{0,6}", re.ASCII)

Answers = Callable[[str], bool]
"""Whether a node answers, by its name."""


def slot_of(pod: Pod, job: str) -> tuple[str, int] | None:
    """From its name, which nobody can change. None: it is no pod that we have made."""
    role, _, index = pod.metadata.name.removeprefix(f"{job}-").rpartition("-")
    if pod.metadata.name == role or not role or not _ORDINAL.fullmatch(index):
        return None
    return role, int(index)


def replica_of(pod: Pod, slot: tuple[str, int], now_ms: int, answers: Answers) -> Replica:
    meta, status = pod.metadata, pod.status
    role, ordinal = slot
    runs = status.phase in ("Running", "Succeeded", "Failed")
    return Replica(
        start=meta.uid,
        role=role,
        ordinal=ordinal,
        started_ms=read_time(status.start_time) or None if runs else None,
        asked_ms=_asked_ms(pod),
        ended=ended_of(pod, now_ms, answers),
        node=pod.spec.node_name or "",
    )


def is_ready(pod: Pod) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions or ())


def waits_for(pod: Pod) -> str:
    """What keeps it from running, in words of the kubelet: an image that cannot be had, a secret that is not there."""
    for one in pod.status.container_statuses or ():
        waiting = one.state.waiting if one.state is not None else None
        if waiting is not None and waiting.reason not in (None, "ContainerCreating", "PodInitializing"):
            return f"{waiting.reason}: {waiting.message or ''}".rstrip(": ")[:LONGEST_WORDS]
    return ""


def is_stranded(pod: Pod) -> bool:
    """Its end is known only because its node is: nobody but us takes it away."""
    meta = pod.metadata
    told = bool(meta.deletion_timestamp) and meta.deletion_grace_period_seconds != 0
    return told and bool(pod.spec.node_name) and not pod.over


def stranded_at_ms(pod: Pod) -> int:
    """When it is given up, if its node does not answer."""
    return read_time(pod.metadata.deletion_timestamp) + STRANDED_MS


def ended_of(pod: Pod, now_ms: int, answers: Answers) -> Ended | None:
    meta, status = pod.metadata, pod.status
    if status.phase == "Succeeded":
        return Ended(at_ms=_at_ms(pod, now_ms), code=0)
    if status.phase == "Failed":
        return _failed(pod, now_ms)
    if not meta.deletion_timestamp:
        return None
    if not pod.spec.node_name:
        return Ended(at_ms=now_ms, lost=True, blame=Blame.EVICTED, words="was deleted before it had a node")
    if meta.deletion_grace_period_seconds == 0:
        return _let_go(pod, now_ms)
    if now_ms >= stranded_at_ms(pod) and not answers(pod.spec.node_name):
        words = f"was lost with its node {pod.spec.node_name}, which does not answer"
        return Ended(at_ms=now_ms, lost=True, blame=Blame.NODE_LOST, words=words)
    return None


def was_killed(ended: Ended) -> bool:
    """It did not leave in its time."""
    return ended.code == KILLED or ended.signal == 9


def _let_go(pod: Pod, now_ms: int) -> Ended:
    """Its kubelet has done with it, or somebody has forced it."""
    main = main_status(pod)
    ended = main.state.terminated if main is not None and main.state is not None else None
    if ended is not None:
        return Ended(at_ms=_at_ms(pod, now_ms), code=ended.exit_code, signal=ended.signal)
    blame = _disrupted(pod) or Blame.EVICTED
    return Ended(at_ms=now_ms, lost=True, blame=blame, words="was deleted, and nobody knows how it ended")


def _failed(pod: Pod, now_ms: int) -> Ended:
    status, at_ms = pod.status, _at_ms(pod, now_ms)
    reason, message = status.reason or "", (status.message or "").strip()[:LONGEST_WORDS]
    blame = _disrupted(pod)
    if reason in LOST:
        blame = Blame.NODE_LOST
    elif reason in EVICTED:
        blame = blame or Blame.EVICTED
    worst = _worst(pod)
    if worst is None and (reason.startswith(OUT_OF) or reason in REJECTED):
        words = f"was turned away by the kubelet of {pod.spec.node_name}: {message or reason}"
        return Ended(at_ms=at_ms, lost=True, blame=Blame.REJECTED, words=words)
    if blame is not None:
        what = "was lost with its node" if blame is Blame.NODE_LOST else "was evicted"
        return Ended(at_ms=at_ms, lost=True, blame=blame, words=f"{what}: {message or reason or DISRUPTED}")
    if worst is None:
        return Ended(at_ms=at_ms, error=f"{reason}: {message}".strip(": ") or "nobody says why")
    if worst.reason == OUT_OF_MEMORY:
        words = "ran out of memory: it needed more than the limit of its container, or its node had no more"
        return Ended(at_ms=at_ms, code=worst.exit_code, blame=Blame.OUT_OF_MEMORY, words=words)
    return Ended(at_ms=at_ms, code=worst.exit_code, signal=worst.signal)


def _disrupted(pod: Pod) -> Blame | None:
    told: Condition | None = next((one for one in pod.status.conditions or () if one.type == DISRUPTED), None)
    if told is None or told.status != "True":
        return None
    return Blame.NODE_LOST if told.reason in OF_LOST_NODES else Blame.EVICTED


def _worst(pod: Pod) -> Terminated | None:
    """The end that made it fail: of its main container, if that failed, else of the first that did."""
    all_of_them = [*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ())]
    main = main_status(pod)
    for one in [*([main] if main is not None else []), *all_of_them]:
        ended: Terminated | None = one.state.terminated if one.state is not None else None
        if ended is not None and ended.exit_code != 0:
            return ended
    return None


def _at_ms(pod: Pod, now_ms: int) -> int:
    """When its last container ended. A node whose clock is ahead does not lengthen anybody's wait."""
    states = [one.state.terminated for one in pod.status.container_statuses or () if one.state is not None]
    ends = [read_time(one.finished_at) for one in states if one is not None]
    return min(max(ends, default=0) or now_ms, now_ms)


def _asked_ms(pod: Pod) -> int | None:
    """Since when it has been told to leave, whoever told it."""
    meta = pod.metadata
    if not meta.deletion_timestamp:
        return None
    return read_time(meta.deletion_timestamp) - 1000 * (meta.deletion_grace_period_seconds or 0)
