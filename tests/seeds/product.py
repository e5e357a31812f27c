# SPDX-License-Identifier: GPL-3.0-or-later
"""The product's own command, as a user starts it before a run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .settings import Words
from .trial import BUILD, TOP, Command, execute


def check(profile: str, *words: object) -> Command:
    """Return the command that judges one run; the options are the command line's own."""
    return Command(
        (sys.executable, *("-m", "mlhost_limits.cli"), "preflight", "--profile", profile)
        + tuple(map(str, words)),
        {"PYTHONPATH": str(link_library()), "PYTHONDONTWRITEBYTECODE": "1"},
    )


def link_library() -> Path:
    """Return a folder in which the library has the name that its wheel gives it."""
    folder = BUILD / "library"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "mlhost_limits"
    if not link.is_symlink():
        link.symlink_to(TOP / "plugins" / "module_utils")
    return folder


def follow(command: Command) -> list[str]:
    """Carry out what a check says is to be done, to the letter, and return the commands."""
    done = []
    for words in find_commands(command):
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        done.append(" ".join(words))
    return done


def find_commands(command: Command) -> Iterator[list[str]]:
    """Yield the commands that a check prints below what falls short."""
    for finding in judge(command)["findings"]:
        for cause in finding["causes"] if finding["status"] == "fail" else ():
            yield from cause["remedy"]["commands"]


def judge(command: Command) -> Any:
    """Return what a check finds, as data."""
    return json.loads(execute(command._replace(words=(*command.words, "--json"))).output)


def describe(run: Mapping[str, object]) -> list[str]:
    """Return the options that state a run."""
    pairs = ((f"--{key.replace('_', '-')}", str(value)) for key, value in run.items())
    return [word for pair in pairs for word in pair]


def judge_workers(within: Words, run: Mapping[str, int]) -> int:
    """Return how many workers the descriptors allow, as a check within some setting says."""
    words = describe({**run, "workers": 10**4, "epochs": 1})
    judged = check("dataloader", *words, "--only", "descriptors").within(*within)
    for finding in judge(judged)["findings"]:
        if finding["item"] == "workers":
            bounds = dict(re.findall(r"(\w+) (\d+) \(", finding["how"]))
            return int(bounds["nofile"])
    raise LookupError("the check says nothing of workers")
