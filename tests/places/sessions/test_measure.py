# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions opened through this machine's libpam, from services that exist only for the test."""

from __future__ import annotations

import os
import pwd
import re
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.host import children
from mlhost_limits.sessions import base_read as session_base
from mlhost_limits.sessions import libpam_measure as libpam
from mlhost_limits.sessions import measure as session
from mlhost_limits.sessions import pam_read as pam_services
from mlhost_limits.sessions.base_read import Base
from mlhost_limits.sessions.libpam_measure import Libpam, PamCall
from mlhost_limits.sessions.measure import (
    SessionRequest,
    SessionResult,
    measure_sessions,
    pick_users,
)
from mlhost_limits.sessions.pam_stack import flatten, quiet_stack

from tests.children import read_children

HERE = "inherited from the test"
GREEN = "account required pam_permit.so\n"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="sessions of others are opened by root")


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the pam.d files of the host as the probe sees them, for the test to fill."""
    try:
        if not Libpam().reads_folders:
            pytest.skip("libpam is older than 1.4")
    except OSError:
        pytest.skip("there is no libpam")
    files: dict[str, str] = {}
    monkeypatch.setattr(pam_services, "read_pam_files", lambda: files)
    return files


@pytest.fixture
def base() -> dict[str, Rlimit]:
    """Return limits that a child of this process can take on."""
    own = libpam.read_own_limits()
    return {**own, "nofile": Rlimit(min(1000, own["nofile"].hard), own["nofile"].hard)}


def probe_sessions(requests: Sequence[SessionRequest], mode: str = "quiet") -> list[SessionResult]:
    """Open all requested sessions at once, with the limits that each of them states."""
    names = {request.service for request in requests}
    with session.prepared_services(names, mode == "quiet") as services:
        results: list[SessionResult] = session._probe_all(requests, services, session.TIME_LIMIT)
        return results


def own_limits(tmp_path: Path, *lines: str) -> str:
    """Return a pam_limits line that reads these lines and nothing of the host."""
    path = tmp_path / "limits.conf"
    path.write_text("".join(f"{line}\n" for line in lines))
    return f"session required pam_limits.so conf={path}\n"


def test_a_session_gets_what_pam_limits_sets(
    services: dict[str, str], base: dict[str, Rlimit], tmp_path: Path
) -> None:
    """The file that the stack names is applied on top of what is inherited, for each user apart."""
    services["/etc/pam.d/demo"] = GREEN + own_limits(
        tmp_path, "root hard nofile 700", "root - core 0"
    )
    requests = [SessionRequest("demo", user, base, HERE) for user in ("root", "daemon")]
    root, daemon = probe_sessions(requests)
    assert root.limits is not None
    assert daemon.limits is not None
    assert (root.opens, root.reason, root.how) == (True, "", f"libpam session of demo, {HERE}")
    assert (root.limits["nofile"], root.limits["core"]) == (Rlimit(700, 700), Rlimit(0, 0))
    assert daemon.limits["nofile"].hard != 700
    assert set(root.limits) == set(base)


def test_without_pam_limits_a_session_gets_what_it_inherits(
    services: dict[str, str], base: dict[str, Rlimit]
) -> None:
    """All 16 limits of the base arrive in a session whose stack sets none."""
    services["/etc/pam.d/demo"] = GREEN + "session required pam_permit.so\n"
    inherited = {**base, "nofile": Rlimit(321, 654), "core": Rlimit(1, 2)}
    (result,) = probe_sessions([SessionRequest("demo", "root", inherited, HERE)])
    assert result.limits == inherited


def test_modules_with_side_effects_do_not_run(
    services: dict[str, str], base: dict[str, Rlimit], tmp_path: Path
) -> None:
    """In quiet mode a module that would leave a trace is left out, and named."""
    trace = tmp_path / "trace"
    services["/etc/pam.d/demo"] = f"{GREEN}session required pam_exec.so /usr/bin/touch {trace}\n"
    (result,) = probe_sessions([SessionRequest("demo", "root", base, HERE)])
    assert (result.opens, result.how) == (
        True,
        f"libpam session of demo, {HERE}; not run: pam_exec.so",
    )
    assert not trace.exists()


@pytest.mark.parametrize(
    ("text", "opens", "reason"),
    [
        ("account required pam_deny.so\n", False, "account refused: Authentication failure"),
        (
            GREEN + "session required pam_deny.so\n",
            False,
            "session refused: Cannot make/remove an entry for the",
        ),
        (GREEN + "session required pam_gone.so\n", False, "session refused: Module is unknown"),
        (GREEN + "session include gone\n", False, "session refused: Permission denied"),
        (GREEN, False, "session refused: Permission denied"),
        (
            GREEN + "@include gone\n",
            None,
            "/etc/pam.d/demo:2: @include gone: no such file: libpam refuses the service",
        ),
    ],
)
def test_a_refusal_is_told_in_pams_words(
    services: dict[str, str], base: dict[str, Rlimit], text: str, opens: bool | None, reason: str
) -> None:
    """A stack that refuses gives no limits, and says which phase refused and why."""
    services["/etc/pam.d/demo"] = text
    (result,) = probe_sessions([SessionRequest("demo", "root", base, HERE)])
    assert (result.limits, result.opens) == (None, opens)
    assert result.reason.startswith(reason)


def test_what_cannot_be_probed_does_not_stop_the_rest(
    services: dict[str, str], base: dict[str, Rlimit]
) -> None:
    """Each session fails on its own, with its own reason, in the order of the requests."""
    services["/etc/pam.d/demo"] = GREEN + "session required pam_permit.so\n"
    requests = [
        SessionRequest("gone", "root", base, HERE),
        SessionRequest("demo", "root", None, "no process that starts sessions of demo is running"),
        SessionRequest("demo", "nobody-here", base, HERE),
        SessionRequest("demo", "root", {**base, "nice": Rlimit(9, 3)}, HERE),
        SessionRequest("demo", "root", base, HERE),
    ]
    results = probe_sessions(requests)
    assert [result.reason for result in results] == [
        "no PAM service 'gone' on this host",
        "no process that starts sessions of demo is running",
        "",
        "nice 9:3 cannot be inherited here: current limit exceeds maximum limit",
        "",
    ]
    assert [result.opens for result in results] == [None, True, True, None, True]
    assert [result.limits is None for result in results] == [True, True, False, True, False]


def test_the_probe_leaves_nothing_behind(services: dict[str, str], base: dict[str, Rlimit]) -> None:
    """No folder, descriptor, child or changed limit remains, whatever the sessions did."""
    services["/etc/pam.d/demo"] = GREEN + "session substack inner\n"
    services["/etc/pam.d/inner"] = "session required pam_permit.so\n"

    def look() -> tuple[object, ...]:
        folders = [name for name in os.listdir("/run") if name.startswith("mlhost-limits-")]
        return folders, sorted(os.listdir("/proc/self/fd")), libpam.read_own_limits(), os.getsid(0)

    before, running = look(), read_children()
    assert [
        result.opens for result in probe_sessions([SessionRequest("demo", "root", base, HERE)] * 5)
    ] == [True] * 5
    assert look() == before
    assert read_children() <= running


@pytest.mark.usefixtures("services")
def test_without_root_the_answer_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who may not open sessions gets a reason, not limits of their own."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (result,) = probe_sessions([SessionRequest("demo", "root", {}, HERE)])
    assert (result.limits, result.opens, result.reason) == (
        None,
        None,
        "opening a session of a user needs root",
    )


@pytest.mark.usefixtures("services")
def test_without_libpam_the_answer_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host without PAM is not an error."""

    def fail(*_: object) -> None:
        raise OSError("libpam.so.0: cannot open shared object file")

    monkeypatch.setattr(libpam.ctypes, "CDLL", fail)
    (result,) = probe_sessions([SessionRequest("demo", "root", {}, HERE)])
    assert (result.opens, result.reason) == (None, "libpam.so.0: cannot open shared object file")


