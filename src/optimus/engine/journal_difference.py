"""What is different between two plans, in words.

Why: "plan 4711 differs" helps nobody; "action 3, Start ml/train-7: worker 2: node: recorded a-01, replayed a-02" does.
Owns: equality to the bit (the encoded plans are compared) and the sentence about the first difference.
Must not: overlook a difference that it has no words for.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from optimus.model.plans import Condition, Placement, Plan, QueueShare, Reservation, Wait
from optimus.model.reasons import Reason

_encoder = msgspec.msgpack.Encoder()

_ORDER = ("actions", "waiting", "reservations", "shares", "conditions", "complete", "unreached", "version")
"""Fields of a plan, what matters most first."""
_NOUNS = {
    "actions": "action",
    "waiting": "wait",
    "reservations": "reservation",
    "shares": "share",
    "conditions": "condition",
    "placements": "placement",
    "slots": "slot",
    "unreached": "unreached step",
}


def difference(recorded: Plan, replayed: Plan) -> str:
    """The first difference; empty if the two are the same to the last bit."""
    bits = _bits(recorded)
    if bits is not None and bits == _bits(replayed):
        return ""
    for field in _ORDER:
        text = _compare(field, getattr(recorded, field), getattr(replayed, field))
        if text:
            return text
    if bits is None:
        return ""
    return "same content, but not the same bits: a mapping was built in another order"


def _bits(plan: Plan) -> bytes | None:
    try:
        return _encoder.encode(plan)
    except (OverflowError, TypeError, ValueError):  # beyond msgpack: compare in words only
        return None


def _compare(place: str, one: object, two: object) -> str:
    if isinstance(one, Reason) and isinstance(two, Reason):
        return "" if _same(one, two) else _compare_reasons(place, one, two)
    if type(one) is not type(two):
        return _versus(place, _name(one), _name(two))
    if isinstance(one, Struct):
        for field in one.__struct_fields__:
            text = _compare(f"{place}: {field}", getattr(one, field), getattr(two, field))
            if text:
                return text
        return ""
    if isinstance(one, tuple) and isinstance(two, tuple):
        return _compare_rows(place, one, two)
    return "" if one == two else _versus(place, repr(one), repr(two))


def _compare_rows(place: str, one: tuple[object, ...], two: tuple[object, ...]) -> str:
    prefix, _, field = place.rpartition(": ")
    noun = _NOUNS.get(field, "")
    if not noun:  # a short row of plain values reads best as a whole
        return "" if one == two else _versus(place, repr(one), repr(two))
    where = f"{prefix}: {noun}" if prefix else noun
    for index, (left, right) in enumerate(zip(one, two, strict=False)):
        if _name(left) != _name(right):
            return _versus(f"{where} {index}", _name(left), _name(right))
        text = _compare(f"{where} {index}, {_name(left)}", left, right)
        if text:
            return text
    if len(one) != len(two):
        longer, index = (one, len(two)) if len(one) > len(two) else (two, len(one))
        side = "only recorded" if len(one) > len(two) else "only replayed"
        return f"{where} {index}: {side}: {_name(longer[index])} ({len(one)} recorded, {len(two)} replayed)"
    return ""


def _name(item: object) -> str:
    """What a person calls it."""
    match item:
        case Placement():
            return f"{item.role} {item.ordinal}"
        case Wait():
            return item.workload
        case Reservation():
            return f"{item.workload} in pool {item.pool}"
        case QueueShare():
            return f"{item.resource} of queue {item.queue} in pool {item.pool}"
        case Condition():
            return f"{item.code} of {item.subject}"
        case Struct():
            return f"{type(item).__name__} {getattr(item, 'workload', '')}".rstrip()
        case _:
            return repr(item)


def _same(one: Reason, two: Reason) -> bool:
    """Also in the types of the facts: 1 is not True."""
    return one == two and all(type(fact) is type(two.facts[name]) for name, fact in one.facts.items())


def _compare_reasons(place: str, one: Reason, two: Reason) -> str:
    left, right = _reason_text(one), _reason_text(two)
    if left == right:  # 6 and "6" read the same in a sentence
        left, right = f"{one.code} {one.facts}", f"{two.code} {two.facts}"
    return _versus(place, left, right)


def _reason_text(reason: Reason) -> str:
    try:
        return f"{reason.code} ({reason.text()})"
    except (KeyError, IndexError, ValueError):  # a fact is missing: show what is there
        return f"{reason.code} {reason.facts}"


def _versus(place: str, one: str, two: str) -> str:
    return f"{place}: recorded {one}, replayed {two}"
