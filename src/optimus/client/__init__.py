"""The client of the HTTP API: what the command line and the Python API talk through.

Why: one way to reach a scheduler, wherever it runs.
Owns: addresses, tokens, requests and streams, the words when nobody answers, and jobs as Python objects.
Must not: need more than the standard library: `optimus get jobs` must be there at once.
"""

from optimus.client.connection import ApiError, Connection, JobError, Unreachable, find_address

__all__ = ["ApiError", "Connection", "JobError", "Unreachable", "find_address"]
