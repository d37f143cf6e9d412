"""A job that is killed without a word loses only what it did since its last checkpoint, and repeats nothing before."""

from __future__ import annotations

import random
from pathlib import Path

from tests.inside.jobs import Job

SCRIPT = """
    import optimus

    state = {"sum": 0, "seen": []}
    for step in optimus.steps(range(500), state=state, every=3):
        assert step == len(state["seen"]), f"step {step}, but the state already has {len(state['seen'])}"
        state["seen"].append(step)
        state["sum"] += step
        print(step)
    print("sum", state["sum"], state["seen"] == list(range(500)), optimus.attempt())
"""


def test_thirty_kills_at_random_moments_change_nothing_in_the_result(tmp_path: Path) -> None:
    chance = random.Random(1)
    job = Job(tmp_path, SCRIPT)
    reached = 0
    for _ in range(30):
        attempt = job.start()
        begun = int(attempt.line())
        assert reached - 3 <= begun <= reached + 1, "from the last checkpoint, which is at most three steps old"
        reached = begun
        for _ in range(chance.randint(0, 25)):
            reached = int(attempt.line())
        attempt.process.kill()
        ended = attempt.end()
        assert ended.code == -9, ended.err
        reached = max([reached, *map(int, filter(str.isdigit, ended.lines))])

    ended = job.run()

    assert ended.code == 0, ended.err
    assert ended.lines[-1] == f"sum {sum(range(500))} True 31"
    assert job.status()["phase"] == "finished" and job.status()["fraction"] == 1.0
    assert len(job.saved()) == 2, "what kills have left half done is gone"
