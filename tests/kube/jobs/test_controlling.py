"""The loop beside a server that refuses, is slow, answers nothing, or whose watch lags behind; time by hand."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from optimus.drivers.kube.jobs.controlling import Controlling
from optimus.drivers.kube.jobs.seeing import Sight
from optimus.drivers.kube.jobs.words import UNIFIED_JOBS
from optimus.drivers.kube.jobs.writes import Create, Delete, Patch, Write
from optimus.drivers.kube.objects import Anything, Pod
from optimus.kube import Conflict, Done, Gone, Outcome, Refused, Resource, Unknown, Writer
from optimus.kube.events import Recorder, Regarding
from optimus.kube.resources import PODS
from optimus.kube.writing import NOT_SENT
from tests.kube.jobs.worlds import World, job_spec

Script = Callable[[Write], Outcome | None]
"""What the server answers instead of doing it; None: it does it."""


class Server(Writer):
    """A pretend server that does what it is asked, unless a story says otherwise."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.asked: list[Write] = []
        self.script: Script = lambda _: None
        self.done: Callable[[], object] = lambda: None

    async def create(self, resource: Resource, body: Any, *, namespace: str = "") -> Outcome:
        return self._take(Create(resource=resource, namespace=namespace, body=body))

    async def delete(self, resource: Resource, name: str, **more: Any) -> Outcome:
        more = {key: value for key, value in more.items() if key in ("namespace", "uid", "grace_s")}
        return self._take(Delete(resource=resource, name=name, **more))

    async def patch(self, resource: Resource, name: str, changes: Any, **more: Any) -> Outcome:
        more["version"] = more.pop("resource_version", "")
        more.pop("manager", None)
        return self._take(Patch(resource=resource, name=name, body=changes, **more))

    def _take(self, write: Write) -> Outcome:
        self.asked.append(write)
        told = self.script(write)
        if told is not None:
            return told
        if isinstance(write, Create) and write.resource == PODS and write.name in self.world.pods:
            return Conflict(f'pods "{write.name}" already exists')
        if isinstance(write, Patch) and write.resource == UNIFIED_JOBS:
            if not self.world.job:
                return Gone("no such job")
            if write.version != self.world.job["metadata"]["resourceVersion"]:
                return Conflict("the object has been modified")
        self.world._do(write)
        answer = msgspec.json.encode(self.world.job)
        self.done()
        return Done(answer)

    def made(self, resource: Resource = PODS) -> list[str]:
        return [one.name for one in self.asked if isinstance(one, Create) and one.resource == resource]

    def of_status(self) -> int:
        return sum(isinstance(one, Patch) and one.subresource == "status" for one in self.asked)


class Silent(Recorder):
    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def say(self, regarding: Regarding, reason: str, note: str, *, action: str, kind: str = "Normal") -> None:
        self.said.append((reason, note))


class Story:
    def __init__(self, spec: dict[str, Any], scheduler: str = "optimus") -> None:
        self.world = World(spec)
        self.server, self.sight, self.recorder = Server(self.world), Sight(), Silent()
        self.now = 0.0
        self.server.done = self.watch
        self.jobs = Controlling(
            self.sight,
            self.server,
            self.recorder,
            self._fetch_job,
            self._fetch_pod,
            lambda node: node not in self.world.dead_nodes,
            scheduler,
            lambda: self.now,
        )
        self.jobs._began_ms = self.world.now_ms
        self.watch()

    def watch(self) -> None:
        """The watch catches up."""
        if self.world.job:
            self.sight.job(self.world.thing())
        for uid in list(self.sight.jobs):
            if not self.world.job:
                self.sight.job_gone(uid)
        there = {pod["metadata"]["uid"] for pod in self.world.pods.values()}
        for known in list(self.sight.pods.values()):
            for uid in [one for one in known if one not in there]:
                self.sight.pod_gone(uid)
        for pod in self.world.pods.values():
            self.sight.pod(msgspec.convert(pod, Pod))

    def blind(self) -> None:
        """The watch hangs."""
        self.server.done = lambda: None

    def target(self, count: int) -> None:
        self.world.job["spec"]["replicaSpec"]["targetReplicas"] = count
        self.world._changed(spec=True)
        self.watch()

    async def passes(self, seconds: float = 0.0) -> None:
        self.now += seconds
        self.world.now_ms += int(seconds * 1000)
        self.jobs._wake.set()
        for _ in range(200):
            await asyncio.sleep(0)

    async def _fetch_job(self, namespace: str, name: str) -> Anything | None:
        return self.world.thing() if self.world.job else None

    async def _fetch_pod(self, namespace: str, name: str) -> Pod | None:
        pod = self.world.pods.get(name)
        return msgspec.convert(pod, Pod) if pod is not None else None


