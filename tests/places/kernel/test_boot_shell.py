# SPDX-License-Identifier: GPL-3.0-or-later
"""Of a shell's line is known what it runs here, what it only says, and what a condition decides."""

from __future__ import annotations

import pytest
from mlhost_limits.kernel.boot_shell import (
    find_commands,
    find_comment,
    find_dependent,
    find_targets,
    is_command,
    is_talk,
    list_bare,
    put_braces,
    put_folders,
)

SET = "sysctl -w a.b=1"


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("a", ["a"]),
        ("a; b | c", ["a", " b ", " c"]),
        ("a && b & c", ["a ", "", " b ", " c"]),
        ("a 2>&1; b", ["a 2>&1", " b"]),
        ("a &> b; c", ["a &> b", " c"]),
        ("a 'b; c' \"d | e\"; f", ["a 'b; c' \"d | e\"", " f"]),
        ("a \\; b; c", ["a \\; b", " c"]),
        ("a '\\'; b", ["a '\\'", " b"]),
        ("(a)", ["", "a", ""]),
        ("a >x& b", ["a >x", " b"]),
        ("a& >x", ["a", " >x"]),
        ("`a`", ["", "a", ""]),
        (">&2 a; b", [">&2 a", " b"]),
        ("&> x; b", ["&> x", " b"]),
        ("a& b >x", ["a", " b >x"]),
    ],
)
def test_the_commands_of_a_line(line: str, commands: list[str]) -> None:
    assert [line[start:end] for start, end in find_commands(line)] == commands


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        (f"{SET} # x", f"{SET} "),
        (f"{SET} '# x'", f"{SET} '# x'"),
        ("# x", ""),
        ("a#b", "a#b"),
        ("a;#b", "a;"),
        ('a "b # c', 'a "b # c'),
        ("a \\# b", "a \\# b"),
        ('a # "b"', "a "),
    ],
)
def test_where_a_comment_starts(line: str, bare: str) -> None:
    assert line[: find_comment(line)] == bare


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        (f"echo {SET}", [""]),
        (f"echo {SET}; {SET}", [f"; {SET}"]),
        (f"echo {SET} | sh", [f"echo {SET} | sh"]),
        (f"echo {SET} || {SET}", [f"|| {SET}"]),
        (f"echo {SET} \\\n| sh", [f"echo {SET} \\", "| sh"]),
        (f"echo $({SET})", [f"({SET})"]),
        ("echo 1 > /proc/sys/a/b", ["echo 1 > /proc/sys/a/b"]),
        ("echo 1 > /dev/null", [""]),
        (f"ssh other {SET}", [""]),
        (f"ssh localhost {SET}", [f"ssh localhost {SET}"]),
        (f"cat <<E\n{SET}\nE\n{SET}", ["", "", "", SET]),
        (f"cat <<E\n{SET}", ["", SET]),
        (f"sh <<E\n{SET}\nE", ["sh <<E", SET, "E"]),
        (f"echo 'a\n{SET}\n'\n{SET}", ["", "", "", SET]),
        (f"echo 'a\n{SET}\n'; {SET}", ["", "", f"; {SET}"]),
        (f"x\necho it\\'s\n{SET}", ["x", "", SET]),
        (f"{SET} # echo", [SET]),
        (f"a; echo b; {SET}", [f"a;       ; {SET}"]),
        (f"echo x; bash -c 'a\n{SET}\n'", ["; bash -c 'a", SET, "'"]),
        (f"ssh other x\n{SET}", ["", SET]),
        (f"ssh other \\\n{SET}", ["ssh other \\", ""]),
        (f"ssh other \\\n-x \\\n{SET}", ["ssh other \\", "", ""]),
        (f"echo 'a\n{SET}", ["", SET]),
        (f"echo 'a\n{SET}'", ["", ""]),
        (f'echo "a\n{SET}\n"\n{SET}', ["", "", "", SET]),
        (f"{{\necho {SET}\n}} | sh", ["{", f"echo {SET}", "} | sh"]),
        (f"ssh other \\\\\n{SET}", ["ssh other \\\\", SET]),
        (f"ssh other \\\\\\\n{SET}", ["ssh other \\\\\\", ""]),
    ],
)
def test_what_is_left_of_lines(text: str, bare: list[str]) -> None:
    lines = list(list_bare(enumerate(text.split("\n"), 1)))
    assert [one.bare.strip() for one in lines] == bare
    assert [one.number for one in lines] == list(range(1, len(lines) + 1))


