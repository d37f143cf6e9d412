"""A small world for stories about jobs: one job, the replicas somebody would see, and a clock that is told."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import structs

from optimus.lives import Changes, Ended, JobPhase, Life, Place, Replica, phase_of, reconcile
from optimus.lives.reconciling import grant, told_to_leave
from optimus.model.jobs import Job, JobType, Restart, Template
from optimus.model.observations import Observation
from optimus.model.reasons import Code, reason
from optimus.model.workloads import Checkpoint, Group, Role, Workload

SECOND = 1000


def job(*, least: int = 1, most: int = 0, saves: bool = False, limit: int = 3, kind: JobType = JobType.JOB) -> Job:
    role = Role(name="worker", min=least, max=most or least)
    workload = Workload(
        id="default/train",
        queue="default",
        gang=Group(roles=(role,)),
        checkpoint=Checkpoint(grace_ms=30 * SECOND) if saves else None,
    )
    restart = Restart(backoff_limit=limit, backoff_ms=10 * SECOND)
    return Job(workload=workload, template=Template(command=("train",)), restart=restart, job_type=kind)


@dataclass
class Body:
    """Hands that do what they are told, and let the story say how replicas end."""

    job: Job
    life: Life = field(default_factory=lambda: Life(workload="default/train"))
    replicas: dict[str, Replica] = field(default_factory=dict)
    now_ms: int = 0
    facts: list[Observation] = field(default_factory=list)
    last: Changes | None = None

    def grant(self, *ordinals: int) -> None:
        self.life = grant(self.life, [Place(role="worker", ordinal=n, node="here") for n in ordinals])
        self.look()

    def look(self, after_s: float = 0) -> Changes:
        self.now_ms += round(after_s * SECOND)
        changes = reconcile(self.job, self.job.workload, self.life, list(self.replicas.values()), self.now_ms)
        self.life = changes.life
        self.facts += changes.facts
        for replica in changes.forget:
            del self.replicas[replica.start]
        for place in changes.start:
            start = f"{self.life.attempt}-{place.ordinal}-{self.now_ms}"
            assert start not in self.replicas, "a replica is started twice"
            self.replicas[start] = Replica(start=start, role=place.role, ordinal=place.ordinal)
        for replica in changes.ask:
            self.replicas[replica.start] = structs.replace(replica, asked_ms=self.now_ms)
        for replica in changes.kill:
            self.replicas[replica.start] = structs.replace(replica, killed=True)
        self.last = changes
        return changes

    def runs(self) -> None:
        """Everybody who was started is seen running."""
        for start, replica in self.replicas.items():
            if replica.live and replica.started_ms is None:
                self.replicas[start] = structs.replace(replica, started_ms=self.now_ms)
        self.look()

    def ends(self, ordinal: int, code: int | None = 0, *, signal: int | None = None, lost: bool = False) -> None:
        replica = next(r for r in self.replicas.values() if r.ordinal == ordinal and r.live)
        ended = Ended(at_ms=self.now_ms, code=code, signal=signal, lost=lost)
        self.replicas[replica.start] = structs.replace(replica, ended=ended)
        self.look()

    def suspend(self) -> None:
        """Somebody wishes it, and the brain takes its room."""
        self._wish(suspended=True)
        self.life = told_to_leave(self.life, reason(Code.SUSPENDED), self.now_ms)
        self.look()

    def resume(self) -> None:
        self._wish(suspended=False)
        self.look()

    def _wish(self, *, suspended: bool) -> None:
        self.job = structs.replace(self.job, workload=structs.replace(self.job.workload, suspended=suspended))

    def phase(self) -> JobPhase:
        return phase_of(self.job.workload, self.life, list(self.replicas.values()))

    @property
    def asked(self) -> list[int]:
        return sorted(r.ordinal for r in self.replicas.values() if r.asked_ms is not None)

    @property
    def killed(self) -> list[int]:
        return sorted(r.ordinal for r in self.replicas.values() if r.killed)
