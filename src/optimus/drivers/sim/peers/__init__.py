"""Peers: schedulers others have published, small, to be compared with.

Why: a gain is a gain over something. Each module names its source and where it differs from it.
Owns: the peers, the frames they share (`lines` for who starts what fits, `rounds` for who hands out all GPUs anew), and
their registry.
Must not: be used to run a cluster; they take what suits a comparison and leave the rest of life out. Some are told what
nobody can know (oracle) and say so in their name.
"""
