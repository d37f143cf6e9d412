"""UnifiedJob as a cluster keeps it: the long form, as far as the schema of a server can say it.

Why: what is wrong with a job is told when it is written, by the server itself and in words, and no process of ours has
     to be there for it.
Owns: which fields of `JobSpec` a server stores, in which of their forms, their defaults, and the rules between them.
Must not: mean anything else than `JobSpec` does: whatever is stored here is read there (`JobDocument`).

A server knows one type for a field. So sizes are a list (`[1, 2, 4]`, `[powersOfTwo]`), models are names with their
speeds beside them, times are whole seconds, shares are numbers (`0.5`), and amounts may be text (`500m`, `16Gi`).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, PlainValidator, WithJsonSchema

from optimus.api.specs.cluster_schemas import as_stored, must, number, ratio, rules, text, texts, usually
from optimus.api.specs.cluster_templates import TEMPLATE
from optimus.api.specs.fields import (
    Count,
    Cpu,
    Flag,
    Gpu,
    Integer,
    Memory,
    Percent,
    Share,
    Spec,
    Text,
    When,
    choice,
    one_of,
)
from optimus.api.specs.job_fields import Parts, Replicas, Seconds, SecondsOrNone, SignalName, Words
from optimus.api.specs.replicas import ANY_SIZE, POWERS_OF_TWO, AllowedSizes
from optimus.api.specs.templates import PodTemplateSpec
from optimus.api.specs.workloads import PreemptibleWord
from optimus.model.gang_validation import MOST_DEVICES
from optimus.model.jobs import JobType, Restart
from optimus.model.workloads import Checkpoint, OnLoss, WorkloadClass

LONGEST_NAME = 50
"""Of a job: its pods are called `<job>-<role>-<ordinal>`, and no part of a DNS name is longer than 63."""
MOST_SIZES = 64
MOST_SPEEDS = 256
_LARGEST = 2**31 - 1
_SIGNALS = "HUP|INT|QUIT|USR1|USR2|ALRM|TERM|CONT|URG|XCPU|XFSZ|VTALRM|PROF|WINCH|IO|PWR"
_LEVEL = "^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$"
_POWERS = [1 << power for power in range(17)]

_Names = Annotated[tuple[Text, ...], texts(63, 32, **{"x-kubernetes-list-type": "set"})]
_Level = Annotated[
    Text,
    text(
        317,
        must(
            f"self == '' || self.matches('{_LEVEL}')",
            "is no level: write host, nvlink, or one of the pool's topologyLevels such as rack",
        ),
    ),
]
_Sizes = Annotated[
    AllowedSizes,
    WithJsonSchema(
        {
            "type": "array",
            "items": {"x-structural": {"x-kubernetes-int-or-string": True, "maxLength": 16}},
            "minItems": 1,
            "maxItems": MOST_SIZES,
            **rules(
                must(
                    "self.all(s, type(s) == int && s > 0)"
                    f" || (size(self) == 1 && self[0] in ['{ANY_SIZE}', '{POWERS_OF_TWO}'])",
                    f"write numbers from 1 such as [1, 2, 4], or [{POWERS_OF_TWO}], or [{ANY_SIZE}]",
                ),
                must(
                    "size(self) < 2 || !self.all(s, type(s) == int)"
                    " || self.all(s, self.filter(other, other == s).size() == 1)"
                    " && self.map(s, int(s)).isSorted()",
                    "sizes must ascend, each once: write [1, 2, 4]",
                ),
            ),
        }
    ),
]


class _Told(Spec):
    """What stands below a field is what `kubectl explain` says of it."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class ClusterFractionSpec(_Told):
    model_config = ConfigDict(
        json_schema_extra=rules(
            must(
                "!has(self.limit) || self.limit >= self.request",
                "the limit is below the request: raise it, or leave it out",
            )
        )
    )

    request: Annotated[Gpu, ratio(1)]
    """The part of one GPU that it always has: 0.25. Whole devices go into count."""
    limit: Annotated[Gpu, ratio(1)] | None = None
    """What it may use while others leave it idle: 0.5."""


