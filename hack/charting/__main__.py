"""Build them into the cache, so that tests do not have to: `make kube-build`."""

from __future__ import annotations

import sys

from hack.charting import HELM, PROMTOOL
from hack.controlplane.programs import BuildError, build

try:
    for module in (HELM, PROMTOOL):
        for name, path in build(module=module).items():
            print(f"{name}  {path.stat().st_size >> 20} MiB")
except BuildError as error:
    sys.exit(f"Error: {error}")
