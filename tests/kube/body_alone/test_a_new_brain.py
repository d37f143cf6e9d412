"""A brain that knows nothing is told what is there, and counts no GPU twice."""

from __future__ import annotations

from optimus.engine.engine import Engine
from tests.kube.body_alone.cluster import Alone, pod


def test_who_is_on_a_node_already_is_not_taken_for_somebody_else() -> None:
    alone = Alone()
    for number in range(6):
        alone.mirror.pod(pod(f"g-{number}", gang="g", size=6, on="n0"))
    engine = Engine()
    engine.observe(alone.mirror.everything(), 1_000)
    free = engine.state.snapshot(1_000).now_gpus
    assert free.min() >= 0, "no device is given twice"
    assert int((free == 0).sum()) == 6
