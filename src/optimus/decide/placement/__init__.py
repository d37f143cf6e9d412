"""Where: nodes and devices for the replicas of a gang, decided together.

Why: a node that has the count but not the devices, or a rack that has the devices but not the CPU, is no place.
Owns: what fits (`shapes`, `rooms`), what is better (`scoring`), which nodes (`choosing`), which devices (`devices`)
and whole gangs with their topology (`seating`).
Must not: know queues, shares or other workloads' rights. It is given room and answers with seats.
"""
