"""Controlling: each job that has changed is looked at, and what comes of it is sent.

    changed, or its time has come ──► look (pure) ──► stages of writes, one after the other
                 ▲                                              │
                 └────────── the watch, or a pause ◄────────────┘

Why: thousands of jobs rest most of the time; only those of which something is new cost anything.
Owns: when a job is looked at, one look at a time for each; what was sent and is not seen yet; how long to wait after a
refusal. All of that may be forgotten at any moment.
Must not: look at a clock that can be set, wait inside a look, or do anything by a status that is known to be old.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable

import msgspec

from optimus.drivers.kube.jobs import words
from optimus.drivers.kube.jobs.keeping import kept_in, revision_of
from optimus.drivers.kube.jobs.looking import leave_all, look
from optimus.drivers.kube.jobs.reading import Written, scheduler_of, written_or_why
from optimus.drivers.kube.jobs.records import Look, View
from optimus.drivers.kube.jobs.replicas import Answers
from optimus.drivers.kube.jobs.seeing import ORPHANED, Sight
from optimus.drivers.kube.jobs.sending import SENT_S, Sending, Stopped, Verdict
from optimus.drivers.kube.jobs.telling import Trouble
from optimus.drivers.kube.jobs.writes import Patch, Stage, leaving, stages
from optimus.drivers.kube.objects import Anything, Pod
from optimus.kube import Writer
from optimus.kube.errors import KubeError
from optimus.kube.events import NORMAL, WARNING, Recorder, Regarding

LOG = logging.getLogger(__name__)
AT_ONCE = 16
"""Jobs that are being looked at."""
OURS_S = 10.0
"""So long the watch may lag behind a status that we have written."""
PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0
IDLE_S = 60.0

FetchJob = Callable[[str, str], Awaitable[Anything | None]]
"""Namespace and name -> as the server has it now."""
FetchPod = Callable[[str, str], Awaitable[Pod | None]]


class Case:
    """What is remembered of one job between two looks."""

    def __init__(self) -> None:
        self.ours: Anything | None = None
        """As it was after we wrote it, until the watch has caught up."""
        self.base = ""
        """The version that the watch had when that was begun. Not when it was answered: it may have told of the answer
        by then, and of what somebody else has written after it."""
        self.since = 0.0
        self.certain = ""
        """The version that is the newest, for certain."""
        self.gone: set[str] = set()
        self.trouble: Trouble | None = None
        self.refusals = 0
        self.not_before = 0.0


class Controlling:
    def __init__(
        self,
        sight: Sight,
        writer: Writer,
        recorder: Recorder,
        fetch_job: FetchJob,
        fetch_pod: FetchPod,
        answers: Answers,
        scheduler: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        respect_budgets: bool = False,
    ) -> None:
        """`answers`: whether a node does. `scheduler`: the name that its pods are given."""
        self.looks = 0
        self._sight, self._recorder = sight, recorder
        self._fetch_job, self._fetch_pod = fetch_job, fetch_pod
        self._answers, self._scheduler, self._clock = answers, scheduler, clock
        self._sending = Sending(writer, clock, respect_budgets=respect_budgets)
        self._cases: dict[str, Case] = {}
        self._again: dict[str, float] = {}
        """By uid: when a job is looked at although nothing has changed."""
        self._busy: set[str] = set()
        self._room = asyncio.Semaphore(AT_ONCE)
        self._wake = asyncio.Event()
        self._began_ms, self._began_s = time.time_ns() // 1_000_000, clock()

    async def run(self) -> None:
        """Until it is cancelled."""
        self._sight.wake = self._wake.set
        self._sight.look_at_all()
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    for uid in self._due():
                        self._busy.add(uid)
                        tasks.create_task(self._tend(uid))
                    self._wake.clear()
                    if not self._due_soon():
                        with contextlib.suppress(TimeoutError):
                            async with asyncio.timeout(self._rest_s()):  # `wait_for` may miss that it is cancelled
                                await self._wake.wait()
        finally:
            self._sight.wake = lambda: None

    # -- who ----------------------------------------------------------------------------------------------------------

    def _due(self) -> list[str]:
        now = self._clock()
        timely = {uid for uid, at in self._again.items() if at <= now}
        due = (self._sight.changed | timely) - self._busy
        for uid in due:
            self._sight.changed.discard(uid)
            self._again.pop(uid, None)
        return sorted(due)

    def _due_soon(self) -> bool:
        return bool(self._sight.changed - self._busy)

    def _rest_s(self) -> float:
        times = [at for uid, at in self._again.items() if uid not in self._busy]
        return min(max(min(times, default=self._clock() + IDLE_S) - self._clock(), 0.005), IDLE_S)

    async def _tend(self, uid: str) -> None:
        """Whatever befalls one job, all others go on."""
        try:
            async with self._room:
                self.looks += 1
                await self._look_at(uid)
        except Stopped:
            self._look_again(uid, PAUSE_S)
        except KubeError as error:
            LOG.info("job %s cannot be looked at now: %s", uid, error)
            self._pause(uid)
        except Exception:
            LOG.exception("job %s could not be looked at", uid)
            self._pause(uid)
        finally:
            self._busy.discard(uid)
            self._wake.set()

    def _look_again(self, uid: str, after_s: float) -> None:
        at = self._clock() + after_s
        self._again[uid] = min(self._again.get(uid, at), at)

    def _pause(self, uid: str) -> None:
        case = self._cases.setdefault(uid, Case())
        case.refusals += 1
        self._look_again(uid, min(PAUSE_S * 2 ** (case.refusals - 1), LONGEST_PAUSE_S))

    # -- one look -----------------------------------------------------------------------------------------------------

    async def _look_at(self, uid: str) -> None:
        pods = list(self._sight.pods.get(uid, {}).values())
        seen = self._sight.jobs.get(uid)
        if seen is not None and scheduler_of(seen) not in ("", self._scheduler):
            return  # another one of us looks after it
        if seen is None:
            await self._clear_orphans(uid, pods)
            return
        case = self._cases.setdefault(uid, Case())
        thing, now_ms = self._newest(case, seen), self._now_ms()
        written = written_or_why(thing)
        view = View(
            thing=thing,
            pods=pods,
            now_ms=now_ms,
            answers=self._answers,
            gone=case.gone,
            trouble=case.trouble,
            waits=self._sight.waits.get(uid),
            certain=bool(case.certain) and case.certain == thing.metadata.resource_version,
        )
        found = look(view, written)
        if found.stale:
            await self._fetch_newest(case, thing)
        if found.missing:
            await self._make_sure(case, thing, found)
        if found.look_again_ms is not None:
            self._look_again(uid, max(found.look_again_ms - now_ms, 0) / 1000)
        await self._send(uid, case, thing, written, found)

    def _newest(self, case: Case, seen: Anything) -> Anything:
        """As the watch has it, or as we have written it since."""
        ours, version = case.ours, seen.metadata.resource_version
        if ours is None:
            return seen
        behind = version == case.base or revision_of(seen) < revision_of(ours)
        if version == ours.metadata.resource_version or not behind or self._clock() > case.since + OURS_S:
            case.ours = None
            return seen
        self._look_again(seen.metadata.uid, OURS_S)
        return ours

    def _keep(self, case: Case, ours: Anything, base: str) -> None:
        case.ours, case.base = ours, base
        case.since, case.certain = self._clock(), ours.metadata.resource_version

    def _seen_version(self, uid: str) -> str:
        seen = self._sight.jobs.get(uid)
        return seen.metadata.resource_version if seen is not None else ""

    def _now_ms(self) -> int:
        return self._began_ms + int((self._clock() - self._began_s) * 1000)

    async def _fetch_newest(self, case: Case, thing: Anything) -> None:
        meta, base = thing.metadata, self._seen_version(thing.metadata.uid)
        found = await self._fetch_job(meta.namespace, meta.name)
        if found is None or found.metadata.uid != meta.uid:
            return  # the watch tells it soon
        self._keep(case, found, base)
        self._look_again(meta.uid, 0.0)

    async def _make_sure(self, case: Case, thing: Anything, found: Look) -> None:
        """Pods that the watch does not show: late, or gone?"""
        meta, kept = thing.metadata, kept_in(thing, "")[0]
        names = {uid: name for name, uid in kept.known.items()}
        for uid in found.missing:
            pod = await self._fetch_pod(meta.namespace, names[uid])
            if pod is None or pod.metadata.uid != uid:
                case.gone.add(uid)
                self._look_again(meta.uid, 0.0)

    async def _clear_orphans(self, uid: str, pods: list[Pod]) -> None:
        """Their job is gone, and was not waited for: somebody took its finalizer away."""
        self._cases.pop(uid, None)
        self._sending.forget(uid)
        if not pods:
            self._again.pop(uid, None)
            return
        if uid.startswith(ORPHANED):  # its job was deleted, and it was to be kept
            await self._sending.send(uid, leaving(Look(release=tuple(pods))))
            return
        owner = next(one for one in pods[0].metadata.owner_references or () if one.uid == uid)
        there = await self._fetch_job(pods[0].metadata.namespace, owner.name)
        if there is not None and there.metadata.uid == uid:
            self._look_again(uid, PAUSE_S)
            return
        found = leave_all(pods, self._now_ms(), self._answers)
        await self._sending.send(uid, leaving(found))
        if found.look_again_ms is not None:
            self._look_again(uid, max(found.look_again_ms - self._now_ms(), 0) / 1000)

    # -- what comes of it ---------------------------------------------------------------------------------------------

    async def _send(self, uid: str, case: Case, thing: Anything, written: Written | str, found: Look) -> None:
        readable, base = written if isinstance(written, Written) else None, self._seen_version(uid)
        for stage in stages(thing, readable, found, self._scheduler):
            verdict = await self._sending.send(uid, self._allowed(uid, case, stage))
            if not verdict.ok:
                await self._refused(uid, case, thing, verdict)
                return
            if verdict.left_out:
                self._look_again(uid, SENT_S)
            if _is_status(stage):
                self._wrote(case, verdict.answer, base)
                self._say(thing, found)
        if case.trouble is not None and not found.make:
            case.trouble = None
            self._look_again(uid, 0.0)
        if self._clock() >= case.not_before:
            case.refusals = 0

    def _allowed(self, uid: str, case: Case, stage: Stage) -> Stage:
        """Without what was refused a moment ago."""
        now = self._clock()
        if now >= case.not_before:
            return stage
        self._look_again(uid, case.not_before - now)
        return self._sending.without_creates(stage)

    def _wrote(self, case: Case, answer: bytes | None, base: str) -> None:
        with contextlib.suppress(msgspec.MsgspecError):
            ours = msgspec.json.decode(answer or b"", type=Anything)
            self._keep(case, ours, base)
            case.gone &= set(kept_in(ours, "")[0].known.values())

    async def _refused(self, uid: str, case: Case, thing: Anything, verdict: Verdict) -> None:
        if verdict.stale:
            self._look_again(uid, PAUSE_S)
            await self._fetch_newest(case, thing)
            return
        if verdict.taken and await self._is_ours(uid, thing, verdict.taken):
            return
        case.refusals += 1
        pause_s = min(PAUSE_S * 2 ** (case.refusals - 1), LONGEST_PAUSE_S)
        case.not_before = self._clock() + (verdict.retry_after_s or pause_s)
        self._look_again(uid, case.not_before - self._clock())
        if verdict.trouble is None or verdict.trouble == case.trouble:
            return
        case.trouble = verdict.trouble
        self._look_again(uid, 0.0)
        self._event(thing, words.BLOCKED, f"{verdict.trouble.reason}: {verdict.trouble.message}", WARNING)

    async def _is_ours(self, uid: str, thing: Anything, name: str) -> bool:
        """A pod that was made already, and of which the watch has not told yet."""
        found = await self._fetch_pod(thing.metadata.namespace, name)
        if found is None:
            self._look_again(uid, PAUSE_S)
            return True
        ours = any(one.uid == uid and one.controller for one in found.metadata.owner_references or ())
        if ours:  # the watch tells of it; what was fetched may be older than what it tells meanwhile
            self._look_again(uid, PAUSE_S)
        return ours

    def _say(self, thing: Anything, found: Look) -> None:
        for one in found.says:
            self._event(thing, one.reason, one.text, WARNING if one.warning else NORMAL)

    def _event(self, thing: Anything, reason: str, text: str, kind: str) -> None:
        meta = thing.metadata
        about = Regarding(words.API_VERSION, words.KIND, meta.name, meta.namespace, meta.uid)
        self._recorder.say(about, reason, text or reason, action="Reconciling", kind=kind)


def _is_status(stage: Stage) -> bool:
    return any(isinstance(one, Patch) and one.subresource == "status" for one in stage)