def test_what_a_very_long_line_says_may_run() -> None:
    for length, blanks in ((4096, 4096), (4097, 0)):
        line = f"echo {SET}".ljust(length, "x")
        (found,) = list_bare([(1, line)])
        assert found.bare == (" " * blanks or line)


def test_a_very_long_line_does_not_go_on_elsewhere() -> None:
    line = f"true {{}}; {SET}; ssh other \\"
    for length, rest in ((4096, ""), (4097, SET)):
        whole = line.format("x" * (length + 2 - len(line)))
        _first, second = list_bare([(1, whole), (2, SET)])
        assert second.bare.strip() == rest


def test_of_a_longer_line_it_is_not_sure_what_is_set_here() -> None:
    line = f"docker ps {{}}; {SET}"
    for length in (4096, 4097):
        whole = line.format("x" * (length + 2 - len(line)))
        assert [one.is_sure for one in list_bare([(1, whole)])] == [length == 4096]


def test_a_comment_between_ends_the_command_before_it() -> None:
    lines = list_bare([(1, "ssh other \\"), (3, SET)])
    assert [one.bare for one in lines] == ["ssh other \\", SET]


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        (SET, [True]),
        (f"docker exec x {SET}", [False]),
        (f"docker ps; {SET}", [True]),
        (f"docker exec x \\\n{SET}", [False, False]),
        (f"docker exec x \\\n-it \\\n{SET}", [False, False, False]),
        (f"docker ps\n{SET}", [True, True]),
        (f"docker ps $({SET})", [False]),
        (f"{{\n{SET}\necho {SET}\n}} | sh", [True, True, False, True]),
    ],
)
def test_what_may_be_set_elsewhere_is_not_sure(text: str, sure: list[bool]) -> None:
    assert [one.is_sure for one in list_bare(enumerate(text.split("\n"), 1))] == sure


@pytest.mark.parametrize(
    ("text", "dependent"),
    [
        (f"{SET}\n{SET}", []),
        (f"if x; then\n{SET}\nfi\n{SET}", [0, 1, 2]),
        (f"if x; then {SET}; fi\n{SET}", [0]),
        (f"f() {{\n{SET}\n}}\n{SET}", [0, 1, 2]),
        (f"x || {SET}\n{SET}", [0]),
        (f"x && {SET}\n{SET}", []),
        (f"[ -e /x ] && {SET}\n{SET}", [0]),
        (f"[ -x /sbin/a ] && /sbin/a\n{SET}", []),
        (f"if [ -x /sbin/a ]; then /sbin/a; fi\n{SET}", []),
        (f"if [ -x /sbin/a ]; then /sbin/b; fi\n{SET}", [0]),
        (f"[ -e /x ] || exit 0\n{SET}", [0, 1]),
        (f"x && exit\n{SET}", [1]),
        (f"x && echo exit\n{SET}", []),
        (f"if x; then\nexit\nfi\n{SET}", [0, 1, 2, 3]),
        (f"fi\n{SET}\nif x\n{SET}\n", [2, 3, 4]),
        (f"echo 'if x'\n{SET}", []),
        (f"for a in b; do\nfor c in d; do\nx\ndone\n{SET}\ndone\n{SET}", [0, 1, 2, 3, 4, 5]),
    ],
)
def test_what_a_condition_decides_on(text: str, dependent: list[int]) -> None:
    assert sorted(find_dependent(text.split("\n"))) == dependent


