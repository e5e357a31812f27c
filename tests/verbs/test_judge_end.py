# SPDX-License-Identifier: GPL-3.0-or-later
"""The verb ``why``: what it is asked, whose log it reads and as whom, and how it ends."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from mlhost_limits import cli, judge_end
from mlhost_limits.why import host_read, log_read, where_read
from mlhost_limits.why.facts import Facts, Group
from mlhost_limits.why.kills import Line
from mlhost_limits.why.log_read import MOST, read_log

EMFILE = "OSError: [Errno 24] Too many open files"
NOBODY = 64321
"""A user whom nobody is."""


@pytest.fixture(autouse=True)
def _no_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_end, "_check_place", lambda _raw: ())


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = cli.main(["why", *words])
    told = capsys.readouterr()
    return status, told.out + told.err


@pytest.mark.parametrize(
    ("message", "status", "head"),
    [
        (EMFILE, 1, "limit: the process had as many files open"),
        ("KeyError: 'x'", 0, "no limit: the program ended by an error of its own"),
        ("MemoryError", 1, "limit: the process may map no more memory"),
        ("trained for an hour", 2, "mlhost-limits: these words name no failure that is known"),
    ],
)
def test_a_message_and_its_exit_status(
    message: str, status: int, head: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ended, told = run(capsys, message)
    assert ended == status
    assert told.startswith(head)
    assert max(map(len, told.splitlines())) <= 100


def test_words_that_may_be_a_limit_or_none_are_undecided(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mlhost_limits.why.host_read.read_log", lambda: (None, False))
    monkeypatch.setattr("mlhost_limits.why.host_read._is_oomd_here", lambda: True)
    ended, told = run(capsys, "Killed")
    assert ended == 2
    assert told.startswith("perhaps a limit: ")
    assert "no limit: somebody ended it by a signal" in " ".join(told.split())


def test_a_message_may_end_as_a_file_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, f"{EMFILE}: run.log")[0] == 1


def test_where_check_sees_nothing_a_way_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = " ".join(run(capsys, EMFILE)[1].split())
    assert "fix ulimit -Sn in the shell or script that starts it" in told


@pytest.mark.root
def test_a_log_that_others_may_change_can_be_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    os.chown(folder, 0, NOBODY)
    folder.chmod(0o770)
    (folder / "run.log").write_text(EMFILE)
    ended, told = run(capsys, str(folder / "run.log"))
    assert ended == 2
    assert "cat FILE | mlhost-limits why" in told


def test_json_holds_what_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    _status, told = run(capsys, "--json", EMFILE)
    answer = json.loads(told)
    assert answer["format"] == "mlhost.limits/why"
    assert (answer["reason"], answer["is_limit"], answer["sure"]) == (
        "nofile",
        True,
        "fits the words",
    )


def test_a_log_of_ten_megabytes_is_read_from_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        "\x1b[32mINFO\x1b[0m step 1 loss 0.1\n" * 300000 + f"\0\x1b[31m{EMFILE}\x1b[0m\n"
    )
    log = read_log(str(path))
    assert log.is_cut
    assert len(log.text) <= MOST
    ended, told = run(capsys, str(path))
    assert ended == 1
    assert "\x1b" not in told


def test_a_log_of_another_host_is_judged_by_its_words_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "journal"
    path.write_text(f"Nov 25 22:00:01 node7 train[123]: {EMFILE}\n")
    assert "this is a log of node7: judged by its words alone" in run(capsys, str(path))[1]


def test_standard_input_is_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader, writer = os.pipe()
    os.write(writer, f"{EMFILE}\n".encode())
    os.close(writer)
    read = log_read.read_stream
    monkeypatch.setattr(judge_end, "read_stream", lambda: read(reader))
    assert run(capsys, "-")[0] == 1
    os.close(reader)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["no-such.log"], "'no-such.log': no such file; a message is one word in quotes"),
        (["/no/such/file"], "'/no/such/file': no such file"),
        (["/etc"], "/etc: Is a directory"),
        (["--pid", "4194305"], "process 4194305 does not run"),
        (["--unit", "a b"], "is not the name of a unit"),
        (["--job", "1;reboot"], "is not the number of a job"),
        (["--container", "../x"], "is not the name of a container"),
        (["--user", "nobody-has-this"], "there is no user"),
        (["--pid", "1", "--user", "root"], "a run has one place"),
    ],
)
def test_what_is_no_question_is_refused(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ended, said = run(capsys, *words)
    assert ended == 2
    assert told in said


def test_a_user_may_ask_for_their_own_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(where_read.os, "geteuid", lambda: NOBODY)
    with pytest.raises(PermissionError, match="only root may ask about it"):
        where_read.find_process(os.getpid())
    with pytest.raises(PermissionError, match="only root may ask about it"):
        where_read.find_user("root")


@pytest.mark.root
def test_root_reads_the_log_of_a_user_as_that_user() -> None:
    """What the user could not read, a link in the user's folder does not lead to."""
    home = Path(f"/var/tmp/why-{os.getpid()}-{time.monotonic_ns()}")
    home.mkdir(mode=0o700)
    secret = Path(f"{home}.secret")
    try:
        secret.write_text("root's alone\n")
        secret.chmod(0o600)
        (home / "train.log").write_text(f"{EMFILE}\n")
        (home / "link.log").symlink_to(secret)
        for path in (home / "train.log", home):
            os.chown(path, NOBODY, NOBODY)
        os.chown(home / "link.log", NOBODY, NOBODY, follow_symlinks=False)
        assert EMFILE in read_log(str(home / "train.log")).text
        with pytest.raises(OSError, match="as its owner"):
            read_log(str(home / "link.log"))
    finally:
        for name in ("train.log", "link.log"):
            (home / name).unlink(missing_ok=True)
        home.rmdir()
        secret.unlink(missing_ok=True)


