"""Real operators beside a control plane: the controllers whose pods are grouped, at the versions that people run.

    <name>/go.mod    which operator, at which version
    operators        builds it once into the cache, gives the server its CRDs and webhooks, starts it

    with ControlPlane(folder, controllers=True) as plane:
        start(plane, JOBSET)

Why: what an operator really creates is not what its documentation says.
Owns: the processes it starts, which end with the plane.
Must not: be needed by anything under src.
"""

from hack.operators.operators import JOBSET, KUEUE, MPI_OPERATOR, TRAINER, TRAINING_OPERATOR, Operator, install, start

__all__ = ["JOBSET", "KUEUE", "MPI_OPERATOR", "TRAINER", "TRAINING_OPERATOR", "Operator", "install", "start"]
