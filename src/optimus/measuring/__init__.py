"""Measuring: how fast the brain decides on this machine, and how fast the controller binds on somebody's server.

Why: `optimus bench` on anybody's machine and `make bench` here measure the same thing in the same way.
Owns: the worlds, how time is taken, the figures that were measured when this version was made (`decide.json`), and what
is made on a cluster to be measured and removed (`binding`).
Must not: judge them: targets are told beside the figures.
"""
