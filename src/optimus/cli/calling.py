"""One call of the command line, from the words to the exit code.

Why: whatever goes wrong is said in words: 0 is done, 1 refused or failed, 2 wrong usage, 130 interrupted.
Owns: settings before the command, and what is said of a fault that nobody thought of.
Must not: know any command.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import typer

from optimus.cli import settings, wrong_usage
from optimus.cli.main import app
from optimus.cli.showing import hang_up, say

FAULT = 1
WRONG_USAGE = 2
DEBUG = "OPTIMUS_DEBUG"
COMPLETING = "_OPTIMUS_COMPLETE"
ANYWAY = ("-h", "--help", "--version", "completion")
"""These words need no setting, and must work where one is wrong."""


def call(name: str = "optimus") -> None:
    """`name`: as people call it."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that cannot show × gets a ?, not a traceback
    command: Any = typer.main.get_command(app)
    for option in command.params:  # typer's own way to completion: `optimus completion` says less and changes no file
        option.hidden = option.name in ("install_completion", "show_completion")
    defaults = _defaults(command)
    try:
        code = command(prog_name=name, default_map=defaults, standalone_mode=False)
    except Exception as error:  # noqa: BLE001 - this is the last place where it can be said in words
        sys.exit(_excused(error))
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # whoever read has gone: no failure of ours
            hang_up()
            sys.exit(0)
        raise
    sys.exit(code if isinstance(code, int) else 0)


def _excused(error: Exception) -> int:
    """The exit code, after it has been said what is wrong."""
    if isinstance(error, typer.Abort):
        _say("stopped")
        return FAULT
    if hasattr(error, "format_message"):  # the parser's: its class has had several homes
        usage, text = wrong_usage.told(error)
        typer.echo(usage, err=True, nl=False)
        if text:
            _say(text)
        return int(getattr(error, "exit_code", WRONG_USAGE))
    if os.environ.get(DEBUG):
        raise error
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    _say(f"this is a fault of optimus, not yours: {text}\n{DEBUG}=1 shows where; please report it")
    return FAULT


def _defaults(command: object) -> dict[str, object]:
    """From the file; ends with all that is wrong in it and in variables."""
    known = list(settings.settings_of(command))
    words = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    excused = COMPLETING in os.environ or not words or any(word in ANYWAY for word in words)
    try:
        found = settings.defaults(settings.read_file(known))
        wrong = settings.wrong_variables(known)
    except settings.SettingsError as error:
        found, wrong = {}, str(error).splitlines()
    if wrong and not excused:
        _say("\n       ".join(wrong))
        sys.exit(WRONG_USAGE)
    return found


def _say(text: str) -> None:
    say(f"Error: {text}", "red")
