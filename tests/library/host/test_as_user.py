# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs as a user is that user, keeps nothing of root's, and ends with all that it started."""

from __future__ import annotations

import ctypes
import errno
import os
import pwd
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from mlhost_limits.core.values import Rlimit
from mlhost_limits.host import as_user, cgroup_cage, leave_root
from mlhost_limits.host.as_user import (
    Errand,
    ask_user,
    ask_users,
    describe_person,
    find_person,
    run_as_user,
)
from mlhost_limits.host.children import Children, Report, run_in_children
from mlhost_limits.host.door import list_pids
from mlhost_limits.host.owned import read_as_owner

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else is root's")
NOBODY = pwd.getpwnam("nobody")
KEYCTL, ADD_KEY = 250, 248
_PR_GET_DUMPABLE = 3


def test_it_is_the_user_before_it_touches_anything() -> None:
    def look() -> list[object]:
        rows = Path("/proc/self/status").read_text().splitlines()
        told = dict(row.split(":\t", 1) for row in rows if ":\t" in row)
        return [told["Uid"], told["Gid"], told["Groups"].split(), told["CapEff"], told["CapPrm"],
                told["NoNewPrivs"], os.getsid(0) == os.getpid()]  # fmt: skip

    ids = "\t".join(["65534"] * 4)
    expected = [ids, ids, ["65534"], "0" * 16, "0" * 16, "1", True]
    assert ask_user(Errand(NOBODY, look)).value == expected


def test_a_uid_without_an_account_has_no_groups_of_others() -> None:
    seen = ask_user(Errand(find_person(54321), lambda: [os.getuid(), os.getgid(), os.getgroups()]))
    assert seen.value == [54321, 65534, [65534]]
    assert find_person(0).pw_name == "root"


def test_it_has_no_descriptor_of_roots() -> None:
    secret = os.open("/etc/shadow", os.O_RDONLY)
    os.set_inheritable(secret, True)
    listed = "for fd in /proc/self/fd/*; do readlink $fd; done"
    said = run_as_user(Errand(NOBODY, words=["/bin/sh", "-c", listed])).said
    os.close(secret)
    assert "/dev/null" in said
    assert "shadow" not in said

    def look() -> list[str]:
        paths = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
        return [os.readlink(path) for path in paths if os.path.lexists(path)]

    kinds = {path.partition(":")[0] for path in ask_user(Errand(NOBODY, look)).value}
    assert kinds <= {"/dev/null", "pipe"}


_DUMPABLE = Path("/proc/sys/fs/suid_dumpable")


@pytest.fixture
def traceable() -> Iterator[None]:
    """Have the kernel let whoever is traced who became somebody else, as some databases ask for."""
    before = _DUMPABLE.read_text()
    try:
        _DUMPABLE.write_text("1")
    except OSError as error:
        pytest.skip(f"the kernel's setting is not to be changed here: {error}")
    yield
    _DUMPABLE.write_text(before)


