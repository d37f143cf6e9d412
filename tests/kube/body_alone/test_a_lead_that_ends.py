"""A lead that is told to stop in the very moment in which something happens: it stops."""

from __future__ import annotations

import asyncio
from typing import cast

from optimus.drivers.kube.leading import Leading
from optimus.drivers.kube.repairing import Repairing
from optimus.drivers.kube.reporting import Reporting
from tests.kube.body_alone.cluster import Alone, settle


class _Silent:
    """Of what people are told, and of what is mended, nothing is asked here."""

    on_trial = 0

    def look(self) -> None: ...

    def tell(self, plan: object) -> None: ...


async def test_it_is_woken_and_cancelled_at_once() -> None:
    for _ in range(20):
        alone = Alone()
        silent = _Silent()
        leading = Leading(
            alone.mirror, alone.engine, alone.acting, cast("Reporting", silent), cast("Repairing", silent)
        )
        lead = asyncio.create_task(leading.run(lambda: True, lambda: None, lambda: None))
        while leading.turns < 1:
            await asyncio.sleep(0.001)
        await settle()
        leading.wake()
        lead.cancel()
        done, _ = await asyncio.wait([lead], timeout=5)
        assert done, "it goes on, and nobody can stop it"
