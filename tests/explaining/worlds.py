"""Live moments, made from scenario texts: what a body would hand out, and what it would show of a job."""

from __future__ import annotations

from pathlib import Path

from optimus.api.loading import load_files, load_text
from optimus.api.scenario import Scenario
from optimus.engine.copying import EngineCopy, copy_of, read_copy
from optimus.engine.engine import Engine
from optimus.explaining import Ask, Explanation, JobSeen, explain
from optimus.model.workloads import Workload

ROOT = Path(__file__).resolve().parents[2]
WHY_DOES_IT_WAIT = ROOT / "examples" / "02-scenario-why-does-it-wait" / "story.yaml"


class Moment:
    def __init__(self, scenario: Scenario, policy: str = "default") -> None:
        self.scenario = scenario
        self.now_ms = scenario.start_ms
        self.engine = Engine(policy=policy, settings=scenario.settings)
        self.engine.step(scenario.opening, self.now_ms)

    def copy(self) -> EngineCopy:
        return read_copy(copy_of(self.engine, self.now_ms))

    def workload(self, name: str) -> Workload:
        return next(one for one in self.scenario.workloads if one.id == f"default/{name}")

    def explain(self, name: str, ask: Ask | None = None) -> Explanation:
        return explain(seen_of(self.workload(name)), self.now_ms, self.copy(), ask)

    def suggested(self, name: str) -> dict[str, str]:
        """Kind -> what to write; the last of a kind."""
        return {one.kind: one.field for one in self.explain(name).suggestions}


def moment(text: str) -> Moment:
    return Moment(load_text(text).or_raise())


def of_example() -> Moment:
    return Moment(load_files(WHY_DOES_IT_WAIT).or_raise())


def seen_of(workload: Workload, phase: str = "Pending") -> JobSeen:
    namespace, _, name = workload.id.partition("/")
    return JobSeen(
        namespace=namespace,
        name=name,
        queue=workload.queue,
        job_class=workload.workload_class.value,
        priority=workload.effective_priority,
        phase=phase,
        final=False,
        suspended=workload.suspended,
        submitted_ms=workload.submitted_ms,
    )
