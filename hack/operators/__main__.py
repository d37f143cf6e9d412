"""Build all operators into the cache, so that tests do not have to: `make kube-build`."""

from __future__ import annotations

import sys

from hack.controlplane.programs import BuildError, build
from hack.operators import JOBSET, MPI_OPERATOR, TRAINER, TRAINING_OPERATOR

try:
    for operator in (TRAINING_OPERATOR, JOBSET, MPI_OPERATOR, TRAINER):
        for name, path in build(module=operator.module).items():
            print(f"{name}  {path.stat().st_size >> 20} MiB")
except BuildError as error:
    sys.exit(f"Error: {error}")
