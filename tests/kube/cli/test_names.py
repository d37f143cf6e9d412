"""Names of jobs on a cluster, as people type them."""

from __future__ import annotations

import pytest

from optimus.cli.plugin import taken
from optimus.client import JobError
from optimus.drivers.kube.desk.naming import Name, matches, read_name
from optimus.drivers.kube.grouping import shipped_kinds


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("train", Name("here", "", "train")),
        ("job", Name("here", "", "job")),
        ("job/train", Name("here", "job", "train")),
        ("pytorchjob/train", Name("here", "pytorchjob", "train")),
        ("team-a/train", Name("team-a", "", "train")),
        ("team-a/job/train", Name("team-a", "job", "train")),
        ("pod/job/train", Name("pod", "job", "train")),
        ("team-a/leaderworkerset/serve/0", Name("team-a", "leaderworkerset", "serve/0")),
        ("job.batch.volcano.sh/train", Name("here", "job.batch.volcano.sh", "train")),
    ],
)
def test_read(typed: str, meant: Name) -> None:
    assert read_name(typed, "here", shipped_kinds()) == meant


@pytest.mark.parametrize("typed", ["", "/", "a/", "/a", "a//b", "a/b/c", "job/a/b/c", "a/job/", "a/job/b/c/d"])
def test_what_is_no_name_is_refused(typed: str) -> None:
    with pytest.raises(JobError, match="is no name of a job"):
        read_name(typed, "here", shipped_kinds())


def test_a_name_without_a_kind_is_of_any() -> None:
    assert matches("a/job/train", Name("a", "", "train")) and matches("a/pod/train", Name("a", "", "train"))
    assert not matches("a/job/train", Name("a", "pod", "train"))
    assert not matches("b/job/train", Name("a", "", "train"))


def test_flags_of_kubectl_are_taken_wherever_they_stand() -> None:
    words = ["-n", "team", "get", "jobs", "--context=eu", "--kubeconfig", "file", "-A"]
    assert taken(words) == (["get", "jobs", "-A"], {"namespace": "team", "context": "eu", "kubeconfig": "file"})
    after = ["run", "--", "tool", "-n", "3"]
    assert taken(after) == (after, {}), "what comes after -- is the command's own"
    assert taken(["get", "jobs", "-n"])[1] == {"namespace": None}
