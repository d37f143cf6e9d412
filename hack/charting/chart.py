"""The parts of the chart that follow from the code: CRDs, rights, policies and boards; `make chart` writes them.

The rest of the chart is written by hand. A test compares both: the files with what is written here, and the whole
chart, rendered with its default values, with `optimus install`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from hack.charting.boards import BOARDS, board_text
from optimus.drivers.kube.installing import Installation, objects

CHART = Path(__file__).parents[2] / "charts" / "optimus"
HERE = "{{ .Release.Namespace }}"
NAMED = '{{ include "optimus.name" . }}'
SCHEDULER = "{{ .Values.schedulerName }}"
OPTING_IN_API = '{{ include "optimus.optingInApi" . }}'
FILLED = {
    r"labels: '@labels'": 'labels:\n{{- include "optimus.labels" . | nindent 4 }}',
    r"- '@rights of kinds'": '{{- include "optimus.rightsOfKinds" . | nindent 0 }}',
    r"- '@tenants of kinds'": '{{- include "optimus.tenantsOfKinds" . | nindent 0 }}',
    r"- '@rules of kinds'": '{{- include "optimus.rulesOfKinds" . | nindent 4 }}',
    r"- '@against budgets'": "{{- if not .Values.respectBudgets }}\n  - delete\n  {{- end }}",
}
"""Places that Helm fills in: a word in the object, and what stands for it in the file."""
KEEP = ("helm.sh/resource-policy", "keep")
"""Queues are the work of people: removing a release must not remove them with their CRD."""
_RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
_POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
_OPTING_IN = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")


def files() -> dict[Path, str]:
    """What they are to hold."""
    made = objects(Installation(name=NAMED, namespace=HERE, scheduler_name=SCHEDULER, opting_in=True))
    for one in made:
        _leave_places(one)
    templates = CHART / "templates"
    return {
        templates / "crds.yaml": _when(".Values.crds.install", _text(made, ("CustomResourceDefinition",))),
        templates / "rights.yaml": _text(made, _RIGHTS),
        templates / "policies.yaml": _when(".Values.policies.install", _text(made, _POLICIES)),
        templates / "opting-in.yaml": _when(".Values.optingIn", _text(made, _OPTING_IN)),
        **{CHART / "boards" / f"{board.name}.json": board_text(board) for board in BOARDS},
    }


def _leave_places(one: dict[str, Any]) -> None:
    kind, name = one["kind"], one["metadata"]["name"]
    one["metadata"]["labels"] = "@labels"
    if kind == "CustomResourceDefinition":
        one["metadata"]["annotations"] = dict([KEEP])
    if kind in _OPTING_IN:
        one["apiVersion"] = OPTING_IN_API
    if kind == "ClusterRole" and name == NAMED:
        (pods,) = (rule for rule in one["rules"] if rule["resources"] == ["pods"] and "delete" in rule["verbs"])
        pods["verbs"][pods["verbs"].index("delete")] = "@against budgets"
        one["rules"].append("@rights of kinds")
    if kind == "ClusterRole" and name == f"{NAMED}-tenant":
        one["rules"].append("@tenants of kinds")
    if kind == "ValidatingAdmissionPolicy" and name == f"{NAMED}-queues":
        one["spec"]["matchConstraints"]["resourceRules"].append("@rules of kinds")


def _text(made: list[dict[str, Any]], kinds: tuple[str, ...]) -> str:
    chosen = [one for one in made if one["kind"] in kinds]
    text = yaml.safe_dump_all(chosen, sort_keys=False, width=120, allow_unicode=True)
    foreign = re.sub("|".join(map(re.escape, (HERE, NAMED, SCHEDULER, OPTING_IN_API))), "", text)
    assert "{{" not in foreign, "Helm would read this as a template"
    for word, place in FILLED.items():
        text = text.replace(word, place)
    assert "'@" not in text, "a place that nobody fills in"
    return "# Written by `make chart`.\n" + text


def _when(value: str, text: str) -> str:
    return f"{{{{- if {value} }}}}\n{text}{{{{- end }}}}\n"


def main() -> None:
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
