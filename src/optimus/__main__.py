"""`python -m optimus` is the command `optimus`."""

from optimus.cli.calling import call

call()
