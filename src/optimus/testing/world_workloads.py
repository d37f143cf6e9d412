"""Workloads of a random world: every class, preemptibility, request and shape of gang that the model knows."""

from __future__ import annotations

from optimus.model.nodes import Toleration
from optimus.model.workloads import (
    ANY_POOL,
    Checkpoint,
    Group,
    ModelSpeed,
    OnLoss,
    Preemptible,
    Request,
    Role,
    Topology,
    Workload,
    WorkloadClass,
)
from optimus.testing.drawing import Draw
from optimus.testing.world_nodes import ACCELERATORS, MIG_PROFILES, MODELS, TAINT_KEYS

MINUTE_MS = 60_000


class WorkloadDice:
    """Draws workloads for one world; similar ones come in bunches, as they do."""

    def __init__(
        self,
        draw: Draw,
        queues: list[str],
        pools: list[str],
        levels: list[str],
        largest: int,
        *,
        stretchy: bool = False,
    ) -> None:
        self._draw = draw
        self._queues = queues
        self._pools = pools
        self._levels = levels
        self._largest = largest
        self._stretchy = stretchy
        self._usual: list[Group] = []
        self._number = 0

    def workload(self, submitted_ms: int) -> Workload:
        draw = self._draw
        self._number += 1
        namespace = draw.weighted(((9, "team"), (1, "other")))
        if self._usual and draw.chance(30):
            gang = draw.pick(self._usual)
        else:
            gang = self._gang()
            self._usual.append(gang)
        queue = draw.pick(self._queues) if not draw.chance(1) else "nowhere"
        checkpoint = None
        if draw.chance(90 if self._stretchy else 60):
            interval = draw.between(1, 30) * MINUTE_MS if draw.chance(50) else None
            checkpoint = Checkpoint(grace_ms=draw.pick((0, 5_000, 30_000, 90_000)), interval_ms=interval)
        return Workload(
            id=f"{namespace}/w{self._number:02}",
            queue=queue,
            gang=gang,
            workload_class=draw.weighted(
                ((6, WorkloadClass.UNATTENDED), (2, WorkloadClass.INTERACTIVE), (2, WorkloadClass.INFERENCE))
            ),
            priority=draw.pick((0, 50, 100, 150, 300)) if draw.chance(35) else None,
            preemptible=draw.weighted(
                (
                    (11, Preemptible.DEFAULT),
                    (1, Preemptible.LENT),
                    (2, Preemptible.YES),
                    (3, Preemptible.NO),
                    (3, Preemptible.SURPLUS),
                )
            ),
            pools=self._pool_list(),
            node_selector=(("tier", draw.pick(("gold", "silver"))),) if draw.chance(6) else (),
            tolerations=self._tolerations(),
            checkpoint=checkpoint,
            restart_cost_ms=draw.pick((0, 10_000, 60_000, 600_000)),
            on_loss=draw.weighted(((3, OnLoss.REPLACE), (1, OnLoss.RESTART))),
            loss_grace_ms=draw.pick((0, 30_000, 60_000, 300_000)),
            submitted_ms=submitted_ms,
            expected_duration_ms=draw.between(1, 600) * MINUTE_MS if draw.chance(50) else None,
            deadline_ms=submitted_ms + draw.between(1, 900) * MINUTE_MS if draw.chance(15) else None,
            max_runtime_ms=draw.between(30, 600) * MINUTE_MS if draw.chance(6) else None,
            family=draw.pick(("", "resnet", "llm")),
            speedup_percent=draw.pick(((), (), (100, 190, 270), (100, 110, 112))),
            suspended=draw.chance(2),
        )

    def _pool_list(self) -> tuple[str, ...]:
        draw = self._draw
        if draw.chance(55):
            return (ANY_POOL,)
        listed = draw.some(self._pools, draw.between(1, len(self._pools)))
        if draw.chance(3):
            listed.append("no-such-pool")
        if draw.chance(10):
            listed.append(ANY_POOL)
        return tuple(listed)

    def _tolerations(self) -> tuple[Toleration, ...]:
        draw = self._draw
        if draw.chance(80):
            return ()
        return (Toleration(),) if draw.chance(30) else (Toleration(draw.pick(TAINT_KEYS)),)

    # -- gangs ------------------------------------------------------------------------------------------------

    def _gang(self) -> Group:
        draw = self._draw
        if self._stretchy and draw.chance(70):
            return Group(roles=(self._stretching(),))
        kind = draw.weighted(((9, "rigid"), (6, "elastic"), (3, "roles"), (3, "nested"), (1, "optional")))
        topology = self._topology(15)
        if kind == "rigid":
            count = draw.weighted(((5, 1), (2, 2), (1, 3), (1, 4)))
            return Group(topology=topology, roles=(Role(name="main", min=count, max=count, request=self._request()),))
        if kind == "elastic":
            return Group(topology=topology, roles=(self._elastic("main"),))
        if kind == "roles":
            launcher = Role(name="launcher", request=Request(cpu_milli=draw.pick((500, 1000)), memory_mib=512))
            worker = self._elastic("worker") if draw.chance(40) else self._rigid("worker")
            return Group(topology=topology, roles=(launcher, worker))
        if kind == "optional":
            extra = Role(name="extra", min=0, max=draw.between(1, 2), request=self._request())
            return Group(topology=topology, roles=(self._rigid("main"), extra))
        return self._nested(topology)

    def _nested(self, topology: Topology) -> Group:
        draw = self._draw
        least = draw.between(1, 2)
        most = least + draw.between(0, 2)
        sizes: tuple[int, ...] = tuple(range(least, most + 1, 2)) if draw.chance(20) else ()
        worker = Role(
            name="worker",
            min=draw.between(1, 2),
            max=2 + draw.between(0, 1),
            request=self._request(),
            topology=self._topology(8),
        )
        inner = Group(name="tensor", min=1, max=draw.between(1, 2), topology=self._topology(40), roles=(worker,))
        if draw.chance(60):
            stage = Group(name="stage", min=least, max=most, sizes=sizes, topology=self._topology(25), roles=(worker,))
        else:
            stage = Group(name="stage", min=least, max=most, sizes=sizes, topology=self._topology(25), groups=(inner,))
        head = (Role(name="head", request=Request(cpu_milli=500)),) if draw.chance(40) else ()
        return Group(topology=topology, groups=(stage,), roles=head)

    def _rigid(self, name: str) -> Role:
        count = self._draw.between(1, 3)
        return Role(name=name, min=count, max=count, request=self._request(), topology=self._topology(8))

    def _elastic(self, name: str) -> Role:
        draw = self._draw
        least = draw.between(1, 2)
        most = least + draw.between(1, 5)
        sizes: tuple[int, ...] = ()
        if draw.chance(40):
            powers = tuple(n for n in (1, 2, 4, 8) if least <= n <= most)
            sizes = powers if least in powers and draw.chance(60) else (least, *range(least + 2, most + 1, 2))
        return Role(name=name, min=least, max=most, sizes=sizes, request=self._request(), topology=self._topology(8))

    def _stretching(self) -> Role:
        """Whole devices, anywhere, any number or powers of two."""
        draw = self._draw
        least = draw.weighted(((4, 1), (1, 2)))
        most = least * draw.pick((2, 4, 8))
        sizes = tuple(least * n for n in (1, 2, 4, 8) if least * n <= most) if draw.chance(20) else ()
        count = draw.weighted(((5, 1), (1, 2)))
        return Role(name="main", min=least, max=most, sizes=sizes, request=Request(gpu_count=count))

    def _topology(self, percent: int) -> Topology:
        draw = self._draw
        if not draw.chance(percent):
            return Topology()
        levels = [*self._levels, "host", "nvlink"]
        level = draw.pick(levels) if not draw.chance(2) else "galaxy"
        if draw.chance(60):
            return Topology(required=level)
        return Topology(preferred=level)

    # -- requests ---------------------------------------------------------------------------------------------

    def _request(self) -> Request:
        draw = self._draw
        kind = draw.weighted(((10, "gpu"), (4, "share"), (2, "memory"), (2, "cpu"), (2, "named")))
        cpu, memory = draw.pick((0, 500, 1000, 2000, 4000)), draw.pick((0, 512, 1024, 4096))
        if kind == "cpu":
            return Request(cpu_milli=max(cpu, 500), memory_mib=memory)
        if kind == "named":
            name = draw.pick((*ACCELERATORS, *(f"mig-{profile}" for profile in MIG_PROFILES)))
            return Request(cpu_milli=cpu, memory_mib=memory, accelerators=((name, draw.between(1, 2)),))
        models: tuple[ModelSpeed, ...] = ()
        if draw.chance(20):
            chosen = draw.some(MODELS, draw.between(1, 3))
            models = tuple(ModelSpeed(model, draw.pick((50, 100, 100, 200))) for model, _ in chosen)
        several = draw.weighted(((12, 1), (1, 2)))
        activity = draw.weighted(((3, 0), (1, 300), (1, 600)))
        if kind == "share":
            milli = draw.pick((100, 200, 250, 300, 333, 500, 500, 700, 900))
            limit = draw.pick((0, 1000))
            return Request(
                gpu_count=several, gpu_milli=milli, gpu_limit_milli=limit, models=models, activity_milli=activity,
                cpu_milli=cpu, memory_mib=memory,
            )  # fmt: skip
        if kind == "memory":
            asked = draw.pick((1024, 4096, 10_000, 20_000, 50_000))
            return Request(
                gpu_count=several, gpu_memory_mib=asked, models=models, activity_milli=activity,
                cpu_milli=cpu, memory_mib=memory,
            )  # fmt: skip
        count = draw.pick([n for n in (1, 1, 1, 2, 2, 4, 8) if n <= self._largest])
        return Request(gpu_count=count, models=models, cpu_milli=cpu, memory_mib=memory)
