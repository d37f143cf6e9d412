"""Numerical libraries are kept to one thread: set before numpy is imported, and so apart from all that imports it.

Small matrices in many threads spend their time waiting for each other: a simulation took ten times as long, and every
core has a run of its own to do.
"""

from __future__ import annotations

import os

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def one_thread_each() -> None:
    """In this process, if numpy is not there yet; in those that are started from now on, certainly."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
