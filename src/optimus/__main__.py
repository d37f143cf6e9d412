"""`python -m optimus` is the command `optimus`."""

from optimus.cli.main import app

app(prog_name="optimus")
