"""A training by `torchrun`: all ranks make each step together, and the state is a chain over all steps, so that one
that is lost, doubled or made on the wrong state shows.

    torchrun elastic_training.py STEPS SECONDS_EACH      rank 0 tells every step: number, ranks, chain
"""

from __future__ import annotations

import sys
import time
from typing import Any

import optimus

PRIME = 1_000_003


def link(chain: int, step: int) -> int:
    return (chain * 31 + step) % PRIME


def main(steps: int, seconds: float) -> None:
    import torch  # type: ignore[import-not-found]
    from torch import distributed

    distributed.init_process_group("gloo")
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    state: dict[str, Any] = {"chain": 0}
    for step in optimus.steps(steps, state=state, every=20):
        ones = torch.ones(1)
        distributed.all_reduce(ones)
        assert int(ones.item()) == ranks
        time.sleep(seconds)
        state["chain"] = link(state["chain"], step)
        if rank == 0:
            print(f"step={step} ranks={ranks} chain={state['chain']}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
