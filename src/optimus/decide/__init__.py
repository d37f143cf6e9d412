"""The brain: (snapshot, policy, now, seed, budget) -> plan.

Why: one pure function that answers who gets which devices, when, and at whose cost. Quota and placement are
decided together, on one snapshot, so nothing is ever admitted that cannot be placed.
Owns: the rules of a cycle, placement, and policies. `cycle.py` is the story; start reading there.
Must not: read a clock, do I/O, draw random numbers, or change the snapshot. Same input, same plan.
"""
