"""PyTorchElastic: replicas that each run `torchrun`, which lets others join and leave while they train.

    worker-0 ── keeps the rendezvous store ◄── worker-1, worker-2 …   each: torchrun, its processes, one model
    one more, or one less    all processes save at the same step and leave; torchrun starts them again, fewer or more
    worker-0 is lost         the store is gone with it: all start again from the checkpoint

The command is the user's own, `torchrun train.py`: torchrun reads what it is not told from `PET_…`. The store is inside
the first replica, and not a pod of its own, because that would be one more that waits for room, costs memory and can
die. Of those that may be taken back the highest ordinals go first, unless only the room of the first is of use.

Why: an elastic training keeps its GPUs busy while others come and go beside it.
Owns: where and how replicas meet.
Must not: start processes inside a replica, or count their failures: that is torchrun's.
"""

from __future__ import annotations

from zlib import crc32

from optimus.lives.kinds.kind import Additions, Kind, Peers, Slot
from optimus.model.gangs import chains
from optimus.model.jobs import Job
from optimus.model.nodes import WHOLE_DEVICE_MILLI

FIRST = ("worker", 0)
LOWEST_PORT, PORTS = 23_000, 9_000
"""Below those that a machine gives away by itself."""
LAST_CALL_S = 3
"""So long those who have met wait for more, before they begin."""
RESTARTS = 100
"""Of the processes of a replica. Each departure of somebody else is one, for those that stay."""


def _dress(job: Job, slot: Slot, peers: Peers) -> Additions:
    role = next(chain.role for chain in chains(job.workload.gang) if chain.role.name == slot[0])
    whole = role.request.gpu_milli == WHOLE_DEVICE_MILLI
    told = {
        "PET_NNODES": f"{role.min}:{role.max}",
        "PET_NPROC_PER_NODE": str(max(role.request.gpu_count, 1) if whole else 1),
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ID": f"{job.id}/{peers.attempt}".replace("/", "-"),  # it becomes the name of a folder
        "PET_RDZV_ENDPOINT": f"{peers.address(*FIRST)}:{port_of(job, peers.attempt)}",
        "PET_RDZV_CONF": f"is_host={int(slot == FIRST)},last_call_timeout={LAST_CALL_S}",
        "PET_MAX_RESTARTS": str(RESTARTS),
        "PET_MONITOR_INTERVAL": "1",
        "PET_REDIRECTS": "1",  # with 0, its default, torchrun 1.13 does not start under Python 3.11
        "PET_TEE": "1",
    }
    return Additions(env=tuple(told.items()))


def port_of(job: Job, attempt: int) -> int:
    """Another one for each attempt: where somebody has taken it, the next one is free."""
    return LOWEST_PORT + crc32(f"{job.id}/{attempt}".encode()) % PORTS


PYTORCH_ELASTIC = Kind(anchor=FIRST, survives=True, dress=_dress)
