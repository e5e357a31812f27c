# SPDX-License-Identifier: GPL-3.0-or-later
"""What a tree of files will give is told with the line that wins and those it shadows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from mlhost_limits.core.resolved import format_resolved
from mlhost_limits.kernel import boot_read
from mlhost_limits.resolve import resolve_tree

FILES = {
    "/etc/os-release": "ID=debian\nVERSION_ID=12\n",
    "/etc/passwd": "root:x:0:0::/:/bin/sh\nalice:x:1001:2001::/:/bin/sh\nbob:x:1002:5555::/:/bin/sh\nodd:x:a:b::/\n",
    "/etc/group": "root:x:0:\nml:x:2001:bob\nbroken:x:y:alice\n",
    "/etc/security/limits.conf": "* soft nofile 1024\n1000: soft nofile 2048\n",
    "/etc/pam.d/sshd": "session required pam_limits.so\n",
    "/etc/pam.d/odd": "session required pam_limits.so conf=/etc/odd.conf\n",
    "/etc/pam.d/none": "session required pam_unix.so\n",
}


REFUSED = "the kernel refuses more than 1048576, fs.nr_open, and leaves what the login started with"


MORE = {"Name": "nofile", "Hard": 2000000, "Soft": 2000000}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for path, text in FILES.items():
        write(tmp_path, path, text)
    return tmp_path


def write(tree: Path, path: str, text: str) -> None:
    target = tree / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def told(tree: Path, user: str | None = None, service: str | None = None) -> list[str]:
    return list(format_resolved(resolve_tree(str(tree), user, service)))


def test_what_a_boot_gives_is_asked_once(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def read(root: str, of_packages: bool = False) -> dict[str, str]:
        assert of_packages
        asked.append(root)
        return {}

    monkeypatch.setattr(boot_read, "read_boot_scripts", read)
    assert told(tree)
    assert asked == [str(tree)]


def test_root_and_everyone_else_are_told_by_default(tree: Path) -> None:
    assert told(tree) == [
        "session:*@any nofile soft = 2048",
        '     by      /etc/security/limits.conf:2 "1000: soft nofile 2048"',
        '     shadows /etc/security/limits.conf:1 "* soft nofile 1024"',
    ]


@pytest.mark.parametrize(
    ("lines", "item", "counts"),
    [
        (
            "* soft memlock 100\n* hard memlock 50\n",
            "memlock soft",
            ("50KiB", "the hard limit is lower"),
        ),
        (
            "* - nofile 2000000\n",
            "nofile hard",
            (None, REFUSED),
        ),
        ("* soft nofile 4096\n", "nofile soft", ("4096", "")),
        ("* hard nofile unlimited\n", "nofile hard", ("the value of fs.nr_open", "")),
    ],
)
def test_what_counts_is_told_beside_what_is_stated(
    tree: Path, lines: str, item: str, counts: tuple[str | None, str]
) -> None:
    write(tree, "/etc/security/limits.conf", lines)
    entries = resolve_tree(str(tree), "alice", None)
    (entry,) = [one for one in entries if f"{one['item']} {one['bound']}" == item]
    assert (entry["effective"], entry["why"]) == counts


@pytest.mark.parametrize(
    ("release", "sysctls", "refused"),
    [
        ("debian\nVERSION_ID=12", "", True),
        ("debian\nVERSION_ID=12", "fs.nr_open = 4194304", False),
        ("debian\nVERSION_ID=12", "fs.nr_open = 1999999", True),
        ("fedora\nVERSION_ID=40", "", False),  # Its systemd may raise it.
    ],
)
def test_nothing_is_refused_where_fs_nr_open_may_be_enough(
    tree: Path, release: str, sysctls: str, refused: bool
) -> None:
    write(tree, "/etc/os-release", f"ID={release}\n")
    write(tree, "/etc/sysctl.d/9.conf", f"{sysctls}\n")
    write(tree, "/etc/security/limits.conf", "* - nofile 2000000\n")
    write(tree, "/etc/docker/daemon.json", json.dumps({"default-ulimits": {"nofile": MORE}}))
    lines = told(tree, "alice")
    assert any("the kernel refuses" in line for line in lines) is refused
    assert any("no container starts" in line for line in lines) is refused


def test_a_sysctl_that_the_kernel_refuses(tree: Path) -> None:
    write(tree, "/etc/sysctl.d/9.conf", f"fs.file-max = {2**64 - 1}\nvm.swappiness = 5\n")
    lines = [line for line in told(tree) if "9.conf" not in line][-3:]
    assert lines == [
        f"kernel fs.file-max = {2**64 - 1}",
        "     but     the kernel refuses it, and leaves what was there",
        "kernel vm.swappiness = 5",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"default-ulimits": {"nofile": {"Name": "nofile", "Hard": 9}}}', "soft 0 is too low"),
        (
            '{"default-ulimits": {"core": {"Name": "core", "Hard": 1, "Soft": 2}}}',
            "soft 2 is above",
        ),
        (
            '{"default-ulimits": ["nofile=1:2"]}',
            "takes an object, not a list: dockerd does not start",
        ),
        ('{"default-ulimits": {"core": {"Name": "core", "Hard": "9"}}}', "Hard is '9'"),
        ('{"default-shm-size": "64x"}', "is not a size"),
        ('{"default_ulimits": {"core": 1}}', "default_ulimits"),
        ("{", "dockerd does not start"),
    ],
)
def test_what_stops_dockerd_or_every_container_is_told(tree: Path, text: str, reason: str) -> None:
    write(tree, "/etc/docker/daemon.json", text)
    (told,) = [one for one in resolve_tree(str(tree), None, None) if "docker" in str(one["place"])]
    assert reason in str(told["reason"])


def test_no_container_of_docker_starts_with_an_unlimited_nofile(tree: Path) -> None:
    entry = '"nofile": {"Name": "nofile", "Hard": -1, "Soft": -1}'
    write(tree, "/etc/docker/daemon.json", f'{{"default-ulimits": {{{entry}}}}}')
    reason, *lines = [
        line for line in told(tree) if "session" not in line and "limits.conf" not in line
    ]
    assert reason.endswith("unlimited is above fs.nr_open, 1048576: no container starts")
    assert lines[:2] == [
        "new-container:docker nofile soft = unlimited",
        "     but     no container starts",
    ]


def test_a_user_of_any_letters(tree: Path) -> None:
    write(tree, "/etc/passwd", "root:x:0:0::/:\nÜnal:x:1001:2001::/:/bin/sh\n")
    write(tree, "/etc/group", "ünder:x:9:Ünal\n")
    write(tree, "/etc/security/limits.conf", "Ünal soft core 5\n@ünder hard core 6\n")
    assert told(tree, "Ünal") == [
        "session:Ünal@any core soft = 5KiB",
        '     by      /etc/security/limits.conf:1 "Ünal soft core 5"',
        "session:Ünal@any core hard = 6KiB",
        '     by      /etc/security/limits.conf:2 "@ünder hard core 6"',
    ]


def test_a_link_to_dev_null_is_empty_where_the_tree_has_no_dev(tree: Path) -> None:
    (tree / "etc/security/limits.d").mkdir()
    (tree / "etc/security/limits.d/20-nproc.conf").symlink_to("/dev/null")
    assert told(tree)[0] == "session:*@any nofile soft = 2048"
    (tree / "etc/security/limits.d/20-nproc.conf").unlink()
    (tree / "etc/security/limits.d/20-nproc.conf").symlink_to("/nowhere")
    assert "refuses every login" in told(tree)[0]


def test_everyone_else_is_no_user_of_that_name(tree: Path) -> None:
    write(tree, "/etc/security/limits.conf", "1000: soft nofile 1\n* soft nofile 2\n* -\n")
    assert told(tree)[0] == "session:*@any nofile soft = 1"


@pytest.mark.parametrize(
    ("line", "user", "lines"),
    [
        (
            "@ml hard nofile unlimited",
            "alice",
            "session:alice@any nofile hard = the value of fs.nr_open",
        ),
        ("@ml hard memlock 64", "bob", "session:bob@any memlock hard = 64KiB"),
        ("@:5555 hard core 0", "bob", None),
        (":1001 hard core 0", "alice", "session:alice@any core hard = 0B"),
        ("@:2001 hard core 0", "bob", "session:bob@any core hard = 0B"),
        ("@2001:2001 hard core 0", "bob", None),
        ("root hard core 0", "root", "session:root@any core hard = 0B"),
        (
            "alice -",
            "alice",
            'session:alice@any: /etc/security/limits.conf:1 "alice -" cancels every limit',
        ),
    ],
)
def test_the_limits_of_one_user(tree: Path, line: str, user: str, lines: str | None) -> None:
    write(tree, "/etc/security/limits.conf", f"{line}\n")
    assert told(tree, user)[0] == (lines or "no file in this tree states a limit")


@pytest.mark.parametrize(
    ("line", "told_of_alice"),
    [
        ("* - priority -5", "session:alice@any priority = -5"),
        ("* - maxlogins 3", "session:alice@any maxlogins = 3"),
        ("* - maxlogins -1", "session:alice@any maxlogins = unlimited"),
        ("* - chroot /srv", "session:alice@any chroot = /srv"),
        ("* - nonewprivs 1", "session:alice@any nonewprivs = 1"),
    ],
)
def test_what_is_no_limit_is_told_too(tree: Path, line: str, told_of_alice: str) -> None:
    write(tree, "/etc/security/limits.conf", f"{line}\n")
    assert told(tree, "alice")[0] == told_of_alice


@pytest.mark.parametrize("target", ["/nowhere", "x.conf", "/etc/security/limits.d/x.conf"])
def test_a_link_that_leads_nowhere_is_what_is_told(tree: Path, target: str) -> None:
    (tree / "etc/security/limits.d").mkdir()
    (tree / "etc/security/limits.d/x.conf").symlink_to(target)
    reason = "/etc/security/limits.d/x.conf is missing, and PAM refuses every login"
    assert told(tree, "alice") == [f"session:alice@any: {reason}"]
    write(tree, "/etc/os-release", "ID=debian\nVERSION_ID=13\n")
    assert told(tree, "alice")[0] == "session:alice@any nofile soft = 2048"


def test_a_limits_conf_that_is_missing_is_told_where_there_is_pam(tree: Path) -> None:
    (tree / "etc/security/limits.conf").unlink()
    reason = "/etc/security/limits.conf is missing, and PAM refuses every login"
    assert told(tree, "alice") == [f"session:alice@any: {reason}"]
    (tree / "etc/security").rmdir()
    assert told(tree, "alice") == ["no file in this tree states a limit"]


@pytest.mark.parametrize(
    ("release", "then"),
    [
        ("debian\nVERSION_ID=12", "leaves what the login started with"),
        ("rhel\nVERSION_ID=9.4", "PAM then refuses the login"),
    ],
)
def test_what_pam_makes_of_a_limit_that_the_kernel_refuses(
    tree: Path, release: str, then: str
) -> None:
    write(tree, "/etc/os-release", f"ID={release}\n")
    write(tree, "/etc/sysctl.d/9.conf", "fs.nr_open = 1048576\n")
    write(tree, "/etc/security/limits.conf", "* hard nofile 2000000\n")
    (entry,) = [one for one in resolve_tree(str(tree), "alice", None) if one.get("bound") == "hard"]
    assert entry["why"] == f"the kernel refuses more than 1048576, fs.nr_open, and {then}"


def test_an_unlimited_nofile_is_refused_where_pam_does_not_ask_for_fs_nr_open(tree: Path) -> None:
    write(tree, "/etc/os-release", "ID=debian\nVERSION_ID=11\n")
    write(tree, "/etc/security/limits.conf", "* hard nofile unlimited\n")
    assert told(tree, "alice")[:2] == [
        "session:alice@any nofile hard = unlimited",
        f"     but     {REFUSED}",
    ]


@pytest.mark.parametrize(
    ("service", "line"),
    [
        ("sshd", "session:alice@sshd nofile soft = 2048"),
        (
            "none",
            "session:alice@none: the PAM stack of none has no pam_limits, so no limits file counts",
        ),
        ("gone", "session:alice@gone: no PAM service 'gone' in this tree"),
        (
            "odd",
            'session:alice@odd: /etc/pam.d/odd:1 "session required pam_limits.so conf=/etc/odd.conf" fails, since /etc/odd.conf is missing, and no session opens',
        ),
    ],
)
def test_the_service_decides_whether_limits_files_count(
    tree: Path, service: str, line: str
) -> None:
    assert told(tree, "alice", service)[0] == line


@pytest.mark.parametrize(
    ("path", "text", "service", "told_of_soft"),
    [
        ("/etc/profile.d/low.sh", "ulimit -n 100", None, True),
        ("/etc/profile.d/low.sh", "prlimit --nofile=100:100 --pid $$", "sshd", True),
        ("/etc/profile.d/low.sh", "ulimit -Hn 100", None, False),
        ("/etc/profile.d/low.sh", "ulimit -n 100", "cron", None),
        ("/etc/pam.d/sshd", "session optional pam_exec.so prlimit", None, True),
        ("/etc/ssh/sshd_config", "ForceCommand ulimit -n 100", None, True),
        ("/etc/ssh/sshd_config", "ForceCommand /bin/true", None, None),
        ("/etc/sudoers", "Defaults rlimit_nofile=100", "sudo", True),
        ("/etc/sudoers", "Defaults rlimit_nofile=100", "sshd", None),
    ],
)
def test_what_may_change_a_limit_after_pam_is_told(
    tree: Path, path: str, text: str, service: str | None, told_of_soft: bool | None
) -> None:
    """``None``: it is not told of at all; ``False``: it leaves what is stated as it is."""
    for name in ("sudo", "cron"):
        write(tree, f"/etc/pam.d/{name}", FILES["/etc/pam.d/sshd"])
    write(tree, path, f"{FILES.get(path, '')}{text}\n")
    entries = list(resolve_tree(str(tree), "alice", service))
    at = f'{path}:{FILES.get(path, "").count(chr(10)) + 1} "{text}" may change it after PAM'
    (soft,) = (one for one in entries if one.get("item") == "nofile")
    assert soft["effective"] == (None if told_of_soft else "2048")
    assert soft["why"] == (at if told_of_soft else "")
    assert [one["reason"] for one in entries if "reason" in one] == (
        [] if told_of_soft is None else [at]
    )


def test_a_way_in_whose_files_cannot_be_read_is_told(tree: Path) -> None:
    write(tree, "/etc/ssh/sshd_config", "Match Nonsense x\nForceCommand y\n")
    lines = told(tree, "alice")
    assert lines[0] == "session:alice@any nofile soft = 2048"
    assert [one for one in lines if "Nonsense" in one] == lines[3:]


def test_sysctls_and_docker_are_told(tree: Path) -> None:
    write(tree, "/etc/security/limits.conf", "")
    write(tree, "/etc/sysctl.d/a.conf", "vm.max_map_count = 5\n-kernel.x\nkernel.y = a b\n")
    write(tree, "/etc/sysctl.d/b.conf", "vm/max_map_count = 6\n")
    docker = '{"default-ulimits": {"nofile": {"Name": "nofile", "Hard": 90, "Soft": 50}}, "default-shm-size": "1G"}'
    write(tree, "/etc/docker/daemon.json", docker)
    assert [line for line in told(tree) if not line.startswith("     by")] == [
        "kernel kernel.y = a b",
        "kernel vm.max_map_count = 6",
        '     shadows /etc/sysctl.d/a.conf:1 "vm.max_map_count = 5"',
        "new-container:docker nofile soft = 50",
        "new-container:docker nofile hard = 90",
        "new-container:docker shm_size = 1GiB",
    ]


def test_sysctls_are_told_twice_where_procps_differs(tree: Path) -> None:
    write(tree, "/etc/security/limits.conf", "")
    write(tree, "/etc/sysctl.d/a.conf", "a.b = 1\na.b = 7\na.d = 8\n- a.e = 9\n-a.f\n")
    write(tree, "/etc/sysctl.conf", "a.b = 5\na.c = 6\n")
    assert told(tree) == [
        "kernel a.b at_boot = 7",
        '     by      /etc/sysctl.d/a.conf:2 "a.b = 7"',
        '     shadows /etc/sysctl.d/a.conf:1 "a.b = 1"',
        "kernel a.b by_procps = 5",
        '     by      /etc/sysctl.conf:1 "a.b = 5"',
        '     shadows /etc/sysctl.d/a.conf:1 "a.b = 1"',
        '     shadows /etc/sysctl.d/a.conf:2 "a.b = 7"',
        "kernel a.c by_procps = 6",
        '     by      /etc/sysctl.conf:2 "a.c = 6"',
        "kernel a.d = 8",
        '     by      /etc/sysctl.d/a.conf:3 "a.d = 8"',
        "kernel a.e at_boot = 9",
        '     by      /etc/sysctl.d/a.conf:4 "- a.e = 9"',
    ]


UNIT, DROPIN = "/usr/lib/systemd/system/x.service", "/etc/systemd/system/x.service.d/a.conf"
CONF = "/etc/systemd/system.conf"


def told_of_unit(tree: Path, unit: str) -> list[str]:
    write(tree, "/etc/security/limits.conf", "")
    return list(format_resolved(resolve_tree(str(tree), None, None, unit)))


def test_the_limits_of_a_unit_are_told_with_the_lines_that_systemd_ignores(tree: Path) -> None:
    write(tree, UNIT, "[Service]\nLimitNOFILE=5:infinity\nLimitNOFILE=64K\n")
    write(tree, DROPIN, "[Unit]\nLimitNOFILE=9\n")
    write(
        tree, CONF, "[Manager]\nDefaultLimitNOFILE=4\nDefaultLimitMEMLOCK=1M\nDefaultLimitCPU=x\n"
    )
    assert told_of_unit(tree, "x.service") == [
        f'unit:x.service: ignored is {UNIT}:3 "LimitNOFILE=64K": accepted is a whole number, '
        "'infinity', or two of them as soft:hard",
        f'unit:x.service: ignored is {DROPIN}:2 "LimitNOFILE=9": stands in [Unit]; '
        "it belongs in [Service]",
        "unit:x.service nofile soft = 5",
        f'     by      {UNIT}:2 "LimitNOFILE=5:infinity"',
        f'     shadows {CONF}:2 "DefaultLimitNOFILE=4"',
        "unit:x.service nofile hard = the value of fs.nr_open",
        f'     by      {UNIT}:2 "LimitNOFILE=5:infinity"',
        f'     shadows {CONF}:2 "DefaultLimitNOFILE=4"',
        "unit:x.service memlock soft = 1MiB",
        f'     by      {CONF}:3 "DefaultLimitMEMLOCK=1M"',
        "unit:x.service memlock hard = 1MiB",
        f'     by      {CONF}:3 "DefaultLimitMEMLOCK=1M"',
    ]
    by_default = told_of_unit(tree, "system.conf")
    assert by_default[0].startswith(f'unit:system.conf: ignored is {CONF}:4 "DefaultLimitCPU=x": ')
    assert by_default[-2] == "unit:system.conf memlock hard = 1MiB"
    assert by_default == told(tree)


def test_a_unit_that_no_file_states_is_refused(tree: Path) -> None:
    told = f"unit x.service: has no file in {tree}; one that has is accepted"
    for name in ("x.service", "x"):
        with pytest.raises(ValueError, match=re.escape(told)):
            told_of_unit(tree, name)


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ({"/etc/systemd/system/x.service": ""}, "/etc/systemd/system/x.service masks it"),
        (
            {UNIT: "[Service\n"},
            f'is not loaded: {UNIT}:1 "[Service": is not a section header, '
            "so that systemd reads no further",
        ),
    ],
)
def test_a_unit_that_gets_no_limits_is_told_with_the_reason(
    tree: Path, files: dict[str, str], line: str
) -> None:
    for path, text in files.items():
        write(tree, path, text)
    assert told_of_unit(tree, "x.service") == [f"unit:x.service: {line}"]


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ("nobody", "{root}/etc/passwd: has no user 'nobody'"),
        ("odd", "{root}/etc/passwd: has no user 'odd'"),
    ],
)
def test_a_user_that_is_not_in_the_tree_is_refused(tree: Path, user: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message.format(root=tree))}$"):
        list(resolve_tree(str(tree), user, None))


def test_a_tree_without_passwd_tells_of_root_and_of_all_else(tmp_path: Path) -> None:
    """Such trees are made before base-passwd is configured; the user of no file is refused."""
    write(tmp_path, "/etc/security/limits.conf", "root - nofile 900\n")
    write(tmp_path, "/etc/sysctl.d/a.conf", "vm.max_map_count = 70000\n")
    places = {
        (entry["place"], entry.get("item")) for entry in resolve_tree(str(tmp_path), None, None)
    }
    assert places >= {("session:root@any", "nofile"), ("kernel", "vm.max_map_count")}
    with pytest.raises(ValueError, match="has no user 'alice'"):
        list(resolve_tree(str(tmp_path), "alice", None))


def test_a_tree_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(str(tmp_path))}/no: is not a directory$"):
        list(resolve_tree(f"{tmp_path}/no", None, None))


def test_what_users_managers_give_is_told_by_default(tree: Path) -> None:
    write(tree, "/etc/systemd/user.conf", "[Manager]\nDefaultLimitNOFILE=5:6\nDefaultTasksMax=9\n")
    write(tree, "/etc/systemd/user.conf.d/a.conf", "[Manager]\nDefaultTasksMax=10%\n")
    mine = [
        "unit:user.conf nofile soft = 5",
        '     by      /etc/systemd/user.conf:2 "DefaultLimitNOFILE=5:6"',
        "unit:user.conf nofile hard = 6",
        '     by      /etc/systemd/user.conf:2 "DefaultLimitNOFILE=5:6"',
        "unit:user.conf tasks = 10%",
        '     by      /etc/systemd/user.conf.d/a.conf:2 "DefaultTasksMax=10%"',
        '     shadows /etc/systemd/user.conf:3 "DefaultTasksMax=9"',
    ]
    assert told(tree)[-7:] == mine
    assert told_of_unit(tree, "user.conf") == mine


def test_how_many_tasks_a_unit_may_hold(tree: Path) -> None:
    write(tree, "/etc/systemd/system.conf", "[Manager]\nDefaultTasksMax=9\n")
    write(tree, "/etc/systemd/system/x.service", "[Service]\nTasksMax=infinity\n")
    write(tree, "/etc/systemd/system/user-.slice.d/a.conf", "[Slice]\nTasksMax=33%\n")
    assert told_of_unit(tree, "x.service") == [
        "unit:x.service tasks = infinity",
        '     by      /etc/systemd/system/x.service:2 "TasksMax=infinity"',
        '     shadows /etc/systemd/system.conf:2 "DefaultTasksMax=9"',
    ]
    assert told_of_unit(tree, "user-1000.slice") == [
        "unit:user-1000.slice tasks = 33%",
        '     by      /etc/systemd/system/user-.slice.d/a.conf:2 "TasksMax=33%"',
    ]


def test_what_logind_does_about_shared_memory(tree: Path) -> None:
    write(tree, "/etc/systemd/logind.conf", "[Login]\nRemoveIPC=off\n")
    write(tree, "/usr/lib/systemd/logind.conf.d/a.conf", "[Login]\nRemoveIPC=perhaps\n")
    assert told(tree)[-2:] == [
        "logind RemoveIPC = off",
        '     by      /etc/systemd/logind.conf:2 "RemoveIPC=off"',
    ]
