"""Which server and as whom: kubeconfig files as people really have them, and errors that say what to do."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hack.controlplane import ControlPlane
from optimus.kube import Client, load
from optimus.kube.config import in_cluster
from optimus.kube.credentials import Identity, TokenFile
from optimus.kube.errors import ConfigError, Forbidden, NotSent, Unauthorized
from optimus.kube.resources import NODES
from tests.kube.client.world import Pod

SECRET = "s3cr3t-token-of-alice"


def config(**parts: Any) -> dict[str, Any]:
    named = {
        "clusters": [{"name": "c", "cluster": parts.get("cluster", {"server": "https://10.0.0.1:6443"})}],
        "users": [{"name": "u", "user": parts.get("user", {"token": SECRET})}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", **parts.get("context", {})}}],
        "current-context": "x",
    }
    return {"apiVersion": "v1", "kind": "Config", **named}


def written(folder: Path, content: object, name: str = "config") -> str:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


# -- files ----------------------------------------------------------------------------------------------------------


def test_a_context_names_server_user_and_namespace(tmp_path: Path) -> None:
    cluster = load(written(tmp_path, config(context={"namespace": "vision"})))
    assert (cluster.server, cluster.namespace) == ("https://10.0.0.1:6443", "vision")
    assert cluster.credentials.current().token == SECRET


def test_several_files_are_one_and_the_first_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = {"contexts": [{"name": "mine", "context": {"cluster": "c", "user": "u"}}], "current-context": "mine"}
    second = config(cluster={"server": "https://10.0.0.2:6443"})
    files = [written(tmp_path, first, "a"), str(tmp_path / "missing"), written(tmp_path, second, "b")]
    monkeypatch.setenv("KUBECONFIG", ":".join(files))
    assert load().server == "https://10.0.0.2:6443"
    assert "'mine'" in load().source
    assert "'x'" in load(context="x").source


def test_paths_are_relative_to_the_file_they_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "token").write_text("from-a-file\n")
    monkeypatch.chdir("/")
    assert (
        load(written(tmp_path, config(user={"tokenFile": "deep/token"}))).credentials.current().token == "from-a-file"
    )


def test_a_proxy_is_not_used_and_that_is_said(tmp_path: Path) -> None:
    cluster = load(written(tmp_path, config(cluster={"server": "https://h:1", "proxy-url": "http://p:3128"})))
    assert any("proxy-url is not used" in remark for remark in cluster.remarks)


def test_on_whose_behalf_is_part_of_every_request(tmp_path: Path) -> None:
    user = {"token": SECRET, "as": "bob", "as-groups": ["a", "b"], "as-user-extra": {"scope": ["x"]}}
    assert load(written(tmp_path, config(user=user))).headers == (
        ("Impersonate-User", "bob"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-scope", "x"),
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a: [", "is not YAML (line 1)"),
        ("just text", "is not a kubeconfig"),
        ("", "no current-context"),
        ({**config(), "current-context": "y"}, "there is no context 'y'"),
        (config(context={"cluster": "z"}), "no cluster 'z'"),
        (config(context={"user": "z"}), "no user 'z'"),
        (config(cluster={"server": "nonsense"}), "is no address: write https://HOST:PORT"),
        (config(cluster={}), "is no address"),
        (config(user={"token": 12345}), "token must be text"),
        (config(user={"username": "a", "password": SECRET}), "no longer part of Kubernetes"),
        (config(user={"auth-provider": {"name": "gcp"}}), "use an exec plugin"),
        (config(user={"client-certificate-data": "%%%"}), "client-certificate-data is not base64"),
        (config(user={"client-certificate": "nowhere.crt"}), "cannot be read: No such file"),
        (config(user={"client-certificate-data": base64.b64encode(b"x").decode()}), "one is missing"),
        (config(user={"token": SECRET, "as-uid": "1"}), "need `as`"),
        (config(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}), "command is missing"),
        (config(user={"exec": {"command": "c", "apiVersion": "v0"}}), "apiVersion must be"),
        (
            config(user={"exec": {"command": "c", "apiVersion": "client.authentication.k8s.io/v1"}}),
            "interactiveMode must be one of Never, IfAvailable, Always",
        ),
    ],
)
def test_what_is_wrong_is_said_with_the_file_and_without_the_secret(
    tmp_path: Path, content: object, words: str
) -> None:
    path = written(tmp_path, content)
    with pytest.raises(ConfigError) as told:
        load(path)
    assert words in str(told.value)
    assert path in str(told.value)
    assert SECRET not in str(told.value)


def test_no_file_at_all_is_said_with_where_it_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(
        ConfigError, match=r"no kubeconfig at .*\.kube/config: name one with --kubeconfig or KUBECONFIG"
    ):
        load()


def test_nothing_secret_is_in_any_repr(tmp_path: Path) -> None:
    plugin = {"command": "c", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}
    users: list[dict[str, Any]] = [
        {"token": SECRET},
        {"exec": {**plugin, "args": [SECRET], "env": [{"name": "A", "value": SECRET}]}},
    ]
    for user in users:
        cluster = load(written(tmp_path, config(user=user)))
        assert SECRET not in repr(cluster) + repr(cluster.credentials) + str(cluster)
    assert SECRET not in repr(Identity(SECRET))


# -- inside a pod ---------------------------------------------------------------------------------------------------


def test_inside_a_pod_the_service_account_is_used_and_its_token_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {"token": "first", "ca.crt": "PEM", "namespace": "optimus\n"}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    cluster = in_cluster(tmp_path)
    assert (cluster.server, cluster.namespace) == ("https://[fd00::1]:443", "optimus")
    first = cluster.credentials.current()
    (tmp_path / "token").write_text("second")
    assert cluster.credentials.current() == first, "not read for every request"
    assert cluster.credentials.refused(first), "there is a better one"
    assert cluster.credentials.current().token == "second"
    assert not cluster.credentials.refused(cluster.credentials.current()), "there is none: no use to try again"


def test_a_token_that_cannot_be_read_for_a_moment_is_the_last_one(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("good")
    credentials = TokenFile(path, reread_s=0.0)
    assert credentials.current().token == "good"
    path.write_text("")
    assert credentials.current().token == "good"
    path.unlink()
    assert credentials.current().token == "good"
    with pytest.raises(ConfigError, match="cannot be read"):
        TokenFile(path).current()


def test_outside_a_pod_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConfigError, match="not inside a pod"):
        in_cluster()


# -- at a real server -------------------------------------------------------------------------------------------------


async def asked(path: str) -> int:
    async with Client(load(path)) as client:
        return len((await client.listing(NODES, Pod)).items)


def real(plane: ControlPlane, tmp_path: Path, user: dict[str, Any], **cluster: Any) -> str:
    trusted = {"server": plane.address, "certificate-authority": str(plane.credentials.certificate)}
    return written(tmp_path, config(user=user, cluster={**trusted, **cluster}))


@pytest.fixture
def certificate(plane: ControlPlane, tmp_path: Path) -> dict[str, Path]:
    return make_certificate(plane, tmp_path)


def make_certificate(plane: ControlPlane, tmp_path: Path) -> dict[str, Path]:
    """Of somebody who may do everything, signed by the authority of the rig."""
    key, ask, made = tmp_path / "me.key", tmp_path / "me.csr", tmp_path / "me.crt"
    words = ["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/O=system:masters/CN=me", "-keyout", str(key)]
    subprocess.run([*words, "-out", str(ask)], check=True, capture_output=True)
    authority = ["-CA", str(plane.credentials.certificate), "-CAkey", str(plane.credentials.key), "-CAcreateserial"]
    words = ["openssl", "x509", "-req", "-in", str(ask), *authority, "-out", str(made), "-days", "1"]
    subprocess.run(words, check=True, capture_output=True, cwd=tmp_path)
    return {"client-certificate": made, "client-key": key}


@pytest.mark.parametrize("form", ["file", "data"])
async def test_a_certificate_is_shown(
    plane: ControlPlane, tmp_path: Path, certificate: dict[str, Path], form: str
) -> None:
    user = {name: str(path) for name, path in certificate.items()}
    if form == "data":
        user = {f"{name}-data": base64.b64encode(path.read_bytes()).decode() for name, path in certificate.items()}
    assert await asked(real(plane, tmp_path, user)) >= 0


async def test_a_certificate_and_a_key_that_do_not_belong_together_are_told(
    plane: ControlPlane, tmp_path: Path, certificate: dict[str, Path]
) -> None:
    user = {"client-certificate": str(certificate["client-certificate"]), "client-key": str(plane.credentials.key)}
    with pytest.raises(ConfigError, match="belong together"):
        await asked(real(plane, tmp_path, user))


async def test_a_server_that_is_not_trusted_is_told_with_what_to_look_at(plane: ControlPlane, tmp_path: Path) -> None:
    user = {"token": plane.token()}
    with pytest.raises(NotSent, match=r"not trusted.*certificate-authority") as told:
        await asked(real(plane, tmp_path, user, **{"certificate-authority": None}))
    assert plane.token() not in str(told.value)
    assert (
        await asked(real(plane, tmp_path, user, **{"certificate-authority": None, "insecure-skip-tls-verify": True}))
        >= 0
    )
    inside = base64.b64encode(plane.credentials.certificate.read_bytes()).decode()
    assert await asked(real(plane, tmp_path, user, **{"certificate-authority-data": inside})) >= 0


async def test_the_name_in_the_certificate_may_be_another_than_the_address(plane: ControlPlane, tmp_path: Path) -> None:
    user = {"token": plane.token()}
    assert await asked(real(plane, tmp_path, user, **{"tls-server-name": "kubernetes.default.svc"})) >= 0
    with pytest.raises(NotSent, match="not trusted"):
        await asked(real(plane, tmp_path, user, **{"tls-server-name": "somebody.else"}))


async def test_a_wrong_token_is_told_as_such(plane: ControlPlane, tmp_path: Path) -> None:
    with pytest.raises(Unauthorized):
        await asked(real(plane, tmp_path, {"token": SECRET}))


async def test_on_behalf_of_somebody_without_rights_nothing_is_seen(plane: ControlPlane, tmp_path: Path) -> None:
    with pytest.raises(Forbidden, match='User "nobody" cannot list'):
        await asked(real(plane, tmp_path, {"token": plane.token(), "as": "nobody"}))


async def test_a_token_that_was_replaced_is_read_again_on_the_first_refusal(
    plane: ControlPlane, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("expired")
    async with Client(load(real(plane, tmp_path, {"tokenFile": str(token)}))) as client:
        with pytest.raises(Unauthorized):
            await client.listing(NODES, Pod)
        token.write_text(plane.token())
        await client.listing(NODES, Pod)
        assert client.counters.renewed_credentials == 1
