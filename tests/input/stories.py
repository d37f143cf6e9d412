"""The complete example of docs/reference/scenario.md, and small worlds for tests."""

from __future__ import annotations

import re
from pathlib import Path

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "scenario.md"


def examples() -> list[str]:
    """Every YAML block of the reference page that is a file by itself."""
    return re.findall(r"```yaml\n(.*?)```", REFERENCE.read_text(encoding="utf-8"), flags=re.DOTALL)


COMPLETE = examples()[0]
