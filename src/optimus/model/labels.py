"""DNS labels: what jobs and namespaces are called.

Why: who types a name and who reads it from a file are refused by the same rule.
Owns: the rule.
Must not: say more of a wrong name than that it is one.
"""

from __future__ import annotations

import re

_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)


def is_label(text: str) -> bool:
    return _LABEL.fullmatch(text) is not None
