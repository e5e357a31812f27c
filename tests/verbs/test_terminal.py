# SPDX-License-Identifier: GPL-3.0-or-later
"""Colors and the line of progress are for terminals; pipes get the bare text."""

from __future__ import annotations

import io

import pytest
from mlhost_limits import cli, terminal
from mlhost_limits.terminal import Progress, paint, wants_color


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "wanted"),
    [
        (Terminal(), {"TERM": "xterm"}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (Terminal(), {}, False),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": ""}, True),
        (io.StringIO(), {"TERM": "xterm"}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
        (io.StringIO(), {"FORCE_COLOR": ""}, False),
        (Terminal(), {"TERM": "xterm", "FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_who_wants_colors(stream: io.StringIO, environment: dict[str, str], wanted: bool) -> None:
    assert wants_color(stream, environment) is wanted


@pytest.mark.parametrize(
    ("line", "painted"),
    [
        ("1    kernel: vm.x 5", "\x1b[1;31m1\x1b[0m    kernel: vm.x 5"),
        ("12   kernel: vm.x 5", "\x1b[1;31m12\x1b[0m   kernel: vm.x 5"),
        ("     why  a line", "     \x1b[2mwhy\x1b[0m  a line"),
        ("     fix  do it", "     \x1b[1;32mfix\x1b[0m  do it"),
        ("     run  echo", "     \x1b[1;36mrun\x1b[0m  echo"),
        ("FAIL kernel: x", "\x1b[1;31mFAIL\x1b[0m kernel: x"),
        ("???  kernel: x", "\x1b[1;33m???\x1b[0m  kernel: x"),
        ("changed    /etc/a", "\x1b[1;36mchanged\x1b[0m    /etc/a"),
        ("3 of 4 requirements fall short", "\x1b[1;31m3 of 4 requirements fall short\x1b[0m"),
        ("4 of 4 requirements are met", "\x1b[1;32m4 of 4 requirements are met\x1b[0m"),
        ("          more of why it is so", "          more of why it is so"),
        ("runner is a word", "runner is a word"),
        ("", ""),
    ],
)
def test_the_first_word_of_a_line_has_a_color(line: str, painted: str) -> None:
    assert list(paint([line])) == [painted]


def test_a_report_in_a_pipe_has_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["check", "--profile", "none", "--policy", "/dev/stdin"]
    policy = '{"kernel": {"vm.max_map_count": 1}}'
    monkeypatch.setattr("mlhost_limits.policy_file.read_policy_file", lambda _path: policy.encode())
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert cli.main(words) == 0
    plain = capsys.readouterr().out
    assert "\x1b" not in plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert cli.main(words) == 0
    assert "\x1b[1;32m1 of 1 requirement is met\x1b[0m" in capsys.readouterr().out


def test_who_waits_longer_than_a_second_is_told_until_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    progress = Progress(stream)
    progress("kernel", 1, 9)
    assert stream.getvalue() == ""
    now[0] = 2.2
    progress("sessions", 2, 9)
    assert stream.getvalue() == "\r\x1b[Klooking at sessions (2 of 9), 2 s"
    progress("a" * 80, 2, 9)
    assert len(stream.getvalue().rpartition("\x1b[K")[2]) == 39
    progress.clear()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_what_was_not_shown_is_not_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for stream in (Terminal(), io.StringIO()):
        progress = Progress(stream)
        progress._start -= 60 if not stream.isatty() else 0
        progress("kernel", 1, 9)
        progress.clear()
        assert stream.getvalue() == ""
