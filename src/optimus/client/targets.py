"""Targets: who is asked, behind one small interface.

Why: the same verbs on this machine and on a cluster; a command does not know which it has.
Owns: what a command may ask of a scheduler, and which name means which.
Must not: show anything, or know what is shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Protocol

from optimus.client import waiting
from optimus.client.connection import HERE, ApiError, Connection
from optimus.client.documents import to_text

View = dict[str, Any]
KUBE = "kube:"
FORMS = f"{HERE} (this machine), http://HOST:PORT, or {KUBE}CONTEXT (a cluster of your kubeconfig)"


class Target(Protocol):
    """A job is namespace/name; views are the records of docs/reference/http.md. What is refused raises `JobError`."""

    @property
    def address(self) -> str:
        """As it is named."""
        ...

    def jobs(self, **wanted: str) -> list[View]:
        """By namespace, queue, phase or jobClass; the oldest first."""
        ...

    def job(self, job: str) -> View: ...
    def happenings(self, job: str) -> list[View]: ...
    def document(self, job: str) -> View: ...
    def listed(self, kind: str) -> list[View]:
        """queues, nodes or pools."""
        ...

    def trouble(self) -> str:
        """Why nothing new starts there now; empty if all is well."""
        ...

    def state(self) -> bytes:
        """A copy of the engine (`optimus.engine.copying`), for whoever explains or forecasts."""
        ...

    def past(self) -> bytes:
        """What its journal knows of who came (`optimus.engine.journal_past`); empty if nothing is."""
        ...

    def submit(self, text: str, *, source: str, where: str) -> View: ...
    def run(self, document: View, *, source: str, where: str, fresh: bool = False) -> View:
        """A command, as the UnifiedJob that says it; answers as `submit` does. `fresh`: its name was made."""
        ...

    def cancel(self, job: str) -> str: ...
    def suspend(self, job: str) -> str: ...
    def resume(self, job: str) -> str: ...
    def scale(self, job: str, replicas: int) -> str: ...
    def delete(self, kind: str, name: str) -> str:
        """A queue or a pool."""
        ...

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
        """Records of whose output it is (`replica`) and a line, or several with the ends between them (`text`)."""
        ...

    def watch(self, job: str) -> Iterator[View]:
        """The job now, and whenever it changes."""
        ...

    def changes(self) -> Iterator[View]:
        """All that is shown first; then, whenever something changes, the jobs, queues, nodes and pools that did."""
        ...


class OneMachine:
    """What `optimus up` serves, here or elsewhere."""

    def __init__(self, connection: Connection) -> None:
        self._asked = connection

    @property
    def address(self) -> str:
        return self._asked.address or HERE

    def jobs(self, **wanted: str) -> list[View]:
        found: list[View] = self._asked.get("/v1/jobs", **wanted)
        return found

    def job(self, job: str) -> View:
        found: View = self._asked.get(f"/v1/jobs/{job}")
        return found

    def happenings(self, job: str) -> list[View]:
        found: list[View] = self._asked.get(f"/v1/jobs/{job}/events")
        return found

    def document(self, job: str) -> View:
        found: View = self._asked.get(f"/v1/jobs/{job}/document")
        return found

    def listed(self, kind: str) -> list[View]:
        found: list[View] = self._asked.get(f"/v1/{kind}")
        return found

    def trouble(self) -> str:
        return str(self._asked.get("/v1/info").get("trouble") or "")

    def state(self) -> bytes:
        return self._asked.raw("/v1/state")

    def past(self) -> bytes:
        return self._asked.raw("/v1/past")

    def submit(self, text: str, *, source: str, where: str, **wishes: str) -> View:
        told: View = self._asked.post("/v1/submit", text.encode(), source=source, where=where, **wishes)
        return told

    def run(self, document: View, *, source: str, where: str, fresh: bool = False) -> View:
        if document["spec"].get("image"):
            raise ApiError(422, "invalid", "spec.image: commands run as they are here; images are for clusters")
        return self.submit(to_text(document), source=source, where=where, **({"fresh": "1"} if fresh else {}))

    def cancel(self, job: str) -> str:
        return str(self._asked.delete(f"/v1/jobs/{job}"))

    def suspend(self, job: str) -> str:
        return str(self._asked.post(f"/v1/jobs/{job}/suspend"))

    def resume(self, job: str) -> str:
        return str(self._asked.post(f"/v1/jobs/{job}/resume"))

    def scale(self, job: str, replicas: int) -> str:
        return str(self._asked.post(f"/v1/jobs/{job}/scale", json.dumps({"replicas": replicas}).encode()))

    def delete(self, kind: str, name: str) -> str:
        return str(self._asked.delete(f"/v1/{kind}/{name}"))

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
        return waiting.lines(self._asked, job, follow=follow, tail=tail, replica=replica, attempt=attempt, part=part)

    def watch(self, job: str) -> Iterator[View]:
        return waiting.views(self._asked, job)

    def changes(self) -> Iterator[View]:
        return waiting.changes(self._asked)


def target_of(connection: Connection) -> Target:
    return OneMachine(connection)


def is_cluster(name: str) -> bool:
    return name.startswith(KUBE)
