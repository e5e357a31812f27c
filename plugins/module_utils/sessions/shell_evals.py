# SPDX-License-Identifier: BSD-2-Clause
"""Find what a shell's startup file runs of which only the first run shows the text: ``eval``.

Source: ``eval`` and "Command Substitution" in bash(1) and zsh(1), ``eval`` in tcsh(1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from .shell_commands import Command

_PRINTERS = (
    "brew conda dircolors direnv fnm fzf gpg-agent keychain lesspipe lesspipe.sh locale mamba"
    " micromamba mise modulecmd modulecmd.tcl nodenv npm oh-my-posh opam pip pipx pyenv rbenv"
    " register-python-argcomplete resize rustup ssh-agent starship tput tset uv zoxide"
)
_KNOWN = frozenset(_PRINTERS.split())
"""Programs that print variables, aliases and functions for a shell, and no limits."""

_EVAL = re.compile(r"(?:^|[\s;&|({])\\?eval\s+(?P<text>[^;\n]*)")
_RUN = re.compile(r"(?:\$\(|`)(?P<text>[^`)]*)`?")
_BETWEEN = re.compile(r"[;|\n]+|(?<!>)&+")
_KEPT = re.compile(r"(?:^|[\s;&|({])(?P<name>\w+)=\"?(?P<run>(?:\$\(|`)[^`)]*)")
_VARIABLE = re.compile(r"\$\{?(\w+)")
_SETS = re.compile(r"\w+=\S*|command|builtin|env")


def find_evals(commands: Iterable[Command]) -> Iterator[tuple[Command, re.Match[str]]]:
    """Yield what runs a text that a program prints, but for those that print no limits."""
    kept: dict[str, set[str]] = {}
    for command in commands:
        for found in _KEPT.finditer(command.text):
            kept.setdefault(found["name"], set()).update(_list_unknown(found["run"]))
        for found in _EVAL.finditer(command.text) if "eval" in command.text else ():
            names = set(_VARIABLE.findall(found["text"]))
            if any(kept.get(name) for name in names) or any(_list_unknown(found["text"])):
                yield command, found


def _list_unknown(text: str) -> Iterator[str]:
    """Yield one program whose output a text takes in and which may print limits, if one does."""
    return islice((one for one in _list_programs(text) if one not in _KNOWN), 1)


def _list_programs(text: str) -> Iterator[str]:
    """Yield the names of the programs whose output a text takes in."""
    for run in _RUN.finditer(text):
        for words in map(str.split, _BETWEEN.split(run["text"])):
            named = (word.strip("\"'\\") for word in words if not _SETS.fullmatch(word))
            yield from [name.rpartition("/")[2] for name in named][:1]
