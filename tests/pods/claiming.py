"""Slices, classes and claims as the server would write them, in a few words."""

from __future__ import annotations

from typing import Any

import msgspec

from optimus.drivers.kube.claiming import Claimed, Claims, claimed_by
from optimus.drivers.kube.device_objects import ClaimTemplate, DeviceClass, ResourceClaim, ResourceSlice
from optimus.drivers.kube.devices import Catalog
from tests.pods.writing import pod

Json = dict[str, Any]
NVIDIA = "gpu.nvidia.com"


def gpu(name: str, product: str = "NVIDIA A100-SXM4-80GB", *, memory: str = "80Gi", **more: Any) -> Json:
    attributes = {"type": {"string": "gpu"}, "productName": {"string": product}, **more.pop("attributes", {})}
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": memory}}, **more}


def device(name: str, **attributes: Any) -> Json:
    kinds = {str: "string", int: "int", bool: "bool"}
    return {"name": name, "attributes": {key: {kinds[type(value)]: value} for key, value in attributes.items()}}


def slices(
    node: str, devices: list[Json], driver: str = NVIDIA, *, pool: str = "", part: int = 0, **more: Any
) -> ResourceSlice:
    of = {"name": pool or node, "generation": more.pop("generation", 1), "resourceSliceCount": more.pop("count", 1)}
    where = more or {"nodeName": node}
    spec = {"driver": driver, "pool": of, "devices": devices, **where}
    return msgspec.convert({"metadata": {"name": f"{node}-{driver}-{part}"}, "spec": spec}, type=ResourceSlice)


def device_class(name: str, *expressions: str, config: list[Json] | None = None) -> DeviceClass:
    spec = {"selectors": [{"cel": {"expression": one}} for one in expressions], "config": config}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, type=DeviceClass)


GPUS = device_class("gpus", f'device.driver == "{NVIDIA}" && device.attributes["{NVIDIA}"].type == "gpu"')
ANY = device_class("any")


def catalog(*made: ResourceSlice | DeviceClass) -> Catalog:
    found = Catalog()
    for one in made:
        if isinstance(one, DeviceClass):
            found.classes[one.metadata.name] = one
        else:
            found.slices[one.metadata.name] = one
    return found


def asking(kind: str = "gpus", count: int = 1, *expressions: str, name: str = "gpu", **more: Any) -> Json:
    selectors = [{"cel": {"expression": one}} for one in expressions]
    mode = {"count": count} if count else {"allocationMode": "All"}
    return {"name": name, "exactly": {"deviceClassName": kind, "selectors": selectors, **mode, **more}}


def claim(name: str, *requests: Json, **more: Any) -> ResourceClaim:
    """`allocation` and `reservedFor` are its status, `constraints` and `config` its own."""
    status = {key: more.pop(key) for key in ("allocation", "reservedFor") if key in more}
    meta = {"name": name, "namespace": "team", "uid": f"uid-{name}", "resourceVersion": "1", **more.pop("meta", {})}
    spec = {"devices": {"requests": list(requests), **more}}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, type=ResourceClaim)


def template(name: str, *requests: Json) -> ClaimTemplate:
    spec = {"spec": {"devices": {"requests": list(requests)}}}
    return msgspec.convert({"metadata": {"name": name, "namespace": "team"}, "spec": spec}, type=ClaimTemplate)


def given(*keys: str, node: str = "") -> Json:
    """An allocation."""
    found = [dict(zip(("driver", "pool", "device"), key.split("/"), strict=True)) for key in keys]
    here = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    selector = {"nodeSelector": {"nodeSelectorTerms": here}} if node else {}
    return {"devices": {"results": [{"request": "gpu", **one} for one in found]}, **selector}


def around(known: Catalog, *made: ResourceClaim | ClaimTemplate, **more: Any) -> Claims:
    return Claims(
        claims={one.key: one for one in made if isinstance(one, ResourceClaim)},
        templates={f"team/{one.metadata.name}": one for one in made if isinstance(one, ClaimTemplate)},
        catalog=known,
        **more,
    )


def using(known: Claims, *names: str, **more: Any) -> Claimed:
    wanted = [{"name": f"c{number}", "resourceClaimName": name} for number, name in enumerate(names)]
    return claimed_by(pod(resourceClaims=wanted, **more), known)
