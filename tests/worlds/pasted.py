# SPDX-License-Identifier: GPL-3.0-or-later
"""Run what a remedy prints on files that lie below another folder."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

from mlhost_limits.core.line_edit import edit_line
from mlhost_limits.core.values import Declaration

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def move(words: Sequence[str], folder: Path) -> list[str]:
    """Return a command for the files of a tree: /etc of a host is FOLDER/etc.

    The row that a line must be stays as it is, whatever paths it names.
    """
    top = f"{folder.resolve()}/etc/"
    return [
        re.sub(r"(readlink -f '?|grep \^)/etc/", rf"\1{top}", word)
        if "readlink -f" in word
        else word.replace("/etc/", top)
        for word in words
    ]


def move_top(word: str, folder: Path) -> str:
    """Return a word in which the folder of root's is another, and the files are moved already."""
    top = f"{folder.resolve()}/"
    return word.replace("grep ^/etc/", f"grep ^{top}").replace('("/etc/")', f'("{top}")')


def paste(words: Sequence[str], folder: Path) -> None:
    """Run a command on the files of a tree."""
    subprocess.run(move(words, folder), check=True)


def edit(path: str, number: int, row: str, script: str) -> tuple[str, ...]:
    """Return the command that edits one line."""
    (command,) = edit_line(Declaration(path, number, row, ""), script)
    return tuple(command)


def find_scripts(commands: Sequence[Sequence[str]]) -> list[str]:
    """Return the scripts that sed is given in the commands that edit a line."""
    return [
        words[-1].partition("sed -i ")[2].partition(' "$f" ||')[0].strip("'")
        for words in commands
        if "sed -i" in words[-1]
    ]
