# SPDX-License-Identifier: GPL-3.0-or-later
"""The library that targets run: read, hashed and packed once for a run of Ansible, not per host."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

from ..module_utils.kept_folder import DIGEST, digest_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_LIBRARY = str(Path(__file__).parents[1] / "module_utils")
_REPORTS = "audit"  # Files of this name serve the controller only.


def read_digest(folder: str) -> str:
    """Return what names the library by its content.

    :param folder: Of this run of Ansible alone, on the controller; it goes with the run.
    """
    return _make_once(Path(folder, "mlhost-limits-digest"), lambda: digest_files(_read_library()))


def read_packed(folder: str) -> tuple[str, str]:
    """Return the digest and the text that :func:`..module_utils.kept.pack` makes of the library.

    Both are of one reading: the collection may be upgraded while a run goes on.
    """
    digest, _blank, packed = _make_once(Path(folder, "mlhost-limits-library"), _pack).partition(" ")
    return digest, packed


def read_finder() -> str:
    """Return the program that finds a kept library, which goes along with each call."""
    return Path(_LIBRARY, "kept_folder.py").read_text(encoding="ascii")


def read_arguments(folder: str, verb: str) -> dict[str, Any]:
    """Return the argument spec of a verb. What is a path on a host is a text here."""
    made = _make_once(Path(folder, "mlhost-limits-arguments"), partial(_list_arguments, folder))
    specs: dict[str, dict[str, Any]] = json.loads(made.partition(" ")[2])
    return specs[verb]


def _list_arguments(folder: str) -> str:
    from ..module_utils.verbs import VERBS  # Long, and needed once for all hosts.

    specs = {
        verb: {
            name: {**one, "type": "str"} if one["type"] == "path" else one
            for name, one in arguments.items()
        }
        for verb, (arguments, _work) in VERBS.items()
    }
    return f"{read_digest(folder)} {json.dumps(specs)}"


def _pack() -> str:
    from ..module_utils.kept import pack  # Long, and needed once for each target.

    files = _read_library()
    return f"{digest_files(files)} {pack(files)}"


def _read_library() -> dict[str, bytes]:
    """Return the files that training hosts run, by their paths in the library."""
    found = {}
    for folder, _folders, names in os.walk(_LIBRARY):
        for name in names:
            if name.endswith(".py") and not name.startswith(_REPORTS):
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    found[path[len(_LIBRARY) + 1 :]] = file.read()
    return found


def _make_once(path: Path, make: Callable[[], str]) -> str:
    """Return what a file holds, and make both if it is absent: each task is its own process."""
    with suppress(OSError, ValueError):
        text = path.read_text(encoding="ascii")
        if DIGEST.match(text):
            return text
    text = make()
    with suppress(OSError):  # Somebody else has it, or there is no room: it is made again then.
        _write(path, text)
    return text


def _write(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with open(handle, "w", encoding="ascii") as file:
            file.write(text)
        os.replace(name, path)
    except OSError:
        os.unlink(name)
        raise
