"""`--set NAME=VALUE`: one setting of the cluster, over those of its file."""

from __future__ import annotations

import pytest
from msgspec import structs

from optimus.api.settings import SettingsError, with_settings
from optimus.model.settings import Settings


def test_what_is_typed_is_laid_over_what_is_there() -> None:
    base = Settings(hold_ms=7, resize_payback=5)
    found = with_settings(base, ["resizeInterval=30s", "resizePayback=1", "historyFactor=50%", "consolidation=false"])
    assert found == structs.replace(
        base, resize_interval_ms=30_000, resize_payback=1, history_factor_percent=50, consolidation=False
    )
    assert with_settings(base, []) == base and with_settings(base, ["hold=1s", "hold=2s"]).hold_ms == 2_000


@pytest.mark.parametrize(
    ("pair", "told"),
    [
        ("resizeInterval", "'resizeInterval' has no value: write NAME=VALUE, such as resizeInterval=30s"),
        ("resizInterval=3s", "there is no setting resizInterval; did you mean resizeInterval?"),
        ("resizePayback=-1", "resizePayback: must not be negative: -1"),
        ("hold=soon", "hold: cannot be read as a duration: soon"),
    ],
)
def test_what_is_wrong_is_said(pair: str, told: str) -> None:
    with pytest.raises(SettingsError) as refused:
        with_settings(Settings(), [pair])
    assert str(refused.value) == told
