"""A namespace on the real server, looked at through grouping: what people apply, and the gangs that come of it.

Pods are bound to a fake node as they come, as far as a story asks for it, and then seem to run (KWOK).
"""

from __future__ import annotations

import json
import ssl
import time
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError

import msgspec
import yaml

from hack.controlplane import ControlPlane
from optimus.drivers.kube.grouping import Group, Groups, Kinds, Patch, Slot, shipped_kinds
from optimus.drivers.kube.grouping.kinds import kind_name
from optimus.drivers.kube.objects import Anything, Pod

PATIENCE_S = 90.0
NODE = "grouping-node"
PLURALS = {
    "Job": "jobs",
    "Deployment": "deployments",
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "JobSet": "jobsets",
    "PodGroup": "podgroups",
    "Pod": "pods",
    "Node": "nodes",
    "Namespace": "namespaces",
    "PyTorchJob": "pytorchjobs",
    "TFJob": "tfjobs",
    "MPIJob": "mpijobs",
    "XGBoostJob": "xgboostjobs",
    "PaddleJob": "paddlejobs",
    "TrainJob": "trainjobs",
    "CustomResourceDefinition": "customresourcedefinitions",
    "Sweep": "sweeps",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}
CLUSTER_WIDE = {
    "Node",
    "Namespace",
    "CustomResourceDefinition",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
}


