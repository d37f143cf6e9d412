"""Interactive: one replica that somebody works in, a notebook or a shell.

It has a Service of its name, so that its address stays the same through moves. What is to outlive a stop lies on a
volume that its template names.

Why: people want a name to connect to, and the same one tomorrow.
Owns: where it is reached.
Must not: end it when it is idle; queues have a rule for that, and the scheduler keeps it.
"""

from __future__ import annotations

from typing import Any

from optimus.lives.kinds.kind import Kind


def _url(job: str, namespace: str, template: dict[str, Any]) -> str:
    """By the first port of its first container."""
    containers = template.get("spec", {}).get("containers") or [{}]
    ports = containers[0].get("ports") or []
    port = ports[0].get("containerPort") if ports and isinstance(ports[0], dict) else None
    return f"http://{job}.{namespace}.svc:{port}" if isinstance(port, int) else ""


INTERACTIVE = Kind(named=True, url=_url)
