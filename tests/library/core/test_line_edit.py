# SPDX-License-Identifier: GPL-3.0-or-later
"""What is printed changes the line that was seen and nothing else, whatever stands there now."""

from __future__ import annotations

import os
import pwd
import re
import shlex
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mlhost_limits.core import line_edit
from mlhost_limits.core.line_edit import (
    as_user,
    edit_line,
    find_row,
    is_typed,
    show_row,
    write_row,
)
from mlhost_limits.core.values import Declaration
from mlhost_limits.processes.units_diagnose import name_caller

SHELLS = ("dash", "bash")
HOSTILE = (
    *(b"'", b'"', b"\\", b"$(touch owned)", b"`touch owned`", b"$HOME", b"!", b"!!", b"%s", b"&"),
    *(b"\t", b"\r", b"\0", b"\x1b[2J", b"\xff", b"\xc3\xa4", b"\xe2\x80\xa8", b" ", b"-n", b"-e"),
    *(b"/", b"|", b";", b"#", b"*", b"[", b"]", b"^", b"~", b"{", b"}", b"\x85", b"\x0b", b"\x0c"),
)
ROWS = st.lists(st.sampled_from(HOSTILE) | st.binary(max_size=6), max_size=8).map(
    lambda parts: b"".join(parts).replace(b"\n", b"")
)
FILES = st.tuples(st.lists(ROWS, min_size=1, max_size=5), st.sampled_from((b"\n", b"")))
TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=30)
OFTEN = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
COUNTS: Counter[str] = Counter()


@pytest.fixture(autouse=True, scope="module")
def counted() -> Iterator[None]:
    """Print how many cases ran, by what came of them."""
    yield
    print(f"\nedits of a line: {sum(COUNTS.values())} cases, {dict(COUNTS)}")


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        saved, line_edit.ROOTS = line_edit.ROOTS, (f"{name}/",)
        yield Path(name)
        line_edit.ROOTS = saved


