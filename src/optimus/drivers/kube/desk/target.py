"""A cluster as a target: every verb of the command line, with the rights of who asks.

Why: a command does not know whom it asks (`optimus.client.targets`).
Owns: what is read for which verb, and how long a look at the cluster is used.
Must not: show anything, but for words about what could not be read (`tell`).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import msgspec

from optimus.drivers.kube.describing import read_time
from optimus.drivers.kube.desk import changing, following, output, sending, views
from optimus.drivers.kube.desk.looking import look
from optimus.drivers.kube.desk.naming import Name, gang_of, known_kinds, meant_by, read_name
from optimus.drivers.kube.desk.refusing import Refused, asked, in_words, invalid, missing
from optimus.drivers.kube.desk.sight import Sight, rights
from optimus.drivers.kube.desk.tailing import Tails
from optimus.drivers.kube.desk.told import Happened, happened
from optimus.drivers.kube.discovering import Discovery
from optimus.drivers.kube.grouping import Kinds
from optimus.drivers.kube.mirror import SCHEDULER_NAME
from optimus.drivers.kube.objects import Anything
from optimus.drivers.kube.remembering import past
from optimus.engine.journal_past import write_past
from optimus.kube import Client, Cluster, KubeError, load
from optimus.kube.errors import Forbidden, NotFound
from optimus.kube.resources import LEASES
from optimus.model.units import format_duration_ms

PREFIX = "kube:"
AGENT = "optimus-cli"
LEASE = "optimus-scheduler"
FRESH_S = 1.0
"""Questions that come together are answered from one look."""
View = dict[str, Any]
Answer = TypeVar("Answer")


def open_cluster(target: str, tell: Callable[[str], None]) -> OnCluster:
    """`kube:` is the current context of the kubeconfig, `kube:NAME` another one. Raises `JobError`."""
    try:
        cluster = load(context=target.removeprefix(PREFIX))
    except KubeError as error:
        raise in_words(error) from error
    for remark in cluster.remarks:
        tell(remark)
    return OnCluster(cluster, address=target, tell=tell)


class OnCluster:
    """`Target` for a Kubernetes cluster."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        address: str = PREFIX,
        tell: Callable[[str], None] = lambda _text: None,
        kinds: Kinds | None = None,
    ) -> None:
        self.address = address
        self.namespace = os.environ.get("OPTIMUS_NAMESPACE") or cluster.namespace
        """Where a name says none."""
        self._cluster, self._tell = cluster, tell
        self._kinds = kinds or known_kinds()
        self._scheduler = os.environ.get("OPTIMUS_CONTROLLER_SCHEDULER_NAME") or SCHEDULER_NAME
        self._told: set[str] = set()
        self._sights: dict[str, tuple[float, Sight]] = {}
        """By namespace, empty for the whole cluster: when it was looked at, and what was seen."""

    # -- reading ------------------------------------------------------------------------------------------------------

    def jobs(self, **wanted: str) -> list[View]:
        sight = self._look(wanted.get("namespace", ""))
        found = self._shown(sight)
        keys = {name: value for name, value in wanted.items() if value}
        return [view for view in found.values() if all(view[name] == value for name, value in keys.items())]

    def job(self, job: str) -> View:
        name = self._name(job)
        sight = self._look(name.namespace)
        shown = self._shown(sight)
        gang = gang_of(sight, name, shown)
        return {**shown[gang], "preemptions": self._happened(sight, gang).preemptions()}

    def happenings(self, job: str) -> list[View]:
        name = self._name(job)
        sight = self._look(name.namespace)
        gang = gang_of(sight, name, self._shown(sight))
        return self._happened(sight, gang).views(gang)

    def document(self, job: str) -> View:
        """The object as it would be applied again."""
        name = self._name(job)
        sight = self._look(name.namespace)
        meant = meant_by(sight, name, self._shown(sight))
        return self._do(lambda client: sending.document(client, meant))

    def listed(self, kind: str) -> list[View]:
        sight = self._look()
        if kind == "queues":
            if not sight.whole and any(one.what.startswith("queues.") for one in sight.denied):
                raise Refused(403, "forbidden", _denied_words(sight, "queues cannot be shown"))
            return views.queue_views(sight, self._shown(sight))
        if not sight.whole:
            raise Refused(403, "forbidden", _denied_words(sight, f"{kind} cannot be shown"))
        return views.node_views(sight) if kind == "nodes" else views.pool_views(sight)

    def trouble(self) -> str:
        """Whether anybody schedules there, as far as one may know."""
        return self._do(_no_leader)

    def state(self) -> bytes:
        """A copy of what the controller's brain knows, as `GET /v1/state` of one machine."""
        sight = self._look()
        if not sight.whole:
            raise Refused(403, "forbidden", _denied_words(sight, "the scheduler cannot be copied"))
        return sight.copy()

    def past(self) -> bytes:
        """A cluster keeps no journal: what is known of who came is what is still there."""
        sight = self._look()
        return write_past(past(sight.mirror, sight.now_ms)) if sight.whole else b""

    # -- changing -----------------------------------------------------------------------------------------------------

    def submit(self, text: str, *, source: str, where: str) -> View:  # noqa: ARG002 - jobs start in their images
        return self._changed(
            lambda client: sending.submit(client, self._kinds, text, source, self.namespace, self._scheduler)
        )

    def run(self, document: View, *, source: str, where: str, fresh: bool = False) -> View:  # noqa: ARG002
        return self._changed(
            lambda client: sending.run(client, self._kinds, document, source, self.namespace, self._scheduler)
        )

    def cancel(self, job: str) -> str:
        return self._change(job, changing.cancel)

    def suspend(self, job: str) -> str:
        return self._change(job, changing.suspend)

    def resume(self, job: str) -> str:
        return self._change(job, changing.resume)

    def scale(self, job: str, replicas: int) -> str:
        return self._change(job, lambda change: changing.scale(change, replicas))

    def delete(self, kind: str, name: str) -> str:
        sight = self._look()
        shown = self._shown(sight)
        return self._changed(lambda client: changing.delete(client, sight, shown, kind, name))

    # -- as it goes on ------------------------------------------------------------------------------------------------

    def output(
        self,
        job: str,
        *,
        follow: bool = False,
        tail: int | None = None,
        replica: str = "",
        attempt: int | None = None,
        part: int | None = None,
    ) -> Iterator[View]:
        if part is not None:
            raise invalid("--part: on a cluster the parts of an array are its replicas; name one with --replica")
        wanted = output.Wanted(follow=follow, tail=tail, replica=replica, attempt=attempt)
        tails = partial(Tails, self._cluster, AGENT)
        return output.lines(self, self._do, tails, self.job(job), wanted)

    def watch(self, job: str) -> Iterator[View]:
        gang = following.id_of(self.job(job))
        for told in self.changes():
            jobs = told.get("jobs") or {}
            if gang in jobs:
                if jobs[gang] is None:
                    raise missing(f"there is no job {gang}")
                yield jobs[gang]

    def changes(self) -> Iterator[View]:
        sight = self._look()
        if sight.whole:
            return following.watched(self._cluster, self._kinds, self._scheduler)
        return following.asked_again(lambda: self._shown(self._look(fresh=True)))

    # -- inside -------------------------------------------------------------------------------------------------------

    def pods_of(self, view: View) -> list[Any]:
        """Those of a job, as they are now: also the ones that are over."""
        sight = self._look(view["namespace"], wide=False, fresh=True)
        uids = sight.mirror.groups.members(following.id_of(view))
        found = [sight.mirror.pods[uid] for uid in uids if uid in sight.mirror.pods]
        return sorted(found, key=lambda pod: pod.metadata.name)

    def slot_of(self, pod: Any) -> str:
        """`worker-0`: as replicas are called everywhere."""
        sight = self._sights[pod.metadata.namespace][1]
        slot = sight.mirror.groups.slot_of(pod.metadata.uid)
        return f"{slot.role}-{slot.ordinal}" if slot else str(pod.metadata.name)

    def _name(self, job: str) -> Name:
        return read_name(job, self.namespace, self._kinds)

    def _change(self, job: str, do: Callable[[changing.Change], Awaitable[str]]) -> str:
        """One namespace is enough to know what is meant."""
        name = self._name(job)
        sight = self._look(name.namespace, wide=False)
        shown = views.job_views(sight)
        meant = meant_by(sight, name, shown)

        async def work(client: Client) -> str:
            discovery = Discovery(client)
            await discovery.refresh()
            return await do(changing.Change(client, discovery, sight, meant, shown))

        return self._changed(work)

    def _changed(self, work: Callable[[Client], Awaitable[Answer]]) -> Answer:
        try:
            return self._do(work)
        finally:
            self._sights.clear()

    def _do(self, work: Callable[[Client], Awaitable[Answer]]) -> Answer:
        async def inside() -> Answer:
            async with Client(self._cluster, user_agent=AGENT) as client:
                return await asked(work(client))

        return asyncio.run(inside())

    def _look(self, namespace: str = "", *, wide: bool = True, fresh: bool = False) -> Sight:
        """`namespace`: what is looked at where the whole may not be seen."""
        space = namespace or self.namespace
        key = "" if wide else space
        at, sight = self._sights.get(key, (0.0, None))
        if sight is None or fresh or time.monotonic() - at > FRESH_S or (not sight.whole and sight.namespace != space):
            sight = self._do(lambda client: look(client, self._kinds, self._scheduler, space, wide=wide))
            self._sights[key] = (time.monotonic(), sight)
        if wide:
            self._remark(sight)
        return sight

    def _remark(self, sight: Sight) -> None:
        texts = [*sight.unusable, *([sight.remark] if sight.remark and sight.whole else ())]
        if sight.denied and sight.whole:
            texts.append(f"not all could be read, so reasons may be less exact: no right to {rights(sight.denied)}")
        elif sight.denied:
            shown = f"only namespace {sight.namespace} is shown, with what was written there"
            texts.append(_denied_words(sight, shown))
        for text in texts:
            if text not in self._told:
                self._told.add(text)
                self._tell(text)

    def _shown(self, sight: Sight) -> dict[str, View]:
        shown = views.job_views(sight)
        silent = [
            gang for gang, view in shown.items() if not view["reason"] and view["phase"] in ("Pending", "Preempted")
        ]
        if sight.whole or not silent:
            return shown
        told = self._do(lambda client: happened(client, sight.namespace))
        for gang in silent:  # no pods yet: events are all there is
            shown[gang]["reason"] = told.about({shown[gang]["uid"]}).reason()
        return shown

    def _happened(self, sight: Sight, gang: str) -> Happened:
        group = sight.mirror.groups.group(gang)
        uids = set(sight.mirror.groups.members(gang))
        if group is not None and group.object is not None:
            uids.add(group.object.uid)
        return self._do(lambda client: happened(client, gang.partition("/")[0])).about(uids)


def _denied_words(sight: Sight, what: str) -> str:
    """What only makes an answer less exact is left out: the rest is what has to be asked for."""
    needed = [one for one in sight.denied if not one.where or one.what == "pods"]
    return f"{what}: no right to {rights(needed)}"


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None


async def _no_leader(client: Client) -> str:
    """Nobody leads: why nothing starts. Who may not read leases is not told."""
    try:
        found = (await client.listing(LEASES, Anything, fields=f"metadata.name={LEASE}")).items
    except (Forbidden, NotFound):
        return ""
    specs = [msgspec.convert(one.spec, _LeaseSpec) for one in found if isinstance(one.spec, dict)]
    if not specs:
        return "nobody schedules there: no `optimus controller` has ever led"
    now_ms = time.time_ns() // 1_000_000
    left = [read_time(one.renew_time) + 1000 * (one.lease_duration_seconds or 15) - now_ms for one in specs]
    if max(left) >= 0 or not any(one.renew_time for one in specs):
        return ""
    ago = format_duration_ms(-max(left) // 1000 * 1000)
    return f"nobody schedules there: the lease of the last leader ran out {ago} ago"
