"""What would start it now: everything that is worth trying, tried; the mildest first."""

from __future__ import annotations

from optimus.explaining.quotas import more_guarantee, more_limit
from optimus.explaining.sizes import smaller
from optimus.explaining.suggestion import Suggestion
from optimus.explaining.trying import Trials
from optimus.explaining.wishes import elsewhere, less_protected, more_important, resumed
from optimus.model.reasons import Code, Reason

UNDER_WAY = frozenset({Code.WAITING_FOR_ROOM, Code.STOPPING, Code.BACKING_OFF})
"""It comes without anybody doing anything, or must first come to rest."""
SAYS_IT_ALL = frozenset({Code.UNSUPPORTED, Code.MALFORMED, Code.NOT_READY})
"""What its body knows against it: nothing else helps, and the reason says what does."""


def suggestions(trials: Trials, reason: Reason | None) -> tuple[Suggestion, ...]:
    """`reason`: why it waits as it is. Those that disturb nobody come first."""
    if reason is None or reason.code in UNDER_WAY | SAYS_IT_ALL:
        return ()
    if reason.code is Code.SUSPENDED:
        return tuple(resumed(trials))
    found = [
        *more_limit(trials, reason),
        *elsewhere(trials),
        *smaller(trials),
        *less_protected(trials),
        *more_important(trials),
        *more_guarantee(trials),
    ]
    return tuple(sorted(found, key=lambda one: one.outcome.held))
