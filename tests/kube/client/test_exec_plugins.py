"""Plugins that hand out credentials: run when needed, believed until they expire or the server refuses."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hack.controlplane import ControlPlane
from optimus.kube import Client, load
from optimus.kube.errors import ConfigError, Unauthorized
from optimus.kube.resources import NODES
from tests.kube.client.test_config import SECRET, config, make_certificate, real, written
from tests.kube.client.world import Pod

V1 = "client.authentication.k8s.io/v1"
SCRIPT = """#!/bin/sh
echo "$KUBERNETES_EXEC_INFO" > "{folder}/info"
echo "$WORD $1" >> "{folder}/calls"
cat "{folder}/answer"
"""


class Plugin:
    """A program in a folder; it prints what stands in `answer` and notes each call."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = folder / "get-token"
        path.write_text(SCRIPT.format(folder=folder))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def answers(self, status: dict[str, Any], version: str = V1) -> None:
        self.prints(json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status}))

    def prints(self, text: str) -> None:
        (self.folder / "answer").write_text(text)

    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def user(version: str = V1, **more: Any) -> dict[str, Any]:
    word = [{"name": "WORD", "value": "from-env"}]
    told = {"command": "./get-token", "args": ["arg"], "env": word, "apiVersion": version, "interactiveMode": "Never"}
    return {"exec": {**told, **more}}


def ends_in(seconds: float) -> str:
    return f"{datetime.now(UTC) + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


@pytest.mark.parametrize("version", [V1, "client.authentication.k8s.io/v1beta1"])
def test_a_plugin_is_run_once_with_its_words_and_told_about_the_cluster(
    tmp_path: Path, plugin: Plugin, version: str
) -> None:
    plugin.answers({"token": SECRET}, version)
    cluster = load(written(tmp_path, config(user=user(version, provideClusterInfo=True))))
    assert plugin.calls() == [], "not before it is needed"
    assert not cluster.credentials.at_hand()
    assert [cluster.credentials.current().token for _ in range(3)] == [SECRET] * 3
    assert cluster.credentials.at_hand()
    assert plugin.calls() == ["from-env arg"]
    info = json.loads((tmp_path / "info").read_text())
    assert info["apiVersion"] == version
    assert info["spec"]["interactive"] is False
    assert info["spec"]["cluster"]["server"] == cluster.server


def test_what_expires_soon_is_asked_for_again_and_what_lasts_is_not(tmp_path: Path, plugin: Plugin) -> None:
    cluster = load(written(tmp_path, config(user=user())))
    plugin.answers({"token": "short", "expirationTimestamp": ends_in(10)})
    cluster.credentials.current()
    plugin.answers({"token": "long", "expirationTimestamp": ends_in(3600)})
    assert cluster.credentials.current().token == "long"
    cluster.credentials.current()
    assert len(plugin.calls()) == 2


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        (SECRET, "printed something that is no ExecCredential"),
        ("", "printed something that is no ExecCredential"),
        ('{"apiVersion": "v9", "kind": "ExecCredential"}', "another kind or version"),
        (json.dumps({"apiVersion": V1, "kind": "ExecCredential"}), "without a status"),
        (json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {}}), "neither a token nor a certificate"),
    ],
)
def test_nonsense_is_told_without_what_was_printed(tmp_path: Path, plugin: Plugin, printed: str, words: str) -> None:
    plugin.prints(printed)
    cluster = load(written(tmp_path, config(user=user())))
    with pytest.raises(ConfigError, match=words) as told:
        cluster.credentials.current()
    assert SECRET not in str(told.value)


def test_a_plugin_that_is_missing_fails_or_needs_a_person_is_told_with_its_hint(tmp_path: Path, plugin: Plugin) -> None:
    hint = "get it from the intranet"
    missing = user(command="no-such-plugin", installHint=hint)
    with pytest.raises(ConfigError, match=f"not installed(.|\n)*{hint}"):
        load(written(tmp_path, config(user=missing))).credentials.current()
    fails = user(command="false")
    with pytest.raises(ConfigError, match="ended with 1"):
        load(written(tmp_path, config(user=fails))).credentials.current()
    asks = user(interactiveMode="Always")
    with pytest.raises(ConfigError, match="no terminal"):
        load(written(tmp_path, config(user=asks))).credentials.current()


async def test_a_plugin_may_hand_out_a_certificate(plane: ControlPlane, tmp_path: Path, plugin: Plugin) -> None:
    made = make_certificate(plane, tmp_path)
    pems = {name: path.read_text() for name, path in made.items()}
    plugin.answers({"clientCertificateData": pems["client-certificate"], "clientKeyData": pems["client-key"]})
    cluster = load(real(plane, tmp_path, user()))
    async with Client(cluster) as client:
        await client.listing(NODES, Pod)
    assert "PRIVATE KEY" not in repr(cluster.credentials.current())


async def test_a_token_the_server_refuses_is_asked_for_again_once(
    plane: ControlPlane, tmp_path: Path, plugin: Plugin
) -> None:
    plugin.answers({"token": plane.token()})
    async with Client(load(real(plane, tmp_path, user()))) as client:
        await client.listing(NODES, Pod)
        plugin.answers({"token": "worse"})
        await client.listing(NODES, Pod)
        assert len(plugin.calls()) == 1, "the good one is kept"
    plugin.answers({"token": "bad"})
    async with Client(load(real(plane, tmp_path, user()))) as client:
        with pytest.raises(Unauthorized):
            await client.listing(NODES, Pod)
        assert len(plugin.calls()) == 3, "asked, refused, asked once more, refused: told"
        plugin.answers({"token": plane.token()})
        await client.listing(NODES, Pod)
