"""Frameworks that stories about jobs run for real: `torchrun` as Debian has it, with PyTorch for CPUs.

    python -m hack.frameworks      installs what is missing, as root

Why: what is on PyPI brings gigabytes of CUDA along, which no test here can use.
Owns: where they are, and why they are not.
Must not: be needed by anything but tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hack.controlplane.real_nodes.packages import RealNodesError, install

TORCHRUN = Path("/usr/bin/torchrun")
PACKAGES = ["python3-torch"]


def why_no_torch() -> str:
    """Empty if it is there, if need be since now."""
    if not TORCHRUN.exists():
        if os.geteuid() != 0:
            return f"there is no {TORCHRUN}: apt-get install {' '.join(PACKAGES)}"
        try:
            install(PACKAGES, "elastic training needs")
        except RealNodesError as error:
            return str(error)
    tried = subprocess.run([TORCHRUN, "--help"], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"{TORCHRUN} does not run: {tried.stderr.strip()[-200:]}"


if __name__ == "__main__":
    trouble = why_no_torch()
    print(f"torchrun    {trouble or 'is there'}", file=sys.stderr)
