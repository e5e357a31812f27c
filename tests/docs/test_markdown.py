# SPDX-License-Identifier: GPL-3.0-or-later
"""What is taken for a command, and what is not: nothing may slip through."""

from __future__ import annotations

import pytest

from .markdown import (
    Block,
    Command,
    expand_options,
    fill,
    find_blocks,
    find_commands,
    find_indented,
    find_spans,
    strip_comment,
)

PROGRAMS = {"make": "", "ansible": "", "python": ""}


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("a\n```sh\nmake demo\n```\nb\n```\nx\n```\n", [(2, "sh", "make demo"), (6, "", "x")]),
        ("````text\n```sh\nnot typed\n```\n````\n", [(1, "text", "```sh\nnot typed\n```")]),
        ("- a\n  ```yaml\n  a:\n    b\n  ```\n", [(2, "yaml", "a:\n  b")]),
        (
            "~~~json\n{}\n~~~\n```{toctree}\npolicy\n```",
            [(1, "json", "{}"), (4, "{toctree}", "policy")],
        ),
        ("```sh\n```\n", [(1, "sh", "")]),
    ],
)
def test_a_block_has_a_line_a_language_and_a_text(
    text: str, blocks: list[tuple[int, str, str]]
) -> None:
    assert find_blocks(text) == [Block(*block) for block in blocks]


def test_a_block_without_an_end_is_told() -> None:
    with pytest.raises(ValueError, match="the block that begins in line 2 has no end"):
        find_blocks("a\n```sh\nmake demo\n")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Run\n\n    make demo\n", [3]),
        ("Run\n    make demo, which goes on\n", []),
        ("- a point\n\n    of two paragraphs\n\n    or three\n\nand\n\n    code\n", [9]),
        ("```text\n\n    within a block\n```\n\n    code\n", [6]),
    ],
)
def test_blocks_by_indentation_are_found(text: str, lines: list[int]) -> None:
    assert find_indented(text) == lines


@pytest.mark.parametrize(
    ("language", "text", "commands"),
    [
        ("sh", "# nothing\n\nmake demo    # red, green\n", [(4, "make demo", "")]),
        ("sh", "a \\\n  -b   # c\nd", [(2, "a \\\n  -b", ""), (4, "d", "")]),
        ("sh", "a -e '{\"b\":\n  1}'\nd", [(2, "a -e '{\"b\":\n  1}'", ""), (4, "d", "")]),
        (
            "sh",
            "cat > a <<'END'\n# b\nEND\nd",
            [(2, "cat > a <<'END'\n# b\nEND", ""), (5, "d", "")],
        ),
        ("sh", "sed '3s/^/# /' f", [(2, "sed '3s/^/# /' f", "")]),
        ("sh", "a   # isn't it\nb", [(2, "a", ""), (3, "b", "")]),
        (
            "console",
            "$ a   # b\nfail\nok\n$ c \\\n  d\n",
            [(2, "a", "fail\nok\n"), (5, "c \\\n  d", "")],
        ),
    ],
)
def test_a_command_is_whole_and_without_its_comment(
    language: str, text: str, commands: list[tuple[int, str, str]]
) -> None:
    found = find_commands(Block(1, language, text))
    assert found == [Command(*command) for command in commands]


@pytest.mark.parametrize("text", ["a 'b", "a \\", "cat <<END\na"])
def test_a_command_that_does_not_end_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="the command of line 8 has no end"):
        find_commands(Block(7, "sh", text))


def test_commands_within_sentences_are_found_over_ends_of_lines() -> None:
    text = (
        "Of `make` and `Make it`, `make\n  demo` is one, ``make b`` is none.\n"
        "```sh\nmake `make c`\n```\n`X=1 python -m a` is, `systemctl show` is not.\n"
    )
    assert find_spans(text, PROGRAMS) == [
        Command(1, "make demo", is_span=True),
        Command(6, "X=1 python -m a", is_span=True),
    ]


@pytest.mark.parametrize(
    ("line", "stripped"),
    [("a # b", "a"), ("a#b", "a#b"), ("a '# b'", "a '# b'"), ("a '", None), ("# a 'b", "")],
)
def test_a_quoted_comment_is_none(line: str, stripped: str | None) -> None:
    assert strip_comment(line) == stripped


@pytest.mark.parametrize(
    ("command", "commands"),
    [
        ("up", ["up"]),
        ("up [NAME] [-u alice]", ["up", "up NAME -u alice"]),
        ("echo a[0] && [ -e b ]", ["echo a[0] && [ -e b ]"]),
    ],
)
def test_what_a_command_may_have_is_run_without_and_with(command: str, commands: list[str]) -> None:
    assert expand_options(command) == commands


def test_placeholders_are_filled_and_unknown_ones_told() -> None:
    values = {"URL": "/srv/pull", "N": "ssh", "/srv/limits": "/tmp/limits"}
    command = 'a -U URL --unit N.service X=1 b=64MiB "$HOME" $(NAME_OF) /srv/limits/x'
    filled = 'a -U /srv/pull --unit ssh.service X=1 b=64MiB "$HOME" $(NAME_OF) /tmp/limits/x'
    assert fill(command, values) == filled
    with pytest.raises(ValueError, match=r"what stands for DIR, FILE\?"):
        fill("a DIR=DIR FILE", values)


@pytest.mark.parametrize(
    ("text", "name"),
    [("# local.yml\n- a", "local.yml"), ("# group_vars/gpu.yml: all\na: 1", "group_vars/gpu.yml")]
    + [(text, "") for text in ("a: 1", "# the policy\na: 1", "")],
)
def test_a_block_that_is_a_file_says_so_in_its_first_line(text: str, name: str) -> None:
    assert Block(1, "yaml", text).file_name == name
