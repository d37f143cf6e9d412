"""UnifiedJob as people write it: the Kubernetes resource, and the short words of one machine beside it.

Why: one document for a laptop and a cluster; `gpu: 1` and `command: python train.py` for whoever wants no more.
Owns: the format of the document, the known job types, and what `desiredReplicas` means.
Must not: compare one field with another outside its own mapping; `optimus.api.building.jobs` does.

    apiVersion: optimus.dev/v1alpha1
    kind: UnifiedJob
    metadata: {name: train}
    spec: {queue: vision, command: python train.py, gpu: 1, replicas: {min: 1, max: 4}}
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, PlainValidator, WithJsonSchema

from optimus.api.specs.clusters import Tolerations
from optimus.api.specs.fields import (
    Count,
    Duration,
    Flag,
    Integer,
    Name,
    Percent,
    Spec,
    Text,
    Texts,
    When,
    complain,
    nearest,
    shown,
)
from optimus.api.specs.job_fields import (
    Command,
    DnsLabel,
    Environment,
    Parts,
    Replicas,
    Seconds,
    SecondsOrNone,
    SignalName,
    Word,
)
from optimus.api.specs.replicas import (
    ANY_SIZE,
    AllowedSizes,
    Bounds,
    Levels,
    ReplicaFields,
    RequestFields,
    SizesSpec,
    TopologySpec,
)
from optimus.api.specs.templates import Anything, OpenSpec, PodTemplateSpec
from optimus.api.specs.workloads import DEFAULT_NAMESPACE, DEFAULT_QUEUE, ClassWord, OnLossWord, PreemptibleWord
from optimus.model.jobs import JobType
from optimus.model.workloads import ANY_POOL, OnLoss, Preemptible

API_VERSION = "optimus.dev/v1alpha1"
KIND = "UnifiedJob"


def _read_type(value: Any) -> JobType:
    known = [str(member) for member in JobType]
    if isinstance(value, str) and value in known:
        return JobType(value)
    raise complain(f"there is no job type {shown(value)}", nearest(shown(value), known))


def _read_version(value: Any) -> str:
    if value != API_VERSION:
        raise complain(f"must be {API_VERSION}, not {shown(value)}")
    return API_VERSION


Version = Annotated[str, PlainValidator(_read_version), WithJsonSchema({"type": "string"})]


class MetadataSpec(OpenSpec):
    """What else Kubernetes writes here (uid, resourceVersion …) is passed on."""

    name: DnsLabel
    namespace: DnsLabel = DEFAULT_NAMESPACE
    labels: dict[Text, Text] = Field(default_factory=dict)
    annotations: dict[Text, Text] = Field(default_factory=dict)


class ReplicaSpec(RequestFields):
    """`minReplicas` alone means exactly that many; `maxReplicas` alone starts at one.

    `desiredReplicas` is the most that its owner wants for now: the job grows up to it, and no further. Alone it means
    exactly that many."""

    min_replicas: Replicas | None = None
    max_replicas: Replicas | None = None
    desired_replicas: Replicas | None = None
    target_replicas: Count | None = None
    """Written by the scheduler; not read."""
    sizes: AllowedSizes = ANY_SIZE

    def allowed(self) -> SizesSpec:
        """What may be had without regard to the wish; raises pydantic's ValidationError where it contradicts itself."""
        least, most = self.min_replicas, self.max_replicas
        if not isinstance(self.sizes, tuple) and most is None:
            most = self.desired_replicas if least is None else max(least, self.desired_replicas or least)
            if least is None and self.sizes == ANY_SIZE:
                least = self.desired_replicas
        return SizesSpec(min=least, max=most, sizes=self.sizes)

    def unreachable_wish(self) -> str:
        """What is wrong with the wish; empty if nothing is."""
        allowed = self.allowed()
        least, most, _ = allowed.bounds()
        most = most if allowed.max is None else allowed.max
        wish = self.desired_replicas
        if wish is None or least <= wish <= most:
            return ""
        return f"{wish} lies outside minReplicas to maxReplicas: {least} to {most}"

    def bounds(self) -> Bounds:
        """With the wish as upper end: the largest allowed size that is not above it."""
        least, most, sizes = self.allowed().bounds()
        if self.desired_replicas is None:
            return least, most, sizes
        kept = tuple(size for size in sizes if size <= self.desired_replicas)
        return least, kept[-1] if kept else min(most, self.desired_replicas), kept


class JobCheckpointSpec(Spec):
    """How it is told to save its work, and how long that takes. `grace: 30s` is `graceSeconds: 30`."""

    signal: SignalName | None = None
    command: Command | None = None
    grace_seconds: Seconds | None = None
    grace: Duration | None = None
    interval_seconds: Seconds | None = None
    interval: Duration | None = None
    path: Word = ""


class RestartSpec(Spec):
    backoff_limit: Count | None = None
    backoff_seconds: SecondsOrNone | None = None
    backoff: Duration | None = None
    max_backoff_seconds: SecondsOrNone | None = None
    max_backoff: Duration | None = None


class JobSpec(ReplicaFields):
    job_type: Annotated[JobType, PlainValidator(_read_type), WithJsonSchema({"type": "string"})] = JobType.JOB
    queue: Name = DEFAULT_QUEUE
    workload_class: Annotated[ClassWord | None, Field(alias="class")] = None
    priority: Integer | None = None
    preemptible: PreemptibleWord = Preemptible.DEFAULT
    pools: Texts = (ANY_POOL,)
    replica_spec: ReplicaSpec | None = None
    array_size: Parts | None = None
    topology: Levels = TopologySpec()
    checkpoint: JobCheckpointSpec | None = None
    restart: RestartSpec = RestartSpec()
    restart_cost_seconds: SecondsOrNone | None = None
    restart_cost: Duration | None = None
    on_loss: OnLossWord = OnLoss.REPLACE
    loss_grace_seconds: SecondsOrNone | None = None
    loss_grace: Duration | None = None
    max_runtime_seconds: Seconds | None = None
    max_runtime: Duration | None = None
    expected_duration_seconds: Seconds | None = None
    expected_duration: Duration | None = None
    deadline: When | None = None
    family: Word = ""
    speedup: tuple[Percent, ...] = ()
    suspend: Flag = False
    ttl_seconds_after_finished: SecondsOrNone | None = None
    ttl_after_finished: Duration | None = None
    template: PodTemplateSpec | None = None
    command: Command | None = None
    env: Environment | None = None
    workdir: Word | None = None
    node_selector: dict[Text, Text] | None = None
    tolerations: Tolerations | None = None


class JobDocument(Spec):
    api_version: Version = API_VERSION
    kind: Text = KIND
    metadata: MetadataSpec
    spec: JobSpec
    status: Anything = None
    """Written by the scheduler; not read."""