@contextlib.asynccontextmanager
async def running(story: Story) -> AsyncIterator[Story]:
    task = asyncio.create_task(story.jobs.run())
    await story.passes()
    yield story
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_from_a_number_to_pods() -> None:
    async with running(Story(job_spec(3))) as story:
        story.target(3)
        await story.passes()
        assert story.server.made() == ["train-worker-0", "train-worker-1", "train-worker-2"]
        assert ("Started", "attempt 1 with 3 replicas") in story.recorder.said
        count = len(story.server.asked)
        await story.passes(30)
        assert len(story.server.asked) == count, "it rests"


async def test_a_quota_is_asked_once_and_said_in_its_words() -> None:
    async with running(Story(job_spec(8))) as story:
        forbidden = Refused("Forbidden", "exceeded quota: few, requested: pods=1, limited: pods=0")
        story.server.script = lambda write: forbidden if isinstance(write, Create) and write.resource == PODS else None
        story.target(8)
        await story.passes()
        assert len(story.server.made()) == 1, "not eight times"
        blocked = story.world.condition("Blocked")
        assert blocked is not None and (blocked["status"], blocked["reason"]) == ("True", "Forbidden")
        assert "exceeded quota" in blocked["message"]
        assert story.world.status["message"] == blocked["message"]
        for _ in range(4):
            await story.passes(1)
        assert len(story.server.made()) == 3, "after one second, and after two more"
        story.server.script = lambda _: None
        await story.passes(300)
        assert len(story.world.pods) == 8
        blocked = story.world.condition("Blocked")
        assert blocked is not None and blocked["status"] == "False"


async def test_an_answer_that_is_older_than_what_the_watch_has_told_since() -> None:
    """Between our write and its answer the scheduler writes its number, and the watch tells of both."""
    story = Story(job_spec(2))

    def faster() -> None:
        story.watch()
        if story.server.of_status() == 1 and "targetReplicas" not in story.world.job["spec"]["replicaSpec"]:
            story.target(2)

    story.server.done = faster
    async with running(story):
        for _ in range(3):
            await story.passes()
        assert story.server.made() == ["train-worker-0", "train-worker-1"]


async def test_a_pod_that_was_fetched_is_not_newer_than_what_the_watch_tells_meanwhile() -> None:
    """The watch is late, the pod is made again, which is refused, and fetched; as that is answered, it runs already."""
    story = Story(job_spec(1))
    fetch = story._fetch_pod

    async def slow(namespace: str, name: str) -> Pod | None:
        found = await fetch(namespace, name)
        story.world.start(name)
        story.watch()
        return found

    story.jobs._fetch_pod = slow
    async with running(story):
        story.server.done = lambda: story.sight.job(story.world.thing())  # of jobs the watch tells, not of pods
        story.target(1)
        await story.passes()
        story.jobs._sending._sent.clear()
        story.jobs._sight.changed |= set(story.sight.jobs)
        for _ in range(3):
            await story.passes(2)
        assert len(story.server.made()) == 2, "it was made again"
        assert story.world.phase == "Running"


async def test_what_is_behind_our_own_write_is_looked_at_again_by_itself() -> None:
    """Somebody changes the job while the watch hangs; it tells of that, and nothing else happens."""
    story = Story(job_spec(2))
    story.blind()
    async with running(story):
        story.world.job["spec"]["replicaSpec"]["targetReplicas"] = 2
        story.world._changed(spec=True)
        await story.passes()
        story.server.done = story.watch
        story.sight.job(story.world.thing())
        await story.passes()
        for _ in range(3):
            await story.passes(11)
        assert story.server.made() == ["train-worker-0", "train-worker-1"]


