# SPDX-License-Identifier: BSD-2-Clause
"""Measure a run rather than assume: its own command makes some batches, and says what they take."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence

from .training.policy import SELF
from .training.tried import LET_WRITE, read_tried
from .training.try_measure import try_command
from .words.facts import MEASURED, Fact, Words

_MOST_BATCHES = 10_000
_ELSEWHERE = {
    *("docker", "podman", "nerdctl", "kubectl", "srun", "sbatch", "salloc", "ssh", "pdsh"),
    *("mpirun", "mpiexec", "sudo", "su", "systemd-run"),
}
"""What starts a run as somebody else, or where it cannot be watched."""

_PATHS = ("output_dir", "cache_dir")


def add_try_options(parser: argparse.ArgumentParser) -> None:
    """Add what runs the command of a run for a moment."""
    parser.add_argument(
        "--try",
        dest="batches",
        type=_read_batches,
        metavar="N",
        help="run the command behind -- until its loaders have made N batches each, and measure",
    )
    parser.add_argument(
        LET_WRITE,
        action="store_true",
        help="try it also where its writes cannot be kept out of this host's files",
    )


def _read_batches(text: str) -> int:
    number = int(text) if text.isdecimal() and len(text) < 7 else 0
    if not 1 <= number <= _MOST_BATCHES:
        accepted = f"a whole number from 1 to {_MOST_BATCHES} is accepted"
        raise argparse.ArgumentTypeError(f"{text!r} was given; {accepted}")
    return number


def refuse_bare_try(arguments: argparse.Namespace, command: Sequence[str] | None) -> None:
    """:raises ValueError: If a trial is asked for by half."""
    if arguments.batches and not command:
        raise ValueError("--try: no command follows --; it runs the one that starts the run")
    if arguments.let_write and not arguments.batches:
        raise ValueError(f"{LET_WRITE}: says how --try runs a command, and --try is not given")


def try_run(
    arguments: argparse.Namespace,
    command: Sequence[str],
    words: Words,
    stated: Mapping[str, object],
) -> Words:
    """Return what a trial of the command says, as words that were measured.

    :param words: What the command and its files say.
    :param stated: What options or a policy state.
    :raises ValueError: If it cannot be tried, or does not get as far as it was to.
    """
    _refuse_elsewhere(command, words, stated.get("place"))
    user, seconds, name = stated.get("user"), arguments.time_limit, _name_script(command)
    answer = try_command(
        command,
        arguments.batches,
        str(user) if user else None,
        seconds,
        None if arguments.let_write else _list_paths(words, stated),
    )
    tried = read_tried(answer, name, arguments.batches, seconds)
    if tried.refusal:
        raise ValueError(tried.refusal)
    facts = [Fact(key, value, tried.where, MEASURED) for key, value in tried.values.items()]
    return Words(tuple(facts), notes=tried.notes)


def _refuse_elsewhere(command: Sequence[str], words: Words, place: object) -> None:
    """:raises ValueError: If a command does not train where it is started."""
    if place not in (None, SELF):
        raise ValueError(f"--try: runs the command as place: {SELF}, and {place!r} was given")
    names = [one.rpartition("/")[2] for one in command]
    there = next((one for one in names if one in _ELSEWHERE), None)
    if there or words.stated:
        raise ValueError(
            f"--try: {there or words.stated[0].place} starts the run where it cannot be watched;"
            " give the command that it starts, in the container or the job itself"
        )


def _list_paths(words: Words, stated: Mapping[str, object]) -> list[str]:
    """Return where a run is said to write."""
    said = [one.value for one in words.facts if one.key in _PATHS]
    said += [stated.get(key) for key in _PATHS]
    return [os.path.join(os.getcwd(), one) for one in said if isinstance(one, str)]


def _name_script(command: Sequence[str]) -> str:
    """Return the script that a command runs, or else its first word."""
    scripts = [one for one in command if one.endswith(".py")]
    modules = [after for one, after in zip(command, command[1:]) if one == "-m"]
    return os.path.basename([*scripts, *modules[-1:], command[0]][0])