class ClusterGpuSpec(_Told):
    model_config = ConfigDict(
        json_schema_extra=rules(
            must(
                "!has(self.fraction) || !has(self.count) || self.count == 1",
                "a fraction is a part of one GPU: keep count or fraction",
            ),
            must(
                "!has(self.memory) || !has(self.count) || self.count == 1",
                "memory is a part of one GPU: keep count or memory",
            ),
            must(
                "!has(self.fraction) || !has(self.memory)",
                "ask for a fraction of a GPU or for GPU memory, not for both",
            ),
            must(
                "!has(self.memory) || !isQuantity(string(self.memory))"
                " || quantity(string(self.memory)).isGreaterThan(quantity('0'))",
                "GPU memory must be more than nothing: write 20Gi, or leave it out",
            ),
            must(
                "!has(self.speeds) || self.speeds.all(m, has(self.models) && m in self.models)",
                "speeds names a model that is not among models: add it there, or leave it out here",
            ),
        )
    )

    count: Annotated[Count, number(0, MOST_DEVICES)] | None = None
    """Whole devices of one replica."""
    fraction: ClusterFractionSpec | None = None
    """A part of one device."""
    memory: Memory | None = None
    """As much of one device as has this memory."""
    models: _Names | None = None
    """Models it may run on, the best first; any, if left out."""
    speeds: dict[Text, Annotated[Percent, ratio()]] | None = None
    """How fast it is on a model, where that is not as fast as on the others: {H100: 1.5}."""
    activity: Annotated[Share, ratio(1, nothing=True)] | None = None
    """How busy it keeps a device that it shares."""


class ClusterReplicaSpec(_Told):
    model_config = ConfigDict(
        json_schema_extra=rules(
            must(
                "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
                "minReplicas is above maxReplicas: lower the one, or raise the other",
            ),
            must(
                "!has(self.desiredReplicas) || !has(self.minReplicas) || self.desiredReplicas >= self.minReplicas",
                "desiredReplicas is below minReplicas: wish for at least the minimum, or suspend the job",
            ),
            must(
                "!has(self.desiredReplicas) || !has(self.maxReplicas) || self.desiredReplicas <= self.maxReplicas",
                "desiredReplicas is above maxReplicas: wish for at most the maximum, or raise it",
            ),
            must(
                "!has(self.sizes) || !self.sizes.all(s, type(s) == int)"
                " || ((!has(self.minReplicas) || self.sizes[0] == self.minReplicas)"
                " && (!has(self.maxReplicas) || self.sizes.all(s, s <= self.maxReplicas)))",
                "sizes begin with minReplicas and end at or below maxReplicas: change the sizes, or leave both out",
            ),
            must(
                "!has(self.sizes) || !has(self.desiredReplicas) || !self.sizes.all(s, type(s) == int)"
                " || (self.desiredReplicas >= self.sizes[0]"
                " && (has(self.maxReplicas) || self.sizes.exists(s, s >= self.desiredReplicas)))",
                "desiredReplicas lies outside sizes: wish for one of them",
            ),
            must(
                f"!has(self.sizes) || self.sizes[0] != '{POWERS_OF_TWO}' || !has(self.minReplicas)"
                f" || self.minReplicas in {_POWERS}",
                f"sizes: [{POWERS_OF_TWO}] needs a minReplicas of 1, 2, 4, 8, …",
            ),
        )
    )

    min_replicas: Replicas | None = None
    """The gang starts with so many or not at all. Alone: exactly that many."""
    max_replicas: Replicas | None = None
    """It may grow so far. Alone: from one."""
    desired_replicas: Replicas | None = None
    """The most its owner wants for now, as `kubectl scale` sets it. Alone: exactly that many."""
    target_replicas: Annotated[Count, number(0, _LARGEST)] | None = None
    """How many there shall be, written by the scheduler alone."""
    sizes: _Sizes | None = None
    """Sizes it may have: [1, 2, 4], [powersOfTwo], or [any]."""
    gpu: ClusterGpuSpec | None = None
    """GPUs of each replica: count, fraction or memory."""
    cpu: Cpu | None = None
    """CPU of each replica; or in the template."""
    memory: Memory | None = None
    """Memory of each replica; or in the template."""
    accelerators: dict[Text, Count] | None = None
    """Other devices of each replica, by name: mig-1g.5gb, fpga."""


