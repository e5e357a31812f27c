# SPDX-License-Identifier: BSD-2-Clause
"""The options of ``mlhost-limits preflight`` that describe a run: the keys of its policy."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from .training.keys import DEEPSPEED, KEYS, NEEDS
from .training.policy import DeepSpeed, Training
from .words.quantities import parse_count, parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from .core.reader import Key

_METAVARS = {"count": "N", "size": "SIZE", "path": "DIR", "place": "PLACE"}
_SPELLED_OTHERWISE = ("deep", "python")
_PLAIN = {
    name: key
    for name, key in {**KEYS, **DEEPSPEED}.items()
    if key.kind in (*_METAVARS, "word", "stage", "switch") and name not in _SPELLED_OTHERWISE
}
"""What has an option of its own name. All is judged as a policy, so every fault is told at once."""

_DEFAULTS = {**DeepSpeed._field_defaults, **Training._field_defaults}
_PEOPLES: Mapping[str, Callable[[str], int | str]] = {
    "size": lambda text: f"{parse_size(text)}B",
    "count": parse_count,
}
_PACKAGE = r"(?s)\s*([A-Za-z0-9._-]+)\s*(.*)"


def is_of_run(words: Iterable[str]) -> bool:
    """Tell whether one of some words is an option of a run."""
    return any(_spell(name) == word.partition("=")[0] for word in words for name in _PLAIN)


def _spell(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a run, which win over all that its words say."""
    group = parser.add_argument_group(
        "what the command and its files do not state, or state wrongly"
    )
    for name, key in _PLAIN.items():
        choices = ("yes", "no") if key.kind == "switch" else key.accepted or None
        flag, metavar = _spell(name), _METAVARS.get(key.kind)
        group.add_argument(flag, choices=choices, metavar=metavar, help=_describe(name, key))
    group.add_argument(
        "--deep", action="store_true", default=None, help="read all of the cache for its checksums"
    )
    group.add_argument("--gpus", metavar="N", help="GPUs that the run needs")
    group.add_argument("--gpu-memory", metavar="SIZE", help="memory of each")
    group.add_argument("--as-user", metavar="USER", help="who will run it, in a session of sshd")
    group.add_argument("--python", metavar="PATH", help="the interpreter that will run")
    group.add_argument(
        "--package", action="append", metavar="NAME[SPEC]", help="such as 'torch>=2'; repeat it"
    )
    group.add_argument(
        "--only", action="append", choices=list(NEEDS), help="make this check alone; repeat it"
    )


def _describe(name: str, key: Key) -> str:
    """Return what the policy's documentation says of a key, and what counts without it."""
    default = _DEFAULTS[name]
    tells = default and not isinstance(default, bool)
    return key.text.replace("`", "") + (f"; by default {default}" if tells else "")


def read_run(arguments: argparse.Namespace) -> dict[str, object]:
    """Return the section ``training`` of a policy, with what was given and nothing else."""
    given = {name: value for name, value in vars(arguments).items() if value is not None}
    plain = {name: _read(_PLAIN[name], given[name]) for name in _PLAIN if name in given}
    run = {name: value for name, value in plain.items() if name in KEYS}
    nested: Mapping[str, dict[str, object]] = {
        "deepspeed": {name: value for name, value in plain.items() if name in DEEPSPEED},
        "gpus": _pick(given, {"gpus": "count", "gpu_memory": "memory"}),
    }
    run.update((name, value) for name, value in nested.items() if value)
    run.update(_pick(given, {"as_user": "user", "only": "checks", "deep": "deep"}))
    if "python" in given:
        found = shutil.which(given["python"]) or given["python"]
        run["python"] = os.path.abspath(found) if found else ""  # The policy refuses that.
    if "package" in given:
        run["packages"] = dict(_split_package(text) for text in given["package"])
    return run


def _read(key: Key, text: str) -> object:
    """Return what the policy takes: ``64M`` and ``7B`` are what people type."""
    if key.kind == "switch":
        return text == "yes"
    if key.kind in _PEOPLES and text[-1:].isalpha():
        with suppress(ValueError):  # The policy's reader says what is wrong with it.
            return _PEOPLES[key.kind](text)
    return os.path.abspath(text) if text and key.kind == "path" else text


def _pick(given: Mapping[str, object], names: Mapping[str, str]) -> dict[str, object]:
    """Return what was given by these options, under the names of the policy."""
    return {names[name]: given[name] for name in names if name in given}


def _split_package(text: str) -> tuple[str, str]:
    """Return the name and the version specifier of a package."""
    match = re.fullmatch(_PACKAGE, text)
    return (match[1], match[2]) if match else (text, "")
