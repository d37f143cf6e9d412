"""All deliberate faults in the decision core, by subject.

A test looks that the text of each still occurs exactly once, so the list cannot rot unnoticed.
"""

from __future__ import annotations

from tests.mutations.fault import Fault
from tests.mutations.faults_in_acting import ACTING, CYCLE
from tests.mutations.faults_in_admission import LEDGERS, QUOTAS
from tests.mutations.faults_in_placement import GANGS
from tests.mutations.faults_in_rights import RIGHTS, SHARES
from tests.mutations.faults_in_sizing import SIZING

FAULTS: list[Fault] = [*QUOTAS, *LEDGERS, *GANGS, *SHARES, *RIGHTS, *ACTING, *CYCLE, *SIZING]
