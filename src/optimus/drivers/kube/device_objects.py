"""Devices and claims of them (resource.k8s.io), as narrow as we read them.

Why: drivers publish what a node has device by device, people claim some of it; both are objects of their own.
Owns: the shapes. A field that is missing or null is its default.
Must not: know what anything means (`devices`, `claiming`).
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from optimus.drivers.kube.objects import Meta, Narrow, NodeSelector, Quantity, TolerationSpec

GROUP, VERSION = "resource.k8s.io", "v1"
API_VERSION = f"{GROUP}/{VERSION}"
"""The only one that is read: from Kubernetes 1.34 on."""
PODS = "pods"

# -- what there is ----------------------------------------------------------------------------------------------------


class Attribute(Narrow, frozen=True, kw_only=True):
    """One of them is there."""

    whole: int | None = field(default=None, name="int")
    truth: bool | None = field(default=None, name="bool")
    text: str | None = field(default=None, name="string")
    version: str | None = None


class Capacity(Narrow, frozen=True, kw_only=True):
    value: Quantity = 0


class DeviceTaint(Narrow, frozen=True, kw_only=True):
    key: str = ""
    value: str | None = None
    effect: str = ""


class Device(Narrow, frozen=True, kw_only=True):
    name: str
    attributes: dict[str, Attribute] | None = None
    capacity: dict[str, Capacity] | None = None
    taints: list[DeviceTaint] | None = None
    consumes_counters: list[Any] | None = None
    binding_conditions: list[str] | None = None
    allow_multiple_allocations: bool | None = None


class Pool(Narrow, frozen=True, kw_only=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class SliceSpec(Narrow, frozen=True, kw_only=True):
    driver: str = ""
    pool: Pool = Pool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    shared_counters: list[Any] | None = None
    devices: list[Device] | None = None


class ResourceSlice(Narrow, frozen=True, kw_only=True):
    """A part of what a driver has to offer."""

    metadata: Meta
    spec: SliceSpec = SliceSpec()


class Expression(Narrow, frozen=True, kw_only=True):
    expression: str = ""


class DeviceSelector(Narrow, frozen=True, kw_only=True):
    cel: Expression | None = None


class ClassSpec(Narrow, frozen=True, kw_only=True):
    selectors: list[DeviceSelector] | None = None
    config: list[dict[str, Any]] | None = None


class DeviceClass(Narrow, frozen=True, kw_only=True):
    metadata: Meta
    spec: ClassSpec = ClassSpec()


# -- what is asked for ------------------------------------------------------------------------------------------------


class SubRequest(Narrow, frozen=True, kw_only=True):
    """Of devices of one class; the name is empty where it is the only one of its request."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str | None = None
    count: int | None = None
    admin_access: bool | None = None
    tolerations: list[TolerationSpec] | None = None
    capacity: dict[str, Any] | None = None


class DeviceRequest(Narrow, frozen=True, kw_only=True):
    name: str = ""
    exactly: SubRequest | None = None
    first_available: list[SubRequest] | None = None


class Constraint(Narrow, frozen=True, kw_only=True):
    requests: list[str] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class ClaimedDevices(Narrow, frozen=True, kw_only=True):
    requests: list[DeviceRequest] | None = None
    constraints: list[Constraint] | None = None
    config: list[dict[str, Any]] | None = None


class ResourceClaimSpec(Narrow, frozen=True, kw_only=True):
    devices: ClaimedDevices = ClaimedDevices()


class Given(Narrow, frozen=True, kw_only=True):
    """A device of an allocation."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    binding_conditions: list[str] | None = None
    share_id: str | None = field(default=None, name="shareID")

    @property
    def key(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class GivenDevices(Narrow, frozen=True, kw_only=True):
    results: list[Given] | None = None


class Allocation(Narrow, frozen=True, kw_only=True):
    node_selector: NodeSelector | None = None
    devices: GivenDevices = GivenDevices()


class Consumer(Narrow, frozen=True, kw_only=True):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(Narrow, frozen=True, kw_only=True):
    allocation: Allocation | None = None
    reserved_for: list[Consumer] | None = None


class ResourceClaim(Narrow, frozen=True, kw_only=True):
    metadata: Meta
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def given(self) -> list[Given]:
        """Devices that nobody else can have: who only looks after a device does not take it."""
        allocation = self.status.allocation
        return [one for one in (allocation.devices.results if allocation else None) or () if not one.admin_access]

    @property
    def consumers(self) -> list[str]:
        return [one.uid for one in self.status.reserved_for or ()]


class ClaimTemplateSpec(Narrow, frozen=True, kw_only=True):
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ClaimTemplate(Narrow, frozen=True, kw_only=True):
    metadata: Meta
    spec: ClaimTemplateSpec = ClaimTemplateSpec()
