# SPDX-License-Identifier: GPL-3.0-or-later
"""What we put into a file can be taken out again, and every other byte stays."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from mlhost_limits.core.edit import (
    HEADER,
    Edit,
    find_block_lines,
    neutralize,
    remove_block,
    restore,
    set_block,
    show_change,
    show_edit,
)

PATH = "/etc/security/limits.conf"
BEGIN, GLUED, END = (
    "# BEGIN mlhost.limits",
    "# BEGIN mlhost.limits (the line before had no line end)",
    "# END mlhost.limits",
)
PIECES = st.sampled_from(["\n", "\r\n", "* - nofile 5", "# a", "\xff\x00", " ", "#mlhost.limits"])
TEXT = st.one_of(
    st.binary().map(lambda content: content.decode("latin-1")),
    st.lists(PIECES).map("".join),
)
LINES = st.lists(
    st.sampled_from(["* soft nofile 5", "@ml - memlock 1", "\xe9 hard core 0"]), min_size=1
)
ALONE = f"{PATH}: '# BEGIN mlhost.limits' and '# END mlhost.limits' must stand there once each, in order"


@given(TEXT, LINES)
@example("# no line end", ["* soft nofile 5"])
@example("a\r\nb", ["* soft nofile 5"])
def test_removing_a_block_gives_back_the_text(text: str, lines: list[str]) -> None:
    assert remove_block(set_block(text, lines, PATH), PATH) == text


@given(TEXT, LINES, LINES)
def test_a_second_block_replaces_the_first(text: str, first: list[str], second: list[str]) -> None:
    once = set_block(text, second, PATH)
    assert set_block(once, second, PATH) == once
    assert set_block(set_block(text, first, PATH), second, PATH) == once


@given(TEXT, LINES, TEXT)
def test_what_was_added_after_a_block_stays_after_it(
    text: str, lines: list[str], added: str
) -> None:
    assume("mlhost" not in added)
    grown = set_block(text, lines, PATH) + added
    assert set_block(grown, lines, PATH) == grown
    without = remove_block(grown, PATH)
    assert without.startswith(text)
    assert without.endswith(added)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"{BEGIN}\nx\n{END}\n"),
        ("a\n", f"a\n{BEGIN}\nx\n{END}\n"),
        ("# comment", f"# comment\n{GLUED}\nx\n{END}\n"),
        (f"a\n{BEGIN}\nold\n{END}\nb\n", f"a\n{BEGIN}\nx\n{END}\nb\n"),
        (f"a\r\n{BEGIN}\r\nold\r\n{END}\r\nb", f"a\r\n{BEGIN}\r\nx\n{END}\nb"),
    ],
    ids=["empty", "at the end", "no final line end", "in place", "made CRLF by an editor"],
)
def test_where_a_block_stands(before: str, after: str) -> None:
    assert set_block(before, ["x"], PATH) == after


def test_no_lines_mean_no_block() -> None:
    assert set_block(f"a\n{BEGIN}\nold\n{END}\nb\n", [], PATH) == "a\nb\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{BEGIN}\nx\n",
        f"x\n{END}\n",
        f"{END}\n{BEGIN}\n",
        f"{BEGIN}\n{BEGIN}\n",
        f"{BEGIN}\nx\n{END}\n{BEGIN}\ny\n{END}\n",
    ],
    ids=["no end", "no begin", "reversed", "two begins", "two blocks"],
)
def test_a_block_of_unknown_extent_is_refused(text: str) -> None:
    changes: list[Callable[[], object]] = [
        lambda: set_block(text, ["x"], PATH),
        lambda: remove_block(text, PATH),
    ]
    for change in changes:
        with pytest.raises(ValueError, match=f"^{re.escape(ALONE)}$"):
            change()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a\n", []),
        (f"a\n{BEGIN}\nx\n{END}\n", [2, 3, 4]),
        (f"a\n{GLUED}\r\nx\n{END}\r\n", [2, 3, 4]),
    ],
)
def test_the_lines_of_a_block_are_known(text: str, lines: list[int]) -> None:
    assert list(find_block_lines(text)) == lines


@given(TEXT, st.sets(st.integers(1, 9)))
def test_a_neutralised_line_remembers_itself(text: str, numbers: set[int]) -> None:
    assume("#mlhost.limits# " not in text)
    assert restore(neutralize(text, numbers)) == text


def test_a_neutralised_line_is_a_comment() -> None:
    assert neutralize("a\nb\r\nc", {2}) == "a\n#mlhost.limits# b\r\nc"


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [(None, None, False), (b"", None, True), (None, b"", True), (b"a", b"a", False)],
)
def test_an_edit_knows_whether_it_changes_anything(
    before: bytes | None, after: bytes | None, changes: bool
) -> None:
    assert Edit(PATH, before, after).changes is changes


@pytest.mark.parametrize(
    ("before", "of_others"), [(None, False), (b"* - core 0\n", True), (HEADER.encode(), False)]
)
def test_whose_file_it_is(before: bytes | None, of_others: bool) -> None:
    """A file is somebody else's unless it is new or begins with our header."""
    assert Edit("/etc/a", before, b"").of_others is of_others


