"""Work comes in from Python: a command with its wishes, or documents.

Why: `optimus.submit("python train.py", gpus=2)` is the whole of it.
Owns: the options of Python.
Must not: run Python functions: what runs must be there when this process is gone.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from optimus.client.connection import ApiError, Connection, JobError
from optimus.client.documents import SOURCE, Document, Gathered, job_document
from optimus.client.jobs import Job, JobList, default_namespace


def submit(
    command: str | Sequence[Any] | Mapping[str, Any],
    *,
    gpus: float = 1,
    queue: str = "",
    min_replicas: int = 1,
    max_replicas: int | None = None,
    name: str = "",
    namespace: str = "",
    cpu: float | str | None = None,
    memory: str = "",
    job_class: str = "",
    priority: int | None = None,
    array: int | None = None,
    env: Mapping[str, Any] | None = None,
    checkpoint: float | Mapping[str, Any] | None = None,
    retries: int = 0,
    workdir: str | os.PathLike[str] = "",
    spec: Mapping[str, Any] | None = None,
    address: str = "",
    token: str = "",
) -> Job:
    """Submit a command, and get its job at once.

    job = optimus.submit("python train.py", gpus=2, queue="vision", min_replicas=1, max_replicas=4)
    print(job.phase, job.reason)

    Text is split into words as a shell splits it, but no shell runs it; a list is the words. A mapping is a UnifiedJob
    document, and says everything itself. `gpus`, `cpu` and `memory` are of each replica. With `max_replicas` above
    `min_replicas` it is elastic. `checkpoint` is how many seconds it needs to save its work when asked, or the
    `checkpoint` of a UnifiedJob. `array` makes so many parts of it. `spec` is whatever else a UnifiedJob knows:
    `spec={"topology": "rack"}`. Raises `JobError` with the words of the command line.
    """
    connection = Connection(address, token)
    if isinstance(command, Mapping):
        beside: dict[str, Any] = {"gpus": gpus != 1, "min_replicas": min_replicas != 1, "max_replicas": max_replicas}
        beside |= {
            "queue": queue,
            "name": name,
            "namespace": namespace,
            "cpu": cpu,
            "memory": memory,
            "job_class": job_class,
        }
        beside |= {"priority": priority is not None, "array": array, "env": env, "checkpoint": checkpoint}
        _demand_nothing({**beside, "retries": retries, "workdir": workdir, "spec": spec})
        return _submit_one(connection, _sole(command))
    _demand_command(command)
    wishes: dict[str, Any] = {
        "cpu": cpu,
        "memory": memory,
        "class": job_class,
        "priority": priority,
        "arraySize": array,
        "env": {str(key): str(value) for key, value in env.items()} if env else None,
        "checkpoint": {"graceSeconds": checkpoint} if isinstance(checkpoint, int | float) else checkpoint,
        "workdir": os.fspath(workdir),
        **(spec or {}),
    }
    document = job_document(
        command,
        name=name,
        namespace=namespace or default_namespace(),
        queue=queue or os.environ.get("OPTIMUS_QUEUE", "") or "default",
        gpu=gpus,
        replicas={"min": min_replicas, "max": min_replicas if max_replicas is None else max_replicas},
        retries=retries,
        spec=wishes,
    )
    return _submit_one(connection, document, fresh=not name)


def submit_all(*documents: Document | Sequence[Document], address: str = "", token: str = "") -> JobList:
    """Submit documents together: all of them or, if anything is wrong with one, none. Returns the jobs among them.

    jobs = optimus.submit_all("queues.yaml", Path("train.yaml"), {"kind": "UnifiedJob", ...})

    Each is a mapping, the path of a file, or YAML text; kinds are UnifiedJob, Queue and NodePool.
    """
    connection = Connection(address, token)
    return _submitted(connection, Gathered(documents))


def _submit_one(connection: Connection, document: Mapping[str, Any], *, fresh: bool = False) -> Job:
    (made,) = _submitted(connection, Gathered([document]), fresh=fresh)
    return made


def _submitted(connection: Connection, gathered: Gathered, *, fresh: bool = False) -> JobList:
    """`fresh`: the name was made, and must be nobody's."""
    wishes = {"fresh": "1"} if fresh else {}
    try:
        told = connection.post("/v1/submit", gathered.text.encode(), source=SOURCE, where=str(Path.cwd()), **wishes)
    except ApiError as error:
        raise ApiError(error.status, error.code, gathered.place(str(error))) from None
    for warning in told["warnings"]:
        warnings.warn(gathered.place(warning), stacklevel=4)
    made = JobList()
    for one in told["jobs"]:
        namespace, _, name = one.partition("/")
        made.append(Job(name, namespace, connection))
    return made


def _sole(document: Mapping[str, Any]) -> Mapping[str, Any]:
    if document.get("kind") in ("List", "Queue", "NodePool"):
        raise JobError(f"a {document['kind']} is no job: optimus.submit_all(document) takes it")
    return document


def _demand_nothing(beside: Mapping[str, Any]) -> None:
    said = [name for name, value in beside.items() if value]
    if said:
        raise TypeError(f"a document says everything itself: write {', '.join(said)} into it")


def _demand_command(command: Any) -> None:
    if callable(command):
        named = getattr(command, "__name__", repr(command))
        raise TypeError(
            f'{named} is a Python function, and a job is a command: write it into a file and submit "python {named}.py"'
        )
    if isinstance(command, os.PathLike):
        raise TypeError(f"{os.fspath(command)} is a path: optimus.submit_all(path) submits the documents in it")
    if not isinstance(command, str | Sequence) or isinstance(command, bytes):
        raise TypeError(f"a command is text or a list of words, not {command!r}")
    if isinstance(command, str) and any(line.startswith("kind:") for line in command.splitlines()):
        raise TypeError("this is a document and no command: optimus.submit_all(text) submits it")