class Cluster:
    def __init__(self, plane: ControlPlane, namespace: str, kinds: Kinds | None = None) -> None:
        self.plane, self.namespace = plane, namespace
        self.trusted = ssl.create_default_context(cafile=str(plane.credentials.certificate))
        self.groups = Groups(kinds or shipped_kinds())
        self.pods: dict[str, Pod] = {}
        self._owners: dict[str, str] = {}
        """uid -> path of those that were read, to see them change."""

    # -- what people do -----------------------------------------------------------------------------------------------

    def apply(self, text: str) -> list[dict[str, Any]]:
        """Objects as a user writes them, into the namespace of this story."""
        made = []
        for thing in yaml.safe_load_all(text):
            if thing["kind"] not in CLUSTER_WIDE:
                thing["metadata"]["namespace"] = self.namespace
            path = self.path(thing["apiVersion"], thing["kind"], thing["metadata"].get("namespace", ""))
            made.append(self.send("POST", path, thing))
            if thing["kind"] not in ("Pod", *CLUSTER_WIDE):
                name = thing["metadata"]["name"]
                self._read(f"{path}/{name}")
        return made

    def send(self, method: str, path: str, body: Any = None, content: str = "application/json") -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.plane.address + path, data=data, method=method)
        request.add_header("Authorization", f"Bearer {self.plane.token()}")
        request.add_header("Content-Type", content)
        try:
            with urllib.request.urlopen(request, timeout=20, context=self.trusted) as answer:
                return json.loads(answer.read())
        except HTTPError as error:
            error.msg = error.read().decode()[:500]
            raise

    def patch(self, patch: Patch) -> None:
        thing = patch.object
        path = self.path(thing.api_version, thing.kind.rpartition("/")[2], thing.namespace)
        self.send("PATCH", f"{path}/{thing.name}", patch.body, "application/merge-patch+json")

    def change(self, path: str, body: dict[str, Any]) -> None:
        self.send("PATCH", path, body, "application/merge-patch+json")

    def delete_pod(self, name: str) -> None:
        self.send("DELETE", f"/api/v1/namespaces/{self.namespace}/pods/{name}")

    def end_pod(self, name: str, phase: str = "Succeeded") -> None:
        """As its kubelet would say it."""
        code = 0 if phase == "Succeeded" else 1
        pod = self.send("GET", f"/api/v1/namespaces/{self.namespace}/pods/{name}")
        ended = [
            {"name": one["name"], "image": "none", "imageID": "", "ready": False, "restartCount": 0}
            | {"state": {"terminated": {"exitCode": code}}}
            for one in pod["spec"]["containers"]
        ]
        status = {"status": {"phase": phase, "containerStatuses": ended}}
        self.change(f"/api/v1/namespaces/{self.namespace}/pods/{name}/status", status)

    def bind_all(self) -> None:
        for pod in self.pods.values():
            if pod.spec.node_name is None and not pod.over and pod.metadata.deletion_timestamp is None:
                body = {
                    "apiVersion": "v1",
                    "kind": "Binding",
                    "metadata": {"name": pod.metadata.name},
                    "target": {"kind": "Node", "name": NODE},
                }
                path = f"/api/v1/namespaces/{self.namespace}/pods/{pod.metadata.name}/binding"
                try:
                    self.send("POST", path, body)
                except HTTPError as error:
                    if error.code not in (404, 409):
                        raise

    # -- what is seen -------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """All changes since the last look, one by one."""
        listed = self.send("GET", f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        now = {pod.metadata.uid: pod for pod in msgspec.convert(listed, list[Pod])}
        for uid in self.pods.keys() - now.keys():
            self.groups.pod_gone(uid)
        for pod in now.values():
            self.groups.pod(pod)
        self.pods = now
        for uid, path in list(self._owners.items()):
            if not self._read(path):
                del self._owners[uid]
                self.groups.owner_gone(uid)
        while missing := self.groups.missing():
            for ref in missing:
                kind = ref.kind.rpartition("/")[2]
                version = ref.api_version or "leaderworkerset.x-k8s.io/v1"
                if not self._read(f"{self.path(version, kind, ref.namespace)}/{ref.name}"):
                    self.groups.owner_absent(ref)

    def show_all(self, version: str, kind: str) -> int:
        """Every object of a kind, as a watch would show them; how many there are."""
        path = self.path(version, kind, self.namespace)
        names = [one["metadata"]["name"] for one in self.send("GET", path)["items"]]
        return sum(self._read(f"{path}/{name}") for name in names)

    def until(self, true: Callable[[], bool], *, bind: bool = False) -> None:
        """Look until it is so; `bind`: and let pods run meanwhile."""
        end = time.monotonic() + PATIENCE_S
        while True:
            self.look()
            if true():
                return
            if bind:
                self.bind_all()
            assert time.monotonic() < end, self.told()
            time.sleep(0.1)

    def told(self) -> str:
        pods = [f"{pod.metadata.name} {pod.status.phase} {self.slot(pod.metadata.name)}" for pod in self.pods.values()]
        return "\n".join([*map(str, map(self.groups.group, self.groups.ids())), *pods])

    def group(self, what: str) -> Group:
        found = self.groups.group(f"{self.namespace}/{what}")
        assert found is not None, self.told()
        return found

    def has(self, what: str) -> bool:
        return self.groups.group(f"{self.namespace}/{what}") is not None

    def pod(self, name: str) -> Pod:
        return next(pod for pod in self.pods.values() if pod.metadata.name == name)

    def slot(self, name: str) -> Slot | None:
        return self.groups.slot_of(self.pod(name).metadata.uid)

    def slots(self, what: str) -> dict[str, str]:
        """Name of pod -> `role-ordinal`, of those that have one in this gang."""
        here = f"{self.namespace}/{what}"
        found = {
            pod.metadata.name: self.groups.slot_of(uid)
            for uid, pod in self.pods.items()
            if self.groups.group_of(uid) == here
        }
        return {name: f"{slot.role}-{slot.ordinal}" for name, slot in found.items() if slot}

    def roles(self, what: str) -> dict[str, tuple[int, int]]:
        """Name -> least, now."""
        return {role.name: (role.min, role.count) for role in self.group(what).roles}

    def path(self, version: str, kind: str, namespace: str = "") -> str:
        front = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        return f"{front}/{f'namespaces/{namespace}/' if namespace else ''}{PLURALS[kind]}"

    def _read(self, path: str) -> bool:
        try:
            thing = msgspec.convert(self.send("GET", path), Anything)
        except HTTPError as error:
            if error.code not in (403, 404):
                raise
            return False
        if kind_name(thing.api_version, thing.kind) in ("apps/ReplicaSet",):
            thing = msgspec.structs.replace(thing, spec={})
        self._owners[thing.metadata.uid] = path
        self.groups.owner(thing)
        return True
