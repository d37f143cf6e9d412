"""A command goes to the scheduler of the store that is meant, and to no other that happens to listen."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from optimus.client import Connection, Unreachable
from tests.local.machines import PATIENCE_S, Up


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = Up(tmp_path_factory.mktemp("theirs"), "--nodes", "1", "--gpus", "1")
    assert up.cli("run", "-d", "--name", "theirs", "--", "sleep", "1000").returncode == 0
    yield up
    up.end()


def asked(store: Path | str, *words: str, **extra: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if key not in ("OPTIMUS_TARGET", "OPTIMUS_ADDRESS")}
    return subprocess.run(
        [sys.executable, "-m", "optimus", *words],
        env={**kept, "OPTIMUS_STORE": str(store), **extra},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize("words", [("get", "jobs"), ("cancel", "theirs"), ("run", "--", "true"), ("top", "--once")])
def test_nobody_is_up_on_the_store_that_is_named(tmp_path: Path, words: tuple[str, ...]) -> None:
    nobody = tmp_path / "nobody here"
    ran = asked(nobody, *words)
    assert ran.returncode in (1, 2) and not ran.stdout
    if words[0] != "top":
        assert ran.stderr == (
            f"Error: no `optimus up` runs on store {nobody}: start it with `optimus up --store '{nobody}'`, "
            "or name another target (--target, OPTIMUS_TARGET)\n"
        )


def test_nor_on_the_one_that_is_not_named(tmp_path: Path) -> None:
    ran = asked("", "get", "jobs", XDG_DATA_HOME=str(tmp_path))
    assert ran.returncode == 1
    assert f"runs on store {tmp_path}/optimus: start it with `optimus up`, or name" in ran.stderr


def test_an_address_that_was_left_and_nobody_answers(tmp_path: Path) -> None:
    (tmp_path / "address").write_text("http://127.0.0.1:1\n")
    ran = asked(tmp_path, "get", "jobs")
    assert ran.returncode == 1
    assert (
        f"no `optimus up` runs on store {tmp_path} any more: nobody answers at http://127.0.0.1:1 "
        "(Connection refused), the address that it left: start it with"
    ) in ran.stderr


def test_one_that_could_not_write_down_its_address_is_named(up: Up) -> None:
    """As on a disk that was full before its first start."""
    address = up.folder / "address"
    kept = address.read_text()
    address.unlink()
    try:
        ran = asked(up.folder, "get", "jobs")
        assert ran.returncode == 1 and f"an `optimus up` runs on store {up.folder}, and no address" in ran.stderr
        assert "as in --target http://127.0.0.1:6900" in ran.stderr
        assert asked(up.folder, "get", "jobs", "--target", kept.strip()).returncode == 0
    finally:
        address.write_text(kept)


def test_an_address_that_was_left_and_is_anothers_by_now(up: Up, tmp_path: Path) -> None:
    (tmp_path / "address").write_text(f"{up.api.address}\n")
    for words in (("get", "jobs"), ("cancel", "theirs"), ("submit", "-")):
        ran = asked(tmp_path, *words)
        assert ran.returncode == 1 and not ran.stdout, words
        assert f"runs on store {tmp_path} any more: at {up.api.address} one of another store answers" in ran.stderr
    assert up.phase("theirs") == "Running"


def test_from_python_too(up: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "address").write_text(f"{up.api.address}\n")
    monkeypatch.setenv("OPTIMUS_STORE", str(tmp_path))
    monkeypatch.delenv("OPTIMUS_TARGET", raising=False)
    monkeypatch.delenv("OPTIMUS_ADDRESS", raising=False)
    with pytest.raises(Unreachable, match="one of another store answers"):
        Connection().get("/v1/jobs")
    assert Connection(up.api.address).get("/v1/jobs"), "whoever names the address means it"


def test_a_store_by_another_name_is_the_same_store(up: Up, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(up.folder)
    assert "theirs" in asked(tmp_path / "link", "get", "jobs").stdout


def test_the_token_is_told_to_nobody_who_got_the_port_of_a_dead_one(tmp_path: Path) -> None:
    """An impostor at the address that was left, who writes down what he is sent."""
    folder = tmp_path / "store"
    up = Up(folder, "--nodes", "1", "--host", "0.0.0.0")
    token = (folder / "token").read_text().strip()
    assert token and asked(folder, "get", "jobs").returncode == 0, "who is up is told"
    address = (folder / "address").read_text().strip()
    up.kill()
    heard: list[str] = []

    class Impostor(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(str(self.headers))
            self.send_error(500)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", int(address.rpartition(":")[2])), Impostor) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ran = asked(folder, "get", "jobs")
        server.shutdown()
    assert ran.returncode == 1 and heard
    assert not [words for words in heard if token in words]


def test_a_store_that_the_settings_name_is_found_from_python_too(
    up: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPTIMUS_TARGET", "OPTIMUS_ADDRESS", "OPTIMUS_STORE", "OPTIMUS_UP_STORE"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "config.toml"
    monkeypatch.setenv("OPTIMUS_CONFIG", str(file))
    file.write_text(f'[up]\nstore = "{up.folder}"\n')
    assert "theirs" in {job["name"] for job in Connection().get("/v1/jobs")}
    file.write_text("[up\n")
    with pytest.raises(Unreachable, match="no `optimus up` runs on store"):
        Connection().get("/v1/jobs")
