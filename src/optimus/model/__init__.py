"""The nouns: frozen data that every other layer speaks.

Why: one vocabulary for the simulator, one machine and Kubernetes.
Owns: nodes, devices, pools, queues, workloads, slots' phases, observations, plans and reasons.
Must not: compute a decision, read a clock, do I/O, or import anything of Optimus.

All quantities are integers: GPU in thousandths of a device (`gpu_milli`), CPU in thousandths of a core,
memory in MiB, time in milliseconds. 0.1 + 0.2 GPU must fit in 0.3.
"""
