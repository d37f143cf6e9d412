"""The policies that come with Optimus. `default` is the one to use when in doubt."""

from __future__ import annotations

from optimus.decide.policies import costs, growth, orders, sizing
from optimus.decide.policies.policy import Policy, register

DEFAULT = register(
    Policy(
        name="default",
        doc="Least expected GPU time left first, with hysteresis and aging. The best general choice.",
        turns=orders.has_estimate,
        sizing=sizing.default,
    )
)

register(Policy(name="fifo", doc="First come, first served.", order=orders.fifo))
register(
    Policy(
        name="priority",
        doc="Higher priority first, arrival among equals. Every policy puts priority first; this adds nothing to it.",
        order=orders.priority,
    )
)
register(
    Policy(
        name="shortest-first",
        doc="Least GPU time left first, as declared, predicted or learned; grows what is nearly done.",
        order=orders.shortest_first,
        growth=growth.by_remaining,
        turns=orders.has_estimate,
        sizing=sizing.default,
    )
)
register(
    Policy(
        name="least-attained-service",
        doc="Levels by GPU time received (3 and 10 GPU-hours), arrival inside a level. Needs no run times.",
        order=orders.least_attained_service,
        turns=orders.everybody,
        sizing=sizing.by_work_done,
    )
)
register(
    Policy(
        name="deadline",
        doc="Earliest deadline first while it can be met; the rest by arrival.",
        order=orders.deadline,
    )
)
register(
    Policy(
        name="finish-time-fairness",
        doc="Whoever is delayed most, relative to having the queue's share alone, goes first.",
        order=orders.finish_time_fairness,
    )
)
register(
    Policy(
        name="fair-share-only",
        doc="Shares decide everything: arrival inside a queue, even growth, all victims alike.",
        order=orders.fifo,
        growth=growth.even,
        victim_cost=costs.flat,
    )
)
