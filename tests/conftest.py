"""What all tests share: how property tests choose their examples.

`ci` is the default and always draws the same examples, so a red run is red for everybody. `soak` draws new ones
and many more; choose it with HYPOTHESIS_PROFILE=soak.

Signals that a shell ignores for what it runs in the background (`make test &`, `nohup make test`) are heard again:
whole stories are about Ctrl-C and terminals that close, and processes inherit what is ignored.
"""

import os
import signal

from hypothesis import HealthCheck, settings

settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.register_profile(
    "soak", max_examples=2000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
for ignored, heard in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, heard)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
