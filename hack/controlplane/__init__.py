"""A real Kubernetes control plane on this machine, for tests, benchmarks and people who want to look.

    go.mod         which programs, at which versions: etcd, kube-apiserver, kube-controller-manager, kube-scheduler,
                   kubelet, kubectl, KWOK
    programs       builds them once into a cache
    credentials    one certificate, tokens for users and groups, kubeconfig files
    processes      starts, pauses, kills and stops programs
    plane          puts a control plane together: `with ControlPlane(folder) as plane: …`
    real_nodes     nodes with kubelet, containerd and runc beside it

    python -m hack.controlplane up | down | status | build     (README.md)

Why: what is proven on a mock is proven about the mock.
Owns: folders and processes of the planes it starts; all ports are free ones of the loopback address.
Must not: be needed by anything under src.
"""

from hack.controlplane.plane import ControlPlane
from hack.controlplane.programs import BuildError, missing_toolchain

__all__ = ["BuildError", "ControlPlane", "missing_toolchain"]
