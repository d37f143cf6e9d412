"""Python as people use it: `import optimus` beside a real `optimus up`."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import optimus
from tests.local.machines import Up, until

QUEUE = "kind: Queue\nmetadata: {name: python}\nspec: {gpu: {guarantee: 2}}\n"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    machine = Up(tmp_path_factory.mktemp("store"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPTIMUS_STORE", str(machine.folder))
        patch.delenv("OPTIMUS_ADDRESS", raising=False)
        yield machine
    machine.end()


def test_a_command_is_a_job_and_its_lines_are_text(up: Up) -> None:
    job = optimus.submit("""python3 -c 'print("a b"); print(2)'""", gpus=2, name="first")
    assert list(job.logs(follow=True)) == ["a b", "2"]
    assert job.wait() == "Succeeded" == job.phase
    assert (job.id, job.reason, job.final, job.queue) == ("default/first", "", True, "default")
    assert [line.replica for line in job.logs(tail=1)] == ["worker-0"]
    assert repr(job) == "<Job default/first: Succeeded>"


def test_who_has_no_time_to_wait_still_hears_that_it_is_over(up: Up) -> None:
    job = optimus.submit("true", name="quick")
    up.reaches("quick", "Succeeded")
    assert job.wait(timeout=0) == "Succeeded"
    stays = optimus.submit("sleep 1000", name="stays-on")
    with pytest.raises(TimeoutError, match="still"):
        stays.wait(timeout=0)
    stays.cancel()


def test_what_is_asked_for_arrives_in_the_document_and_the_document_can_be_submitted(up: Up) -> None:
    job = optimus.submit(
        [sys.executable, Path("train.py"), "--lr", 0.1],
        name="wishes",
        gpus=0.5,
        min_replicas=1,
        max_replicas=4,
        cpu=1,
        memory="1Gi",
        job_class="interactive",
        priority=7,
        env={"A": 1, "B": "ä😀\u2028"},
        checkpoint=20,
        retries=2,
        spec={"suspend": True, "family": "f"},
    )
    document = job.document()
    spec = document["spec"]
    assert spec["replicaSpec"]["minReplicas"] == 1 and spec["replicaSpec"]["maxReplicas"] == 4
    assert spec["replicaSpec"]["gpu"]["fraction"] == {"request": 0.5}
    assert (spec["class"], spec["priority"], spec["family"]) == ("interactive", 7, "f")
    assert spec["checkpoint"]["graceSeconds"] == 20 and spec["restart"]["backoffLimit"] == 2
    container = spec["template"]["spec"]["containers"][0]
    assert container["command"] == [sys.executable, "train.py", "--lr", "0.1"]
    assert container["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "ä😀\u2028"}]
    assert job.phase == "Suspended"
    document["metadata"]["name"] = "wishes-again"
    again = optimus.submit(document)
    del document["metadata"]["creationTimestamp"], document["metadata"]["name"]
    second = again.document()
    del second["metadata"]["creationTimestamp"], second["metadata"]["name"]
    assert second == document
    assert "cancelled" in job.cancel() and job.wait() == "Cancelled"
    again.cancel()


def test_the_verbs(up: Up) -> None:
    job = optimus.submit("sleep 600", name="verbs", max_replicas=4, checkpoint=1, namespace="team")
    until(lambda: job.running_replicas == 4, "it has grown")
    assert "at most 1" in job.scale(1)
    until(lambda: len(job.view["replicas"]) == 1, "the others have left")
    assert "suspended" in job.suspend()
    until(lambda: job.phase == "Suspended", "it has stopped")
    assert "resumed" in job.resume()
    until(lambda: job.phase == "Running", "it is back")
    assert "Submitted" in [event["code"] for event in job.events()]
    assert [one.id for one in optimus.jobs(namespace="team")] == ["team/verbs"]
    with pytest.raises(TimeoutError, match=r"job team/verbs is still Running after 0\.5 seconds"):
        job.wait(timeout=0.5)
    assert "cancelled" in optimus.job("team/verbs").cancel()
    assert job.wait(timeout=60) == "Cancelled"
    with pytest.raises(optimus.JobError, match="team/verbs is over: Cancelled"):
        job.cancel()


def test_several_documents_are_all_or_nothing(up: Up, tmp_path: Path) -> None:
    file = tmp_path / "train.yaml"
    file.write_text("kind: UnifiedJob\nmetadata: {name: from-file}\nspec: {queue: python, command: 'true'}\n")
    parts: dict[str, Any] = {
        "kind": "UnifiedJob",
        "metadata": {"name": "parts"},
        "spec": {"command": ["true"], "arraySize": 3},
    }
    jobs = optimus.submit_all(QUEUE, file, [parts])
    assert [job.name for job in jobs] == ["from-file", "parts"]
    assert [job.wait() for job in jobs] == ["Succeeded", "Succeeded"]
    assert jobs[1].view["counts"] == {"Succeeded": 3}
    assert "3 of 3 parts" in jobs._repr_html_() and "<td>from-file</td>" in jobs._repr_html_()
    file.write_text("kind: UnifiedJob\nmetadata: {name: wrong}\nspec: {command: 'true', gpu: -1}\n")
    other = QUEUE.replace("python", "left-behind")
    with pytest.raises(optimus.JobError) as caught:
        optimus.submit_all(other, file, {**parts, "colour": "red"})
    first, second = str(caught.value).splitlines()
    assert first.startswith(f"{file}:3:") and "must not be negative" in first
    assert second.startswith("documents[2]: job parts: colour")
    with pytest.raises(optimus.JobError, match="there is no queue nowhere"):
        optimus.submit_all(other, {**parts, "metadata": {"name": "p"}, "spec": {"command": "true", "queue": "nowhere"}})
    assert "left-behind" not in [queue["name"] for queue in up.api.get("/v1/queues")]


def test_arrays_and_lists_by_phase(up: Up) -> None:
    job = optimus.submit("bash -c 'echo part $OPTIMUS_PART'", name="array", array=3)
    assert sorted(job.logs(follow=True)) == ["part 0", "part 1", "part 2"]
    assert job.wait() == "Succeeded"
    waits = optimus.submit("true", name="huge", gpus=4, min_replicas=9)
    until(lambda: waits.reason, "there is a reason")
    assert waits.reason_code == "NeverFits"
    assert [(one.name, one.reason) for one in optimus.jobs(phase="Pending")] == [("huge", waits.reason)]
    assert "huge" in waits._repr_html_()
    waits.cancel()


def test_a_failure_is_raised_with_the_last_lines(up: Up) -> None:
    job = optimus.submit(["bash", "-c", "seq 100; exit 3"], name="breaks")
    assert job.wait() == "Failed"
    with pytest.raises(optimus.JobFailedError) as caught:
        job.wait(check=True)
    told = str(caught.value).splitlines()
    assert told[0] == "job default/breaks Failed: replica worker-0 exited with code 3. It wrote at last:"
    assert told[1:] == [f"  {number}" for number in range(81, 101)] and caught.value.job is job


def nothing() -> None: ...


@pytest.mark.parametrize(
    ("ask", "kind", "told"),
    [
        (lambda: optimus.submit(nothing), TypeError, "nothing is a Python function, and a job is a command"),  # type: ignore[arg-type]
        (lambda: optimus.submit(Path("x.yaml")), TypeError, "x.yaml is a path: optimus.submit_all"),  # type: ignore[arg-type]
        (lambda: optimus.submit(QUEUE), TypeError, "this is a document and no command"),
        (lambda: optimus.submit({"kind": "UnifiedJob"}, gpus=4, name="x"), TypeError, "write gpus, name into it"),
        (lambda: optimus.submit(3), TypeError, "a command is text or a list of words, not 3"),  # type: ignore[arg-type]
        (lambda: optimus.submit({"kind": "Queue"}), optimus.JobError, "a Queue is no job"),
        (lambda: optimus.submit(""), optimus.JobError, "command"),
        (lambda: optimus.submit("echo 'open"), optimus.JobError, "command"),
        (lambda: optimus.submit("true", queue="nowhere"), optimus.JobError, "there is no queue nowhere; known are"),
        (lambda: optimus.submit("true", gpus=-1, name="w"), optimus.JobError, "job default/w: spec.gpu: must not be"),
        (lambda: optimus.submit("true", name="No Name"), optimus.JobError, "No Name"),
        (lambda: optimus.submit("true", min_replicas=4, max_replicas=2), optimus.JobError, "4"),
        (lambda: optimus.submit("true", job_class="urgent"), optimus.JobError, "urgent"),
        (lambda: optimus.submit("true", spec={"colour": 1}), optimus.JobError, "colour"),
        (lambda: optimus.submit("true", spec={"x": object()}), optimus.JobError, "cannot be written as a document"),
        (lambda: optimus.submit_all("no-such-file.yaml"), optimus.JobError, "no-such-file.yaml cannot be read"),
        (optimus.submit_all, optimus.JobError, "there is nothing in it"),
        (lambda: optimus.job("nobody"), optimus.JobError, "there is no job default/nobody"),
        (lambda: optimus.job("a/b/c"), optimus.JobError, "a/b/c is no name of a job"),
        (lambda: optimus.jobs(phase="Sleeping"), optimus.JobError, "there is no phase Sleeping; known are Pending"),
        (lambda: optimus.jobs(address="http://127.0.0.1:1"), optimus.JobError, "nobody answers at http://127.0.0.1:1"),
        (lambda: optimus.jobs(address="http://127.0.0.1:x"), optimus.JobError, "is no address"),
        (lambda: optimus.jobs(address="http://::1:80"), optimus.JobError, "is no address"),
    ],
)
def test_nonsense_is_refused_in_words(up: Up, ask: Callable[[], Any], kind: type[Exception], told: str) -> None:
    with pytest.raises(kind) as caught:
        ask()
    assert told in str(caught.value)


def test_a_name_that_means_another_job_by_now_is_not_touched(up: Up) -> None:
    old = optimus.submit("true", name="twice")
    old.wait()
    new = optimus.submit("sleep 600", name="twice")
    with pytest.raises(optimus.JobError, match="is another one by now"):
        old.cancel()
    assert new.phase in ("Pending", "Starting", "Running")
    new.cancel()


def test_whoever_stops_waiting_leaves_the_job_running(up: Up, capfd: pytest.CaptureFixture[str]) -> None:
    job = optimus.submit("sleep 600", name="patient")
    threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        job.wait()
    assert "job default/patient goes on without being waited for" in capfd.readouterr().err
    assert job.phase in ("Pending", "Starting", "Running")
    job.cancel()


def test_waiting_asks_once_and_not_again_and_again(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    job = optimus.submit("sleep 1", name="asked-once")
    asked: list[str] = []
    send = job._connection._asked

    def counted(method: str, path: str, *others: Any, **more: Any) -> Any:
        asked.append(path)
        return send(method, path, *others, **more)

    monkeypatch.setattr(job._connection, "_asked", counted)
    before = time.process_time()
    assert job.wait() == "Succeeded"
    assert asked == ["/v1/watch"] and time.process_time() - before < 0.3


def test_waiting_and_following_outlast_a_restart(up: Up) -> None:
    job = optimus.submit(["bash", "-c", "for i in $(seq 25); do echo $i; sleep 0.2; done"], name="outlasts")
    lines: list[str] = []
    following = threading.Thread(target=lambda: lines.extend(job.logs(follow=True)), daemon=True)
    following.start()
    phases: list[str] = []
    waiting = threading.Thread(target=lambda: phases.append(optimus.job("outlasts").wait()), daemon=True)
    waiting.start()
    until(lambda: len(list(job.logs())) > 3, "it writes")
    up.kill()
    up.start()
    waiting.join(60)
    following.join(60)
    assert phases == ["Succeeded"]
    assert lines == [str(number) for number in range(1, 26)]


def test_why_it_waits_in_the_words_of_the_command_line(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a notebook
    job = optimus.submit("sleep 60", gpus=40, name="too-large")
    try:
        with monkeypatch.context() as nothing_is_started:
            nothing_is_started.setattr(subprocess, "Popen", None)
            told = job.explain(forecast=False)
        assert "no node of pool default has 40 GPUs on one node" in told and "What would start it now" in told
        assert "\x1b" not in told and told == str(told) == repr(told)
        assert told.why is not None and told.why["code"] == "NoSuchDevice" == told.record["why"]["code"]
        assert told.start is not None and told.start["state"] == "never"
        assert told.suggestions and told.suggestions[0]["words"] in told
        assert pickle.loads(pickle.dumps(told)).record == told.record
        page = up.cli("explain", "too-large", "--no-forecast").stdout
        assert _ageless(told + "\n") == _ageless(page), "the very same page"
    finally:
        job.cancel()
    gone = optimus.submit("true", name="gone")
    gone.wait()
    told = gone.explain()
    assert "Succeeded" in told and (told.start, told.suggestions) == (None, [])


def _ageless(page: str) -> str:
    return re.sub(r"for \d+s", "for a while", page)


def test_importing_it_is_light() -> None:
    code = (
        "import sys; before = set(sys.modules); import optimus\n"
        "assert len(set(sys.modules) - before) < 4, set(sys.modules) - before\n"
        "optimus.submit, optimus.jobs, optimus.Job\n"
        "heavy = {'numpy', 'msgspec', 'pydantic', 'yaml', 'rich', 'typer', 'aiohttp', 'asyncio'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "import optimus.lives\n"
        "assert callable(optimus.jobs)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
