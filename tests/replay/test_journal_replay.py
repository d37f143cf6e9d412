"""The same observations give the same plans; where they do not, the first difference is said in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from optimus.engine.journal import FlawKind, JournalError, JournalSettings, difference, replay
from optimus.model.observations import Observation
from optimus.model.plans import (
    Budget,
    Condition,
    Evict,
    Placement,
    Plan,
    QueueShare,
    Reservation,
    Shrink,
    Start,
    Wait,
)
from optimus.model.reasons import Code, Reason, reason
from tests.replay.journal_samples import SMALL, Counting, Recording, write_journal


@pytest.mark.parametrize("restore_each", [True, False])
def test_a_replay_decides_the_same(tmp_path: Path, restore_each: bool) -> None:
    written = write_journal(tmp_path, 23)
    replayed = list(replay(tmp_path, Counting, restore_each_keyframe=restore_each))
    assert [item.cycle for item in replayed] == written
    assert [item.plan for item in replayed] == [cycle.plan for cycle in written]
    assert all(item.equal and item.difference == "" for item in replayed)


def test_a_replay_goes_on_across_starts(tmp_path: Path) -> None:
    for round_number in range(3):
        recording = Recording(tmp_path, start_ms=round_number * 100_000)
        recording.start()
        for _ in range(7):
            recording.cycle()
        recording.writer.close()
    for restore_each in (True, False):
        replayed = list(replay(tmp_path, Counting, restore_each_keyframe=restore_each))
        assert len(replayed) == 21
        assert all(item.equal for item in replayed)


def test_a_replay_from_the_middle(tmp_path: Path) -> None:
    write_journal(tmp_path, 23)
    replayed = list(replay(tmp_path, Counting, from_sequence=12))
    assert [item.cycle.sequence for item in replayed] == list(range(12, 23))
    assert all(item.equal for item in replayed)


class Changed(Counting):
    """A brain that decides otherwise in its seventh cycle."""

    def step(
        self, observations: tuple[Observation, ...], now_ms: int, *, budget: Budget, policy: str, seed: int
    ) -> Plan:
        plan = super().step(observations, now_ms, budget=budget, policy=policy, seed=seed)
        return Plan(version=plan.version, waiting=plan.waiting) if self.cycles == 7 else plan


class Forgetful(Counting):
    """A brain whose dump misses something."""

    def restore(self, state: bytes) -> None:
        super().restore(state)
        self.mixed = 0


def test_a_changed_brain_is_noticed_where_it_differs(tmp_path: Path) -> None:
    write_journal(tmp_path, 12)
    replayed = list(replay(tmp_path, Changed))
    assert [item.cycle.sequence for item in replayed if not item.equal] == [6]
    assert replayed[6].difference == "action 0: only recorded: Start ml/job-7 (1 recorded, 0 replayed)"


def test_a_dump_that_misses_something_is_noticed(tmp_path: Path) -> None:
    write_journal(tmp_path, 12)
    assert any(not item.equal for item in replay(tmp_path, Forgetful))
    assert all(item.equal for item in replay(tmp_path, Forgetful, restore_each_keyframe=False))


def test_damage_stops_a_replay_unless_told_otherwise(tmp_path: Path) -> None:
    write_journal(tmp_path, 15, SMALL)
    path = sorted(tmp_path.glob("*.journal"))[1]
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(JournalError, match="checksum"):
        list(replay(tmp_path, Counting))
    flaws: list[object] = []
    replayed = list(replay(tmp_path, Counting, on_flaw=flaws.append, restore_each_keyframe=False))
    assert [item.cycle.sequence for item in replayed] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14]
    assert all(item.equal for item in replayed)
    assert len(flaws) == 1


def test_a_torn_end_does_not_stop_a_replay(tmp_path: Path) -> None:
    write_journal(tmp_path, 4, JournalSettings())
    path = next(tmp_path.glob("*.journal"))
    path.write_bytes(path.read_bytes()[:-3])
    flaws: list[FlawKind] = []
    assert len(list(replay(tmp_path, Counting))) == 3
    assert len(list(replay(tmp_path, Counting, on_flaw=lambda flaw: flaws.append(flaw.kind)))) == 3
    assert flaws == [FlawKind.TORN]


NO_ROOM = reason(Code.NO_ROOM, pool="a100", asked=8, best=6)
SIX_FREE = "NoRoom (no node of pool a100 has 8 free; best has 6)"
PLACES = tuple(Placement("worker", ordinal, f"a-{ordinal:02d}", (0, 1), 1000) for ordinal in range(3))
START = Start("ml/train-7", "a100", PLACES)
PLAN = Plan(
    version=4,
    actions=(Evict("ml/old", reason(Code.PREEMPTED, beneficiary="ml/train-7", priority=9), 1000), START),
    waiting=(Wait("ml/x", NO_ROOM),),
    reservations=(Reservation("ml/x", "a100", 5000, ("a-01",)),),
    shares=(QueueShare("vision", "a100", "gpu", 8000, 4000, 9000),),
    conditions=(Condition("pool a100", "Overlap", "overlaps with h100"),),
)
MOVED = Start("ml/train-7", "a100", (*PLACES[:2], Placement("worker", 2, "a-09", (0, 1), 1000)))
OTHER_DEVICES = Start("ml/train-7", "a100", (Placement("worker", 0, "a-00", (2, 3), 1000), *PLACES[1:]))
SHRINK = Shrink("ml/y", (("worker", 3),), NO_ROOM)


def changed(**fields: object) -> Plan:
    values = {field: getattr(PLAN, field) for field in PLAN.__struct_fields__}
    return Plan(**{**values, **fields})


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (changed(), ""),
        (changed(actions=(PLAN.actions[0], MOVED)),
         "action 1, Start ml/train-7: placement 2, worker 2: node: recorded 'a-02', replayed 'a-09'"),
        (changed(actions=(PLAN.actions[0], OTHER_DEVICES)),
         "action 1, Start ml/train-7: placement 0, worker 0: devices: recorded (0, 1), replayed (2, 3)"),
        (changed(actions=(START,)),
         "action 0: recorded Evict ml/old, replayed Start ml/train-7"),
        (changed(actions=(*PLAN.actions, SHRINK)),
         "action 2: only replayed: Shrink ml/y (2 recorded, 3 replayed)"),
        (changed(waiting=(Wait("ml/x", reason(Code.NO_ROOM, pool="a100", asked=8, best=7)),)),
         f"wait 0, ml/x: reason: recorded {SIX_FREE}, replayed {SIX_FREE.replace('has 6', 'has 7')}"),
        (changed(waiting=(Wait("ml/x", reason(Code.NO_ROOM, pool="a100", asked=8, best="6")),)),
         f"wait 0, ml/x: reason: recorded NoRoom {NO_ROOM.facts}, replayed NoRoom {NO_ROOM.facts | {'best': '6'}}"),
        (changed(waiting=(Wait("ml/x", Reason(Code.NO_ROOM, {"best": 6, "pool": "a100", "asked": 8})),)),
         "same content, but not the same bits: a mapping was built in another order"),
        (changed(waiting=(Wait("ml/x", Reason(Code.IDLE, {})),)),
         f"wait 0, ml/x: reason: recorded {SIX_FREE}, replayed Idle {{}}"),
        (changed(waiting=()),
         "wait 0: only recorded: ml/x (1 recorded, 0 replayed)"),
        (changed(reservations=(Reservation("ml/x", "a100", 6000, ("a-01",)),)),
         "reservation 0, ml/x in pool a100: at_ms: recorded 5000, replayed 6000"),
        (changed(shares=(QueueShare("vision", "a100", "gpu", 8000, 4001, 9000),)),
         "share 0, gpu of queue vision in pool a100: allocated: recorded 4000, replayed 4001"),
        (changed(conditions=(Condition("pool a100", "Overlap", "?"),)),
         "condition 0, Overlap of pool a100: message: recorded 'overlaps with h100', replayed '?'"),
        (changed(complete=False, unreached=("reclaim",)), "complete: recorded True, replayed False"),
        (changed(complete=1), "complete: recorded True, replayed 1"),
        (changed(version=5), "version: recorded 4, replayed 5"),
    ],
)  # fmt: skip
def test_the_first_difference_in_words(other: Plan, text: str) -> None:
    assert difference(PLAN, other) == text


def test_plans_beyond_msgpack_are_compared_in_words() -> None:
    assert difference(changed(version=2**80), changed(version=2**80)) == ""
    assert difference(changed(version=2**80), changed(version=2**80 + 1)).startswith("version: recorded")
