"""Queues as people write them: the tree, quotas per pool, and the rules of each queue.

Why: the same fields in a file, in `kubectl apply` and in a scenario.
Owns: the queue format; named accelerators stand under `accelerators`, as they do for nodes and workloads.
Must not: look at other queues. The tree is checked by `optimus.model.validation`.

    - name: vision
      parent: research
      pools:
        - {name: a100, gpu: {guarantee: 8, limit: 16}, memory: {limit: 2Ti}, accelerators: {fpga: {limit: 1}}}
      maxWait: 6h
      minRuntimeBeforeReclaim: 10m
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from optimus.api.specs.fields import (
    Capacity,
    Count,
    Cpu,
    Duration,
    Gpu,
    Integer,
    Name,
    Names,
    Spec,
    Text,
    Texts,
    When,
    choice,
    complain,
    one_of,
    written,
)
from optimus.model import units
from optimus.model.pools import DEFAULT_POOL
from optimus.model.queues import CPU, GPU, MEMORY, PoolQuota, Queue, QueuePolicy, QueueState, Quota, WaitAction

UNLIMITED = "unlimited"


def _limit(parse: Callable[[Any], int]) -> PlainValidator:
    def read(value: Any) -> int | None:
        if value == UNLIMITED:
            return None
        try:
            return parse(value)
        except units.UnitError as error:
            raise complain(error.message, error.hint or f"or {UNLIMITED}") from None

    return PlainValidator(read)


class QuotaSpec(Spec):
    """A limit below the guarantee is allowed: the guarantee then counts up to the limit."""

    guarantee: Count = 0
    limit: Annotated[int | None, _limit(units.parse_count), WithJsonSchema(written("count or unlimited"))] = None
    weight: Count = 1

    def to_quota(self) -> Quota:
        return Quota(guarantee=self.guarantee, limit=self.limit, weight=self.weight)


class GpuQuotaSpec(QuotaSpec):
    guarantee: Gpu = 0
    limit: Annotated[int | None, _limit(units.parse_gpu), WithJsonSchema(written("gpu or unlimited"))] = None


class CpuQuotaSpec(QuotaSpec):
    guarantee: Cpu = 0
    limit: Annotated[int | None, _limit(units.parse_cpu), WithJsonSchema(written("cpu or unlimited"))] = None


class MemoryQuotaSpec(QuotaSpec):
    guarantee: Capacity = 0
    limit: Annotated[
        int | None,
        _limit(lambda value: units.parse_memory(value, round_up=False)),
        WithJsonSchema(written("memory or unlimited")),
    ] = None


class ResourceQuotas(Spec):
    """Named accelerators are counted in pieces."""

    gpu: GpuQuotaSpec | None = None
    cpu: CpuQuotaSpec | None = None
    memory: MemoryQuotaSpec | None = None
    accelerators: dict[Text, QuotaSpec] = Field(default_factory=dict)

    def resources(self) -> dict[str, Quota]:
        core: dict[str, QuotaSpec | None] = {GPU: self.gpu, CPU: self.cpu, MEMORY: self.memory}
        named = {name: spec for name, spec in core.items() if spec is not None} | self.accelerators
        return {name: spec.to_quota() for name, spec in named.items()}


class PoolQuotaSpec(ResourceQuotas):
    name: Name


MOST_NAMESPACES = 1_024
"""Of those that a queue lists; more are chosen by their labels."""


class QueueSpec(ResourceQuotas):
    """`gpu`, `cpu`, `memory` and `accelerators` beside `pools` are the quotas of the pool `default`."""

    name: Name
    parent: Name | None = None
    rank: Integer = 0
    pools: tuple[PoolQuotaSpec, ...] = ()
    state: Annotated[QueueState, PlainValidator(choice(QueueState)), one_of(QueueState)] = QueueState.OPEN
    namespaces: Names = Field(default=(), json_schema_extra={"maxItems": MOST_NAMESPACES})
    max_wait: Duration | None = None
    max_wait_action: Annotated[WaitAction, PlainValidator(choice(WaitAction)), one_of(WaitAction)] = WaitAction.FIRST
    max_runtime: Duration | None = None
    max_gpus_per_workload: Gpu | None = None
    max_priority: Integer | None = None
    allowed_classes: Texts = ()
    min_runtime_before_preempt: Duration = 0
    min_runtime_before_reclaim: Duration = 0
    idle_timeout: Duration | None = None
    order: Text = ""
    created: When | None = None
    """Older queues win ties."""

    def quotas(self) -> tuple[PoolQuota, ...]:
        own = self.resources()
        shorthand = (PoolQuota(pool=DEFAULT_POOL, resources=own),) if own else ()
        return (*(PoolQuota(pool=pool.name, resources=pool.resources()) for pool in self.pools), *shorthand)

    def to_queue(self, *, now_ms: int, created_ms: int = 0) -> Queue:
        """`created_ms` where the file does not say."""
        return Queue(
            name=self.name,
            parent=self.parent or "",
            rank=self.rank,
            quotas=self.quotas(),
            policy=QueuePolicy(
                max_wait_ms=self.max_wait,
                max_wait_action=self.max_wait_action,
                max_runtime_ms=self.max_runtime,
                max_gpu_milli_per_workload=self.max_gpus_per_workload,
                max_priority=self.max_priority,
                allowed_classes=self.allowed_classes,
                min_runtime_before_preempt_ms=self.min_runtime_before_preempt,
                min_runtime_before_reclaim_ms=self.min_runtime_before_reclaim,
                idle_timeout_ms=self.idle_timeout,
                order=self.order,
            ),
            state=self.state,
            created_ms=created_ms if self.created is None else max(0, self.created.resolve(now_ms)),
            namespaces=self.namespaces,
        )


class LabelOperator(StrEnum):
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class LabelRuleSpec(Spec):
    key: Text
    operator: Annotated[LabelOperator, PlainValidator(choice(LabelOperator)), one_of(LabelOperator)]
    values: Texts = ()

    @model_validator(mode="after")
    def _values(self) -> Self:
        needed = self.operator in (LabelOperator.IN, LabelOperator.NOT_IN)
        if needed != bool(self.values):
            raise complain(f"values must {'be given' if needed else 'be left out'} with operator {self.operator}")
        return self


class LabelSelectorSpec(Spec):
    """As everywhere in Kubernetes: all of it must hold."""

    match_labels: dict[Text, Text] = Field(default_factory=dict)
    match_expressions: tuple[LabelRuleSpec, ...] = ()


class ClusterQueueSpec(QueueSpec):
    """On a cluster, where namespaces have labels."""

    namespace_selector: LabelSelectorSpec | None = None
    """Namespaces that may use it beside those it lists."""
