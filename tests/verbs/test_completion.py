# SPDX-License-Identifier: GPL-3.0-or-later
"""Shells complete every word of the parser, with what may follow it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from mlhost_limits.command_line import SHELLS, list_commands, list_options, make_parser
from mlhost_limits.completion import write_completion

COMMANDS = {name: list_options(parser) for name, _text, parser in list_commands(make_parser())}
ASK = """
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_mlhost_limits
printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(*words: str, folder: Path | None = None) -> list[str]:
    """Return what bash offers for the last of some words."""
    script = write_completion("bash") + ASK
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", "mlhost-limits", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    return done.stdout.split()


def test_bash_offers_the_commands_first() -> None:
    assert complete("") == [*COMMANDS, "--help", "--version"]
    assert complete("pro") == ["provision"]


@pytest.mark.parametrize("name", COMMANDS)
def test_bash_offers_every_option_of_a_command(name: str) -> None:
    flags = [flag for one in COMMANDS[name] for flag in one.option_strings]
    assert complete(name, "-") == [*flags, "--help"]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["check", "--probe", ""], ["quiet", "full", "predict"]),
        (["check", "--profile", "train"], ["training"]),
        (["check", "--user", ""], []),
        (["provision", "--only", "s"], ["sessions", "services", "slurm", "shared_memory"]),
        (["completion", "z"], ["zsh"]),
        (["cause", "pam-user-beats-w"], ["pam-user-beats-wildcard"]),
        (["explain", "ker"], ["kernel"]),
    ],
)
def test_bash_offers_what_may_follow(words: list[str], offered: list[str]) -> None:
    assert complete(*words) == offered


@pytest.mark.parametrize("words", [["check", "--policy"], ["report"], ["preflight"]])
def test_bash_offers_files_where_a_file_is_meant(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "policy.json").touch()
    assert complete(*words, "pol", folder=tmp_path) == ["policy.json"]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_knows_every_command_and_option(shell: str) -> None:
    text = write_completion(shell)
    for name, options in COMMANDS.items():
        assert name in text
        for flag in (flag for one in options for flag in one.option_strings):
            told = f"-l {flag[2:]} " if shell == "fish" and flag.startswith("--") else flag
            assert told in text or f"-s {flag[1:]} " in text, f"{shell}: {name} {flag}"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_one_that_its_shell_can_read(shell: str, tmp_path: Path) -> None:
    """Where the shell is not installed, only that every quote has its other half."""
    script = tmp_path / "script"
    script.write_text(write_completion(shell))
    program = shutil.which(shell)
    if program:
        subprocess.run([program, "-n", str(script)], check=True)
    for line in script.read_text().splitlines():
        bare = line.replace("'\"'\"'", "").replace("\\'", "")
        assert bare.count("'") % 2 == 0, line
