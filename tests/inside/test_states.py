"""The state comes back into the very objects that the script holds, or the script is told why it cannot."""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from typing import Any

import pytest

import optimus
from optimus.inside.loops import FINISHED


class StandInModel:
    """In place of a torch module: torch is not needed for these tests."""

    def __init__(self, weights: dict[str, float]) -> None:
        self.weights = weights

    def state_dict(self) -> dict[str, float]:
        return dict(self.weights)

    def load_state_dict(self, state: dict[str, float]) -> None:
        if state.keys() != self.weights.keys():
            raise RuntimeError(f"unexpected keys {sorted(state)}")
        self.weights.update(state)


def trained(folder: Path, state: Any, train: Any = lambda _: None, **options: Any) -> list[int]:
    """One attempt of two steps more than before; which steps it did."""
    FINISHED.clear()
    done = []
    for step in optimus.steps(options.pop("total", 2), state=state, folder=folder, **options):
        train(step)
        done.append(step)
    return done


def test_a_model_comes_back_by_its_state_dict(tmp_path: Path) -> None:
    model = StandInModel({"w": 0.0})
    trained(tmp_path, model, lambda _: model.weights.update(w=model.weights["w"] + 1))
    again = StandInModel({"w": 0.0})
    assert trained(tmp_path, again) == [] and again.weights == {"w": 2.0}


def test_several_go_into_one_dict_and_stay_the_objects_they_are(tmp_path: Path) -> None:
    def begin() -> dict[str, Any]:
        return {"model": StandInModel({"w": 0.0}), "losses": [], "last": deque(maxlen=2), "best": None}

    state = begin()

    def train(step: int) -> None:
        state["model"].weights["w"] += 1
        state["losses"].append(step)
        state["last"].append(step)
        state["best"] = step

    trained(tmp_path, state, train)
    again = begin()
    model, losses, last = again["model"], again["losses"], again["last"]
    trained(tmp_path, again)
    assert (model.weights, losses, list(last), again["best"]) == ({"w": 2.0}, [0, 1], [0, 1], 1)
    assert again["model"] is model and again["losses"] is losses


def test_a_key_removed_in_training_stays_removed_and_a_key_new_in_the_script_stays(tmp_path: Path) -> None:
    state = {"warm": 1, "sum": 0}
    trained(tmp_path, state, lambda _: state.pop("warm", None))
    again = {"warm": 1, "sum": 5, "new": 7}
    trained(tmp_path, again)
    assert again == {"sum": 0, "new": 7}


def test_large_things_are_written_by_the_script_as_a_file_or_a_folder(tmp_path: Path) -> None:
    weights = [0]

    def save(path: Path) -> None:
        path.mkdir()
        (path / "shard-0").write_text(str(weights[0]))

    def load(path: Path) -> None:
        weights[0] = int((path / "shard-0").read_text())

    def train(step: int) -> None:
        weights[0] += 10

    assert trained(tmp_path, None, train, save=save, load=load) == [0, 1]
    weights[0] = 0
    assert trained(tmp_path, None, train, save=save, load=load, total=3) == [2]
    assert weights == [30]


def test_a_file_of_the_script_that_was_cut_off_is_not_even_shown_to_it(tmp_path: Path) -> None:
    loaded: list[str] = []

    def save(path: Path) -> None:
        path.write_text("weights")

    def load(path: Path) -> None:
        loaded.append(path.read_text())

    trained(tmp_path, None, save=save, load=load, every=1)
    newest = max((tmp_path / "steps").iterdir())
    (newest / "saved").write_text("wei")
    with pytest.warns(optimus.CheckpointWarning, match="saved has 3 bytes instead of 7"):
        assert trained(tmp_path, None, save=save, load=load) == [1]
    assert loaded == ["weights"]


def test_a_state_that_cannot_be_saved_is_named_before_the_first_step(tmp_path: Path) -> None:
    state = {"sum": 0, "lock": threading.Lock()}
    with pytest.raises(optimus.CheckpointError, match=r"state\['lock'\] cannot be saved: .* Leave it out of state"):
        trained(tmp_path, state)


def test_one_that_becomes_so_later_does_not_stop_training(tmp_path: Path) -> None:
    state: dict[str, Any] = {"sum": 0}
    with pytest.warns(optimus.CheckpointWarning, match=r"state\['late'\] cannot be saved.*training goes on"):
        assert trained(tmp_path, state, lambda _: state.update(late=threading.Lock())) == [0, 1]


def test_an_object_that_could_not_be_restored_in_place_is_refused() -> None:
    with pytest.raises(optimus.CheckpointError, match="state is a object, which cannot be restored in place"):
        optimus.steps(2, state=object())
    with pytest.raises(optimus.CheckpointError, match=r"state\['parts'\] holds .* one level too deep"):
        optimus.steps(2, state={"parts": [StandInModel({})]})


def test_a_script_that_has_changed_is_told_and_nothing_starts_over(tmp_path: Path) -> None:
    trained(tmp_path, StandInModel({"w": 1.0}))
    with pytest.raises(optimus.CheckpointError, match=r"whole, but .* unexpected keys .* Has the script changed"):
        trained(tmp_path, StandInModel({"other": 1.0}))
    with pytest.raises(optimus.CheckpointError, match="written with state=, and the script resumes without it"):
        trained(tmp_path, None)
