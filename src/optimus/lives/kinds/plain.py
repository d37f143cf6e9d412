"""Job: one replica, a gang, an elastic one, or an array; what it runs knows of the others by `OPTIMUS_…` alone.

An elastic one changes its size in place: whoever comes finds the checkpoint, whoever leaves has saved. One that
cannot do that says so by its minimum: a gang of four has `minReplicas: 4`, and starts again as a whole.

Why: most work is this.
Owns: nothing more than the default.
Must not: know frameworks; each of them is a type of its own.
"""

from optimus.lives.kinds.kind import Kind

PLAIN = Kind()
