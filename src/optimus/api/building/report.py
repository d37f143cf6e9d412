"""Where all builders put what they find.

Why: building goes on to the end, whatever it finds on its way.
Owns: the list of findings of one attempt, and the lookups that every builder needs.
Must not: remove records; the caller does, and builds again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from optimus.api.findings import Finding
from optimus.api.marks import Loc, Mark, MarkedMap, find_mark
from optimus.api.setting_aside import SetAsideNames
from optimus.api.specs.fields import nearest
from optimus.model.problems import Problem


class Report:
    def __init__(self, root: MarkedMap, set_aside: SetAsideNames) -> None:
        self.root = root
        self.set_aside = set_aside
        self.findings: list[Finding] = []

    def add(self, loc: Loc, message: str, hint: str = "", *, keep: bool = False) -> None:
        self.findings.append(Finding(loc, message, hint, keep))

    def problems(
        self, record: Loc, problems: Iterable[Problem], locate: Callable[[str], Loc], *, keep: bool = False
    ) -> bool:
        """Problems of the domain, at the keys that were written. Tells whether there were any."""
        found = [Finding((*record, *locate(problem.path)), problem.message, "", keep) for problem in problems]
        self.findings.extend(found)
        return bool(found)

    def unknown(self, loc: Loc, kind: str, name: str, known: Iterable[str], *, keep: bool = False) -> None:
        """A name that leads nowhere; said differently when its record was set aside."""
        if self.set_aside.has("node group" if kind == "node" else kind, name):
            self.add(loc, f"{kind} {name} was set aside because of its own errors", keep=keep)
            return
        close = nearest(name, sorted(set(known))[:5000])
        self.add(loc, f"there is no {kind} {name}", close if len(close) < 200 else "", keep=keep)

    def mark(self, loc: Loc) -> Mark:
        return find_mark(self.root, loc)
