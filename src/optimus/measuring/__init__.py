"""Measuring: how fast the brain decides on this machine, in worlds that are the same everywhere.

Why: `optimus bench` on anybody's machine and `make bench` here measure the same thing in the same way.
Owns: the worlds, how time is taken, and the figures that were measured when this version was made (`decide.json`).
Must not: judge them: targets are told beside the figures.
"""
