"""The parts of the chart that follow from the code: CRDs, rights, policies and boards; `make chart` writes them.

The rest of the chart is written by hand. A test compares both: the files with what is written here, and the whole
chart, rendered with its default values, with `optimus install`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from hack.charting.boards import BOARDS, board_text
from optimus.drivers.kube.installing import Installation, objects

CHART = Path(__file__).parents[2] / "charts" / "optimus"
HERE = "{{ .Release.Namespace }}"
KEEP = ("helm.sh/resource-policy", "keep")
"""Queues are the work of people: removing a release must not remove them with their CRD."""
_RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
_POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
_OPTING_IN = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")


def files() -> dict[Path, str]:
    """What they are to hold."""
    made = objects(Installation(namespace=HERE, opting_in=True))
    for one in made:
        if one["kind"] == "CustomResourceDefinition":
            one["metadata"]["annotations"] = dict([KEEP])
    templates = CHART / "templates"
    return {
        templates / "crds.yaml": _when(".Values.crds.install", _text(made, ("CustomResourceDefinition",))),
        templates / "rights.yaml": _text(made, _RIGHTS),
        templates / "policies.yaml": _when(".Values.policies.install", _text(made, _POLICIES)),
        templates / "opting-in.yaml": _when(".Values.optingIn", _text(made, _OPTING_IN)),
        **{CHART / "boards" / f"{board.name}.json": board_text(board) for board in BOARDS},
    }


def _text(made: list[dict[str, Any]], kinds: tuple[str, ...]) -> str:
    chosen = [one for one in made if one["kind"] in kinds]
    text = yaml.safe_dump_all(chosen, sort_keys=False, width=120, allow_unicode=True)
    assert "{{" not in text.replace(HERE, ""), "Helm would read this as a template"
    return "# Written by `make chart`.\n" + text


def _when(value: str, text: str) -> str:
    return f"{{{{- if {value} }}}}\n{text}{{{{- end }}}}\n"


def main() -> None:
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
