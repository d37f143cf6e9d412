"""Optimus: a scheduler for AI workloads that decides who gets which GPUs, when, and for how long."""

__version__ = "0.1.0"
