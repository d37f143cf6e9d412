"""Knobs of a whole cluster. Every one has a default that a new user need not touch."""

from __future__ import annotations

from msgspec import Struct


class Settings(Struct, frozen=True, kw_only=True):
    history_half_life_ms: int = 0
    """Fair-share memory: after this time past use counts half. 0 turns history off."""
    history_factor_percent: int = 100
    """k in weight = n + k(n - u): how strongly past use moves the weight."""
    hold_ms: int = 120_000
    """How long room is kept for a workload after it became free (on top of the leaving work's grace)."""
    unready_timeout_ms: int = 300_000
    """An unready node with running work counts in the totals this long."""
    unknown_duration_ms: int = 86_400_000
    """Assumed run time of work about which nothing is known, in a queue without history."""
    resize_interval_ms: int = 300_000
    """A running elastic workload is grown at most this often."""
    resize_payback: int = 2
    """Growing must save this many times the restart it costs."""
    sizing_interval_ms: int = 60_000
    """Elastic work that can be stopped gets another size at most this often, and not before twice its restart."""
    consolidation: bool = True
    """Move checkpointable work to make room that is free but scattered."""
    consolidation_payback: int = 2
    """The room gained, over the beneficiary's expected run, must be worth this many times the work disturbed."""
