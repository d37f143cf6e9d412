"""Jobs in Python: what became of a command, and what can be done with it.

Why: a notebook and a script say what the command line says, with the same words and the same refusals.
Owns: the names that `import optimus` gives to those who submit work.
Must not: start threads or event loops, or keep a connection open between two calls.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from optimus.client import pictures, waiting
from optimus.client.connection import Connection, JobError, Unreachable

FRESH_S = 0.25
"""Properties that are read together come from one look at the job."""
LAST_LINES = 20


class JobFailedError(JobError):
    """A job that was waited for did not succeed; the text ends with the last lines of its output.

    try:
        job.wait(check=True)
    except optimus.JobFailedError as error:
        print(error.job.phase, error)
    """

    code = "failed"

    def __init__(self, text: str, job: Job) -> None:
        super().__init__(text)
        self.job = job


class LogLine(str):
    """A line of output, as text; `replica` says whose it is.

    for line in job.logs():
        print(line.replica, line)
    """

    __slots__ = ("replica",)
    replica: str

    def __new__(cls, text: str, replica: str = "") -> LogLine:
        made = super().__new__(cls, text)
        made.replica = replica
        return made


class Explanation(str):
    """Why a job waits: the page that `optimus explain` prints, as text; and what is on it, for programs.

    told = job.explain()
    print(told)
    print(told.why["code"], [one["field"] for one in told.suggestions], told.record["ahead"])
    """

    __slots__ = ("record",)
    record: dict[str, Any]
    """All of it, as `optimus explain -o json` writes it."""

    def __new__(cls, page: str, record: dict[str, Any] | None = None) -> Explanation:
        made = super().__new__(cls, page)
        made.record = record or {}
        return made

    @property
    def why(self) -> dict[str, Any] | None:
        """`code`, `text` and `facts`: why it waits, is being stopped or has ended; None if it runs or starts now."""
        return self.record.get("why")

    @property
    def start(self) -> dict[str, Any] | None:
        """When it starts, as far as that was asked for; None if it waits for nothing."""
        return self.record.get("start")

    @property
    def suggestions(self) -> list[dict[str, Any]]:
        """What would start it now: `words`, the `field` to write, and what follows (`outcome`)."""
        return list(self.record.get("suggestions", ()))

    def __repr__(self) -> str:
        """A notebook shows the page, too."""
        return str(self)


class Job:
    """A job of the scheduler. Its properties are looked up when they are read.

    job = optimus.job("train")
    print(job.phase, job.reason)
    """

    def __init__(self, name: str, namespace: str, connection: Connection, view: dict[str, Any] | None = None) -> None:
        self._connection = connection
        self.name = name
        self.namespace = namespace
        self._take(view or connection.get(self._path))

    # -- what it is --------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def uid(self) -> str:
        """Its own, also when a job of the same name is submitted later."""
        return str(self._view["uid"])

    @property
    def view(self) -> dict[str, Any]:
        """All that is shown of it: `job.view["replicas"]` (docs/reference/http.md)."""
        return dict(self._look())

    @property
    def phase(self) -> str:
        """Pending, Running, Succeeded, Failed, Cancelled and so on."""
        return str(self._look()["phase"])

    @property
    def reason(self) -> str:
        """Why it waits, is being stopped or has failed; empty if there is nothing to explain."""
        return str((self._look()["reason"] or {}).get("text", ""))

    @property
    def reason_code(self) -> str:
        """The reason for programs, such as `NeverFits`."""
        return str((self._look()["reason"] or {}).get("code", ""))

    @property
    def final(self) -> bool:
        """Whether it is over, one way or the other."""
        return bool(self._look()["final"])

    @property
    def queue(self) -> str:
        return str(self._view["queue"])

    @property
    def running_replicas(self) -> int:
        return int(self._look()["runningReplicas"])

    def document(self) -> dict[str, Any]:
        """The UnifiedJob that says it, as `optimus get job X -o yaml` prints it.

        again = job.document()
        again["metadata"]["name"] = "again"
        optimus.submit(again)
        """
        return dict(self._mine().get(f"{self._path}/document"))

    def events(self) -> list[dict[str, Any]]:
        """What has happened to it.

        for event in job.events():
            print(event["atMs"], event["code"], event["text"])
        """
        return list(self._mine().get(f"{self._path}/events"))

    # -- waiting -----------------------------------------------------------------------------------------------------

    def wait(self, timeout: float | None = None, *, check: bool = False) -> str:
        """Until it is over; returns its last phase. Outlasts a restart of the scheduler.

        job.wait()                          # "Succeeded", "Failed" or "Cancelled"
        job.wait(timeout=60)                # TimeoutError after a minute; the job goes on
        job.wait(check=True)                # JobFailedError unless it succeeded
        """
        until = None if timeout is None else time.monotonic() + timeout
        try:
            if not self._view["final"]:
                self._follow(until)
        except KeyboardInterrupt:
            sys.stderr.write(f"\njob {self.id} goes on without being waited for: job.cancel() ends it\n")
            raise
        if not self._view[
            "final"
        ]:  # what is known may be as old as the last look, and the time too short for a new one
            with contextlib.suppress(Unreachable):
                self._mine()
        if not self._view["final"]:
            raise TimeoutError(f"job {self.id} is still {self._said()} after {timeout:g} seconds")
        phase = str(self._view["phase"])
        if check and phase != "Succeeded":
            raise JobFailedError(f"job {self.id} {self._said()}{self._last_lines()}", self)
        return phase

    def logs(self, *, follow: bool = False, tail: int | None = None, replica: str = "") -> Iterator[LogLine]:
        """What its replicas have written, line by line; with `follow` until it is over.

        for line in job.logs(follow=True):
            print(line)
        """
        self._mine()
        for line in waiting.lines(self._connection, self.id, follow=follow, tail=tail, replica=replica):
            for text in line["text"].split("\n"):
                yield LogLine(text, line["replica"])

    # -- verbs -------------------------------------------------------------------------------------------------------

    def cancel(self) -> str:
        """End it for good; its replicas get their grace. `job.cancel()`"""
        return self._changed(self._mine().delete(self._path))

    def suspend(self) -> str:
        """Stop it until it is resumed. `print(job.suspend())` says what that costs.

        Work with a checkpoint saves first and goes on from there; other work begins anew."""
        return self._changed(self._mine().post(f"{self._path}/suspend"))

    def resume(self) -> str:
        """Let it wait for room again. `job.resume()`"""
        return self._changed(self._mine().post(f"{self._path}/resume"))

    def scale(self, replicas: int) -> str:
        """Change how many replicas it has at most. `job.scale(2)`"""
        if isinstance(replicas, bool) or not isinstance(replicas, int):
            raise JobError(f"replicas is a whole number, not {replicas!r}")
        return self._changed(self._mine().post(f"{self._path}/scale", b'{"replicas": %d}' % replicas))

    def explain(self, *, forecast: bool = True) -> Explanation:
        """Why it waits, who is ahead, what would start it now, and when it starts. `print(job.explain())`

        Worked out beside the scheduler, on a copy of its state; `forecast=False` leaves out when it starts, which takes
        seconds."""
        record = self._mine().work_out(f"{self._path}/explain", forecast=int(forecast), page=1)
        return Explanation(record.pop("page"), record)

    # -- inside ------------------------------------------------------------------------------------------------------

    @property
    def _path(self) -> str:
        return f"/v1/jobs/{self.id}"

    def _take(self, view: dict[str, Any]) -> None:
        known = getattr(self, "_view", view)
        if view["uid"] != known["uid"]:
            raise JobError(f"job {self.id} is another one by now: it was submitted again under the same name")
        self._view = view
        self._seen = time.monotonic()

    def _look(self) -> dict[str, Any]:
        if not self._view["final"] and time.monotonic() - self._seen > FRESH_S:
            self._take(self._connection.get(self._path))
        return self._view

    def _mine(self) -> Connection:
        """The connection, if the name still means this job."""
        self._take(self._connection.get(self._path))
        return self._connection

    def _changed(self, told: Any) -> str:
        self._seen = 0.0
        return str(told)

    def _follow(self, until: float | None) -> None:
        for view in waiting.views(self._connection, self.id, until):
            self._take(view)
            if view["final"]:
                return

    def _said(self) -> str:
        reason = (self._view["reason"] or {}).get("text", "")
        return f"{self._view['phase']}: {reason}" if reason else str(self._view["phase"])

    def _last_lines(self) -> str:
        try:
            found = list(self.logs(tail=LAST_LINES))[-LAST_LINES:]
        except JobError as error:
            return f" (its output cannot be had: {error})"
        several = len({line.replica for line in found}) > 1
        shown = [f"  {line.replica} │ {line}" if several else f"  {line}" for line in found]
        return "\n".join([". It wrote at last:", *shown]) if shown else " without having written anything"

    def __repr__(self) -> str:
        return f"<Job {self.id}: {self._said()}>"

    def _repr_html_(self) -> str:
        return pictures.table([self._look()])


class JobList(list[Job]):
    """Jobs, shown as a table in a notebook.

    optimus.jobs(queue="vision")
    """

    def _repr_html_(self) -> str:
        return pictures.table([job._view for job in self])  # noqa: SLF001 - its own kind


def job(name: str, *, namespace: str = "", address: str = "", token: str = "") -> Job:
    """The job of this name: `train`, or `team/train`.

    optimus.job("train").wait()
    """
    head, slash, tail = name.partition("/")
    space, own = (head, tail) if slash else (namespace or default_namespace(), head)
    if not space or not own or "/" in own:
        raise JobError(f"{name} is no name of a job: write NAME, or NAMESPACE/NAME")
    return Job(own, space, Connection(address, token))


def jobs(
    *, queue: str = "", phase: str = "", namespace: str = "", job_class: str = "", address: str = "", token: str = ""
) -> JobList:
    """Jobs, the oldest first; of one queue, phase, namespace or class if it is named.

    for job in optimus.jobs(queue="vision", phase="Pending"):
        print(job.name, job.reason)
    """
    connection = Connection(address, token)
    wanted = {"queue": queue, "phase": phase, "namespace": namespace, "jobClass": job_class}
    views = connection.get("/v1/jobs", **wanted)
    return JobList(Job(view["name"], view["namespace"], connection, view) for view in views)


def default_namespace() -> str:
    return os.environ.get("OPTIMUS_NAMESPACE", "") or "default"
