"""Peers: schedulers others have published, small, to be compared with.

Why: a gain is a gain over something. Each module names its source and where it differs from it.
Owns: a common frame for schedulers that hand out all GPUs anew in every round, and the peers themselves.
Must not: be used to run a cluster; they know no queues, limits or failures. Some are told what nobody can know (oracle)
and say so in their name.
"""
