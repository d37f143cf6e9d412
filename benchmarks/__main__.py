"""`python -m benchmarks [decide|packing]`: measure, print, write the result files. Exits 1 if a target is missed."""

from __future__ import annotations

import argparse
import json
import sys

from benchmarks import decide, packing_openb


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", default="decide", choices=["decide", "packing"])
    parser.add_argument("--row", help="one row only, as JSON (used for measuring in a process of its own)")
    arguments = parser.parse_args()
    if arguments.row:
        print(json.dumps(decide.measure(arguments.row)))
        return 0
    if arguments.what == "packing":
        return packing_openb.main([])
    return 0 if decide.run() else 1


sys.exit(main())
