"""The state of a training script: taken as one value that can be pickled, and put back into the same objects.

What a state may be: a dict (also with things that have `state_dict()` and `load_state_dict()` as values), a list, set,
deque or bytearray, or one thing with `state_dict()` and `load_state_dict()`. Other objects cannot be put back in place,
so they are refused as a state. As a value in a dict they are pickled, and the dict holds a new object afterwards.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import MutableMapping

from optimus.inside.contract import CheckpointError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

IN_PLACE = (dict, list, set, deque, bytearray)
PROTOCOL = 5  # the newest that Python 3.9 reads
FAILS_TO_PICKLE = (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError, NotImplementedError)
FEW = 1_000  # members looked at for things that would not come back in place

WHAT_TO_DO = (
    "Leave it out of state, give it state_dict() and load_state_dict(), or pass save= and load= and write it yourself."
)


class Nowhere:
    """Takes what is written and keeps nothing."""

    def write(self, data: Any) -> int:
        return memoryview(data).nbytes


def is_stateful(thing: Any) -> bool:
    return (
        not isinstance(thing, type)
        and callable(getattr(thing, "state_dict", None))
        and callable(getattr(thing, "load_state_dict", None))
    )


def check_kind(state: Any) -> None:
    """Refuses, before the first step, what could not be put back."""
    if state is None or is_stateful(state):
        return
    if not isinstance(state, (MutableMapping, *IN_PLACE)):
        raise CheckpointError(
            f"state is a {type(state).__name__}, which cannot be restored in place. Pass a dict, a list, or "
            "something with state_dict() and load_state_dict(). Several of them go into one dict: "
            "state={'model': model, 'seen': 0}."
        )
    for name, value in state.items() if isinstance(state, MutableMapping) else enumerate_few(state):
        if is_stateful(value) and isinstance(state, MutableMapping):
            continue
        inner = value.values() if isinstance(value, dict) else value
        nested = isinstance(inner, (list, tuple, type({}.values()))) and len(inner) <= FEW
        if is_stateful(value) or (nested and any(is_stateful(member) for member in inner)):
            raise CheckpointError(
                f"{shown(state, name)} holds something with state_dict() one level too deep: it would come back "
                "as another object than the one the script trains. Put it directly into the dict: "
                "state={'model': model, …}."
            )


def enumerate_few(state: Any) -> Any:
    return enumerate(state) if isinstance(state, (list, deque)) and len(state) <= FEW else ()


def check_saveable(state: Any) -> None:
    """Pickles into nowhere: a state that cannot be saved is found at the start, and not when the room is wanted."""
    write(taken(state, ()), state, Nowhere())


def taken(state: Any, first_keys: tuple[Any, ...]) -> Any:
    """One value for the pickle; `first_keys` are those that the script began with."""
    if state is None:
        return None
    if is_stateful(state):
        return {"stateful": state.state_dict()}
    if isinstance(state, MutableMapping):
        return {
            "values": {name: value for name, value in state.items() if not is_stateful(value)},
            "stateful_values": {name: value.state_dict() for name, value in state.items() if is_stateful(value)},
            "first_keys": list(first_keys),
        }
    return {"whole": state}


def write(value: Any, state: Any, file: Any) -> None:
    """Pickles what was taken; an error names the key that stands in the way."""
    try:
        pickle.Pickler(file, PROTOCOL).dump(value)
    except FAILS_TO_PICKLE as error:
        raise CheckpointError(f"{culprit(value, state)} cannot be saved: {error}. {WHAT_TO_DO}") from error


def culprit(value: Any, state: Any) -> str:
    parts = {**value.get("values", {}), **value.get("stateful_values", {})} if isinstance(value, dict) else {}
    for name, part in parts.items():
        try:
            pickle.Pickler(Nowhere(), PROTOCOL).dump(part)
        except FAILS_TO_PICKLE:
            return shown(state, name)
    return "state"


def shown(state: Any, name: Any) -> str:
    return f"state[{name!r}]" if isinstance(state, (MutableMapping, list, deque)) else "state"


def put_back(state: Any, value: Any) -> None:
    """Into the very objects that the script holds."""
    if state is None or value is None:
        if state is not None or value is not None:
            raise CheckpointError(
                f"the checkpoint was written {'with' if value is not None else 'without'} state=, and the script "
                f"resumes {'with' if state is not None else 'without'} it. Resume with the script that wrote it, or "
                "give the loop another name= to start from the beginning."
            )
        return
    try:
        if "stateful" in value:
            state.load_state_dict(value["stateful"])
        elif "whole" in value:
            replace_contents(state, value["whole"])
        else:
            put_back_mapping(state, value)
    except Exception as error:
        raise CheckpointError(
            f"the checkpoint is whole, but the script's state does not take it: {type(error).__name__}: {error}. Has "
            "the script changed? Resume with the one that wrote it, or give another name= to start from the beginning."
        ) from error


def put_back_mapping(state: Any, value: dict[str, Any]) -> None:
    """Exactly as saved; only a key that the script has got since keeps the value that the script gives it."""
    values, parts = value["values"], value["stateful_values"]
    for name, part in parts.items():
        if not is_stateful(state.get(name)):
            raise KeyError(
                f"the checkpoint has {name!r} by its state_dict(), and state has no such thing under that name"
            )
        state[name].load_state_dict(part)
    gone = [name for name in state if name not in values and name not in parts and name in set(value["first_keys"])]
    for name in gone:
        del state[name]
    for name, new in values.items():
        old = state.get(name)
        if type(old) is type(new) and isinstance(new, IN_PLACE):
            replace_contents(old, new)
        else:
            state[name] = new


def replace_contents(old: Any, new: Any) -> None:
    if isinstance(old, bytearray):
        old[:] = new
        return
    old.clear()
    if isinstance(old, (set, dict)):
        old.update(new)
    else:
        old.extend(new)
