"""One job, its pods and a pretend server that keeps the rules that matter here: names are taken once, finalizers hold,
preconditions are checked, a deleted pod stays until its kubelet and its finalizers let it go.

The controller is the real look and the real order of its writes; `steps` lets a story stop after any single one of
them, as a process that dies does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

import msgspec

from optimus.drivers.kube.jobs.keeping import kept_in
from optimus.drivers.kube.jobs.looking import look
from optimus.drivers.kube.jobs.reading import Written, written_or_why
from optimus.drivers.kube.jobs.records import View
from optimus.drivers.kube.jobs.saying import Saying
from optimus.drivers.kube.jobs.telling import Trouble
from optimus.drivers.kube.jobs.words import ENDED, TARGET_BECAUSE, UNIFIED_JOBS
from optimus.drivers.kube.jobs.writes import Create, Delete, Patch, Write, stages
from optimus.drivers.kube.objects import Anything, Pod
from optimus.kube.resources import PODS
from optimus.lives import Life

SECOND = 1_000
_UIDS = count(1)
BEGIN_MS = 1_800_000_000_000
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "trainer:1", "command": ["train"]}]}}


def job_spec(least: int = 1, most: int = 0, *, saves: bool = False, limit: int = 3, **more: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "replicaSpec": {"minReplicas": least, "maxReplicas": most or least, "gpu": {"count": 1}},
        "restart": {"backoffLimit": limit, "backoffSeconds": 10},
        "template": msgspec.json.decode(msgspec.json.encode(TEMPLATE)),
        **more,
    }
    if saves:
        spec["checkpoint"] = {"graceSeconds": 30}
    return spec


def stamp(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


@dataclass
class World:
    spec: dict[str, Any]
    now_ms: int = BEGIN_MS
    job: dict[str, Any] = field(default_factory=dict)
    """Empty once it is gone."""
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By name."""
    services: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    """Every pod that was ever made: name and attempt."""
    ended: dict[str, str] = field(default_factory=dict)
    """By uid: how the story ended it."""
    said: list[Saying] = field(default_factory=list)
    dead_nodes: set[str] = field(default_factory=set)
    trouble: Trouble | None = None
    vanished: set[str] = field(default_factory=set)
    again_ms: int | None = None
    _uids: int = 0

    def __post_init__(self) -> None:
        meta: dict[str, Any] = {
            "name": "train",
            "namespace": "team",
            "uid": f"job-{next(_UIDS)}",
            "resourceVersion": "1",
        }
        meta |= {"generation": 1, "creationTimestamp": stamp(self.now_ms)}
        self.job = {"metadata": meta, "spec": self.spec, "status": {}}

    # -- the scheduler and people -------------------------------------------------------------------------------------

    def target(self, count: int, because: str = "") -> None:
        self.job["spec"].setdefault("replicaSpec", {})["targetReplicas"] = count
        if because:
            self.job["metadata"].setdefault("annotations", {})[TARGET_BECAUSE] = because
        self._changed(spec=True)
        self.settle()

    def suspend(self, yes: bool = True) -> None:
        self.job["spec"]["suspend"] = yes
        self._changed(spec=True)
        self.settle()

    def delete_job(self) -> None:
        if not self.job["metadata"].get("finalizers"):
            self.job = {}
            return
        self.job["metadata"]["deletionTimestamp"] = stamp(self.now_ms)
        self._changed()
        self.settle()

    def passes(self, seconds: float) -> None:
        self.now_ms += round(seconds * SECOND)
        self.settle()

    # -- nodes --------------------------------------------------------------------------------------------------------

    def run(self, node: str = "n1") -> None:
        """The scheduler binds whatever waits, and it runs."""
        for pod in self.pods.values():
            if "nodeName" not in pod["spec"] and "deletionTimestamp" not in pod["metadata"]:
                self.start(pod["metadata"]["name"], node)
        self.settle()

    def start(self, name: str, node: str = "n1") -> None:
        pod = self.pods[name]
        pod["spec"]["nodeName"] = node
        ready = {"type": "Ready", "status": "True"}
        pod["status"] = {"phase": "Running", "startTime": stamp(self.now_ms), "conditions": [ready]}

    def exits(self, name: str, code: int = 0, *, message: str = "", reason: str = "", settle: bool = True) -> None:
        pod = self.pods[name]
        state = {"exitCode": code, "finishedAt": stamp(self.now_ms), "message": message}
        state["reason"] = reason or ("Completed" if code == 0 else "Error")
        pod["status"] |= {
            "phase": "Succeeded" if code == 0 else "Failed",
            "conditions": [],
            "containerStatuses": [{"name": "main", "state": {"terminated": state}}],
        }
        self._ended(pod, f"code {code}")
        self._kubelet_is_done(pod)
        if settle:
            self.settle()

    def fails(self, name: str, reason: str, *, condition: str = "", settle: bool = True) -> None:
        """The pod as a whole, without a word of its containers."""
        pod = self.pods[name]
        conditions = [{"type": "DisruptionTarget", "status": "True", "reason": condition}] if condition else []
        pod["status"] |= {"phase": "Failed", "reason": reason, "conditions": conditions, "containerStatuses": None}
        self._ended(pod, reason or condition)
        self._kubelet_is_done(pod)
        if settle:
            self.settle()

    def leaves(self, name: str, code: int = 143, message: str = "", *, settle: bool = True) -> None:
        """It was told to, and does."""
        assert "deletionTimestamp" in self.pods[name]["metadata"], f"{name} was not told to leave"
        self.exits(name, code, message=message, settle=settle)

    def all_leave(self, code: int = 143) -> None:
        for name in [name for name, pod in self.pods.items() if self._is_leaving(pod)]:
            self.leaves(name, code)

    def evict(self, name: str, *, settle: bool = True) -> None:
        """By somebody else."""
        self._delete(self.pods[name], None)
        if settle:
            self.settle()

    def vanish(self, name: str) -> None:
        """Its finalizer is taken away by force, and it with it."""
        self.vanished.add(self.pods.pop(name)["metadata"]["uid"])
        self.settle()

    # -- the controller -----------------------------------------------------------------------------------------------

    def settle(self) -> int:
        """Look and write until there is nothing to do. Returns the number of writes."""
        count = 0
        while self.job:
            before = count
            for _ in self.steps():
                count += 1
            assert count < 10_000, "it never comes to rest"
            if count == before:
                break
        return count

    def steps(self) -> Iterator[Write]:
        """One look; each write as it is done."""
        thing = self.thing()
        written = self.written(thing)
        pods = [msgspec.convert(pod, Pod) for pod in self.pods.values()]
        view = View(
            thing=thing,
            pods=pods,
            now_ms=self.now_ms,
            answers=lambda node: node not in self.dead_nodes,
            gone=self.vanished,
            trouble=self.trouble,
        )
        found = look(view, written)
        assert not found.stale, "it does not understand its own pods"
        assert not found.missing, "a pod is missing that nobody took"
        self.again_ms = found.look_again_ms
        for stage in stages(thing, written if isinstance(written, Written) else None, found, "optimus"):
            for write in stage:
                self._do(write)
                if isinstance(write, Patch) and write.subresource:
                    self.said += found.says
                yield write

    def thing(self) -> Anything:
        return msgspec.convert(self.job, Anything)

    @staticmethod
    def written(thing: Anything) -> Written | str:
        return written_or_why(thing)

    # -- what is there ------------------------------------------------------------------------------------------------

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.job["status"]
        return found

    @property
    def life(self) -> Life:
        return kept_in(self.thing(), "team/train")[0].life

    @property
    def phase(self) -> str:
        return str(self.status.get("phase", ""))

    def condition(self, name: str) -> dict[str, Any] | None:
        return next((one for one in self.status.get("conditions", ()) if one["type"] == name), None)

    @property
    def live(self) -> list[str]:
        """Pods that are there, have not ended, and are not told to leave."""
        return sorted(
            name
            for name, pod in self.pods.items()
            if "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") not in ("Succeeded", "Failed")
        )

    @property
    def leaving(self) -> list[str]:
        return sorted(name for name, pod in self.pods.items() if self._is_leaving(pod))

    def env(self, name: str) -> dict[str, str]:
        return {one["name"]: one.get("value", "") for one in self.pods[name]["spec"]["containers"][0]["env"]}

    # -- the server ---------------------------------------------------------------------------------------------------

    def _do(self, write: Write) -> None:
        match write:
            case Create() if write.resource == PODS:
                self._create(write.body)
            case Create():
                self.services.append(write.name)
            case Delete() if write.resource == PODS:
                pod = self.pods.get(write.name)
                if pod is not None and pod["metadata"]["uid"] == write.uid:
                    self._delete(pod, write.grace_s)
            case Delete():
                self.delete_now()
            case Patch() if write.resource == UNIFIED_JOBS:
                self._patch_job(write)
            case Patch():
                self._release(write)

    def delete_now(self) -> None:
        meta = self.job["metadata"]
        if meta.get("finalizers"):
            meta["deletionTimestamp"] = stamp(self.now_ms)
            self._changed()
        else:
            self.job = {}

    def _create(self, body: dict[str, Any]) -> None:
        name = body["metadata"]["name"]
        assert name not in self.pods, f"{name} is made although it is there"
        self._uids += 1
        pod = msgspec.json.decode(msgspec.json.encode(body))
        pod["metadata"] |= {"uid": f"pod-{self._uids}", "creationTimestamp": stamp(self.now_ms)}
        pod["status"] = {"phase": "Pending"}
        self.pods[name] = pod
        labels = pod["metadata"]["labels"]
        self.made.append(f"{name}@{labels['optimus.dev/attempt']}{'#' if 'optimus.dev/part' in labels else ''}")

    def _delete(self, pod: dict[str, Any], grace_s: int | None) -> None:
        meta, over = pod["metadata"], pod["status"].get("phase") in ("Succeeded", "Failed")
        if grace_s is None:
            grace_s = pod["spec"].get("terminationGracePeriodSeconds", 30)
        if "nodeName" not in pod["spec"] or over:
            grace_s = 0
        if "deletionTimestamp" not in meta or grace_s < meta["deletionGracePeriodSeconds"]:
            meta["deletionTimestamp"] = stamp(self.now_ms + grace_s * SECOND)
            meta["deletionGracePeriodSeconds"] = grace_s
        self._remove_if_free(pod)

    def _kubelet_is_done(self, pod: dict[str, Any]) -> None:
        if "deletionTimestamp" in pod["metadata"]:
            pod["metadata"]["deletionGracePeriodSeconds"] = 0
            self._remove_if_free(pod)

    def _release(self, write: Patch) -> None:
        pod = self.pods.get(write.name)
        if pod is None or pod["metadata"]["uid"] != write.body["metadata"]["uid"]:
            return
        (gone,) = write.body["metadata"]["$deleteFromPrimitiveList/finalizers"]
        pod["metadata"]["finalizers"] = [one for one in pod["metadata"].get("finalizers", ()) if one != gone]
        self._remove_if_free(pod)

    def _remove_if_free(self, pod: dict[str, Any]) -> None:
        meta = pod["metadata"]
        if meta.get("deletionGracePeriodSeconds") == 0 and not meta.get("finalizers"):
            self.pods.pop(meta["name"], None)

    def _patch_job(self, write: Patch) -> None:
        assert write.version == self.job["metadata"]["resourceVersion"], "an old version is written"
        if write.subresource == "status":
            self.job["status"] = _merged(
                self.job["status"], msgspec.json.decode(msgspec.json.encode(write.body["status"]))
            )
        else:
            self.job["metadata"]["finalizers"] = write.body["metadata"]["finalizers"]
        self._changed()
        meta = self.job["metadata"]
        if "deletionTimestamp" in meta and not meta.get("finalizers"):
            self.job = {}

    def _changed(self, *, spec: bool = False) -> None:
        meta = self.job["metadata"]
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
        meta["generation"] += spec

    def _ended(self, pod: dict[str, Any], how: str) -> None:
        self.ended[pod["metadata"]["uid"]] = how

    @staticmethod
    def _is_leaving(pod: dict[str, Any]) -> bool:
        over = pod["status"].get("phase") in ("Succeeded", "Failed")
        return "deletionTimestamp" in pod["metadata"] and "nodeName" in pod["spec"] and not over

    def unreleased(self) -> list[str]:
        return [name for name, pod in self.pods.items() if ENDED in pod["metadata"].get("finalizers", ())]


def _merged(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    found = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = _merged(found.get(name), value)
    return found
