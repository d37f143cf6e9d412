"""Pods, nodes and volumes as the server would write them, in a few words."""

from __future__ import annotations

from typing import Any

import msgspec

from optimus.drivers.kube.objects import Node, PersistentVolume, Pod, StorageClass, VolumeClaim

Json = dict[str, Any]


def pod(name: str = "p", *, namespace: str = "team", labels: Json | None = None, **spec: Any) -> Pod:
    """`spec` in the words of Kubernetes; `notes`, `status` and `meta` beside it."""
    notes, status, meta = spec.pop("notes", None), spec.pop("status", {}), spec.pop("meta", {})
    spec.setdefault("containers", [{"name": "main"}])
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "labels": labels,
        "annotations": notes,
        **meta,
    }
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, type=Pod)


def asking(name: str = "main", **requests: Any) -> Json:
    """A container; `nvidia_com__gpu=1` asks for `nvidia.com/gpu: 1`."""
    spelled = {key.replace("__", "/").replace("_", "."): amount for key, amount in requests.items()}
    return {"name": name, "resources": {"requests": spelled}}


def node(name: str = "n0", *, labels: Json | None = None, ready: bool = True, **more: Any) -> Node:
    has = more.pop("has", {"cpu": "8", "memory": "32Gi", "pods": "110"})
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    metadata = {"name": name, "labels": labels}
    status = {"allocatable": has, "conditions": conditions}
    return msgspec.convert({"metadata": metadata, "spec": more, "status": status}, type=Node)


def volume(name: str, **more: Any) -> PersistentVolume:
    labels, phase = more.pop("labels", None), more.pop("phase", "Available")
    made = {"metadata": {"name": name, "labels": labels}, "spec": more, "status": {"phase": phase}}
    return msgspec.convert(made, type=PersistentVolume)


def claim(name: str, *, bound_to: str = "", half: bool = False, **more: Any) -> VolumeClaim:
    meta = {"name": name, "namespace": "team", **more.pop("meta", {})}
    if bound_to and not half:
        meta["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    status = more.pop("status", {})
    spec = {**more, **({"volumeName": bound_to} if bound_to else {})}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, type=VolumeClaim)


def storage_class(name: str, mode: str, **more: Any) -> StorageClass:
    return msgspec.convert({"metadata": {"name": name}, "volumeBindingMode": mode, **more}, type=StorageClass)
