"""Traces: files of the world become jobs.

Why: a policy is tried on what really happened somewhere.
Owns: one loader per format, the synthetic generator, and the list of what was wrong with a file, line by line.
Must not: drop anything silently, or ship data. The data stays where it is; loaders take a folder or a file.

    load("jobs.csv.gz") ─► formats ─► philly, itp, gavel, … ─► rows, gathering ─► Trace ─► shaping
    generate(Mix(…))    ─► synthetic ───────────────────────────────────────────► Trace
"""