@pytest.mark.parametrize("error", [ValueError("broken"), OSError("no space left")])
def test_a_failed_preparation_leaves_no_folder(
    services: dict[str, str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The private folder goes whatever happens while it is filled."""
    services["/etc/pam.d/demo"] = GREEN
    made: list[str] = []
    make = pam_services._make_folder

    def make_and_note() -> str:
        made.append(make())
        return made[0]

    monkeypatch.setattr(pam_services, "_make_folder", make_and_note)

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(pam_services, "quiet_stack", fail)
    if isinstance(error, OSError):
        (result,) = probe_sessions([SessionRequest("demo", "root", {}, HERE)])
        assert (result.opens, result.reason) == (None, "no space left")
    else:
        with pytest.raises(ValueError, match=r"^broken$"):
            probe_sessions([SessionRequest("demo", "root", {}, HERE)])
    assert not os.path.exists(made[0])


def test_full_mode_runs_the_hosts_own_service(base: dict[str, Rlimit]) -> None:
    """Where quiet is not wanted, the real file decides."""
    if not os.path.exists("/etc/pam.d/su"):
        pytest.skip("no service su here")
    (result,) = probe_sessions([SessionRequest("su", "root", base, HERE)], mode="full")
    assert (result.opens, result.how) == (True, f"full libpam session of su, {HERE}")


def person(name: str, uid: int, shell: str) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, uid, "", f"/home/{name}", shell))


def test_login_users_stand_for_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowest user id first; no system users, nobody, or users without a shell."""
    people = [
        person("alice", 1002, "/usr/bin/zsh"),
        person("zoe", 1001, "/bin/sh"),
        person("svc", 1000, "/usr/sbin/nologin"),
        person("daemon", 1, "/bin/sh"),
        person("nobody", 65534, "/bin/sh"),
        person("gone", 1003, "/bin/false"),
    ]
    monkeypatch.setattr(pwd, "getpwall", lambda: people)
    assert (pick_users(), pick_users(5)) == (["zoe"], ["zoe", "alice"])


@pytest.fixture
def host(
    services: dict[str, str], base: dict[str, Rlimit], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], dict[str, str]]:
    """Return a function that makes up a host whose sshd has a given UsePAM."""
    users = {
        "root": person("root", 0, "/bin/bash"),
        "svc": person("svc", 1000, "/usr/sbin/nologin"),
    }
    monkeypatch.setattr(pwd, "getpwnam", users.__getitem__)
    for name in ("sshd", "su", "cron"):
        services[f"/etc/pam.d/{name}"] = GREEN + "session required pam_permit.so\n"

    def make(use_pam: str) -> dict[str, str]:
        declaration = session_base.Declaration(
            "/etc/ssh/sshd_config", 7, f"UsePAM {use_pam}", use_pam
        )
        monkeypatch.setattr(session, "sets_limits", lambda _program: False)
        monkeypatch.setattr(session, "read_use_pam", lambda _pid: declaration)
        bases = {"sshd": Base(base, "inherited from sshd (pid 7)", 7)}
        nothing = Base(None, "no process that starts sessions of cron is running")
        monkeypatch.setattr(
            session, "read_base_limits", lambda service: bases.get(service, nothing)
        )
        return services

    return make


def test_su_starts_from_a_root_session_through_sshd(
    host: Callable[[str], dict[str, str]], tmp_path: Path
) -> None:
    """What sshd's session sets, su inherits; it is measured even when nobody asked for it."""
    host("yes")["/etc/pam.d/sshd"] = GREEN + own_limits(tmp_path, "root hard nofile 600")
    (result,) = measure_sessions([("su", "root")])
    assert result.limits is not None
    assert result.limits["nofile"] == Rlimit(600, 600)
    assert result.how == "libpam session of su, called from a session of root through sshd"


def test_su_resets_limits_before_pam_where_it_is_new_enough(
    host: Callable[[str], dict[str, str]], base: dict[str, Rlimit], monkeypatch: pytest.MonkeyPatch
) -> None:
    """util-linux 2.38 resets nice and rtprio, file and memory size, and soft nofile."""
    host("yes")
    monkeypatch.setattr(session, "sets_limits", lambda program: program == "su")
    small = {
        **base,
        "nofile": Rlimit(3000, 4000),
        "fsize": Rlimit(2**30, UNLIMITED),
        "nice": Rlimit(0, 0),
    }
    monkeypatch.setattr(session, "read_base_limits", lambda _service: Base(small, "inherited", 7))
    (result,) = measure_sessions([("su", "root")])
    assert result.limits == {
        **small,
        "nofile": Rlimit(1024, 4000),
        "fsize": Rlimit(UNLIMITED, UNLIMITED),
        "as": Rlimit(UNLIMITED, UNLIMITED),
        "nice": Rlimit(0, 0),
        "rtprio": Rlimit(0, 0),
    }
    assert (
        result.how
        == "libpam session of su, called from a session of root through sshd, reset by su"
    )


def test_su_is_tried_even_where_root_cannot_log_in(host: Callable[[str], dict[str, str]]) -> None:
    """What su would inherit is then unknown, but whether it opens is not."""
    files = host("yes")
    files["/etc/pam.d/sshd"] = GREEN + "session required pam_gone.so\n"
    files["/etc/pam.d/sudo"] = GREEN + "session required pam_deny.so\n"
    su, sudo = measure_sessions([("su", "root"), ("sudo", "root")])
    caller = (
        "the limits of the calling root session are unknown: session refused: Module is unknown"
    )
    assert (su.opens, su.limits, su.reason) == (True, None, caller)
    assert (sudo.opens, sudo.limits) == (False, None)
    assert sudo.reason == "session refused: Cannot make/remove an entry for the specified session"


def test_su_cannot_raise_soft_nofile_above_hard() -> None:
    """With a hard limit below 1024 the reset fails, and the caller's pair stays."""
    limits = dict.fromkeys(("nofile", "nice"), Rlimit(300, 300))
    assert session._reset_as_su_does(limits)["nofile"] == Rlimit(300, 300)


@pytest.mark.parametrize(
    ("field", "locked"), [("!", True), ("!*", True), ("*", False), ("$y$x", False)]
)
def test_a_locked_password_is_told_from_an_unusable_one(
    tmp_path: Path, field: str, locked: bool
) -> None:
    """Only ``!`` locks; the user's whole name must match."""
    shadow = tmp_path / "shadow"
    shadow.write_text(f"root:*:1::::::\nalice:{field}:1::::::\nalice2:!:1::::::\n")
    assert session_base.has_locked_password("alice", str(shadow)) is locked
    assert not session_base.has_locked_password("alice", str(tmp_path / "none"))


def test_the_answers_come_in_the_order_of_the_questions(
    host: Callable[[str], dict[str, str]],
) -> None:
    """Each pair gets its own answer, known or not."""
    host("yes")
    pairs = [
        ("su", "svc"),
        ("sshd", "nix"),
        ("cron", "root"),
        ("login", "root"),
        ("su", "root"),
        ("sshd", "root"),
    ]
    results = measure_sessions(pairs)
    assert [(result.service, result.user) for result in results] == pairs
    assert [(result.opens, result.reason) for result in results] == [
        (False, "svc has the shell /usr/sbin/nologin, which opens no session"),
        (False, "no user 'nix' on this host"),
        (True, "no process that starts sessions of cron is running"),
        (None, "no PAM service 'login' on this host"),
        (True, ""),
        (True, ""),
    ]


def test_sshd_without_pam_passes_on_its_own_limits(
    host: Callable[[str], dict[str, str]], base: dict[str, Rlimit], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where sshd does not use PAM no stack is run, and nobody claims that a login was tried."""
    host("no")
    monkeypatch.setattr(session, "has_locked_password", lambda user: user == "locked")
    monkeypatch.setattr(pwd, "getpwnam", lambda name: person(name, 0, "/bin/sh"))
    result, locked = measure_sessions([("sshd", "root"), ("sshd", "locked")])
    assert (locked.limits, locked.opens) == (None, False)
    assert locked.reason == "the password of locked is locked, and sshd does not use PAM"
    assert (result.user, result.limits, result.opens) == ("root", base, None)
    assert result.how == (
        "inherited from sshd (pid 7); sshd does not use PAM (UsePAM no, /etc/ssh/sshd_config:7)"
    )


def test_children_report_or_are_given_up() -> None:
    """One that answers, one that fails, one that ends itself and one that hangs, at once."""
    reports = children.run_in_children(
        [
            lambda: [1, "a"],
            lambda: 1 // 0,
            lambda: os.kill(os.getpid(), 9),
            lambda: time.sleep(600),
        ],
        2.0,
    )
    assert reports[0] == children.Report([1, "a"])
    assert [report.problem for report in reports[1:]] == [
        "ended with status 1",
        "killed by signal 9",
        "no answer within 2 s",
    ]


@pytest.mark.slow
def test_a_child_that_hangs_does_not_spoil_the_rest() -> None:
    """The time limit ends the wait, and the others' answers count."""
    reports = children.run_in_children([lambda: time.sleep(600), lambda: 2], 2.0)
    assert reports == [children.Report(None, "no answer within 2 s", late=True), children.Report(2)]


def test_a_child_changes_nothing_in_the_parent() -> None:
    """Limits, working directory and standard streams of the caller stay as they are."""

    def misbehave() -> int:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir("/")
        os.close(1)
        return os.getsid(0) == os.getpid()

    before = resource.getrlimit(resource.RLIMIT_CORE), os.getcwd()
    assert children.run_in_children([misbehave], 5) == [children.Report(True)]
    assert (resource.getrlimit(resource.RLIMIT_CORE), os.getcwd()) == before


def write_process(proc: Path, pid: int, comm: str, cmdline: str = "") -> None:
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "comm").write_text(f"{comm}\n")
    (folder / "cmdline").write_text(cmdline)
    (folder / "stat").write_text(f"{pid} ({comm}) S 1 1 1")
    (folder / "limits").write_text(Path("/proc/self/limits").read_text())
    (folder / "status").write_text("Uid:\t0\t0\t0\t0\n")
    (folder / "cgroup").write_text("0::/system.slice/x.service\n")
    name_program(proc, pid, comm)


def name_program(proc: Path, pid: int, name: str) -> None:
    """Let a process run a program of root's with this name."""
    (proc / name).touch(0o755)
    exe = proc / str(pid) / "exe"
    exe.unlink(missing_ok=True)
    exe.symlink_to(proc / name)


def test_a_getty_stands_for_logins_at_the_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without systemd the getty with the lowest number is found by its name."""
    monkeypatch.setattr(session_base, "_CGROUPS", ())
    write_process(tmp_path, 90, "bash")
    for pid in (1000, 95, 960):
        write_process(tmp_path, pid, "agetty")
    base = session_base.read_base_limits("login", proc=str(tmp_path))
    assert (base.pid, base.how) == (95, "inherited from agetty (pid 95)")


def test_a_daemon_that_systemd_still_prepares_passes_nothing_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it runs its own program it has limits of process 1, which no session gets."""
    monkeypatch.setattr(session_base, "read_unit_pids", lambda _unit: [7])
    monkeypatch.setattr(session_base, "is_roots", lambda _pid, _proc: True)
    write_process(tmp_path, 7, "(cron)")
    reason = "(cron) (pid 7) is not yet what starts sessions of cron"
    assert session_base.read_base_limits("cron", proc=str(tmp_path)) == Base(None, reason)


def test_a_pid_file_that_names_another_process_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stale pid file gives no base."""
    monkeypatch.setattr(session_base, "read_unit_pids", lambda _unit: [])
    monkeypatch.setattr(session_base, "_PID_FILES", {"sshd": str(tmp_path / "sshd.pid")})
    (tmp_path / "sshd.pid").write_text("7\n")
    write_process(tmp_path, 7, "bash")
    nothing = "no process that starts sessions of sshd is running"
    assert session_base.read_base_limits("sshd", proc=str(tmp_path)) == Base(None, nothing)
    (tmp_path / "7" / "comm").write_text("sshd\n")
    assert session_base.read_base_limits("sshd", proc=str(tmp_path)) == Base(None, nothing)
    name_program(tmp_path, 7, "sshd")
    found = session_base.read_base_limits("sshd", proc=str(tmp_path))
    assert found.how == "inherited from sshd (pid 7)"


@pytest.mark.parametrize(
    ("title", "place", "value"),
    [
        ("sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups", "/etc/ssh/sshd_config", "no"),
        ("/usr/sbin/sshd\0-D\0-o\0UsePAM=yes\0", "command line of pid 7", "yes"),
        ("sshd: /usr/sbin/sshd -D -oUsePAM no [listener]", "command line of pid 7", "no"),
        ("/usr/sbin/sshd\0-D\0-f\0FILE\0", "MORE:1", "yes"),
    ],
)
def test_the_command_line_of_sshd_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, title: str, place: str, value: str
) -> None:
    """``-o`` beats the file, ``-f`` names another one, and silence means sshd's built-in ``no``."""
    monkeypatch.setattr(session_base, "MAIN_FILE", str(tmp_path / "none"))
    other = tmp_path / "other"
    other.write_text(f"Include {tmp_path}/more*\n")
    (tmp_path / "more.conf").write_text("UsePAM yes\n")
    write_process(tmp_path, 7, "sshd", title.replace("FILE", str(other)))
    found = session_base.read_use_pam(7, str(tmp_path))
    assert found.value == value
    assert found.place == place.replace("MORE", f"{tmp_path}/more.conf").replace(
        "/etc/ssh/sshd_config", str(tmp_path / "none")
    )


CONTROLS = st.sampled_from(
    (
        "required",
        "requisite",
        "sufficient",
        "optional",
        "[success=1 default=ignore]",
        "[default=2]",
        "[success=done default=bad]",
        "[success=ok default=die]",
        "[success=reset default=ignore]",
    )
)
MODULES = st.sampled_from(
    (
        "pam_permit.so",
        "pam_deny.so",
        "pam_succeed_if.so quiet user = root",
        "pam_succeed_if.so quiet user = nix",
        "pam_gone.so",
        "pam_mail.so",
    )
)
LINES = st.lists(
    st.one_of(
        st.tuples(CONTROLS, MODULES).map(" ".join),
        st.sampled_from(
            ["substack /F/b", "include /F/b", "substack /F/c", "include /F/c", "include /F/gone"]
        ),
    ),
    min_size=1,
    max_size=6,
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(a=LINES, b=LINES, c=LINES)
@pytest.mark.slow
def test_the_quiet_stack_decides_as_the_real_one(
    tmp_path_factory: pytest.TempPathFactory, a: list[str], b: list[str], c: list[str]
) -> None:
    """libpam gives the same answer to both, through jumps, endings, includes and substacks."""
    folder = tmp_path_factory.mktemp("pam")
    inner = [line for line in c if "/F/" not in line]
    middle = [line for line in b if "/F/b" not in line]
    files = {}
    for name, lines in (("a", a), ("b", middle), ("c", inner)):
        text = GREEN * (name == "a") + "".join(f"session {line}\n" for line in lines).replace(
            "/F", str(folder)
        )
        (folder / name).write_text(text)
        files[f"{folder}/{name}"] = text
    path = f"{folder}/quiet"
    lines = [
        line for kind in ("account", "session") for line in flatten(f"{folder}/a", kind, files)
    ]
    stack = quiet_stack(lines, path, missing=["pam_gone.so"])
    for name, text in {path: stack.text, **stack.substacks, f"{folder}/other": ""}.items():
        Path(name).write_text(text)
    try:
        pam = Libpam()
    except OSError:
        pytest.skip("there is no libpam")
    real, quiet = (
        pam.open_session(PamCall(name, "root", "root", {}, str(folder))) for name in ("a", "quiet")
    )
    assert (real.opens, re.sub(r"\W+$", "", real.reason)) == (
        quiet.opens,
        re.sub(r"\W+$", "", quiet.reason),
    )
