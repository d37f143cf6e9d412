"""The controller: one process that watches a cluster, stands for election, and leads when it is elected.

Why: everything of this package is put together here, and nowhere else.
Owns: the order in which things start and end.
Must not: know what anything means.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

from aiohttp import web
from msgspec import Struct

from optimus.drivers.kube.acting import Acting
from optimus.drivers.kube.brain import Brain
from optimus.drivers.kube.devices import GPU_DRIVERS
from optimus.drivers.kube.extender.answering import Answering, loopback
from optimus.drivers.kube.extender.offers import Offering, Offers
from optimus.drivers.kube.grouping import Kinds, shipped_kinds
from optimus.drivers.kube.jobs.controlling import Controlling
from optimus.drivers.kube.jobs.words import UNIFIED_JOBS
from optimus.drivers.kube.leading import Leading
from optimus.drivers.kube.metrics import Metrics
from optimus.drivers.kube.mirror import SCHEDULER_NAME, Mirror
from optimus.drivers.kube.nodes import is_ready
from optimus.drivers.kube.objects import Anything, Pod
from optimus.drivers.kube.pod_group_status import PodGroupStatus
from optimus.drivers.kube.queues import SetUp, watch_queues
from optimus.drivers.kube.repairing import Repairing
from optimus.drivers.kube.reporting import Reporting
from optimus.drivers.kube.rights import LEASE
from optimus.drivers.kube.status import Status
from optimus.drivers.kube.watching import Watching
from optimus.kube import Client, Cluster, Election, Times, Writer
from optimus.kube.errors import NotFound
from optimus.kube.events import Recorder
from optimus.kube.resources import PODS
from optimus.model.reasons import Code
from optimus.telemetry.serving import Checks, serving

LOG = logging.getLogger(__name__)
CONTROLLER = "optimus.dev/scheduler"
HANGS_S = 120.0
"""A loop that has not turned for so long does not turn any more. The longest decisions take seconds."""

SECONDS_PER_TERM = 60
"""Leaders follow each other less often than this, on the average of years: so a lease that was deleted and is made anew
begins with a term that no leader has had."""
AGAIN_S = 5.0
"""After so long, what has failed beside the decisions begins anew."""
MOMENT_S = 0.05


class Settings(Struct, frozen=True, kw_only=True):
    scheduler_name: str = SCHEDULER_NAME
    policy: str = "default"
    lease_namespace: str = "kube-system"
    elect: bool = True
    times: Times = Times()
    respect_budgets: bool = False
    opting_in: bool = False
    in_flight: int = 48
    gpu_drivers: tuple[str, ...] = GPU_DRIVERS
    """Of devices that are claimed: `driver`, or `driver=type` (`devices`)."""
    extender: str = ""
    """The address at which kube-scheduler asks; binds are then its own."""
    listen: str = ""
    """`host:port` of /healthz, /readyz and /metrics; empty: nobody is answered."""


class Controller:
    def __init__(self, cluster: Cluster, settings: Settings, kinds: Kinds | None = None) -> None:
        self.settings = settings
        self.mirror = Mirror(
            kinds or shipped_kinds(),
            scheduler_name=settings.scheduler_name,
            opting_in=settings.opting_in,
            gpu_drivers=settings.gpu_drivers,
        )
        self.leading: Leading | None = None
        self.metrics = Metrics(self.mirror)
        self.synced = asyncio.Event()
        self._cluster = cluster
        self._watching: Watching | None = None
        self._set_up = SetUp()
        self._beat = time.monotonic()
        self._kinds = kinds or shipped_kinds()
        self._lead = asyncio.Event()
        self._offers = Offers()
        self._answering = Answering(self._offers, lambda name: name == settings.scheduler_name, self._why)

    async def run(self, stop: asyncio.Event) -> None:
        """Raises OSError if it cannot listen where it is told to, and Died when a part of it has: a new process begins
        with a new picture."""
        async with AsyncExitStack() as opened:
            if self.settings.listen:
                host, _, port = self.settings.listen.rpartition(":")
                door = serving(
                    host.strip("[]"),
                    int(port),
                    alive=self.alive_checks,
                    ready=self.ready_checks,
                    metrics=self.metrics.families,
                )
                LOG.info("health and metrics at %s", await opened.enter_async_context(door))
            await opened.enter_async_context(self._asked())
            client = await opened.enter_async_context(Client(self._cluster))
            self.metrics.counters.append(client.counters)
            watching = Watching(client, self.mirror, self._kinds, self._wake)
            opened.push_async_callback(watching.close)
            self.metrics.reflectors, watching.heard = watching.reflectors, self.metrics.heard
            self._watching = watching
            await self._while(stop, self._sync(watching))
            if not stop.is_set():
                await self._stand(client, watching, stop)

    async def _sync(self, watching: Watching) -> None:
        gc.disable()  # tens of thousands of objects that stay: searching them again and again takes seconds
        try:
            await watching.start()
            self._set_up = await watch_queues(watching, self.mirror)
        finally:
            gc.freeze()
            gc.enable()
        self.synced.set()
        self.metrics.synced = True
        self._alive()
        LOG.info("synced: %d nodes, %d pods", len(self.mirror.nodes), len(self.mirror.pods))

    # -- health -------------------------------------------------------------------------------------------------------

    def alive_checks(self) -> Checks:
        """The loop turns, and no watch hangs. Before the first sync, and while the server does not answer, a restart
        would not help."""
        quiet_s = time.monotonic() - self._beat
        hangs = self.synced.is_set() and quiet_s > HANGS_S
        silent = self._watching.silent(hanging=True) if self._watching is not None else []
        return [("loop", f"no turn for {quiet_s:.0f} s" if hangs else ""), ("watches", _unheard(silent))]

    def ready_checks(self) -> Checks:
        """Everything is known, and not from long ago; it leads, or can stand for election."""
        election, watching = self.metrics.election, self._watching
        missing = f": {', '.join(watching.unsynced())}" if watching is not None and watching.unsynced() else ""
        return [
            ("sync", "" if self.synced.is_set() else f"not everything has been read yet{missing}"),
            ("watches", _unheard(watching.silent(hanging=False) if watching is not None else [])),
            ("lease", election.trouble if election is not None else ""),
        ]

    def _alive(self) -> None:
        self._beat = time.monotonic()
        if self.metrics.election is not None:
            self.metrics.election.alive()

    @contextlib.asynccontextmanager
    async def _asked(self) -> AsyncIterator[None]:
        """By kube-scheduler, if it is to be."""
        if not self.settings.extender:
            yield
            return
        runner = web.AppRunner(self._answering.application(), access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, *loopback(self.settings.extender)).start()
            yield
        finally:
            await runner.cleanup()

    def _why(self, uid: str) -> str:
        """A pod of ours has no place; empty for pods of others."""
        pod = self.mirror.pods.get(uid)
        if pod is None or self.leading is None:
            return str(Code.NOT_READY) + ": it has not been looked at yet"
        if not self.mirror.is_ours(pod):
            return ""
        why = self.leading.waiting.get(self.mirror.groups.group_of(uid) or "")
        return f"{why.code}: {why.text()}" if why else str(Code.NOT_READY) + ": it is being looked at"

    def _answers(self, node: str) -> bool:
        found = self.mirror.nodes.get(node)
        return found is not None and is_ready(found)

    def _wake(self) -> None:
        if self.leading is not None:
            self.leading.wake()

    async def _stand(self, client: Client, watching: Watching, stop: asyncio.Event) -> None:
        """For election, again and again, until it is told to stop."""
        if not self.settings.elect:
            while not stop.is_set():
                await self._while(stop, self._lead_on(client, watching, None, lambda: True, self._alive))
            return
        loop = asyncio.get_running_loop()

        def told(term: int | None) -> None:
            loop.call_soon_threadsafe(self._lead.set if term is not None else self._lead.clear)

        election = Election(
            self._cluster,
            LEASE,
            namespace=self.settings.lease_namespace,
            times=self.settings.times,
            told=told,
            first_term=int(time.time() // SECONDS_PER_TERM),
        )
        self.metrics.election = election.start()
        self.metrics.counters.append(election.counters)
        try:
            while not stop.is_set():
                self._alive()
                self.mirror.follow()
                if watching.died.done():
                    watching.died.result()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._lead.wait(), 1.0)
                    await self._while(stop, self._lead_a_term(client, watching, election))
        finally:
            await asyncio.to_thread(election.stop)
            if election.trouble:
                LOG.warning("the lease could not be given back, and runs out by itself: %s", election.trouble)

    async def _lead_a_term(self, client: Client, watching: Watching, election: Election) -> None:
        """One term, not one more: whoever led in between has decided on what we do not know."""
        if (term := election.term) is None:
            await asyncio.sleep(MOMENT_S)  # it is over, and we are about to be told; not ours to say, or nobody would
            return
        LOG.info("leading, term %d", term)
        await self._lead_on(client, watching, term, lambda: election.term == term, self._alive)
        LOG.info("not leading any more")

    async def _lead_on(
        self,
        client: Client,
        watching: Watching,
        term: int | None,
        still_leader: Callable[[], bool],
        alive: Callable[[], object],
    ) -> None:
        async def fetch_pod(namespace: str, name: str) -> Pod | None:
            try:
                return await client.get(PODS, name, Pod, namespace=namespace)
            except NotFound:
                return None

        async def fetch(pod: Pod) -> Pod | None:
            return await fetch_pod(pod.metadata.namespace, pod.metadata.name)

        async def fetch_job(namespace: str, name: str) -> Anything | None:
            try:
                return await client.get(UNIFIED_JOBS, name, Anything, namespace=namespace)
            except NotFound:
                return None

        over = asyncio.Event()

        def may_write() -> bool:
            """What waits for its turn when a lead ends is not sent any more."""
            return still_leader() and not over.is_set()

        in_flight, timeout_s = self.settings.in_flight, self.settings.times.write_s
        writer = Writer(client, guard=may_write, in_flight=in_flight, timeout_s=timeout_s)
        binder = writer
        if self.settings.extender:
            self._answering.binder = writer
            binder = Offering(client, self._offers, guard=may_write, in_flight=in_flight, timeout_s=timeout_s)
        recorder = Recorder(writer, controller=CONTROLLER, instance=socket.gethostname())
        acting = Acting(
            self.mirror,
            binder,
            fetch,
            watching.discovery.known,
            self._wake,
            time.monotonic,
            respect_budgets=self.settings.respect_budgets,
            term=term,
            chooses_volumes=not self.settings.extender,
        )
        preparing = acting.preparing
        reporting = Reporting(
            self.mirror,
            writer,
            recorder,
            time.monotonic,
            self.metrics.decided,
            (lambda: preparing.reasons) if preparing is not None else dict,
            lambda: acting.sending,
            watching.jobs.waits_because,
        )
        acting.tell = reporting.stays
        repairing = Repairing(self.mirror, acting, reporting.undone, time.monotonic, term)
        status = Status(self._set_up, writer, lambda: self.metrics.standing, self.settings.policy)
        pod_groups = PodGroupStatus(
            self.mirror, writer, watching.discovery.known, lambda: reporting.waiting, time.monotonic
        )
        jobs = Controlling(
            watching.jobs,
            writer,
            recorder,
            fetch_job,
            fetch_pod,
            self._answers,
            self.settings.scheduler_name,
            respect_budgets=self.settings.respect_budgets,
        )
        engine = Brain(policy=self.settings.policy)
        self.leading = Leading(self.mirror, engine, acting, reporting, repairing)
        self.metrics.lead(engine, acting, recorder, still_leader)
        parts: dict[str, Callable[[], Awaitable[None]]] = {
            "events": recorder.run,
            "conditions": reporting.run,
            "status": status.run,
            "pod groups": pod_groups.run,
            "jobs": jobs.run,
        }
        beside = [asyncio.create_task(self._keep_running(name, run)) for name, run in parts.items()]
        try:
            await self.leading.run(still_leader, alive, watching.read_owners)
        finally:
            over.set()
            self.leading = self._answering.binder = None
            self._offers.withdraw()
            self.metrics.lead_over()
            for task in beside:
                task.cancel()
            await asyncio.gather(acting.close(), *beside, return_exceptions=True)

    async def _keep_running(self, part: str, run: Callable[[], Awaitable[None]]) -> None:
        """What people are told of decisions. Whatever befalls it, decisions go on, and it begins anew: it remembers
        nothing that matters."""
        while True:
            try:
                await run()
            except Exception:
                LOG.exception("%s are not written for %.0f s", part, AGAIN_S)
            self.metrics.begun_anew[part] += 1
            await asyncio.sleep(AGAIN_S)

    async def _while(self, stop: asyncio.Event, work: Awaitable[None]) -> None:
        """Until it is over, or told to stop. Raises Died when what it is told has come to an end."""
        assert self._watching is not None
        died = self._watching.died
        both = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
        await asyncio.wait((*both, died), return_when=asyncio.FIRST_COMPLETED)
        for one in both:
            one.cancel()
        results = await asyncio.gather(*both, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result
        if died.done():
            died.result()


def _unheard(kinds: list[str]) -> str:
    return f"nothing was heard of {', '.join(kinds)}" if kinds else ""