@pytest.mark.root
def test_a_job_leads_root_to_no_file_that_its_user_may_not_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whose job it is chose the name of its log, which Slurm repeats."""
    secret = tmp_path / "secret.log"
    secret.write_text(EMFILE)
    secret.chmod(0o600)
    told = f"JobId=7 UserId=nobody(65534) JobState=FAILED StdOut={secret} StdErr={secret}"
    assert ask_job(monkeypatch, told).words.text == "JobState=FAILED Reason="
    assert EMFILE in ask_job(monkeypatch, told.replace("nobody(65534)", "root(0)")).words.text


def ask_job(monkeypatch: pytest.MonkeyPatch, told: str) -> where_read.Where:
    shown = SimpleNamespace(text=told, errors="")
    monkeypatch.setattr(where_read, "ask_slurm", lambda *_words: shown)
    return where_read.find_job("7")


OF_JOB = (
    "JobId=7 JobName=%s UserId=m(1005) GroupId=m(1005) JobState=FAILED Reason=NonZeroExitCode"
    " BatchHost=%s NumNodes=1 Command=/home/m/a.sh WorkDir=%s Comment=x StdErr=%s StdIn=/dev/null"
    " StdOut=%s TresPerTask=x"
)


@pytest.mark.parametrize("at", [0, 2])
def test_no_name_of_a_job_makes_it_another_users(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = ["a", "n1", "/home/m", "/home/m/o", "/home/m/o"]
    monkeypatch.setattr(where_read, "read_log_as", lambda uid, _path: log_read.Log(str(uid), False))
    monkeypatch.setattr(where_read.os, "geteuid", lambda: 0)
    values[at] += " JobState=OUT_OF_MEMORY"
    where = ask_job(monkeypatch, OF_JOB % tuple(values))
    assert (where.uid, where.told["JobState"], where.here) == (1005, "", False)
    assert where.words.text.startswith("1005")
    values[at] += " UserId=root(0)"
    with pytest.raises(ValueError, match="does not name one user"):
        ask_job(monkeypatch, OF_JOB % tuple(values))


def test_jobs_of_an_array_and_paths_with_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    paths: list[str] = []

    def read(_uid: int, path: str) -> log_read.Log:
        paths.append(path)
        raise OSError

    monkeypatch.setattr(where_read, "read_log_as", read)
    monkeypatch.setattr(where_read.os, "geteuid", lambda: 0)
    own = os.uname().nodename.partition(".")[0]
    lines = [OF_JOB % ("a", own, "/w", "/w/e", f"/my runs/{one}.log") for one in (1, 2)]
    lines[0] = lines[0].replace("JobState=FAILED", "JobState=COMPLETED")
    assert ask_job(monkeypatch, "\n".join(lines)).here
    assert paths == ["/my runs/2.log", "/w/e"]


SHOWN_UNIT = {
    "LoadState": "loaded",
    "Id": "train.service",
    "Slice": "ml-a.slice",
    "MainPID": "0",
    "InvocationID": "0f" * 16,
    "Result": "signal",
    "NRestarts": "0",
    "ExecMainStartTimestampMonotonic": "1000000",
    "ExecMainExitTimestampMonotonic": "2000000",
}


def find_train(
    monkeypatch: pytest.MonkeyPatch, **told: str
) -> tuple[where_read.Where, list[list[str]]]:
    asked: list[list[str]] = []

    def answer(words: list[str], _seconds: float, **_more: bool) -> tuple[int, str]:
        asked.append(words)
        return 0, EMFILE

    monkeypatch.setattr(where_read, "show_properties", lambda _name, _keys: {**SHOWN_UNIT, **told})
    monkeypatch.setattr(where_read, "run_program", answer)
    monkeypatch.setattr(where_read.os, "geteuid", lambda: 0)
    return where_read.find_unit("alias"), asked


def test_a_unit_is_asked_about_its_last_run(monkeypatch: pytest.MonkeyPatch) -> None:
    where, asked = find_train(monkeypatch)
    assert where.home == "/ml.slice/ml-a.slice/train.service"
    assert where.started
    assert where.ended
    assert round(where.started - where.ended) == 1
    assert f"_SYSTEMD_INVOCATION_ID={'0f' * 16}" in asked[0]


def test_a_unit_that_was_restarted_is_not_judged_by_what_runs_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where, asked = find_train(monkeypatch, MainPID="1", NRestarts="3")
    assert (where.pid, where.started, where.ended) == (None, None, None)
    assert asked[0][-2:] == ["-u", "train.service"]


def of_unit(text: str, **told: str) -> where_read.Where:
    log = log_read.Log(text, True)
    home = "/system.slice/train.service"
    return where_read.Where(where_read.UNIT, "train.service", 0, None, log, told, home=home)


def test_a_unit_that_did_not_fail_is_not_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(judge_end, "find_unit", lambda _name: of_unit(EMFILE, Result="success"))
    ended, told = run(capsys, "--unit", "train")
    assert ended == 2
    assert "train.service did not fail" in told


def test_what_systemd_says_of_memory_counts_without_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mlhost_limits.why.host_read.read_log", lambda: ((), True))
    where = of_unit("Deactivated", Result="oom-kill", MemoryMax="1073741824")
    monkeypatch.setattr(judge_end, "find_unit", lambda _name: where)
    ended, told = run(capsys, "--unit", "train")
    assert ended == 1
    assert "systemctl set-property train.service MemoryMax=2147483648" in " ".join(told.split())


def test_the_slice_at_its_limit_is_raised_and_not_the_unit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kill = (
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
        "oom_memcg=/a.slice,task_memcg=/system.slice/train.service,task=x,pid=4,uid=0"
    )
    lines = (Line(9.0, kill),)
    monkeypatch.setattr("mlhost_limits.why.host_read.read_log", lambda: (lines, True))
    bounds = [Group("memory.max", "/sys/fs/cgroup/a.slice", 2**30, 0, 1)]
    monkeypatch.setattr(judge_end, "list_groups", lambda _path: iter(bounds))
    where = of_unit("code=killed, status=9/KILL", Result="signal", MemoryMax="infinity")
    where = where._replace(started=99.0, ended=5.0)
    monkeypatch.setattr(judge_end, "find_unit", lambda _name: where)
    ended, told = run(capsys, "--unit", "train")
    assert ended == 1
    assert "systemctl set-property a.slice MemoryMax=2147483648" in " ".join(told.split())


def test_a_process_that_is_well_is_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    ended, told = run(capsys, "--pid", str(os.getpid()))
    assert ended == 2
    assert "still runs, and nothing of it that can be seen is near a limit" in " ".join(
        told.split()
    )


def test_lists_of_nodes_name_hosts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "job.out"
    path.write_text("srun: error: node[01-02]: tasks 0-3: Killed\n")
    assert "this is a log of node01, node02: judged by its words" in run(capsys, str(path))[1]


def test_absence_here_excludes_nothing_of_a_log_from_anywhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mlhost_limits.why.host_read.read_log", lambda: ((), True))
    monkeypatch.setattr("mlhost_limits.why.host_read._is_oomd_here", lambda: False)
    ended, told = run(capsys, "Killed")
    assert ended == 2
    assert told.startswith("perhaps a limit: ")


def test_a_log_since_the_boot_tells_nothing_of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_read, "read_log", lambda: ((), True))
    assert host_read.read_facts([], Facts(age=1.0)).log_is_whole
    assert not host_read.read_facts([], Facts(age=1e9)).log_is_whole


def test_what_files_take_of_a_cgroup_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {
        "memory.max": "1000\n",
        "memory.current": "990\n",
        "memory.stat": "anon 90\ninactive_file 500\nactive_file 400\n",
        "memory.events": "oom_kill 2\n",
    }

    def read(path: str) -> str:
        name = path.rpartition("/")[2]
        if name not in texts:
            raise FileNotFoundError(path)
        return texts[name]

    monkeypatch.setattr(host_read, "read_kernel_text", read)
    assert [(one.used, one.hits) for one in host_read.read_group("/g")] == [(90, 2)]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a-b.slice", "/a.slice/a-b.slice"),
        ("-.slice", ""),
        ("system.slice", "/system.slice"),
        ("", ""),
    ],
)
def test_where_a_slice_lies(name: str, path: str) -> None:
    assert where_read._find_slice(name) == path


def test_a_line_is_counted_in_the_log_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several logs, and of one whose beginning was not read."""
    monkeypatch.chdir(tmp_path)
    first, second = Path("rank0.log"), Path("rank1.log")
    first.write_text("step 1\nstep 2\n")
    second.write_text(f"step 1\n{EMFILE}\n")
    told = " ".join(run(capsys, str(first), str(second))[1].split())
    assert f"line 2 of {second}: OSError" in told
    second.write_text(f"{'step 1' * 10}\n" * (MOST // 40) + f"{EMFILE}\n")
    said = " ".join(run(capsys, str(second))[1].split())
    assert ", from where it was read: OSError" in said
