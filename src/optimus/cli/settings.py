"""Settings: a value for every option that is not typed, from a variable or from one file.

Why: nobody types the same option every day, and a script sets a variable instead of editing a command.
Owns: how options are called in variables and in the file, which of them wins, and what is wrong with either.
Must not: know what any option means: values are tried with the parser of the command they are for.

An option comes from the command line, else from OPTIMUS_COMMAND_OPTION or its shared variable (OPTIMUS_OUTPUT), else
from the file, else it has its default.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import typer

from optimus.cli import wrong_usage
from optimus.client.connection import settings_file

VARIABLE = "OPTIMUS_CONFIG"
SHARED = ("target", "namespace", "output")
"""May stand at the top of the file, for every command that has them."""
NOT_SET = ("help", "version", "install-completion", "show-completion")


class Setting(NamedTuple):
    """One option of one command, and how it is called elsewhere."""

    words: tuple[str, ...]
    """The command: scenario, run."""
    key: str
    variables: tuple[str, ...]
    """The first that is set counts."""
    above: Any
    """The context of the group it is in: a command takes words such as -h from there."""
    command: Any
    option: Any


class Entry(NamedTuple):
    """A setting with the value that the file has for it."""

    setting: Setting
    value: Any
    place: str
    shared: bool = False
    """From the top of the file."""


class SettingsError(Exception):
    """Everything that is wrong, a line for each."""


def settings_of(command: Any, words: tuple[str, ...] = (), above: Any = None) -> Iterator[Setting]:
    """Of a command and all below it. Gives every option the variable of its own."""
    if known_below := getattr(command, "commands", {}):
        name = words[-1] if words else None
        here = command.context_class(command, parent=above, info_name=name, **command.context_settings)
        for name, below in known_below.items():
            if not below.hidden:
                yield from settings_of(below, (*words, name), here)
    if not words:
        return
    for option in command.params:
        key = _key(option)
        if option.param_type_name != "option" or key in NOT_SET:
            continue
        own = "_".join(["OPTIMUS", *words, key]).upper().replace("-", "_")
        known = [option.envvar] if isinstance(option.envvar, str) else list(option.envvar or ())
        if own not in known:
            known = [own, *known]
            option.envvar = known
        option.show_envvar = False  # every option has one: help would be full of them
        yield Setting(words, key, tuple(known), above, command, option)


def _key(option: Any) -> str:
    """As it is typed, without dashes."""
    found = next((name for name in option.opts if name.startswith("--")), option.opts[0])
    return str(found).lstrip("-")


# -- the file -----------------------------------------------------------------------------------------------------


def read_file(settings: list[Setting]) -> list[Entry]:
    """Raises `SettingsError` with all that is wrong in it."""
    path = settings_file()
    if path is None or (not path.exists() and not os.environ.get(VARIABLE)):
        return []
    try:
        text = path.read_text(encoding="utf-8")
        found = tomllib.loads(text)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        why = "it is no text (UTF-8)" if isinstance(error, UnicodeDecodeError) else why
        raise SettingsError(f"{path}: cannot be read as settings: {why}") from None
    entries: list[Entry] = []
    wrong: list[str] = []
    _read_table(found, (), settings, _Places(path, text), entries, wrong)
    wrong += [f"{one.place}: {_shown(one)}: {why}" for one in entries if (why := _wrong(one))]
    if wrong:
        raise SettingsError("\n".join(sorted(dict.fromkeys(wrong), key=_line)))
    return sorted(entries, key=lambda entry: not entry.shared)  # what is said of one command comes later and wins


def _read_table(
    table: Mapping[str, Any],
    words: tuple[str, ...],
    settings: list[Setting],
    places: _Places,
    entries: list[Entry],
    wrong: list[str],
) -> None:
    here = {one.key: one for one in settings if one.words == words}
    below = {
        one.words[len(words)] for one in settings if one.words[: len(words)] == words and len(one.words) > len(words)
    }
    for key, value in table.items():
        place = places.of(words, key)
        if isinstance(value, dict) and key in below:
            _read_table(value, (*words, key), settings, places, entries, wrong)
        elif key in here:
            entries.append(Entry(here[key], value, place))
        elif not words and key in SHARED:
            entries += [Entry(one, value, place, shared=True) for one in settings if one.key == key]
        else:
            wrong.append(
                f"{place}: {'.'.join((*words, key))}: {_unknown(key, {*here, *below, *(() if words else SHARED)})}"
            )


def _shown(entry: Entry) -> str:
    return ".".join((*(() if entry.shared else entry.setting.words), entry.setting.key))


def _line(complaint: str) -> int:
    found = re.search(r":(\d+): ", complaint)
    return int(found[1]) if found else 0


def _unknown(key: str, known: set[str]) -> str:
    close = get_close_matches(key, known, n=1)
    told = f"did you mean {close[0]}?" if close else f"known here are {', '.join(sorted(known))}"
    return f"there is no such setting; {told}"


class _Places:
    """In which line a key is. The reader of the file does not say; good enough for what people write."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._lines: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        for number, line in enumerate(text.splitlines(), 1):
            if header := re.match(r"\s*\[+([^\]]+)\]", line):
                table = tuple(word.strip(" \"'") for word in header[1].split("."))
                self._lines.setdefault(table, number)
            elif pair := re.match(r"\s*([\w.\"'-]+)\s*=", line):
                key = tuple(word.strip("\"'") for word in pair[1].split("."))
                for length in range(1, len(key) + 1):
                    self._lines.setdefault((*table, *key[:length]), number)

    def of(self, words: tuple[str, ...], key: str) -> str:
        number = self._lines.get((*words, key)) or self._lines.get(words)
        return f"{self._path}:{number}" if number else str(self._path)