@pytest.mark.parametrize(
    ("before", "after", "headers"),
    [
        (b"a\n", b"b\n", ("/etc/a", "/etc/a")),
        (None, b"b\n", ("/etc/a (absent)", "/etc/a")),
        (b"a\n", None, ("/etc/a", "/etc/a (absent)")),
    ],
)
def test_a_change_shows_both_states_of_a_file(
    before: bytes | None, after: bytes | None, headers: tuple[str, str]
) -> None:
    """The four keys are those of Ansible's diffs."""
    assert show_edit(Edit("/etc/a", before, after)) == {
        "before": (before or b"").decode(),
        "after": (after or b"").decode(),
        "before_header": headers[0],
        "after_header": headers[1],
    }


@pytest.mark.parametrize(
    ("path", "kind", "content", "shown"),
    [
        ("/etc/docker/daemon.json", "json", b'{"k": "s3cret"}', '{"k": "REDACTED"}'),
        ("/etc/slurm/slurm.conf", "lines", b"StoragePass=s3cret", "StoragePass=REDACTED"),
        ("/etc/systemd/system/a.service", "", b"Environment=A=s3cret", "Environment=A=REDACTED"),
        ("/etc/containers/containers.conf", "", b'env = ["A=s3cret"]', "env=REDACTED"),
        ("/etc/containerd/config.toml", "", b"password = 's3cret'", "password=REDACTED"),
        ("/etc/security/limits.conf", "", b"A=plain", "A=plain"),
        (
            "/etc/sysctl.d/a.conf",
            "",
            b"kernel.core_pattern = |/x %p",
            "kernel.core_pattern = |/x %p",
        ),
        ("/etc/x", "", b"caf\xe9", "caf\\xe9"),
    ],
)
def test_a_diff_shows_no_credential(path: str, kind: str, content: bytes, shown: str) -> None:
    """Neither of what was there nor of what comes."""
    told = show_edit(Edit(path, content, content, kind=kind))
    assert told == {"before": shown, "after": shown, "before_header": path, "after_header": path}
    told = show_edit(Edit(path, None, content, kind=kind))
    assert (told["before"], told["before_header"]) == ("", f"{path} (absent)")


def test_of_what_is_hidden_the_length_is_shown() -> None:
    told = show_edit(Edit("/x", None, b"12345", hidden=True))
    assert (told["before"], told["after"]) == ("", "(5 bytes, not shown)\n")


def test_a_change_of_what_runs_is_two_lines() -> None:
    assert show_change("vm.x", "1", "2") == {
        "before": "1\n",
        "after": "2\n",
        "before_header": "vm.x",
        "after_header": "vm.x",
    }