def test_nobody_ever_traces_a_child_that_still_holds_what_is_roots(
    traceable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step is looked at: whoever has all three ids of a process that may be dumped traces it."""
    del traceable
    steps: list[bool] = []
    plain = os.setresuid

    def become(*ids: int) -> None:
        plain(*ids)
        has_all = os.getresuid() == (NOBODY.pw_uid,) * 3
        steps.append(has_all and ctypes.CDLL(None).prctl(_PR_GET_DUMPABLE) == 1)

    monkeypatch.setattr(os, "setresuid", become)
    report = ask_user(Errand(NOBODY, lambda: steps))
    assert report.value
    assert not any(report.value)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of calls are x86's")
def test_roots_keyring_is_not_at_hand() -> None:
    """A key that root holds is found by root's child, and not by the user's."""
    libc = ctypes.CDLL(None, use_errno=True)

    def search() -> bool:
        return bool(libc.syscall(KEYCTL, 10, -3, b"user", b"mlhost-test", 0) > 0)

    def compare() -> list[object]:
        libc.syscall(KEYCTL, 1, None)
        if libc.syscall(ADD_KEY, b"user", b"mlhost-test", b"x", 1, -3) < 0:
            return []
        return [search(), ask_user(Errand(NOBODY, search)).value]

    found = run_in_children([compare], 60.0)[0].value
    if not found:
        pytest.skip("this kernel gives no keys here")
    assert found == [True, False]


def test_where_no_keyring_can_be_had_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leave_root, "_KEYCTL", {})
    assert ask_user(Errand(NOBODY, lambda: 1)).value is None
    done = run_as_user(Errand(NOBODY, words=["/bin/echo", "ran"]))
    assert (done.status, done.said.split()[0]) == (127, "root's")


@pytest.mark.parametrize(
    "script",
    [
        "sleep 4711 & exit 0",
        "(setsid sh -c 'sleep 4711 & sleep 4711' &) ; exit 0",
        "for i in 1 2 3 4 5; do (setsid setsid sh -c 'trap \"\" TERM HUP; sleep 4711' &) ; done",
    ],
)
def test_all_that_came_of_it_is_ended(script: str) -> None:
    run_as_user(Errand(NOBODY, words=["/bin/sh", "-c", script], environment={"PATH": "/bin"}))
    assert list_sleepers() == []


def list_sleepers() -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"sleep\x004711" in (folder / "cmdline").read_bytes():
                found.append(folder.name)
        except OSError:
            continue
    return found


def flood() -> object:
    return "x" * 5000


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        (lambda: time.sleep(600), "no answer within 3 s"),
        (lambda: os.kill(os.getpid(), signal.SIGSTOP), "no answer within 3 s"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "killed by signal 9"),
        (lambda: os._exit(3), "ended with status 3"),
        (lambda: Path("/etc/shadow").read_text(), "[Errno 13] Permission denied: '/etc/shadow'"),
        (flood, "more than 4096 bytes of answer"),
    ],
)
@pytest.mark.slow
def test_a_child_that_tells_nothing(task: Callable[[], object], problem: str) -> None:
    report = ask_user(Errand(NOBODY, task, seconds=3.0, most=4096))
    assert (report.value, report.problem) == (None, problem)


@pytest.mark.slow
def test_a_keeper_that_is_given_up_ends_what_it_keeps() -> None:
    person = as_user.find_person(54321)
    words = ["/bin/sh", "-c", "setsid sleep 77.25 & trap '' TERM; sleep 77.25; sleep 77.25"]
    errand = Errand(person, words=words, program="/bin/sh", seconds=60)
    [report] = run_in_children([partial(as_user._keep, errand)], 1.0)
    assert report.problem == "no answer within 1 s"
    left = [one for one in Path("/proc").glob("[0-9]*/cmdline") if b"77.25" in read_quietly(one)]
    assert left == []


def read_quietly(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("said", [b"", b"[" * 100_000 + b"\n", b"[1]\n", b'{"value": 1}\n', b"x\n"])
def test_an_answer_in_another_form_is_none(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(as_user, "_do", lambda _task: said.decode().rstrip("\n"))
    assert ask_user(Errand(NOBODY, lambda: 1)).value is None
    assert ask_user(Errand(NOBODY, lambda: 1)).problem


def test_errands_of_many_are_done_at_once_and_kept_apart() -> None:
    """Answers longer than a pipe takes at once do not mix."""
    errands = [Errand(NOBODY, lambda one=one: str(one) * 20_000) for one in range(6)]
    assert [report.value for report in ask_users(errands)] == [
        str(one) * 20_000 for one in range(6)
    ]


def test_a_program_gets_its_limits_its_environment_and_an_end() -> None:
    words = ["-sh", "-c", "ulimit -n; echo $HOME; echo $0; exit 3"]
    environment = describe_person(NOBODY)
    limits = {"nofile": Rlimit(77, 99)}
    errand = Errand(NOBODY, words=words, program="/bin/sh", environment=environment, limits=limits)
    assert run_as_user(errand) == (3, f"77\n{NOBODY.pw_dir}\n-sh\n", False)
    assert run_as_user(Errand(NOBODY, words=["/bin/sleep", "99"], seconds=0.3)).late
    assert run_as_user(Errand(NOBODY, words=["/usr/bin/yes"], most=500)).late


def test_a_file_is_read_as_its_owner(tmp_path: Path) -> None:
    """A user's link to what only root may read leads nowhere."""
    for path in (tmp_path, *tmp_path.parents):
        if "pytest-of" in str(path):
            path.chmod(0o755)
    own, link = tmp_path / "own", tmp_path / "link"
    own.write_text("mine")
    link.symlink_to("/etc/shadow")
    for path in (tmp_path, own, link):
        os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid, follow_symlinks=False)
    assert read_as_owner(str(own)) == "mine"
    assert read_as_owner(f"{tmp_path}/none") is None
    with pytest.raises(OSError, match="Permission denied"):
        read_as_owner(str(link))
    own.chmod(0o666)
    os.chown(own, 0, 0)
    os.chown(tmp_path, 0, 0)
    with pytest.raises(OSError, match="can be changed by users other than root"):
        read_as_owner(str(own))


