"""The same pods and nodes before kube-scheduler and before our brain: what one finds feasible, the other must find.

    worlds     random nodes, volumes and pods from a seed, as JSON for the server
cluster    the real server and the real kube-scheduler: who may be where, pod by pod
judging    our side: the same objects through `optimus.drivers.kube` and the real engine
comparing  world by world: both verdicts, differences and their explanations
__main__   as many worlds as one likes, resumable, with a committed result
"""
