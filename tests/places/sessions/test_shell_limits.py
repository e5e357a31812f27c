# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of startup files that set limits are found, and the one to blame is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.core.finding import Requirement
from mlhost_limits.core.values import UNLIMITED, Declaration
from mlhost_limits.sessions import shell_sources
from mlhost_limits.sessions.shell_causes import find_shell_causes
from mlhost_limits.sessions.shell_limits import (
    ShellLine,
    find_shell_limits,
    list_startup_files,
)
from mlhost_limits.sessions.shell_sources import find_sources

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
        ("ulimit -n512", [("nofile", BOTH, 512)]),
        ("prlimit --pid $P --nofile=512", [("nofile", BOTH, 512)]),
        ("prlimit $O --pid 5", [("", BOTH, "$O")]),
        ("prlimit --pid=5 --raw=1", []),
        ("ulimit 2>/dev/null -Sn 512", [("nofile", ("soft",), 512)]),
        ("ulimit -n >&2 512", [("nofile", BOTH, 512)]),
        ("PS1='a # b'; ulimit -n 512", [("nofile", BOTH, 512)]),
        ('PS1="a \\" # b"; ulimit -n 512', [("nofile", BOTH, 512)]),
        ("it\\'s # ulimit -n 512", []),
        ("ulimit -u 512; eval 'ulimit -n 5'", [("nproc", BOTH, 512), ("", BOTH, "")]),
    ],
)  # fmt: skip
def test_what_sets_a_limit(line: str, found: list[tuple[str, tuple[str, ...], object]]) -> None:
    read = list(find_shell_limits(f"\n{line}\n", FILE, hints=True))
    assert [(one.item, one.bounds, one.at.value) for one in read] == found
    assert all((one.at.place, one.at.text) == (f"{FILE}:2", line) for one in read)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("echo ulimit -n 512", []),
        ("  echo 'see (ulimit -n 512); x' >&2", []),
        ('printf "ulimit -n 512 # %s\\n" "$X" >/dev/null', []),
        ("logger -t x 'run ulimit -n 512'", []),
        ("cat <<EOF\nulimit -n 512\nEOF", []),
        ("cat <<-'EOF' >&2\n\tulimit -n 512\n\tEOF\nulimit -n 5", [4]),
        ("cat <<EOF\nulimit -n 512\n EOF", [2]),
        ("cat <<EOF\nx\nEOF\nulimit -n 512\nEOF", [4]),
        ("sh <<EOF\nulimit -n 512\nEOF", [2]),
        ("cat <<EOF | sh\nulimit -n 512\nEOF", [2]),
        ("cat >/etc/x <<EOF\nulimit -n 512\nEOF", [2]),
        ("echo x; ulimit -n 512", [1]),
        ("echo x & ulimit -n 512", [1]),
        ("echo 'x' \"a'b\"; ulimit -n 512", [1]),
        ("echo 'x\nulimit -n 512'", [2]),
        ("echo ulimit -n 512 > /etc/x; . /etc/x", [1]),
        ("{\necho ulimit -n 512\n} > /etc/x\n. /etc/x", [2]),
        ("{\necho ulimit -n 512\n} | sh", [2]),
        ("eval $(\necho ulimit -n 512\n)", [2]),
        ("$(\necho ulimit -n 512\n)", [2]),
        (". <(\necho ulimit -n 512\n)", [2]),
        ("exec > /etc/x\necho ulimit -n 512", [2]),
        ("printf -v x 'ulimit -n 512'\n$x", [1]),
        ("alias echo=\necho ulimit -n 512", [2]),
        ("echo() { $*; }\necho ulimit -n 512", [2]),
    ],
)
def test_what_is_printed_sets_nothing_where_nothing_runs_it(text: str, lines: list[int]) -> None:
    assert [one.at.line for one in find_shell_limits(text, FILE, hints=True)] == lines


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ulimit \\\n-n 512", [(1, "nofile", 512)]),
        ("[ $# ] && \\\nulimit \\\n -n \\\n 512", [(2, "nofile", 512)]),
        ("uli\\\nmit -u 5 \\\n -n 512", [(1, "nproc", 5), (1, "nofile", 512)]),
        ("x \\\n# y \\\nulimit -n 512", [(3, "nofile", 512)]),
        ("# x \\\nulimit -n 512", [(2, "nofile", 512)]),
        ("x='a # b' \\\nulimit \\\n-n 512", [(2, "nofile", 512)]),
        ("x \\\\\nulimit -n 512", [(2, "nofile", 512)]),
        ("x \\\ny 'ulimit' \\", [(2, "", "")]),
        ("ulimit -n 512; \\\neval 'ulimit -n 5'", [(1, "nofile", 512), (2, "", "")]),
    ],
)
def test_a_backslash_joins_a_line_to_the_next(
    text: str, found: list[tuple[int, str, object]]
) -> None:
    read = list(find_shell_limits(text, FILE, hints=True))
    assert [(one.at.line, one.item, one.at.value) for one in read] == found
    rows = text.split("\n")
    assert all(one.at.text == rows[one.at.line - 1] for one in read)


