"""Real nodes on this machine: a kubelet, containerd and runc each, with containers that are real processes.

    packages    what they need of the machine; installs it; says why it cannot be, after trying once
    machine     what is shared with the machine: an address range, a bridge, cgroups; given back by whoever comes next
    images      container images written by hand, without a registry and without Docker
    node        one node: namespaces that hold it, containerd, kubelet
    nodes       several of them at a control plane: `with RealNodes(plane) as nodes: …`
    gpus        GPUs that nobody has to buy: `nvidia.com/gpu` in the status of each node, renewed when it is lost

Why: SIGTERM, grace periods, logs and the kubelet's own admission are only proven with a kubelet.
Owns: its namespaces and everything in them, its bridge, its cgroups, its folder.
Must not: touch a containerd, kubelet, firewall or network that it did not make.

A node is a PID and a mount namespace with one process that holds them. When that process dies, for whatever reason,
the kernel ends everything in the node and takes down all its mounts: nothing has to be found again.
"""

from hack.controlplane.real_nodes.nodes import RealNodes, clear_after
from hack.controlplane.real_nodes.packages import RealNodesError, why_not

__all__ = ["RealNodes", "RealNodesError", "clear_after", "why_not"]
