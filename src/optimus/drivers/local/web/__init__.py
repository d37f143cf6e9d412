"""The HTTP API of one machine, in a process of its own.

Why: a thousand watchers, or one that reads slowly, must not cost the scheduler a millisecond.
Owns: a mirror of what is shown, fed by the engine's process; routes, streams, and who may come in.
Must not: decide or write anything: whatever changes something is passed on.
"""
