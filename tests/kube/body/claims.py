"""Slices, classes and claims of devices, as drivers and people write them."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import yaml

from tests.kube.body.clusters import Stand, until

Json = dict[str, Any]
API = "resource.k8s.io/v1"
NVIDIA = "gpu.nvidia.com"


def gpu(number: int, product: str = "NVIDIA A100-SXM4-80GB", **more: Any) -> Json:
    attributes = {"type": {"string": "gpu"}, "productName": {"string": product}, "index": {"int": number}}
    attributes |= more.pop("attributes", {})
    return {"name": f"gpu-{number}", "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}, **more}


def device(name: str, **attributes: str) -> Json:
    return {"name": name, "attributes": {key: {"string": value} for key, value in attributes.items()}}


def publish(
    stand: Stand,
    node: str,
    devices: list[Json],
    driver: str = NVIDIA,
    *,
    generation: int = 1,
    slices: int = 1,
    part: int = 0,
    where: Json | None = None,
) -> str:
    """As a driver does it for its node; `where`: for others."""
    name = f"{node}-{driver}-{part}"
    spec: Json = {
        "driver": driver,
        "pool": {"name": node, "generation": generation, "resourceSliceCount": slices},
        **(where or {"nodeName": node}),
        "devices": devices,
    }
    stand.apply(yaml.safe_dump({"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}))
    return name


def device_class(stand: Stand, name: str, *expressions: str) -> str:
    """Its full name: classes have no namespace."""
    called = f"{stand.namespace}-{name}"
    spec = {"selectors": [{"cel": {"expression": one}} for one in expressions]}
    made = {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": called}, "spec": spec}
    stand.apply(yaml.safe_dump(made))
    return called


def gpu_class(stand: Stand) -> str:
    here = f'device.driver == "{NVIDIA}" && device.attributes["{NVIDIA}"].type == "gpu"'
    return device_class(stand, "gpu", here)


def asking(kind: str, count: int = 1, *expressions: str, name: str = "gpu", **more: Any) -> Json:
    """One request."""
    selectors = [{"cel": {"expression": one}} for one in expressions]
    exactly: Json = {"deviceClassName": kind, **({"selectors": selectors} if selectors else {})}
    exactly |= {"allocationMode": "ExactCount", "count": count} if count else {"allocationMode": "All"}
    return {"name": name, "exactly": {**exactly, **more}}


def claim(stand: Stand, name: str, *requests: Json, alike: str = "") -> None:
    meta = {"name": name, "namespace": stand.namespace}
    made = {"apiVersion": API, "kind": "ResourceClaim", "metadata": meta, "spec": _spec(requests, alike)}
    stand.apply(yaml.safe_dump(made))


def template(stand: Stand, name: str, *requests: Json, alike: str = "") -> None:
    meta = {"name": name, "namespace": stand.namespace}
    spec = {"spec": _spec(requests, alike)}
    stand.apply(yaml.safe_dump({"apiVersion": API, "kind": "ResourceClaimTemplate", "metadata": meta, "spec": spec}))


def _spec(requests: tuple[Json, ...], alike: str) -> Json:
    constraints = {"constraints": [{"matchAttribute": alike}]} if alike else {}
    return {"devices": {"requests": list(requests), **constraints}}


def pod(
    stand: Stand,
    name: str,
    *,
    uses: str = "",
    own: str = "",
    group: str = "",
    of: int = 1,
    queue: str = "",
    **spec: Any,
) -> None:
    """`uses`: a claim. `own`: a template of claims."""
    wanted: Json = {"name": "devices"}
    wanted |= {"resourceClaimName": uses} if uses else {"resourceClaimTemplateName": own}
    meta: Json = {"name": name, "namespace": stand.namespace, "labels": {}, "annotations": {}}
    if group:
        meta["labels"]["optimus.dev/group"] = group
        meta["annotations"]["optimus.dev/min-members"] = str(of)
    if queue:
        meta["labels"]["optimus.dev/queue"] = queue
    container = {"name": "main", "image": "none", "resources": {"claims": [{"name": "devices"}]}}
    made: Json = {"schedulerName": stand.scheduler, "resourceClaims": [wanted], "containers": [container], **spec}
    stand.apply(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": made}))


# -- what is there ----------------------------------------------------------------------------------------------------


def claims(stand: Stand) -> dict[str, Json]:
    found = json.loads(stand.plane.get(f"/apis/{API}/namespaces/{stand.namespace}/resourceclaims"))["items"]
    return {one["metadata"]["name"]: one for one in found}


def given(one: Json) -> list[str]:
    """`node/device`, as pools are called like nodes here."""
    allocation = one.get("status", {}).get("allocation") or {}
    return sorted(f"{x['pool']}/{x['device']}" for x in allocation.get("devices", {}).get("results", ()))


def all_given(stand: Stand) -> list[str]:
    """Sorted; a device that is there twice has been given twice."""
    return sorted(device for one in claims(stand).values() for device in given(one))


def places(stand: Stand, group: str = "") -> list[str]:
    return sorted(one["spec"]["nodeName"] for one in stand.bound(group))


def delete(stand: Stand, kind: str, name: str) -> None:
    words = stand.plane.kubectl("delete", kind, name, "-n", stand.namespace, "--wait=false")
    subprocess.run(words, check=True, capture_output=True)


def told(stand: Stand, name: str, words: str) -> None:
    until(lambda: words in stand.condition(name), f"{name} is told {words!r}, not {stand.condition(name)!r}")
