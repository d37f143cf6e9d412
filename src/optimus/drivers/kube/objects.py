"""Objects of Kubernetes, as narrow as we read them.

Why: a pod has hundreds of fields and a cluster has fifty thousand pods; decoding only what is looked at costs a
twentieth of the time and the memory.
Owns: the shapes. A field that is missing or null is its default.
Must not: know what anything means (`requests`, `rules`, `nodes`, `grouping`).
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

Quantity = str | int | float
"""As the server writes it: `500m`, `2Gi`, 1."""
Quantities = dict[str, Quantity]


class Narrow(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Ignores what it does not name; has no cycles, so that the collector need not look."""


class Owner(Narrow, frozen=True, kw_only=True):
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None


class Meta(Narrow, frozen=True, kw_only=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[Owner] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] | None = None


class Expression(Narrow, frozen=True, kw_only=True):
    """Of a label selector or a node selector."""

    key: str
    operator: str
    values: list[str] | None = None


class LabelSelector(Narrow, frozen=True, kw_only=True):
    match_labels: dict[str, str] | None = None
    match_expressions: list[Expression] | None = None


# -- nodes ----------------------------------------------------------------------------------------------------------


class TaintSpec(Narrow, frozen=True, kw_only=True):
    key: str
    value: str | None = None
    effect: str = ""


class Condition(Narrow, frozen=True, kw_only=True):
    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class NodeSpec(Narrow, frozen=True, kw_only=True):
    unschedulable: bool | None = None
    taints: list[TaintSpec] | None = None


class NodeStatus(Narrow, frozen=True, kw_only=True):
    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    conditions: list[Condition] | None = None


class Node(Narrow, frozen=True, kw_only=True):
    metadata: Meta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# -- pods -----------------------------------------------------------------------------------------------------------


class Resources(Narrow, frozen=True, kw_only=True):
    requests: Quantities | None = None
    limits: Quantities | None = None


class Port(Narrow, frozen=True, kw_only=True):
    container_port: int = 0
    host_port: int | None = None
    protocol: str | None = None
    host_ip: str | None = field(default=None, name="hostIP")


class RestartRule(Narrow, frozen=True, kw_only=True):
    action: str = ""


class Container(Narrow, frozen=True, kw_only=True):
    name: str = ""
    resources: Resources | None = None
    ports: list[Port] | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[RestartRule] | None = None


class NodeTerm(Narrow, frozen=True, kw_only=True):
    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class NodeSelector(Narrow, frozen=True, kw_only=True):
    node_selector_terms: list[NodeTerm] | None = None