@pytest.mark.parametrize(
    ("command", "talks"),
    [
        ("echo a", True),
        ("then echo a", True),
        ("echo a > /tmp/x", True),
        ("echo a > /proc/sys/a/b", False),
        ("tee /tmp/x", True),
        ("tee -a /tmp/x", True),
        ("tee /proc/sys/a/b", False),
        ("tee /tmp/x /proc/sys/a/b", False),
        ("tee /tmp/x < /proc/sys/a/b", True),
        ("echo `a`", False),
        ("echo $(a)", False),
        ("cat <(a)", False),
        ("sudo -u bob sysctl -w a.b=1", True),
        ("sudo -u root sysctl -w a.b=1", False),
        ("sysctl -w a.b=1", False),
    ],
)
def test_what_only_says_something(command: str, talks: bool) -> None:
    assert is_talk(command) is talks


def test_the_files_to_which_a_command_speaks() -> None:
    assert find_targets("echo a > /x 2>> /y '> /z' \">/w\"") == ["/x", "/y"]


@pytest.mark.parametrize(
    ("line", "put"),
    [
        ("a.{b,c}=1", "a.b=1 a.c=1"),
        ("x a{b,c}", "x ab ac"),
        ("a  {b}", "a  {b}"),
        ("a  b,c", "a  b,c"),
    ],
)
def test_what_bash_makes_of_braces(line: str, put: str) -> None:
    assert put_braces(line) == put


def test_the_braces_of_a_very_long_line_stay() -> None:
    line = f"{{a,{'b' * 4092}}}"
    assert put_braces(line) == f"a {'b' * 4092}"
    assert put_braces(f"{line}c") == f"{line}c"


@pytest.mark.parametrize(
    ("text", "put"),
    [
        ("D=/opt/a\n$D/b ${D}/c", "D=/opt/a\n/opt/a/b /opt/a/c"),
        ('D="/opt/a/"\nsh "$D"/b', 'D="/opt/a/"\nsh /opt/a/b'),
        ('$(dirname "$0")/b', "/etc/b"),
        ("E=/opt/a", "E=/opt/a"),
        ("${0%/*}/b", "/etc/b"),
        ("E=/x\nD=$(cd /opt/a && pwd)\n$D/b", "E=/x\nD=/opt/a\n/opt/a/b"),
        ("$D/b", "$D/b"),
        ('A="/x"\n"/opt/a"/b', 'A="/x"\n"/opt/a"/b'),
        ('$A\n"/opt/a"/b', '$A\n"/opt/a"/b'),
        (
            "A=/a\nB=$A/b\nC=$B/c\nD=$C/d\n$C $D",
            "A=/a\nB=/a/b\nC=/a/b/c\nD=/a/b/c/d\n/a/b/c $D",
        ),
        (f"export{' ' * 193}D=/a\n$D", f"export{' ' * 193}D=/a\n/a"),
        (f"export{' ' * 194}D=/a\n$D", f"export{' ' * 194}D=/a\n$D"),
    ],
)
def test_folders_in_the_place_of_variables(text: str, put: str) -> None:
    assert put_folders("/etc/rc.local", text) == put


@pytest.mark.parametrize(("length", "is_put"), [(255, True), (256, False)])
def test_a_long_path_is_not_put_in_where_it_may_stand_thousands_of_times(
    length: int, is_put: bool
) -> None:
    long = "/" + "x" * (length - 1)
    rest = "\ncat $A/b" * 5000
    put = rest.replace("$A", long) if is_put else rest
    assert put_folders("/etc/rc.local", f"A={long}{rest}") == f"A={long}{put}"


@pytest.mark.parametrize(
    ("before", "runs"),
    [
        ("", True),
        ("true; ", True),
        ("sudo ", True),
        ("echo ", False),
        ("ExecStart=-", True),
        ("ls | sh ", True),
        ("cp a ", False),
    ],
)
def test_what_stands_where_a_command_does(before: str, runs: bool) -> None:
    assert is_command(before) is runs
