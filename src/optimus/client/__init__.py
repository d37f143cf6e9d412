"""The client of the HTTP API: what the command line and the Python API talk through.

Why: one way to reach a scheduler, wherever it runs.
Owns: addresses, tokens, requests and streams, and the words when nobody answers.
Must not: need more than the standard library: `optimus get jobs` must be there at once.
"""

from optimus.client.connection import ApiError, Connection, Unreachable, find_address

__all__ = ["ApiError", "Connection", "Unreachable", "find_address"]
