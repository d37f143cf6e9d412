"""Sending: writes of one stage, a few at a time, and what the server says to them.

    done, or there or gone already    go on
    another version                   *stale*: the newest one has to be looked at
    the name is taken                 by a pod that the watch has not told of yet, or by somebody else's
    refused                           *trouble*, in the server's own words: quota, Pod Security, an invalid template
    no clear answer                   later; whatever came of it, the next look finds it

Why: of five hundred pods that a quota forbids, one is asked for and not five hundred.
Owns: how many requests are under way, and what was sent a moment ago and need not be sent again.
Must not: raise what the server says, or try again by itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from msgspec import Struct

from optimus.drivers.kube.jobs.telling import Trouble
from optimus.drivers.kube.jobs.words import REVISION, SERVICES
from optimus.drivers.kube.jobs.writes import Create, Delete, Patch, Stage, Write
from optimus.kube import Conflict, Done, Gone, Outcome, Refused, Unknown, Writer
from optimus.kube.resources import PODS
from optimus.kube.writing import BUSY, NOT_SENT

LOG = logging.getLogger(__name__)
IN_FLIGHT = 16
SENT_S = 5.0
"""So long the watch may take to show what was done."""


class Stopped(Exception):  # noqa: N818 - what has become of the lead
    """Nothing is sent any more: somebody else leads."""


class Verdict(Struct, frozen=True, kw_only=True):
    ok: bool = True
    answer: bytes | None = None
    """Of the last write."""
    stale: bool = False
    taken: str = ""
    """The name of a pod that is there already."""
    trouble: Trouble | None = None
    retry_after_s: float | None = None
    left_out: bool = False
    """Something was sent a moment ago, and is waited for."""


FINE = Verdict()


class Sending:
    def __init__(self, writer: Writer, clock: Callable[[], float], *, respect_budgets: bool = False) -> None:
        """`respect_budgets`: pods are evicted, which a disruption budget may refuse while they run."""
        self.writes = 0
        self._respect_budgets = respect_budgets
        self._writer, self._clock = writer, clock
        self._room = asyncio.Semaphore(IN_FLIGHT)
        self._sent: dict[tuple[str, ...], float] = {}
        """Done, and perhaps not seen yet: until when it is not sent again."""
        self._served: set[str] = set()
        """Uids of jobs whose Service is there."""

    async def send(self, job: str, stage: Stage) -> Verdict:
        """The worst that came of it. What goes is sent at once, what comes one by one, then twice as many each time."""
        fresh = [one for one in stage if not self._is_sent(job, one)]
        going = [one for one in fresh if not _is_pod(one)]
        coming = [one for one in fresh if _is_pod(one)]
        worst = await self._together(job, going)
        batch = 1
        while worst.ok and coming:
            worst = await self._together(job, coming[:batch])
            coming, batch = coming[batch:], 2 * batch
        if worst.ok and len(fresh) < len(stage):
            return Verdict(answer=worst.answer, left_out=True)
        return worst

    def forget(self, job: str) -> None:
        self._served.discard(job)

    @staticmethod
    def without_creates(stage: Stage) -> Stage:
        return [one for one in stage if not isinstance(one, Create)]

    async def _together(self, job: str, writes: Sequence[Write]) -> Verdict:
        verdicts = await asyncio.gather(*(self._one(job, one) for one in writes))
        bad = [one for one in verdicts if not one.ok]
        told = next((one for one in bad if one.trouble is not None), bad[0] if bad else None)
        return told or (verdicts[-1] if verdicts else FINE)

    async def _one(self, job: str, write: Write) -> Verdict:
        async with self._room:
            self.writes += 1
            verdict = _judged(write, await self._written(write))
        if verdict.ok:
            self._note(job, write)
        return verdict

    async def _written(self, write: Write) -> Outcome:
        match write:
            case Create(resource=resource, namespace=namespace, body=body):
                return await self._writer.create(resource, body, namespace=namespace)
            case Delete(namespace=namespace, name=name, uid=uid, grace_s=grace_s) if self._evicts(write):
                return await self._writer.evict(name, namespace=namespace, uid=uid, grace_s=grace_s)
            case Delete(resource=resource, namespace=namespace, name=name, uid=uid, grace_s=grace_s):
                return await self._writer.delete(resource, name, namespace=namespace, uid=uid, grace_s=grace_s)
            case Patch():
                return await self._writer.patch(
                    write.resource,
                    write.name,
                    write.body,
                    namespace=write.namespace,
                    subresource=write.subresource,
                    form=write.form,
                    resource_version=write.version,
                )

    def _evicts(self, write: Delete) -> bool:
        return self._respect_budgets and write.resource == PODS

    # -- what was sent a moment ago ---------------------------------------------------------------------------------

    def _is_sent(self, job: str, write: Write) -> bool:
        if isinstance(write, Create) and write.resource == SERVICES:
            return job in self._served
        return self._sent.get(_key(job, write), 0.0) > self._clock()

    def _note(self, job: str, write: Write) -> None:
        now = self._clock()
        if isinstance(write, Create) and write.resource == SERVICES:
            self._served.add(job)
        elif isinstance(write, Create | Delete) or write.resource == PODS:
            self._sent[_key(job, write)] = now + SENT_S
        if len(self._sent) > 4096:
            self._sent = {key: until for key, until in self._sent.items() if until > now}


def _is_pod(write: Write) -> bool:
    """One that comes."""
    return isinstance(write, Create) and write.resource == PODS


def _key(job: str, write: Write) -> tuple[str, ...]:
    match write:
        case Create():
            revision = write.body["metadata"].get("annotations", {}).get(REVISION, "")
            return "create", job, write.name, revision
        case Delete():
            return "delete", write.uid, str(write.grace_s)
        case Patch():
            return "patch", str(write.body["metadata"].get("uid")), write.subresource


def _judged(write: Write, outcome: Outcome) -> Verdict:
    match outcome:
        case Done(answer):
            return Verdict(answer=answer)
        case Refused(reason=reason) if reason == NOT_SENT:
            raise Stopped
        case Refused(reason, message, retry_after_s):
            LOG.info("%s: %s: %s", _shown(write), reason, message)
            passing = reason == BUSY
            return Verdict(ok=False, trouble=None if passing else Trouble(reason, message), retry_after_s=retry_after_s)
        case Unknown(message):
            LOG.info("%s: %s", _shown(write), message)
            return Verdict(ok=False)
        case Conflict(message):
            return _conflict(write, message)
        case Gone(message):
            gone = isinstance(write, Delete) or (write.resource == PODS and isinstance(write, Patch))
            return FINE if gone else Verdict(ok=False, trouble=Trouble("NotFound", message))


def _conflict(write: Write, message: str) -> Verdict:
    """Of what is to go: it is another one by now. Of what is to come: something of that name is there."""
    if isinstance(write, Create):
        if write.resource == SERVICES:
            return FINE
        return Verdict(ok=False, taken=write.name, trouble=Trouble("AlreadyExists", message))
    if isinstance(write, Delete) or write.resource == PODS:
        return FINE
    return Verdict(ok=False, stale=True)


def _shown(write: Write) -> str:
    what = type(write).__name__.lower()
    return f"{what} {write.resource.plural} {write.namespace}/{write.name}"
