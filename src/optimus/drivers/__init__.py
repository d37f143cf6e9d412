"""The bodies: each turns the outside world into observations, and plans into effects.

Why: one brain runs in a simulator, on one machine and on Kubernetes.
Owns: one folder per body, and in it the ports that the engine asks for.
Must not: decide anything, or know another body.
"""