def defaults(entries: list[Entry]) -> dict[str, Any]:
    """By command and parameter, as the parser takes them."""
    found: dict[str, Any] = {}
    for entry in entries:
        table, value = found, entry.value
        for word in entry.setting.words:
            table = table.setdefault(word, {})
        plain = [str(one) for one in value] if isinstance(value, list) else str(value)
        table[entry.setting.option.name] = value if isinstance(value, bool) else plain
    return found


# -- whether a value can be used ----------------------------------------------------------------------------------


def wrong_variables(settings: list[Setting]) -> list[str]:
    found: dict[str, str] = {}
    """By variable; one that several commands share means the same in all of them."""
    for setting in settings:
        for variable in setting.variables:
            value = os.environ.get(variable)
            if value and variable not in found:
                found[variable] = _refusal(setting, value.split() if setting.option.multiple else [value])
    return [f"{variable}: {why}" for variable, why in found.items() if why]


def _wrong(entry: Entry) -> str:
    setting, value = entry.setting, entry.value
    if getattr(setting.option, "is_flag", False):
        return "" if isinstance(value, bool) else f"is {value!r}; write true or false"
    several = value if isinstance(value, list) else [value]
    if isinstance(value, list) and not setting.option.multiple:
        return "takes one value, and not a list"
    if any(isinstance(one, bool | dict | list) for one in several):
        return f"is {value!r}; write a number or text"
    return _refusal(setting, [str(one) for one in several])


def _refusal(setting: Setting, values: list[str]) -> str:
    """What the parser says of the value; it runs nothing."""
    if getattr(setting.option, "is_flag", False):
        known = ("1", "0", "true", "false", "yes", "no", "on", "off", "t", "f", "y", "n")
        return "" if values[0].strip().lower() in known else f"is {values[0]!r}; write true or false"
    typed = [f"--{setting.key}={value}" for value in values]
    try:
        setting.command.make_context(setting.words[-1], typed, parent=setting.above).close()
    except typer.BadParameter as error:
        if error.param is setting.option:
            return wrong_usage.plain(str(error.message))
    return ""  # what else is missing on such a line is no matter here
