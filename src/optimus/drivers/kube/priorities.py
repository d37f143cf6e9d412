"""Priority classes: how important work is whose pods are still to come.

    pods are there ──► spec.priority, as the server has set it          `Group.priority`
    none yet       ──► the class that the template names, else the one
                       for all (globalDefault), else its class of work  `Group.priority_class`

Why: the server writes the number of a class into pods as it makes them. Suspended work has none: without its class it
would queue behind everybody, and again after each preemption.
Owns: the classes there are, and whom it concerns that one has changed.
Must not: contradict the server: pods keep the number they were made with, and the number that a template claims by
itself is none (the server refuses its pods).
"""

from __future__ import annotations

from optimus.drivers.kube.grouping import Group, Groups
from optimus.drivers.kube.objects import PodSpec, PriorityClass
from optimus.model.reasons import Code, Reason, reason


class Priorities:
    def __init__(self) -> None:
        self._classes: dict[str, PriorityClass] = {}
        """Never empty on a server: it has two of its own, which nobody can delete. Empty means not read."""
        self._changed = False

    def see(self, one: PriorityClass) -> None:
        old = self._classes.get(one.metadata.name)
        self._changed |= old is None or (old.value, old.global_default) != (one.value, one.global_default)
        self._classes[one.metadata.name] = one

    def gone(self, name: str) -> None:
        self._changed |= self._classes.pop(name, None) is not None

    def take_stale(self, groups: Groups) -> set[str]:
        """Gangs to be read again. All are looked through: classes change when somebody sets up a cluster, and an index
        would have to be kept all the time."""
        if not self._changed:
            return set()
        self._changed = False
        return {gang for gang in groups.ids() if _depends(groups.group(gang))}

    def of(self, group: Group) -> int | None:
        """None: nobody says, and its class of work decides."""
        if group.priority is not None or group.priority_class is None:
            return group.priority
        if group.priority_class:
            named = self._classes.get(group.priority_class)
            return named.value if named is not None else None
        # Several may say that they are for all; the server then takes the lowest.
        return min((one.value for one in self._classes.values() if one.global_default), default=None)

    def missing(self, template: PodSpec | None) -> Reason | None:
        """Of a role without pods. Its place would be held for pods that the server does not let anybody make."""
        name = template.priority_class_name if template is not None else None
        if not name or not self._classes or name in self._classes:
            return None
        return reason(Code.NOT_READY, missing=f"there is no PriorityClass {name}, so the server refuses its pods")


def _depends(group: Group | None) -> bool:
    return group is not None and (group.priority_class is not None or any(not role.pods for role in group.roles))