def run(command: tuple[str, ...], shell: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Paste a command into a shell, as a person does."""
    pasted = (
        command[2] if command[:2] == ("sh", "-c") and len(command) == 3 else shlex.join(command)
    )
    return subprocess.run(
        [shell, "-c", pasted],
        capture_output=True,
        text=True,
        errors="replace",
        cwd=folder,
        timeout=20,
    )


def of_user(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return what a command for a user's file runs once it is that user."""
    words = shlex.split(command[2].removesuffix(" >&2"))
    assert words[:7] == ["env", "-i", "/sbin/runuser", "-P", "-u", "alice", "--"]
    return tuple(words[7:])


def declare(path: Path, number: int, row: bytes) -> Declaration:
    return Declaration(str(path), number, row.decode("latin-1"), "")


def make(at: Declaration, script: str, owner: str) -> tuple[tuple[str, ...], ...]:
    """Return the command for root's file or for a user's."""
    commands = edit_line(at, script, owner)
    return tuple(map(of_user, commands)) if owner else commands


def check_refusal(done: subprocess.CompletedProcess[str], path: Path, number: int) -> None:
    """A file that is another now is left alone with one sentence and another status than 0."""
    assert done.returncode != 0
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith(f"{path}:{number} ")
    assert "has changed since the check, or cannot be written: nothing was done" in done.stderr


@settings(OFTEN)
@given(FILES, st.data())
@pytest.mark.slow
def test_the_line_that_was_seen_is_changed_and_no_other_byte(
    folder: Path, file: tuple[list[bytes], bytes], data: st.DataObject
) -> None:
    rows, end = file
    number = data.draw(st.integers(1, len(rows)))
    text, shell = data.draw(TEXTS), data.draw(st.sampled_from(SHELLS))
    path = folder / "file"
    path.unlink(missing_ok=True)
    path.write_bytes(b"\n".join(rows) + end)
    path.chmod(0o640)
    owner = data.draw(st.sampled_from(("", "alice")))
    comment = data.draw(st.booleans())
    at = declare(path, number, rows[number - 1])
    commands = make(at, "s/^/# /" if comment else write_row(text), owner)
    if not commands:
        COUNTS["left to a person"] += 1
        assert not show_row(at.text)
        return
    done = run(commands[0], shell, folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    after = b"# " + rows[number - 1] if comment else text.encode()
    new_end = b"\n" if not comment and number == len(rows) else end  # sed ends what it writes.
    assert path.read_bytes() == b"\n".join([*rows[: number - 1], after, *rows[number:]]) + new_end
    assert path.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in folder.iterdir()] == ["file"]
    COUNTS["changed"] += 1


@settings(OFTEN)
@given(FILES, ROWS, st.data())
@pytest.mark.slow
def test_a_file_that_is_another_now_is_left_alone(
    folder: Path, file: tuple[list[bytes], bytes], other: bytes, data: st.DataObject
) -> None:
    rows, end = file
    number = data.draw(st.integers(1, len(rows) + 2))
    is_row = number <= len(rows) and rows[number - 1] == other
    path = folder / "file"
    path.unlink(missing_ok=True)
    path.write_bytes(b"\n".join(rows) + end)
    at = declare(path, number, other)
    commands = make(at, "s/^/# /", data.draw(st.sampled_from(("", "alice"))))
    if is_row or not commands:
        COUNTS["left to a person"] += 1
        return
    before = path.stat()
    done = run(commands[0], data.draw(st.sampled_from(SHELLS)), folder)
    check_refusal(done, path, number)
    assert path.read_bytes() == b"\n".join(rows) + end
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert [one.name for one in folder.iterdir()] == ["file"]
    COUNTS["refused"] += 1


ROW = b"ulimit -n 64"


def plant(kind: str, path: Path, outside: Path) -> None:
    """Put something else in the place of a file."""
    if kind == "link":
        path.symlink_to(outside)
    elif kind == "dangling link":
        path.symlink_to(outside.with_name("nothing"))
    elif kind == "FIFO":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("owner", ["", "alice"])
@pytest.mark.parametrize("kind", ["absent", "link", "dangling link", "FIFO", "directory", "device"])
def test_what_is_no_plain_file_there_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, owner: str, shell: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    outside = tmp_path / "passwd"
    outside.write_bytes(ROW + b"\n")
    monkeypatch.setattr(line_edit, "ROOTS", (f"{home}/",))
    path = home / "file"
    commands = make(declare(path, 1, ROW), "s/^/# /", owner)
    plant(kind, path, outside)
    before = os.lstat(path) if os.path.lexists(path) else None
    check_refusal(run(commands[0], shell, home), path, 1)
    after = os.lstat(path) if os.path.lexists(path) else None
    assert (before and (before.st_ino, before.st_mode)) == (after and (after.st_ino, after.st_mode))
    assert outside.read_bytes() == ROW + b"\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_administrators_link_within_roots_folder_counts_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.setattr(line_edit, "ROOTS", (f"{tmp_path}/",))
    real, link = tmp_path / "sysctl.conf", tmp_path / "99-sysctl.conf"
    real.write_bytes(b"a\n" + ROW + b"\n")
    link.symlink_to("sysctl.conf")
    done = run(edit_line(declare(link, 2, ROW), "s/^/# /")[0], shell, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert real.read_bytes() == b"a\n# " + ROW + b"\n"
    assert link.is_symlink()


@pytest.mark.parametrize(
    ("path", "row", "script"),
    [
        ("/home/alice/.bashrc", "ulimit -n 64", "s/^/# /"),  # Nobody's that is known.
        ("/etc/sh\x1b[2Jadow", "x", "s/^/# /"),
        ("/etc/x\ny", "x", "s/^/# /"),
        ("/etc/x", "ulimit \\", "s/^/# /"),  # It goes on in the next line.
        ("/etc/x", "a\nb", "s/^/# /"),
        ("/etc/x", "x" * 501, "s/^/# /"),
        ("/etc/x", " \t", "s/^/# /"),
        ("/etc/x", "x", "c\\\x1b[2J"),
        ("/etc/x", "x", "c\\\xe4"),
    ],
)
def test_what_cannot_be_typed_safely_is_left_to_a_person(path: str, row: str, script: str) -> None:
    assert edit_line(Declaration(path, 1, row, ""), script) == ()


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", ["caf\xe9.conf", "\xc0.conf", "\u65e5 a'\"$x`%s\\n.conf", "-\xe9"])
def test_a_name_with_letters_of_utf_8_is_written_in_ascii(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str, name: str
) -> None:
    monkeypatch.setattr(line_edit, "ROOTS", (f"{tmp_path}/",))
    path = tmp_path / name
    path.write_bytes(ROW + b"\n")
    (command,) = edit_line(declare(path, 1, ROW), "s/^/# /")
    assert command[2].isascii()
    done = run(command, shell, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert path.read_bytes() == b"# " + ROW + b"\n"
    assert edit_line(declare(path, 1, ROW), "s/^/# /", "alice") == ()


@pytest.mark.parametrize("name", ["\udce9", "\u202e", "\xa0"])
def test_a_name_that_is_not_printed_is_left_to_a_person(name: str) -> None:
    assert edit_line(Declaration(f"/etc/{name}", 1, "x", ""), "s/^/# /") == ()


def test_no_line_is_no_edit() -> None:
    assert edit_line(Declaration("/etc/x", 0, "x", ""), "s/^/# /") == ()


def test_a_command_is_one_line_of_plain_characters() -> None:
    at = Declaration("/etc/a b", 3, "\xff\t'$(id)'\x1b\r", "")
    ((_sh, _c, line),) = edit_line(at, "s/^/# /")
    assert is_typed(line)
    assert line == (
        'f=$(readlink -f \'/etc/a b\' | grep ^/etc/) && [ -f "$f" ] && [ "$(sed -n \'3l 0\' "$f")" ='
        " '\\377\\t'\"'\"'$(id)'\"'\"'\\033\\r$' ] && sed -i '3s/^/# /' \"$f\" || ! echo"
        " '/etc/a b:3' has changed since the check, or cannot be written: nothing was done. Check again. >&2"
    )


def test_text_that_is_no_latin_1_is_shown_as_the_bytes_of_utf_8() -> None:
    assert show_row("€\udcff") == "\\342\\202\\254\\377$"


@pytest.mark.parametrize(
    ("text", "line", "row"),
    [
        ("a\n b\t\r\nc", 2, " b\t\r"),
        ("a\nb", 2, "b"),
        ("a\nb", 3, None),
        ("a\nb", 0, None),
        ("a\rb\nc", 2, None),  # systemd ends a line at each of these, and sed does not.
        ("a\0b\nc", 2, None),
        ("a\n\rb\nc", 2, None),
    ],
)
def test_a_whole_line_is_found_where_sed_counts_lines_alike(
    text: str, line: int, row: str | None
) -> None:
    found = find_row(Declaration("/etc/x", line, "key=value", 1), text)
    expected = Declaration("/etc/x", line if row else 0, row or "key=value", 1)
    assert found == expected


def test_a_user_gets_nothing_of_roots_and_only_once() -> None:
    line = "env -i /sbin/runuser -P -u alice -- rm x >&2"
    assert as_user("alice", ("rm", "x")) == ("sh", "-c", line)
    assert as_user("alice", as_user("alice", ("rm", "x"))) == ("sh", "-c", line)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
@pytest.mark.parametrize("shell", SHELLS)
def test_as_a_user_no_link_leads_to_what_is_roots(shell: str) -> None:
    """The name of a user's own file leads to root's by the time root pastes what was printed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        home, passwd = folder / "home", folder / "passwd"
        home.mkdir()
        os.chown(home, 65534, 65534)
        passwd.write_bytes(ROW + b"\n")
        path = home / ".bashrc"
        path.write_bytes(ROW + b"\n")
        os.chown(path, 65534, 65534)
        (command,) = edit_line(declare(path, 1, ROW), "s/^/: # /", "nobody")
        done = run(command, shell, folder)
        assert (done.returncode, done.stderr) == (0, "")
        assert path.read_bytes() == b": # " + ROW + b"\n"
        assert path.stat().st_uid == 65534
        for target in (passwd, home / ".bashrc2"):
            path.unlink()
            path.symlink_to(target)
            done = run(command, shell, folder)
            assert done.returncode != 0
            assert done.stderr.count("nothing was done") == 1
            assert passwd.read_bytes() == ROW + b"\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_a_user_sees_none_of_roots_variables_and_terminals() -> None:
    script = "tty; readlink /proc/self/fd/1; env | grep -c SECRET"
    command = as_user("nobody", ("sh", "-c", script))
    lines = f"SECRET=1; export SECRET; tty; ({command[2]}) 2>&1 | sed 's/^/as nobody: /'"
    done = subprocess.run(
        ["script", "-qec", f"sh -c {shlex.quote(lines)}", "/dev/null"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=20,
    )
    mine = done.stdout.splitlines()[0].strip("\0\r")
    rows = [row for row in done.stdout.splitlines() if "as nobody" in row]
    seen = [row.partition(": ")[2] for row in rows if not row.endswith("^@")]  # script(1) ends.
    assert mine.startswith("/dev/pts/")
    assert len(seen) == 3
    assert mine not in seen
    assert seen[2] == "0"


def test_there_is_one_way_to_run_something_as_a_user() -> None:
    """Every other one would leave root's variables and root's terminal in that user's hands."""
    library = Path(line_edit.__file__).parents[1]
    named = {
        str(path.relative_to(library))
        for path in library.rglob("*.py")
        if re.search(r'"(?:/\w+)*/?runuser\b', path.read_text(encoding="utf-8"))
    }
    of_logins = {
        "processes/logins_read.py",
        "sessions/measure.py",
        "systemd/read.py",
    }  # What they call so is a service of PAM.
    assert named - of_logins == {"core/line_edit.py"}
    (shell, _option, line) = name_caller(os.getuid())("restart", "x.service")
    user = pwd.getpwuid(os.getuid()).pw_name
    start = f"env -i /sbin/runuser -P -u {user} -- env XDG_RUNTIME_DIR=/run/user/{os.getuid()}"
    assert (shell, line) == ("sh", f"{start} systemctl --user restart x.service >&2")


def test_every_byte_is_shown_as_sed_shows_it(tmp_path: Path) -> None:
    """sed(1) has short names for some, and numbers for what is not of ASCII."""
    file = tmp_path / "bytes"
    rows = [bytes([120, byte, 120]) for byte in range(256) if byte != 10]
    file.write_bytes(b"\n".join(rows) + b"\n")
    shown = subprocess.run(
        ["sed", "-n", "l 0", str(file)], capture_output=True, text=True, check=True
    )
    assert [show_row(row.decode("latin-1")) for row in rows] == shown.stdout.splitlines()


def test_a_row_fits_a_terminal_or_is_not_shown() -> None:
    longest = line_edit._LONGEST
    assert show_row("x" * (longest - 1)) == "x" * (longest - 1) + "$"
    assert show_row("x" * longest) == ""


@pytest.mark.parametrize(
    ("row", "is_whole"),
    [
        ("a", True),
        ("a\\", False),
        ("a\\\\", True),
        ("a\\\\\\", False),
        ("a\\ \t", False),
        (" ", False),
    ],
)
def test_a_row_that_goes_on_is_not_whole(row: str, is_whole: bool) -> None:
    assert bool(show_row(row)) is is_whole
