# SPDX-License-Identifier: GPL-3.0-or-later
"""The verb ``heal`` on processes of this machine: what it asks for, raises, keeps and puts back."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from resource import RLIMIT_NOFILE, prlimit

import pytest
from mlhost_limits import cli, raise_living
from mlhost_limits.heal import settle
from mlhost_limits.heal.owed import Home
from mlhost_limits.heal.raises import Change

HERE = Home("session", "root")


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> list[list[Change]]:
    """Keep records here, and take every process for one of root's session."""
    records: list[list[Change]] = [[]]
    monkeypatch.setattr(raise_living, "keep_record", lambda one: records.append(list(one)))
    monkeypatch.setattr(raise_living, "read_record", lambda: records[-1])
    monkeypatch.setattr("mlhost_limits.heal.living_read.find_living", lambda _cgroup, _user: HERE)
    return records


@pytest.fixture
def run() -> Iterator[subprocess.Popen[bytes]]:
    """A process that may have more descriptors than it has."""
    with subprocess.Popen(["sh", "-c", "ulimit -Sn 100; echo; exec sleep 99"], stdout=-1) as child:
        assert child.stdout
        child.stdout.readline()
        yield child
        child.kill()


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "policy.json"
    users = {"users": ["root"], "limits": {"nofile": {"soft": 200}}}
    path.write_text(json.dumps({"sessions": [users]}))
    return str(path)


def heal(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = cli.main(["heal", "--profile", "none", *words])
    told = capsys.readouterr()
    return status, " ".join((told.out + told.err).split())


@pytest.mark.root
def test_a_process_is_raised_and_put_back(
    run: subprocess.Popen[bytes],
    policy: str,
    kept: list[list[Change]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    hard = prlimit(run.pid, RLIMIT_NOFILE)[1]
    asked = ("--policy", policy, "--pid", str(run.pid))
    text = f"session:root nofile 100:{hard} -> 200:{hard} (sleep {run.pid})"
    assert heal(capsys, *asked, "--check") == (0, f"would raise {text}")
    assert prlimit(run.pid, RLIMIT_NOFILE)[0] == 100
    assert heal(capsys, *asked) == (0, f"raised {text}")
    assert prlimit(run.pid, RLIMIT_NOFILE)[0] == 200
    assert heal(capsys, *asked)[1].startswith("nothing to raise")
    assert [one.after for one in kept[-1]] == [(200, hard)]
    assert heal(capsys, "--undo")[1].startswith("put back session:root nofile 200")
    assert prlimit(run.pid, RLIMIT_NOFILE)[0] == 100
    assert kept[-1] == []
    assert heal(capsys, "--undo")[1].startswith("nothing to put back")


@pytest.mark.root
def test_what_somebody_changed_since_is_left(
    run: subprocess.Popen[bytes], policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    heal(capsys, "--policy", policy, "--pid", str(run.pid))
    prlimit(run.pid, RLIMIT_NOFILE, (150, prlimit(run.pid, RLIMIT_NOFILE)[1]))
    status, told = heal(capsys, "--undo")
    assert status == 1
    assert "by now, which is not what was set, and stays so" in told
    assert prlimit(run.pid, RLIMIT_NOFILE)[0] == 150


def test_another_process_with_the_same_number_keeps_its_limits(
    run: subprocess.Popen[bytes],
) -> None:
    before = prlimit(run.pid, RLIMIT_NOFILE)
    change = Change("limit", "nofile", f"{run.pid}:1", before, (120, before[1]), "sleep")
    assert settle.read_now(change) is None
    assert settle.set_value(change, change.after) == "it has ended"
    assert prlimit(run.pid, RLIMIT_NOFILE) == before


@pytest.mark.root
@pytest.mark.parametrize("item", ["fs.nr_open", "fs.file-max"])
def test_what_logins_may_count_on_is_never_lowered(
    item: str,
    kept: list[list[Change]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kept.append([Change("sysctl", item, "", (1000,), (2000,), "", "kernel:")])
    monkeypatch.setattr(raise_living, "read_now", lambda one: one.after)
    status, told = heal(capsys, "--undo")
    assert status == 1
    assert "stays: logins that count on it would be refused" in told
    assert kept[-1] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give one of --pid, --user, --unit, --container, --job, --all"),
        (["--pid", "1", "--all"], "give one of"),
        (["--pid", "99999999"], "--pid: process 99999999 does not run"),
        (["--user", "nosuchuser"], "--user: there is no user 'nosuchuser' here"),
        (["--unit", "a b"], "--unit: 'a b.service' is not the name of a unit"),
        (["--container", "../x"], "--container: '../x' is not the name of a container"),
        (["--job", "x"], "--job: 'x' is not the number of a job"),
    ],
)
def test_bad_words_are_refused_with_a_sentence(
    words: Sequence[str], said: str, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, told = heal(capsys, "--policy", policy, *words)
    assert status == 2
    assert said in told


def test_a_policy_that_asks_nothing_there_is_refused(
    run: subprocess.Popen[bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.json"
    path.write_text('{"services": {"units": {"a.service": {"nofile": 5}}}}')
    status, told = heal(capsys, "--policy", str(path), "--pid", str(run.pid))
    assert status == 2
    assert "the policy asks nothing of session:root" in told


@pytest.mark.root
def test_a_sysctl_of_several_numbers_is_raised_where_it_is_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    values = {"kernel.sem": "250\t64\t32\t128", "vm.max_map_count": "no number"}
    monkeypatch.setattr(raise_living, "read_sysctl", lambda key: values.get(key, "1048576"))
    path = tmp_path / "policy.json"
    asked = {"kernel.sem": [100, 32000, 32, 128], "vm.max_map_count": 65530}
    path.write_text(json.dumps({"kernel": {**asked, "vm.swappiness": {"exact": "1"}}}))
    status, told = heal(capsys, "--policy", str(path), "--all", "--check")
    assert (status, told) == (0, "would raise kernel: kernel.sem 250 64 32 128 -> 250 32000 32 128")


@pytest.mark.root
def test_a_record_forgets_what_has_ended(
    run: subprocess.Popen[bytes],
    policy: str,
    kept: list[list[Change]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    kept.append([Change("limit", "nofile", "99999999:1", (1, 9), (5, 9), "gone 99999999")])
    heal(capsys, "--policy", policy, "--pid", str(run.pid))
    assert [one.who for one in kept[-1]] == [f"sleep {run.pid}"]


@pytest.mark.root
def test_a_container_with_the_host_s_shared_memory_leaves_it_as_it_is(
    run: subprocess.Popen[bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home = Home("container", "0" * 64, "docker")
    monkeypatch.setattr("mlhost_limits.heal.living_read.find_living", lambda _cgroup, _user: home)
    path = tmp_path / "policy.json"
    path.write_text(json.dumps({"containers": {"docker": {"shm_size": "900GiB"}}}))
    asked = ("--policy", str(path), "--pid", str(run.pid), "--check")
    assert heal(capsys, *asked)[1].startswith("nothing to raise")
    monkeypatch.setattr(raise_living, "shares_shm", lambda _pid: False)
    assert heal(capsys, *asked)[1].startswith("would raise container:docker/000000000000 /dev/shm")
