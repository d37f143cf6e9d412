"""What all tests share: how property tests choose their examples.

`ci` is the default and always draws the same examples, so a red run is red for everybody. `soak` draws new ones
and many more; choose it with HYPOTHESIS_PROFILE=soak.

Stories with servers come first: each process of tests begins with its part of them, and what takes no time fills up the
end. Otherwise all wait for the one that has the longest ones left.

Signals that a shell ignores for what it runs in the background (`make test &`, `nohup make test`) are heard again:
whole stories are about Ctrl-C and terminals that close, and processes inherit what is ignored.
"""

import os
import signal
from itertools import groupby

import pytest
from hypothesis import HealthCheck, settings

SLOW_FIRST = ("tests/kube/", "tests/local/", "tests/cli/", "tests/mutations/")

settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.register_profile(
    "soak", max_examples=2000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
for ignored, heard in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, heard)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The same in each process: slow files are dealt out like cards; the others go where there is least, since each
    process begins with as many tests as the next."""
    hands: list[list[pytest.Item]] = [[] for _ in range(int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))]
    files = [list(found) for _, found in groupby(items, key=lambda item: item.nodeid.partition("::")[0])]
    slow = [found for found in files if _rank(found) < len(SLOW_FIRST)]
    for number, found in enumerate(sorted(slow, key=_rank)):
        hands[number % len(hands)] += found
    for found in sorted((found for found in files if found not in slow), key=len, reverse=True):
        min(hands, key=len).extend(found)
    items[:] = [item for hand in hands for item in hand]


def _rank(found: list[pytest.Item]) -> int:
    name = found[0].nodeid
    return next((rank for rank, folder in enumerate(SLOW_FIRST) if name.startswith(folder)), len(SLOW_FIRST))
