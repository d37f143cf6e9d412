"""The loop: drain observations, apply, snapshot, decide, act; and the journal of it.

Why: every body runs the same loop around the same brain.
Owns: the engine, the ports a body implements, budgets, the journal and its replay, loading of policies.
Must not: know which body it has. There is no `if simulating` here or anywhere.
"""
