"""A record with some of its fields changed, still knowing where each was written.

Why: `change: {queues: [{name: vision, gpu: {limit: 4}}]}` changes one number and leaves the rest as it is.
Owns: how a change is laid over a record: mappings merge, everything else is replaced, an empty value takes it away.
Must not: change the record it was given.
"""

from __future__ import annotations

from optimus.api.marks import MarkedMap


def lay_over(record: MarkedMap, change: MarkedMap) -> MarkedMap:
    result = MarkedMap(change.mark)
    for key in record:
        result.take_from(record, key)
    for key, value in change.items():
        before = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, MarkedMap) and isinstance(before, MarkedMap):
            result.put(key, lay_over(before, value), change.key_marks[key], change.value_marks[key])
        else:
            result.take_from(change, key)
    return result
