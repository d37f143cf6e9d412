"""The body without a machine: virtual time, work that only pretends to run.

Why: stories, tests, bug reports and forecasts need the real brain and no hardware.
Owns: the stage on which scenarios are played, the book it keeps, and the comparison with what a story expects.
Must not: read a clock, draw lots, or look into the engine's state; it knows what it did and what plans told it.
"""