async def test_a_status_that_somebody_changed_meanwhile() -> None:
    story = Story(job_spec(1))
    async with running(story):
        story.blind()
        story.world.job["spec"]["replicaSpec"]["targetReplicas"] = 1
        story.world._changed(spec=True)
        story.sight.changed |= story.sight.jobs.keys()
        story.world.job["metadata"]["labels"] = {"changed": "since"}
        story.watch()
        story.world._changed()
        await story.passes()
        assert story.world.live == ["train-worker-0"], "the newest version is looked at"


async def test_no_answer_to_the_status_and_it_was_written() -> None:
    """Nothing is made by a status of which nobody knows; the watch shows it, and all goes on."""
    story = Story(job_spec(2))
    async with running(story):

        def lost(write: Write) -> Outcome | None:
            if isinstance(write, Patch) and write.subresource == "status":
                story.world._do(write)
                return Unknown("no answer")
            return None

        story.server.script = lost
        story.target(2)
        await story.passes()
        assert story.server.made() == []
        story.server.script = lambda _: None
        story.watch()
        await story.passes(2)
        assert sorted(story.world.pods) == ["train-worker-0", "train-worker-1"]
        assert story.world.life.attempt == 1


async def test_nothing_is_sent_twice_while_the_watch_lags_behind() -> None:
    story = Story(job_spec(2))
    async with running(story):
        story.target(2)
        story.blind()
        await story.passes()
        for _ in range(3):
            story.sight.changed |= story.sight.jobs.keys()
            await story.passes(1)
        assert sorted(story.server.made()) == ["train-worker-0", "train-worker-1"]
        statuses = story.server.of_status()
        story.watch()
        await story.passes()
        assert story.world.life.attempt == 1
        assert story.server.of_status() <= statuses + 2
        assert len(story.server.made()) == 2


async def test_a_name_that_somebody_else_has() -> None:
    story = Story(job_spec(1))
    stranger = {"metadata": {"name": "train-worker-0", "namespace": "team", "uid": "other"}, "spec": {}, "status": {}}
    story.world.pods["train-worker-0"] = stranger
    async with running(story):
        story.target(1)
        await story.passes()
        blocked = story.world.condition("Blocked")
        assert blocked is not None and blocked["reason"] == "AlreadyExists"
        del story.world.pods["train-worker-0"]
        await story.passes(300)
        assert story.world.live == ["train-worker-0"]


async def test_a_pod_that_the_watch_has_not_told_of() -> None:
    """Made by a controller that died: it is found by its name, and is ours."""
    story = Story(job_spec(1))
    async with running(story):
        story.target(1)
        await story.passes()
        uid = story.world.pods["train-worker-0"]["metadata"]["uid"]
        story.sight.pod_gone(uid)
        story.blind()
    later = Story(job_spec(1))
    later.world, later.server.world = story.world, story.world
    later.sight.pods.clear()
    later.sight.jobs.clear()
    later.sight.job(story.world.thing())
    async with running(later):
        await later.passes(10)
        assert later.world.pods["train-worker-0"]["metadata"]["uid"] == uid
        assert later.world.life.attempt == 1


async def test_whoever_does_not_lead_any_more_sends_nothing_more() -> None:
    async with running(Story(job_spec(2))) as story:
        story.server.script = lambda _: Refused(NOT_SENT, "another one leads")
        story.target(2)
        await story.passes()
        assert story.world.pods == {}
        assert "Blocked" not in str(story.recorder.said)


async def test_jobs_of_another_scheduler_are_left_alone() -> None:
    spec = job_spec(1)
    spec["template"]["spec"]["schedulerName"] = "optimus-staging"
    async with running(Story(spec)) as story:
        story.target(1)
        await story.passes()
        assert story.server.asked == []


async def test_one_job_that_breaks_it_does_not_stop_the_others() -> None:
    story = Story(job_spec(1))
    broken = msgspec.structs.replace(story.world.thing(), spec={"template": {"spec": {"containers": [7]}}})
    meta = msgspec.structs.replace(broken.metadata, uid="broken", name="broken")
    story.sight.job(msgspec.structs.replace(broken, metadata=meta))
    async with running(story):
        story.target(1)
        await story.passes()
        assert story.world.live == ["train-worker-0"]
