"""The notebook of the examples, opened: what answers at its address is the work that was given the GPU.

With `jupyter_server` and `ipykernel` in the environment a cell is run in a real kernel. They are not among the
dependencies of the tests (some hundred MB): without them the page that stands for the notebook is opened.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import uuid
from pathlib import Path
from urllib.request import urlopen

import aiohttp
import pytest

from tests.local.machines import Up, until

ROOT = Path(__file__).resolve().parents[2]
FILE = "examples/12-machine-interactive/notebook.yaml"
CELL = "import os; print('GPU', os.environ['CUDA_VISIBLE_DEVICES'], 'of', os.environ['OPTIMUS_NODE'])"


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The environment that its jobs have."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return str(tmp_path / "store")


def test_a_notebook_answers_with_its_gpu(notebook: str) -> None:
    machine = Up(Path(notebook), "--nodes", "1", "--gpus", "1")
    try:
        machine.cli("run", "-d", "--name", "batch", "--checkpoint", "5", "--", "sleep", "60")
        machine.reaches("batch", "Running")
        assert machine.cli("submit", FILE).returncode == 0
        until(lambda: _address(machine), "it tells its address")
        address = _address(machine)
        assert machine.job("batch")["preemptions"] == 1, "batch has left for it"
        assert ("token=" in address) == bool(shutil.which("jupyter-server"))
        if "token=" in address:
            said = asyncio.run(asyncio.wait_for(_run_a_cell(address), 60))
        else:
            until(lambda: _opens(address), "the page can be opened")
            said = urlopen(address, timeout=10).read().decode()
            assert "This page stands for a notebook" in said and "pip install jupyterlab" in said
        assert "GPU 0 of node-0" in said
        machine.cli("cancel", "notebook")
        until(lambda: not _opens(address), "with the job the server is gone")
    finally:
        machine.end()


def _address(machine: Up) -> str:
    said = machine.cli("logs", "notebook").stdout
    found = re.search(r"http://127\.0\.0\.1:\d+/\S*", said)
    return found.group() if found else ""


def _opens(address: str) -> bool:
    try:
        with urlopen(address, timeout=5):
            return True
    except OSError:
        return False


async def _run_a_cell(address: str) -> str:
    """What a page does: a kernel is asked for, and a cell sent to it."""
    base, token = address.split("?token=")
    base = base[: base.index("/", len("http://"))]
    async with aiohttp.ClientSession(headers={"Authorization": f"token {token}"}) as session:
        async with session.post(f"{base}/api/kernels", json={}) as made:
            kernel = (await made.json())["id"]
        async with session.ws_connect(f"{base}/api/kernels/{kernel}/channels") as channel:
            content = {
                "code": CELL,
                "silent": False,
                "store_history": False,
                "user_expressions": {},
                "allow_stdin": False,
            }
            header = {
                "msg_id": uuid.uuid4().hex,
                "msg_type": "execute_request",
                "username": "",
                "session": "s",
                "version": "5.3",
            }
            await channel.send_json(
                {"channel": "shell", "header": header, "parent_header": {}, "metadata": {}, "content": content}
            )
            while True:
                told = await channel.receive_json()
                if told["header"]["msg_type"] == "stream":
                    return str(told["content"]["text"])
