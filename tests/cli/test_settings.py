"""A value that is not typed comes from a variable, else from the file, else it is the default; and it can be seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from optimus.cli import settings
from optimus.client import JobError
from optimus.client.connection import find_address, settings_file, store_folder
from tests.cli.terminal import ROOT, Ran, optimus


def config(tmp_path: Path, text: str, *words: str, **extra: str) -> Ran:
    file = tmp_path / "config.toml"
    file.write_text(text, encoding="utf-8")
    return optimus(*(words or ("config", "-o", "json")), cwd=ROOT, OPTIMUS_CONFIG=str(file), **extra)


def held(ran: Ran, command: str, option: str) -> dict[str, Any]:
    assert ran.code == 0, ran.err
    return next(s for s in ran.json()["settings"] if (s["command"], s["option"]) == (command, option))


def test_flag_before_variable_before_file_before_default(tmp_path: Path) -> None:
    text = 'output = "json"\n[policies]\noutput = "yaml"\n'
    assert config(tmp_path, text, "reasons").out.startswith("[")
    assert config(tmp_path, text, "policies").out.startswith("- name:")
    assert config(tmp_path, text, "policies", OPTIMUS_POLICIES_OUTPUT="json").out.startswith("[")
    assert config(tmp_path, text, "policies", "-o", "table", OPTIMUS_POLICIES_OUTPUT="json").out.startswith("deadline")
    assert config(tmp_path, "", "policies").out.startswith("deadline")
    both = {"OPTIMUS_OUTPUT": "table", "OPTIMUS_POLICIES_OUTPUT": "json"}
    assert config(tmp_path, "", "policies", **both).out.startswith("["), "its own variable before the shared one"


def test_where_each_value_comes_from_is_told(tmp_path: Path) -> None:
    text = (
        'target = "http://gpu-box:6900"\n\n[run]\ngpus = 2\nclass = "inference"\ndetach = true\nenv = ["A=1", "B=2"]\n'
    )
    ran = config(tmp_path, text, OPTIMUS_RUN_RETRIES="3", OPTIMUS_QUEUE="vision")
    file = tmp_path / "config.toml"
    assert held(ran, "run", "--gpus") == {
        "command": "run",
        "option": "--gpus",
        "value": 2,
        "origin": f"{file}:4",
        "variable": "OPTIMUS_RUN_GPUS",
    }
    assert held(ran, "run", "--class")["variable"] == "OPTIMUS_RUN_CLASS"
    assert held(ran, "run", "--retries") == held(ran, "run", "--retries") | {
        "value": "3",
        "origin": "OPTIMUS_RUN_RETRIES",
    }
    assert held(ran, "run", "--queue")["origin"] == "OPTIMUS_QUEUE"
    assert held(ran, "run", "--priority")["origin"] == "default"
    for command in ("get", "run", "logs", "explain"):
        assert held(ran, command, "--target")["origin"] == f"{file}:1"
    shown = config(tmp_path, text, "config", "run").out
    assert "--gpus" in shown and f"{file}:4" in shown and "--memory" in shown


def test_a_variable_that_is_nobodys_is_told(tmp_path: Path) -> None:
    ran = config(tmp_path, "", "config", OPTIMUS_RUN_GPU="2")
    assert "OPTIMUS_RUN_GPU is no option's variable; did you mean OPTIMUS_RUN_GPUS?" in ran.err


def test_values_of_the_file_are_really_used(tmp_path: Path) -> None:
    ran = config(tmp_path, 'target = "http://127.0.0.1:1"\n', "get", "jobs")
    assert ran.code == 1 and "nobody answers at http://127.0.0.1:1" in ran.err
    ran = config(tmp_path, 'target = "http://127.0.0.1:1"\n', "--target", "http://127.0.0.1:2", "get", "jobs")
    assert "nobody answers at http://127.0.0.1:2" in ran.err
    ran = config(tmp_path, "[scenario.check]\ntogether = true\n", "scenario", "check", "a.yaml", "b.yaml")
    assert ran.code == 2 and "a.yaml" in ran.err


def test_help_and_version_work_with_a_broken_file(tmp_path: Path) -> None:
    for word in ("--version", "--help"):
        assert config(tmp_path, "no settings at all", word).code == 0
    assert config(tmp_path, "no settings at all", "policies").code == 2


def test_the_path_is_told(tmp_path: Path) -> None:
    ran = optimus("config", "--path", OPTIMUS_CONFIG="", XDG_CONFIG_HOME=str(tmp_path))
    assert ran.out == f"{tmp_path}/optimus/config.toml\n"


def test_every_option_has_a_variable_of_its_own() -> None:
    import typer

    from optimus.cli.main import app

    known = list(settings.settings_of(typer.main.get_command(app)))
    own = [one.variables[0] for one in known]
    assert len(own) > 80 and len(set(own)) == len(own)
    assert all(one.variables[0].endswith(one.key.upper().replace("-", "_")) for one in known)


def test_without_a_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> Path:
        raise RuntimeError("no home")

    for name in (
        "OPTIMUS_STORE",
        "XDG_DATA_HOME",
        "XDG_CONFIG_HOME",
        "OPTIMUS_CONFIG",
        "OPTIMUS_TARGET",
        "OPTIMUS_ADDRESS",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nobody)
    assert settings_file() is None
    assert find_address() == ""
    with pytest.raises(JobError, match="name a folder"):
        store_folder()


def test_one_can_come_back_to_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "address").write_text("http://127.0.0.1:4711\n")
    monkeypatch.setenv("OPTIMUS_STORE", str(tmp_path))
    monkeypatch.setenv("OPTIMUS_TARGET", "http://elsewhere:1")
    assert find_address() == "http://elsewhere:1"
    assert find_address("here") == "http://127.0.0.1:4711"


def test_json_of_config_is_json(tmp_path: Path) -> None:
    assert json.loads(config(tmp_path, "").out)["found"] is True


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_is_whole_whatever_is_set(tmp_path: Path, word: str) -> None:
    """A value is tried on the command before anything else; that must leave no trace on it."""
    plain = {command: config(tmp_path, "", command, word) for command in ("run", "up")}
    assert all(ran.code == 0 and "-h, --help" in ran.out for ran in plain.values())
    assert config(tmp_path, "", "run", word, OPTIMUS_QUEUE="vision") == plain["run"]
    assert config(tmp_path, "", "up", word, OPTIMUS_STORE="x") == plain["up"]
    ran = config(tmp_path, "[run]\ngpus = 2\n", "run", word)
    assert ran.code == 0 and "[default: 2]" in ran.out and "-h, --help" in ran.out and "--env" in ran.out
    assert config(tmp_path, "[scenario.run]\ntogether = true\n", "scenario", "run", word).code == 0


def test_a_store_of_the_file_is_where_others_look(tmp_path: Path) -> None:
    text = f"[up]\nstore = '{tmp_path}/of-the-file'\n"
    ran = config(tmp_path, text, "get", "jobs", OPTIMUS_STORE="")
    assert ran.code == 1 and f"no `optimus up` runs on store {tmp_path}/of-the-file: start it with" in ran.err
    ran = config(tmp_path, text, "get", "jobs", OPTIMUS_STORE=str(tmp_path / "x"))
    assert f"runs on store {tmp_path}/x:" in ran.err, "a variable before the file"
    own = {"OPTIMUS_STORE": str(tmp_path / "x"), "OPTIMUS_UP_STORE": str(tmp_path / "y")}
    assert f"runs on store {tmp_path}/y:" in config(tmp_path, "", "get", "jobs", **own).err, "as `optimus up` would"