class ClusterTopologySpec(_Told):
    model_config = ConfigDict(
        json_schema_extra=rules(
            must(
                "!has(self.required) || !has(self.preferred) || self.required == '' || self.required != self.preferred",
                "preferred says nothing beyond required: name a narrower level, or leave it out",
            ),
            must(
                "!has(self.required) || self.required != 'nvlink' || !has(self.preferred) || self.preferred == ''",
                "nothing is narrower than nvlink: leave preferred out",
            ),
        )
    )

    required: _Level | None = None
    """All replicas are inside one of these, or the job waits."""
    preferred: _Level | None = None
    """All replicas are inside one of these, if there is room."""


class ClusterCheckpointSpec(_Told):
    model_config = ConfigDict(
        json_schema_extra=rules(
            must(
                "!has(self.signal) || !has(self.command)",
                "a job is told to save its work in one way: keep signal or command",
            )
        )
    )

    signal: (
        Annotated[
            SignalName,
            text(
                16,
                must(
                    "!self.matches('^(SIG)?(KILL|STOP)$')",
                    "cannot be caught, so nothing would be saved: write SIGUSR1 or SIGTERM",
                ),
                must(
                    f"self.matches('^(SIG)?({_SIGNALS}|KILL|STOP)$')",
                    "is no signal: write its name, such as SIGUSR1 or SIGTERM",
                ),
            ),
        ]
        | None
    ) = None
    """How it is told to save its work; SIGTERM, if nothing is said."""
    command: Annotated[Words, texts(4096, 64, minItems=1)] | None = None
    """Or a command that is run in the main container."""
    grace_seconds: Annotated[Seconds, number(1, _LARGEST, Checkpoint().grace_ms // 1000)] | None = None
    """Time for it; its room counts as busy until then."""
    interval_seconds: Annotated[Seconds, number(1, _LARGEST)] | None = None
    """How often it saves by itself: what losing it costs."""
    path: (
        Annotated[
            Text,
            text(
                4096,
                must(
                    "self == '' || self.startsWith('/')",
                    "write an absolute path, inside a volume that the template mounts",
                ),
            ),
        ]
        | None
    ) = None
    """Folder of its checkpoints, as its containers see it."""


class ClusterRestartSpec(_Told):
    backoff_limit: Annotated[Count, number(0, _LARGEST, Restart().backoff_limit)] | None = None
    """So many failures of its own are forgiven; being preempted, moved or losing a node is none."""
    backoff_seconds: Annotated[SecondsOrNone, number(0, _LARGEST, Restart().backoff_ms // 1000)] | None = None
    """Before the first retry; twice as long before each further one."""
    max_backoff_seconds: Annotated[SecondsOrNone, number(0, _LARGEST, Restart().longest_ms // 1000)] | None = None
    """Never longer than this."""


_ALONE = " && ".join(
    f"(!has(self.replicaSpec.{name}) || self.replicaSpec.{name} <= 1)"
    for name in ("minReplicas", "maxReplicas", "desiredReplicas")
)


class ClusterJobSpec(_Told):
    """What a job runs, what it needs, how many there may be, and what it can be asked to give up."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            must(
                "!has(self.arraySize) || self.jobType == 'Job'",
                "only a Job can be an array: leave arraySize out, or write jobType: Job",
            ),
            must(
                f"!has(self.arraySize) || !has(self.replicaSpec) || ({_ALONE})",
                "each part of an array is one replica: leave the numbers out, or arraySize",
            ),
            must(
                f"self.jobType != 'Interactive' || !has(self.replicaSpec) || ({_ALONE})",
                "an Interactive job runs as one replica: leave the numbers out, or write jobType: Job",
            ),
            must(
                "self.jobType != 'Interactive' || !has(self.class) || self.class == 'interactive'",
                "an Interactive job is of class interactive: leave class out, or write jobType: Job",
            ),
            must(
                "self.jobType == oldSelf.jobType",
                "a job stays of its type: delete it and make another",
            ),
            must(
                "has(self.arraySize) == has(oldSelf.arraySize)"
                " && (!has(self.arraySize) || self.arraySize == oldSelf.arraySize)",
                "an array keeps its parts: delete it and make another",
            ),
        )
    )

    job_type: Annotated[JobType, PlainValidator(choice(JobType)), usually(JobType, JobType.JOB)] = JobType.JOB
    """How its replicas find each other and change their number."""
    queue: Annotated[Text, text(253)] | None = None
    """A leaf of the queues; that of its namespace, if nothing is said."""
    workload_class: Annotated[
        Annotated[WorkloadClass, PlainValidator(choice(WorkloadClass)), one_of(WorkloadClass)] | None,
        Field(alias="class"),
    ] = None
    """Class of service: its priority and whether it may be preempted follow from it."""
    priority: Annotated[Integer, number(-_LARGEST, _LARGEST)] | None = None
    """Higher goes first inside its queue."""
    preemptible: (
        Annotated[
            PreemptibleWord,
            as_stored({"enum": [True, False, "surplus", "lent"], "x-kubernetes-preserve-unknown-fields": True}),
        ]
        | None
    ) = None
    """true, false (only inside the guarantee), surplus (the minimum stays) or lent (only outside the guarantee)."""
    pools: _Names | None = None
    """Pools it may run in, in order of preference; any for all."""
    replica_spec: ClusterReplicaSpec | None = None
    """How many replicas, and what each needs."""
    array_size: Parts | None = None
    """Parts 0 … n-1, each placed and run for itself."""
    topology: ClusterTopologySpec | None = None
    """How close together its replicas are."""
    checkpoint: ClusterCheckpointSpec | None = None
    """How it saves its work before it is stopped; left out: losing it means losing all it has done."""
    restart: Annotated[ClusterRestartSpec | None, Field(json_schema_extra={"x-default": {}})] = None
    """After a failure the whole gang starts again."""
    restart_cost_seconds: Annotated[SecondsOrNone, number(0, _LARGEST)] | None = None
    """What stopping and starting costs."""
    on_loss: Annotated[OnLoss, PlainValidator(choice(OnLoss)), usually(OnLoss, OnLoss.REPLACE)] = OnLoss.REPLACE
    """Whether a gang below its minimum waits for replacements, or restarts at once."""
    loss_grace_seconds: Annotated[SecondsOrNone, number(0, _LARGEST)] | None = None
    """How long it waits for them."""
    max_runtime_seconds: Annotated[Seconds, number(1, _LARGEST)] | None = None
    """It is stopped after this."""
    expected_duration_seconds: Annotated[Seconds, number(1, _LARGEST)] | None = None
    """Its owner's guess."""
    deadline: Annotated[When, WithJsonSchema({"type": "string", "format": "date-time"})] | None = None
    """When it should be done."""
    family: Annotated[Text, text(253)] | None = None
    """Similar work shares a family, whose history predicts the newcomer."""
    speedup: Annotated[
        tuple[Annotated[Percent, ratio()], ...] | None, Field(json_schema_extra={"maxItems": MOST_SPEEDS})
    ] = None
    """Measured speed with 1, 2, 3 … replicas: [1, 1.9, 2.7]."""
    suspend: Annotated[Flag, WithJsonSchema({"type": "boolean", "x-default": False})] = False
    """true: it waits until it is resumed."""
    ttl_seconds_after_finished: Annotated[SecondsOrNone, number(0, _LARGEST)] | None = None
    """How long the object stays after its end; for ever, if nothing is said."""
    template: Annotated[PodTemplateSpec, as_stored(TEMPLATE)]
    """The pods that are made, as Kubernetes writes them."""
