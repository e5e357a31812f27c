# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of startup files that set limits are found, and the one to blame is named."""

from __future__ import annotations

import pytest
from mlhost_limits.core.declaration import Declaration
from mlhost_limits.core.finding import Requirement
from mlhost_limits.core.rlimit import UNLIMITED
from mlhost_limits.sessions.shell_causes import find_shell_causes
from mlhost_limits.sessions.shell_limits import (
    ShellLine,
    find_shell_limits,
    find_sourced,
    list_startup_files,
)

FILE = "/etc/profile.d/z.sh"
BOTH = ("soft", "hard")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("ulimit -n 512", [("nofile", BOTH, 512)]),
        ("  ulimit -Sn 512 # why not", [("nofile", ("soft",), 512)]),
        ("ulimit -H -n 512 >/dev/null", [("nofile", ("hard",), 512)]),
        ("[ $UID != 0 ] && ulimit -l 64; true", [("memlock", BOTH, 65536)]),
        ("if x; then ulimit -S -c 0; fi", [("core", ("soft",), 0)]),
        ("ulimit -n 512 -l unlimited", [("nofile", BOTH, 512), ("memlock", BOTH, UNLIMITED)]),
        ("ulimit -n $N", [("nofile", BOTH, "$N")]),
        ("ulimit -t 60", [("cpu", BOTH, 60)]),
        ("ulimit 5", [("fsize", BOTH, 5120)]),
        ("limit descriptors 512", [("nofile", ("soft",), 512)]),
        ("limit -h openf 512", [("nofile", ("hard",), 512)]),
        ("limit max 5", []),
        ("limit", []),
        ("limit memorylocked", []),
        ("ulimit -a", []),
        ("ulimit -n", []),
        ("# ulimit -n 5", []),
        ("echo 'see ulimit'", []),
        ("myulimit -n 5", []),
        ("prlimit --nofile=1024:2048 --pid $$",
         [("nofile", ("soft",), 1024), ("nofile", ("hard",), 2048)]),
        ("prlimit -p $$ -n=512 --memlock=:unlimited",
         [("nofile", BOTH, 512), ("memlock", ("hard",), UNLIMITED)]),
        ("prlimit --nofile --pid 1", []),
        ('eval "ulimit -n 5"', [("", BOTH, "")]),
        ("alias u=ulimit", [("", BOTH, "")]),
        ("python3 -c 'import resource; resource.setrlimit(7, (5, 5))'", [("", BOTH, "")]),
        ("echo `ulimit -Hn`", [("", BOTH, "")]),
    ],
)  # fmt: skip
def test_what_sets_a_limit(line: str, found: list[tuple[str, tuple[str, ...], object]]) -> None:
    read = list(find_shell_limits(f"\n{line}\n", FILE, hints=True))
    assert [(one.item, one.bounds, one.at.value) for one in read] == found
    assert all((one.at.place, one.at.text) == (f"{FILE}:2", line) for one in read)


def test_files_that_files_read() -> None:
    text = '. /etc/a.sh\nsource ~/b\n[ -r $HOME/c ] && . "$HOME/c"\n. $XDG/d\n. relative\n# . /e\n'
    assert find_sourced(text, "/home/x") == ["/etc/a.sh", "/home/x/b", "/home/x/c"]


@pytest.mark.parametrize(
    ("shell", "file"),
    [
        ("/bin/bash", "~/.bashrc"),
        ("/bin/dash", "/etc/profile.d/*.sh"),
        ("/usr/bin/zsh", "~/.zshrc"),
        ("/bin/tcsh", "/etc/profile.d/*.csh"),
    ],
)
def test_the_files_of_a_shell(shell: str, file: str) -> None:
    assert file in list_startup_files(shell)


LINES = list(
    find_shell_limits("ulimit -n 2000\nulimit -n 512\nulimit -u 5\nulimit -Hn 512\n", FILE)
)


@pytest.mark.parametrize(("observed", "lines"), [(512, [2]), (7, [1, 2, 4])])
def test_who_is_to_blame(observed: int, lines: list[int]) -> None:
    """The line that states what was seen; where none does, each that sets the limit."""
    causes = find_shell_causes(WANTED, observed, LINES, "a", "/home/a")
    assert [cause.at.line for cause in causes if cause.at] == lines
    assert {cause.code for cause in causes} == {"shell-lowers"}
    assert all("env -i" not in cause.remedy.lines[0] for cause in causes)


WANTED = Requirement("session:a@sshd", "nofile", "soft", 65536)


@pytest.mark.parametrize("home", ["/home/a", "/home/a/"])
def test_in_a_users_home_the_remedy_runs_as_that_user(home: str) -> None:
    (line,) = find_shell_limits("ulimit -n 512", "/home/a/.bashrc")
    (cause,) = find_shell_causes(WANTED, 512, [line], "a", home)
    assert cause.remedy.lines[0].startswith("env -i /sbin/runuser -P -u a -- sh -c ")


@pytest.mark.parametrize(
    ("path", "text", "home"),
    [
        ("/home/b/.bashrc", "ulimit -n 512", "/home/a"),
        ("/home/abc", "ulimit -n 512", "/home/a"),
        ("/home/a/../b/.bashrc", "ulimit -n 512", "/home/a"),
        ("/etc/profile.d/../passwd.sh", "ulimit -n 512", "/home/a"),
        ("/etc/cron.d/job", "ulimit -n 512", "/home/a"),
        ("/etc/passwd", "root:x:0:0::/root:/bin/sh", "/home/a"),
        ("/etc/profile", "umask 022", "/home/a"),
        ("/opt/site/env.sh", "ulimit -n 512", "/home/a"),
        ("/home/a/.bashrc", "ulimit -n 512", ""),
    ],
)
def test_root_edits_no_file_that_a_user_named(path: str, text: str, home: str) -> None:
    """A user's child says where its shell reads: what it says of root's files is a claim."""
    line = ShellLine("nofile", BOTH, Declaration(path, 1, text, 512))
    (cause,) = find_shell_causes(WANTED, 512, [line], "a", home)
    assert cause.remedy.commands == ()
    assert cause.remedy.text == "comment that line out"


def test_lines_are_counted_as_an_editor_counts_them() -> None:
    (line,) = find_shell_limits("a\x0b\x0cb\x85\nulimit -n 5\r\n", FILE)
    assert (line.at.line, line.at.text) == (2, "ulimit -n 5\r")
