"""`python -m benchmarks [decide|packing|readme]`: measure, print, write results and README.

Exits 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks import decide, packing_openb, readme


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", default="decide", choices=["decide", "packing", "readme"])
    arguments = parser.parse_args()
    if arguments.what == "packing":
        return packing_openb.main([])
    met = arguments.what == "readme" or decide.run()
    readme.write()
    return 0 if met else 1


sys.exit(main())
