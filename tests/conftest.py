"""What all tests share: how property tests choose their examples.

`ci` is the default and always draws the same examples, so a red run is red for everybody. `soak` draws new ones
and many more; choose it with HYPOTHESIS_PROFILE=soak.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.register_profile(
    "soak", max_examples=2000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