class NodeAffinity(Narrow, frozen=True, kw_only=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class PodTerm(Narrow, frozen=True, kw_only=True):
    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class PodAffinity(Narrow, frozen=True, kw_only=True):
    required_during_scheduling_ignored_during_execution: list[PodTerm] | None = None


class Affinity(Narrow, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TolerationSpec(Narrow, frozen=True, kw_only=True):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class Spread(Narrow, frozen=True, kw_only=True):
    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class Gate(Narrow, frozen=True, kw_only=True):
    name: str


class ClaimedVolume(Narrow, frozen=True, kw_only=True):
    claim_name: str


class Volume(Narrow, frozen=True, kw_only=True):
    name: str = ""
    persistent_volume_claim: ClaimedVolume | None = None
    ephemeral: dict[str, Any] | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    portworx_volume: dict[str, Any] | None = None
    iscsi: dict[str, Any] | None = None
    rbd: dict[str, Any] | None = None


class PodClaim(Narrow, frozen=True, kw_only=True):
    """A device that is claimed (resource.k8s.io)."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(Narrow, frozen=True, kw_only=True):
    pod_group_name: str | None = None


class PodSpec(Narrow, frozen=True, kw_only=True):
    node_name: str | None = None
    scheduler_name: str | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    restart_policy: str | None = None
    termination_grace_period_seconds: int | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[TolerationSpec] | None = None
    topology_spread_constraints: list[Spread] | None = None
    scheduling_gates: list[Gate] | None = None
    containers: list[Container] = []
    init_containers: list[Container] | None = None
    overhead: Quantities | None = None
    resources: Resources | None = None
    """Of the pod as a whole."""
    volumes: list[Volume] | None = None
    resource_claims: list[PodClaim] | None = None
    host_network: bool | None = None
    host_users: bool | None = None
    scheduling_group: SchedulingGroup | None = None


class Terminated(Narrow, frozen=True, kw_only=True):
    exit_code: int = 0
    signal: int | None = None
    reason: str | None = None
    message: str | None = None
    finished_at: str | None = None


class Waiting(Narrow, frozen=True, kw_only=True):
    reason: str | None = None
    message: str | None = None


class ContainerState(Narrow, frozen=True, kw_only=True):
    terminated: Terminated | None = None
    waiting: Waiting | None = None


class ContainerStatus(Narrow, frozen=True, kw_only=True):
    name: str = ""
    restart_count: int = 0
    state: ContainerState | None = None
    allocated_resources: Quantities | None = None
    """After a resize in place: what it has, which may still be more than what is asked for."""
    resources: Resources | None = None
    """What is really in force."""


class PodClaimStatus(Narrow, frozen=True, kw_only=True):
    name: str
    resource_claim_name: str | None = None


class PodStatus(Narrow, frozen=True, kw_only=True):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    start_time: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resource_claim_statuses: list[PodClaimStatus] | None = None
    """Names of claims that were made from templates."""
    resources: Resources | None = None
    allocated_resources: Quantities | None = None
    """Of the pod as a whole, as for its containers."""


class Pod(Narrow, frozen=True, kw_only=True):
    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def over(self) -> bool:
        """It has ended by itself and takes nothing any more."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def done(self) -> bool:
        """It has ended well, and nobody had asked it to."""
        return self.status.phase == "Succeeded" and not self.metadata.deletion_timestamp


# -- what pods refer to -----------------------------------------------------------------------------------------------


class Namespace(Narrow, frozen=True, kw_only=True):
    metadata: Meta


class PriorityClass(Narrow, frozen=True, kw_only=True):
    metadata: Meta
    value: int = 0
    global_default: bool | None = None


class ClaimSpec(Narrow, frozen=True, kw_only=True):
    volume_name: str | None = None
    storage_class_name: str | None = None
    access_modes: list[str] | None = None
    resources: Resources | None = None
    selector: LabelSelector | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class ClaimStatus(Narrow, frozen=True, kw_only=True):
    phase: str | None = None


class VolumeClaim(Narrow, frozen=True, kw_only=True):
    metadata: Meta
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class VolumeAffinity(Narrow, frozen=True, kw_only=True):
    required: NodeSelector | None = None


class DriverVolume(Narrow, frozen=True, kw_only=True):
    driver: str = ""
    volume_handle: str = ""


class ClaimReference(Narrow, frozen=True, kw_only=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeSpec(Narrow, frozen=True, kw_only=True):
    node_affinity: VolumeAffinity | None = None
    csi: DriverVolume | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    portworx_volume: dict[str, Any] | None = None
    claim_ref: ClaimReference | None = None
    capacity: Quantities | None = None
    access_modes: list[str] | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class VolumeStatus(Narrow, frozen=True, kw_only=True):
    phase: str | None = None


class PersistentVolume(Narrow, frozen=True, kw_only=True):
    metadata: Meta
    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()


class TopologyLabel(Narrow, frozen=True, kw_only=True):
    key: str
    values: list[str] | None = None


class TopologyTerm(Narrow, frozen=True, kw_only=True):
    match_label_expressions: list[TopologyLabel] | None = None


class StorageClass(Narrow, frozen=True, kw_only=True):
    metadata: Meta
    volume_binding_mode: str | None = None
    provisioner: str = ""
    allowed_topologies: list[TopologyTerm] | None = None


class AttachedVolume(Narrow, frozen=True, kw_only=True):
    persistent_volume_name: str | None = None


class AttachmentSpec(Narrow, frozen=True, kw_only=True):
    attacher: str = ""
    node_name: str = ""
    source: AttachedVolume = AttachedVolume()


class VolumeAttachment(Narrow, frozen=True, kw_only=True):
    metadata: Meta
    spec: AttachmentSpec = AttachmentSpec()


class DriverSpec(Narrow, frozen=True, kw_only=True):
    storage_capacity: bool | None = None


class StorageDriver(Narrow, frozen=True, kw_only=True):
    """What a storage driver says of itself (CSIDriver)."""

    metadata: Meta
    spec: DriverSpec = DriverSpec()


class StorageCapacity(Narrow, frozen=True, kw_only=True):
    """What a storage driver can still make of a class, where its topology says (CSIStorageCapacity)."""

    metadata: Meta
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class DriverLimit(Narrow, frozen=True, kw_only=True):
    count: int | None = None


class NodeDriver(Narrow, frozen=True, kw_only=True):
    name: str
    allocatable: DriverLimit | None = None


class DriversOfNode(Narrow, frozen=True, kw_only=True):
    drivers: list[NodeDriver] | None = None


class StorageNode(Narrow, frozen=True, kw_only=True):
    """What storage drivers say about a node (CSINode)."""

    metadata: Meta
    spec: DriversOfNode = DriversOfNode()


class Anything(Narrow, frozen=True, kw_only=True):
    """An object of a kind that only a table knows: the owner of a pod."""

    api_version: str = ""
    kind: str = ""
    metadata: Meta = Meta()
    spec: dict[str, Any] | UnsetType = UNSET
    status: dict[str, Any] | UnsetType = UNSET
