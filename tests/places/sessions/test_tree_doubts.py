# SPDX-License-Identifier: GPL-3.0-or-later
"""What changes the limits of an image's sessions after PAM keeps a pass from being foretold."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.core.finding import Requirement
from mlhost_limits.core.values import User
from mlhost_limits.sessions.refusals_read import find_refusal
from mlhost_limits.sessions.tree_doubts_read import find_tree_doubts
from mlhost_limits.sessions.tree_read import SessionsTree

ALICE = User("alice", 1000, 1000, frozenset({"alice"}))
SSHD, SUDO, LOW = "/etc/ssh/sshd_config", "/etc/sudoers", "/etc/profile.d/low.sh"
PAM = "session required pam_limits.so\n"
UNIT = "/etc/systemd/system/ssh.service"
RUN_SSHD = "[Service]\nExecStart=\nExecStart=/usr/sbin/sshd "
OTHER_GETTY = "/etc/systemd/system/console-getty.service"
FROM_FILE = "[Service]\nEnvironmentFile=-/opt/env\n"
GETTY, AGETTY = "/etc/systemd/system/getty@.service", "ExecStart=-/sbin/agetty --noclear "


def find(tmp_path: Path, service: str, path: str, text: str, wanted: Requirement) -> list[str]:
    script = {
        "/opt/low": "#!/bin/sh\nulimit -n 5\n",
        "/opt/env": "O=-f /opt/sshd\n",
        "/opt/sshd": "ForceCommand ulimit -n 5\n",
        f"{OTHER_GETTY}.d/b.conf": "[Service]\n",
        UNIT: "[Service]\nExecStart=/usr/sbin/sshd -D\n",
    }
    stack = f"{PAM}session optional pam_systemd.so\n" if service == "sshd" else PAM
    for name, content in {f"/etc/pam.d/{service}": stack, **script, path: text}.items():
        (tmp_path / name[1:]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name[1:]).write_text(content)
    doubts = find_tree_doubts(service, ALICE, SessionsTree(str(tmp_path)))
    return [one.at.place for one in doubts if one.may_spoil(wanted)]


SOFT, HARD = (Requirement("", "nofile", bound, 65536) for bound in ("soft", "hard"))


@pytest.mark.parametrize(
    ("service", "path", "text", "places"),
    [
        ("login", LOW, "ulimit -n 1024\n", [f"{LOW}:1"]),
        ("login", LOW, "ulimit -Hn 1024\n", [f"{LOW}:1"]),
        ("login", LOW, "ulimit -n $MOST\n", [f"{LOW}:1"]),
        ("login", LOW, "\nulimit \\\n-n 512\n", [f"{LOW}:2"]),
        ("login", LOW, ". \\\n/opt/low\n", ["/opt/low:2"]),
        ("login", LOW, 'eval "ulimit $MOST"\n', [f"{LOW}:1"]),
        ("login", LOW, "ulimit -n 65536\n", []),
        ("login", LOW, "ulimit -u 5\n", []),
        ("login", f"{LOW}.bak", "ulimit -n 5\n", []),
        ("cron", LOW, "ulimit -n 1024\n", []),
        ("sshd", SSHD, "ForceCommand ulimit -n 5; $SHELL\n", [f"{SSHD}:1"]),
        ("sshd", SSHD, "ForceCommand /bin/true\nPAMServiceName x\n", [f"{SSHD}:2"]),
        ("sshd", SSHD, "Match User bob\nForceCommand ulimit -n 5\n", []),
        ("sshd", "/etc/default/ssh", '\nO="-o PAMServiceName=x"\n', ["/etc/default/ssh:2"]),
        ("sudo", SUDO, "Defaults rlimit_nofile=1024\n", [f"{SUDO}:1"]),
        ("sudo", SUDO, "Defaults rlimit_nofile=100000\n", []),
        ("sudo", SUDO, "Defaults pam_service=x\n", [f"{SUDO}:1"]),
        (
            "su",
            "/etc/pam.d/su",
            f"{PAM}session optional pam_exec.so prlimit\n",
            ["/etc/pam.d/su:2"],
        ),
        ("su", "/etc/pam.d/su", f"{PAM}session optional pam_exec.so /bin/true\n", []),
        ("sshd", "/etc/default/ssh", 'O="-f /opt/sshd"\n', ["/opt/sshd:1"]),
        ("sshd", f"{UNIT}.d/a.conf", f"{RUN_SSHD}-D -f /opt/sshd\n", ["/opt/sshd:1"]),
        (
            "sshd",
            f"{UNIT}.d/a.conf",
            f"{RUN_SSHD}-oForceCommand='ulimit -n 5'\n",
            [f"{UNIT}.d/a.conf:3"],
        ),
        ("sshd", f"{UNIT}.d/a.conf", f"{RUN_SSHD}-D\n", []),
        (
            "sshd",
            "/etc/systemd/system/sshd.service.d/a.conf",
            f"{RUN_SSHD}-D -4f /opt/sshd\n",
            ["/opt/sshd:1"],
        ),
        ("sshd", f"{UNIT}.d/a.conf", f"{RUN_SSHD}-D \\\n -f /opt/sshd\n", ["/opt/sshd:1"]),
        ("sshd", "/etc/systemd/system/service.d/a.conf", FROM_FILE, ["/opt/sshd:1"]),
        (
            "sshd",
            f"{UNIT}.d/a.conf",
            "[Service]\nExecStart=\nExecStart=-/opt/start -D\n",
            [f"{UNIT}.d/a.conf:3"],
        ),
        (
            "sshd",
            "/etc/default/ssh",
            "O=-o \\\n ForceCommand='ulimit -n 5'\n",
            ["/etc/default/ssh:1"],
        ),
        (
            "login",
            f"{GETTY}.d/a.conf",
            "ExecStart=\nExecStart=-/opt/low %I\n",
            [f"{GETTY}.d/a.conf:2"],
        ),
        ("sshd", "/etc/default/ssh", ";O=-f /opt/sshd\n", []),
        ("login", LOW, "[ -r /opt/low ] && . /opt/low\n", ["/opt/low:2"]),
        ("login", LOW, "for i in /opt/*w; do . $i; done\n", ["/opt/low:2"]),
        ("login", LOW, "cat /opt/low\n", []),
        ("login", "/etc/profile.d/x.csh", "source /opt/low\n", ["/opt/low:2"]),
        ("login", "/etc/userdb/alice.user", '{"resourceLimits": {}}', []),
        ("sshd", "/etc/userdb/alice.user", '{"resourceLimits": {}}', ["/etc/userdb/alice.user"]),
        ("login", "/etc/passwd", "alice:x:1000:1000::/:/usr/bin/fish\n", ["/etc/passwd:1"]),
        ("login", f"{GETTY}.d/a.conf", f"{AGETTY}-nl /bin/bash\n", [f"{GETTY}.d/a.conf:1"]),
        ("login", f"{GETTY}.d/a.conf", f"{AGETTY}--login-prog /opt/low\n", [f"{GETTY}.d/a.conf:1"]),
        ("login", "/etc/zshenv", "ulimit -n 1024\n", ["/etc/zshenv:1"]),
        ("sshd", SSHD, "SetEnv BASH_ENV=/opt/low\n", [f"{SSHD}:1"]),
        ("sshd", SSHD, "SetEnv BASH_ENV=/opt/none\n", []),
        ("sshd", "/etc/ssh/sshrc", "prlimit --nofile=5 --pid $PPID\n", ["/etc/ssh/sshrc:1"]),
        ("sshd", "/etc/ssh/sshrc", "\n[ $# -gt 9 ] || \\\nprlimit -n 5", ["/etc/ssh/sshrc:3"]),
        ("cron", "/etc/crontab", "SHELL=/opt/low\n", ["/etc/crontab:1"]),
        ("crond", "/etc/cron.d/x", "BASH_ENV=/opt/low\n", ["/etc/cron.d/x:1"]),
        ("sshd", "/etc/crontab", "SHELL=/opt/low\n", []),
        (
            "login",
            f"{GETTY}.d/a.conf",
            f"{AGETTY}--login-program /opt/low %I\n",
            [f"{GETTY}.d/a.conf:1"],
        ),
        ("login", GETTY, f"{AGETTY}-l/opt/low -\n", [f"{GETTY}:1"]),
        ("login", f"{GETTY}.d/a.conf", f"{AGETTY}\\\n -l /opt/low \\", [f"{GETTY}.d/a.conf:1"]),
        (
            "login",
            f"{GETTY}.d/b.conf",
            f"{AGETTY}-l /opt/low %I\n",
            [f"{GETTY}.d/b.conf:1"],
        ),
        ("login", f"{GETTY}.d/a.conf", f"{AGETTY}--login-program /bin/login\n", []),
        ("login", f"{GETTY}.d/a.old", f"{AGETTY}-l /opt/low\n", []),
        ("login", "/etc/passwd", "alice:x:1000:1000::/:/opt/low\n", ["/etc/passwd:1"]),
        ("sudo", "/etc/passwd", "alice:x:1000:1000::/:/opt/low\n", []),
        ("login", "/etc/passwd", "bob:x:1001:1000::/:/opt/low\n", []),
    ],
)
def test_lines_that_come_after_pam(
    tmp_path: Path, service: str, path: str, text: str, places: list[str]
) -> None:
    assert find(tmp_path, service, path, text, SOFT) == places


def test_a_soft_limit_alone_says_nothing_of_the_hard_one(tmp_path: Path) -> None:
    assert find(tmp_path, "login", LOW, "ulimit -Sn 1024\n", HARD) == []
    assert find(tmp_path, "login", LOW, "ulimit -Hn 1024\n", HARD) == [f"{LOW}:1"]


def test_a_script_that_a_line_names_is_read(tmp_path: Path) -> None:
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt/gate").write_text("#!/bin/sh\nulimit -n 5\n")
    assert find(tmp_path, "sshd", SSHD, "ForceCommand /opt/gate\n", SOFT) == [f"{SSHD}:1"]


def test_the_environment_may_have_scripts_read_a_file(tmp_path: Path) -> None:
    pam = f"{PAM}session required pam_env.so\n"
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/environment").write_text("BASH_ENV=/etc/low\n")
    (tmp_path / "etc/low").write_text("ulimit -n 5\n")
    assert find(tmp_path, "cron", "/etc/pam.d/cron", pam, SOFT) == ["/etc/environment:1"]


CONF = "/etc/security/access.conf"


@pytest.mark.parametrize(
    ("stack", "files", "place"),
    [
        ("account required pam_access.so", {CONF: "-:alice:ALL\n"}, f"{CONF}:1"),
        ("auth required pam_access.so", {CONF: "+:bob:ALL\n - : (alice) bob : ALL\n"}, f"{CONF}:2"),
        ("account required pam_access.so", {CONF: "-:ALL:ALL EXCEPT LOCAL\n"}, ""),
        ("account required pam_access.so", {CONF: "+:alice:10.0.0.0/8\n-:ALL:ALL\n"}, ""),
        ("account required pam_access.so", {CONF: "+:@trusted:ALL\n-:ALL:ALL\n"}, ""),
        ("account required pam_access.so", {CONF: "-:ALL EXCEPT (alice):ALL\n"}, ""),
        ("account required pam_access.so", {CONF: "-:ALL EXCEPT @trusted:ALL\n"}, ""),
        ("account required pam_access.so", {CONF: "-:bob:ALL\n#-:alice:ALL\n"}, ""),
        ("account sufficient pam_access.so", {CONF: "-:alice:ALL\n"}, ""),
        ("account required pam_access.so listsep=,", {CONF: "-:alice:ALL\n"}, ""),
        ("account required pam_access.so accessfile=/etc/own", {"/etc/own": "-:ALL:ALL"}, "/etc/own:1"),
        ("account required pam_access.so accessfile=/etc/own", {CONF: "-:ALL:ALL"}, ""),
        (
            "account required pam_access.so",
            {"/etc/security/access.d/a.conf": "-:ALL:ALL"},
            "/etc/security/access.d/a.conf:1",
        ),
        ("auth requisite pam_nologin.so file=/etc/shut", {"/etc/shut": ""}, "/etc/shut keeps"),
        ("auth requisite pam_nologin.so file=/etc/shut", {"/etc/nologin": ""}, ""),
    ],
)  # fmt: skip
def test_who_is_turned_away_at_each_login(
    tmp_path: Path, stack: str, files: dict[str, str], place: str
) -> None:
    for path, text in files.items():
        find(tmp_path, "sshd", path, text, SOFT)
    find(tmp_path, "sshd", "/etc/pam.d/sshd", f"{PAM}{stack}\n", SOFT)
    said = find_refusal("sshd", ALICE, SessionsTree(str(tmp_path)))
    assert said.startswith(place)
    assert bool(said) == bool(place)


KEY = 'restrict,command="{}",no-pty ssh-ed25519 A b\n'
LOW_KEY = KEY.format("ulimit -n 5; $SHELL")


@pytest.mark.parametrize(
    ("config", "path", "text", "places"),
    [
        ("", "/top/.ssh/authorized_keys", f"# x\n{LOW_KEY}", ["/top/.ssh/authorized_keys:2"]),
        ("", "/top/.ssh/authorized_keys2", LOW_KEY, ["/top/.ssh/authorized_keys2:1"]),
        ("", "/top/.ssh/authorized_keys", KEY.format("/opt/low"), ["/top/.ssh/authorized_keys:1"]),
        ("", "/top/.ssh/authorized_keys", KEY.format("/opt/env"), []),
        ("AuthorizedKeysFile /etc/keys/%u\n", "/etc/keys/root", LOW_KEY, ["/etc/keys/root:1"]),
        ("AuthorizedKeysFile /etc/keys/%u\n", "/top/.ssh/authorized_keys", LOW_KEY, []),
        ("AuthorizedKeysFile none\n", "/top/.ssh/authorized_keys", LOW_KEY, []),
        ("Match User root\nAuthorizedKeysFile %h/x\n", "/top/x", LOW_KEY, ["/top/x:1"]),
        ("", "/home/.ssh/authorized_keys", LOW_KEY, []),
    ],
)
def test_roots_own_keys(
    tmp_path: Path, config: str, path: str, text: str, places: list[str]
) -> None:
    """Those of others are theirs to read."""
    people = "root:x:0:0::/top:/bin/bash\nalice:x:1000:1000::/home:/bin/bash\n"
    find(tmp_path, "sshd", "/etc/passwd", people, SOFT)
    find(tmp_path, "sshd", SSHD, config, SOFT)
    find(tmp_path, "sshd", path, text, SOFT)
    read, root = SessionsTree(str(tmp_path)), User("root", 0, 0)
    assert [one.at.place for one in find_tree_doubts("sshd", root, read)] == places
    assert list(find_tree_doubts("sshd", ALICE, read)) == []
    assert list(find_tree_doubts("login", root, read)) == []


@pytest.mark.parametrize(
    ("shell", "name", "places"),
    [
        ("/bin/bash", ".bashrc", ["/top/.bashrc:1"]),
        ("", ".profile", ["/top/.profile:1"]),
        ("/bin/zsh", ".zshrc", ["/top/.zshrc:1"]),
        ("/bin/zsh", ".bashrc", []),
        ("/bin/bash", ".other", []),
    ],
)
def test_roots_own_startup_files(tmp_path: Path, shell: str, name: str, places: list[str]) -> None:
    """Those of others are theirs to read."""
    text = f"root:x:0:0::/top:{shell}\nalice:x:1000:1000::/top:{shell}\n"
    find(tmp_path, "login", "/etc/passwd", text, SOFT)
    (tmp_path / "etc/zshenv").write_text("ulimit -n 1024\n" if shell == "/bin/bash" else "")
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / name).write_text("ulimit -n 1024\n")
    read = SessionsTree(str(tmp_path))
    told = [one.at.place for one in find_tree_doubts("login", User("root", 0, 0), read)]
    assert told == places
    assert list(find_tree_doubts("login", ALICE, read)) == []