def test_who_is_not_root_looks_as_nobody_else() -> None:

    def look() -> str:
        os.setuid(1)
        return str(ask_user(Errand(NOBODY, lambda: 1)).problem)

    assert run_in_children([look], 60.0)[0].value == "only root can look as nobody"


def test_where_no_group_can_be_had_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: int) -> None:
        raise OSError("could not be confined to a control group: full")

    monkeypatch.setattr(as_user, "Cage", refuse)
    told = "could not be confined to a control group: full"
    assert ask_user(Errand(NOBODY, lambda: 1)).problem == told
    done = run_as_user(Errand(NOBODY, words=["/bin/echo", "ran"]))
    assert (done.status, done.said) == (127, f"{told}\n")


def test_an_errand_states_the_bounds_of_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: int) -> None:
        raise OSError(f"{given}")

    monkeypatch.setattr(as_user, "Cage", refuse)
    told = ask_user(Errand(NOBODY, lambda: 1, memory=7, tasks=9)).problem
    assert told == f"{(NOBODY.pw_uid, 7, 9)}"


def find_owner(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return -1


@pytest.mark.parametrize("is_caged", [True, False])
def test_who_forks_again_and_again_does_not_outlive_the_look(
    is_caged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process leaves its session, and ends as soon as it has another."""

    def chain() -> None:
        while True:
            if os.fork():
                os._exit(0)
            os.setsid()

    if not is_caged:
        monkeypatch.setattr(cgroup_cage, "_list_hierarchies", lambda _top: ())
    lonely = find_person(54399)
    assert ask_user(Errand(lonely, chain, seconds=1.0)).problem == "ended with status 0"
    assert [pid for pid in list_pids() if find_owner(pid) == lonely.pw_uid] == []


def test_where_the_host_has_no_process_left_that_is_the_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> int:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    reports = ask_users([Errand(NOBODY, lambda: 1)] * 2)
    reason = "no process could be started: Resource temporarily unavailable"
    assert [report.problem for report in reports] == [reason] * 2


def test_a_keeper_that_can_start_nothing_says_so_and_leaves_no_group() -> None:
    """In a child: a keeper becomes the parent of every orphan below it."""
    errand = Errand(NOBODY, lambda: 1)

    def refuse() -> int:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    def keep() -> tuple[str, bool]:
        ended: list[bool] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                as_user, "Cage", lambda *_given: SimpleNamespace(end=lambda: ended.append(True))
            )
            patch.setattr(os, "fork", refuse)
            return as_user._read(Report(as_user._keep(errand)), errand).problem, bool(ended)

    [told] = run_in_children([keep], 20.0)
    assert told.value == ["no process could be started: Resource temporarily unavailable", True]


def test_a_process_that_somebody_traces_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has ended, and only who traces it can reap it; a keeper that waits is ended itself."""
    monkeypatch.setattr(as_user, "_PATIENCE", 1e4)
    libc = ctypes.CDLL(None, use_errno=True)
    with Children() as tracers:

        def trace() -> None:
            os.setresgid(65534, 65534, 65534)
            os.setresuid(54398, 54398, 54398)
            while True:
                for pid in list_pids():
                    if find_owner(pid) == 54398 and pid != os.getpid():
                        libc.ptrace(0x4206, pid, None, None)  # PTRACE_SEIZE

        tracers.start(0, trace, 60.0, 100)
        words = ["/bin/sh", "-c", "sleep 0.5; echo hi"]
        told = ask_user(Errand(find_person(54398), words=words, seconds=1.0))
    assert told.problem == "no answer within 1 s"