@pytest.mark.parametrize(
    ("text", "named", "unclear"),
    [
        (". /etc/a.sh", ["/etc/a.sh"], 0),
        ('source ~/b; . $HOME/c && \\. "${HOME}/d"', ["/h/b", "/h/c", "/h/d"], 0),
        ("# . /e\nnot. /e", [], 0),
        ("D=/etc/site\nfor f in $D/*.sh; do . $f; done", ["/etc/site/*.sh"], 0),
        ("for i in $(run-parts --list /etc/profile.d); do\n. $i\ndone", ["/etc/profile.d/*"], 0),
        (
            'for i in /etc/profile.d/*.sh /etc/x; do . "$i"; done',
            ["/etc/profile.d/*.sh", "/etc/x"],
            0,
        ),
        ('. "${XDG:-$HOME/.config}/b"', ["/h/.config/b"], 0),
        ('export NVM="$HOME/.nvm"\n[ -s $NVM/nvm.sh ] && . $NVM/nvm.sh', ["/h/.nvm/nvm.sh"], 0),
        (". $UNKNOWN/d", [], 1),
        (". relative", [], 1),
        ("source <(kubectl completion bash)", [], 1),
        ("A=$B/x\nB=$A/x\n. $A/y", [], 1),
        ("[ -t 1 ] || exec /etc/wrap", [], 1),
        ("[ -t 1 ] || exec \\\n /etc/wrap", [], 1),
        ("D=\\\n/etc\n. \\\n$D/a", ["/etc/a"], 0),
        ("PS1='a # b'; . /etc/a", ["/etc/a"], 0),
        ("export BASH_ENV=/etc/a", ["/etc/a"], 0),
        ("A=/a\nB=$A/b\nC=$B/c\nD=$C/d\n. $D/e", ["/a/b/c/d/e"], 0),
        ("A=/a\nB=$A/b\nC=$B/c\nD=$C/d\nE=$D/e\n. $E/f", [], 1),
        ("exec 2>/dev/null; exec >&2; exec {fd}<x; exec <x", [], 0),
        ("execute x; nexec y", [], 0),
        (
            "for a in /x; do . $a; done\n" + "a=/y\n" * 300 + ". $a$a$a$a",
            ["/x", *["/y"] * 199, *["/x" * 4], *["/x/x/x/y"] * 199],
            0,
        ),
    ],
)
def test_what_a_file_has_a_shell_read_or_become(text: str, named: list[str], unclear: int) -> None:
    found = find_sources(text, FILE, "/h")
    assert [name for name, _at in found.named] == named
    assert len(found.unclear) + len(found.becomes) == unclear
    rows = text.split("\n")
    for at in (*found.unclear, *found.becomes, *(at for _name, at in found.named)):
        assert (at.path, at.text) == (FILE, rows[at.line - 1])


def test_a_line_that_goes_on_is_named_where_the_name_ends() -> None:
    found = find_sources(". /etc/a\\\n; . /etc/b\\\n;c\n. /etc/c", FILE, "/h")
    assert [(name, at.line) for name, at in found.named] == [
        ("/etc/a", 1), ("/etc/b", 2), ("/etc/c", 4),
    ]  # fmt: skip


def test_of_a_file_that_names_too_many_files_the_rest_is_unclear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shell_sources, "_MOST_OF_ALL", 4)
    found = find_sources("V=/a\nV=/b\nV=/c\n. $V\n. $V\n. $V\n", FILE, "/h")
    assert [(name, at.line) for name, at in found.named] == [
        ("/a", 4), ("/b", 4), ("/c", 4), ("/a", 5),
    ]  # fmt: skip
    assert [at.line for at in found.unclear] == [6]


@pytest.mark.parametrize(
    ("shell", "file"),
    [
        ("/bin/bash", "~/.bashrc"),
        ("/bin/dash", "/etc/profile.d/*.sh"),
        ("/bin/bash", "/etc/profile.d/sh.local"),
        ("/usr/bin/zsh", "~/.zshrc"),
        ("/bin/tcsh", "/etc/profile.d/*.csh"),
    ],
)
def test_the_files_of_a_shell(shell: str, file: str) -> None:
    assert file in list_startup_files(shell)


@pytest.mark.parametrize(
    ("shell", "file"),
    [
        ("/usr/bin/zsh", "~/.bash_profile"),
        ("/usr/bin/zsh", "~/.bashrc"),
        ("/bin/bash", "~/.zshrc"),
        ("/bin/bash", "~/.cshrc"),
        ("/bin/tcsh", "~/.profile"),
    ],
)
def test_the_files_of_another_shell_are_not_read(shell: str, file: str) -> None:
    assert file not in list_startup_files(shell)


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
        ("/home/a/.bashrc", "ulimit -n 512 \\", "/home/a"),
    ],
)
def test_root_edits_no_file_that_a_user_named(path: str, text: str, home: str) -> None:
    """A user's child says where its shell reads: what it says of root's files is a claim."""
    line = ShellLine("nofile", BOTH, Declaration(path, 1, text, 512))
    (cause,) = find_shell_causes(WANTED, 512, [line], "a", home)
    assert cause.remedy.commands == ()
    assert cause.remedy.text == f"comment out {Path(path).name}:1"


def test_lines_are_counted_as_an_editor_counts_them() -> None:
    (line,) = find_shell_limits("a\x0b\x0cb\x85\nulimit -n 5\r\n", FILE)
    assert (line.at.line, line.at.text) == (2, "ulimit -n 5\r")


def test_what_a_line_has_a_shell_read_is_blamed_where_no_line_states_it() -> None:
    """And nothing is edited: what the line names is at fault, not the line."""
    wanted = Requirement("session:alice@sshd", "nofile", "soft", 4000)
    unclear = ShellLine("", (), Declaration(FILE, 9, ". $D/x", ""))
    (cause,) = find_shell_causes(wanted, 100, [unclear], "alice", "/home/alice")
    assert (cause.at, cause.remedy.commands) == (unclear.at, ())
    assert cause.text == f'{FILE}:9 ". $D/x" has the shell read or become what sets it, after PAM'
    causes = find_shell_causes(wanted, 100, [unclear, LINES[0]], "alice", "/home/alice")
    assert [one.at for one in causes] == [LINES[0].at]
