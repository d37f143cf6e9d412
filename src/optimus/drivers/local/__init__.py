"""One machine as a body: replicas are real processes of this computer.

Why: the whole scheduler on a laptop or on one GPU server, with nothing to install beside it.
Owns: everything that touches processes, files and the clock of this machine.
Must not: decide anything, or know another body. This file imports nothing: the small nursery comes through here.
"""
