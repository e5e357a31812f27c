# SPDX-License-Identifier: BSD-2-Clause
"""Read which versions of packages an interpreter would import, from metadata and without importing.

The interpreter is started to say where its packages are, as the user who will run, with none of
the environment and without site-packages, so that nothing installed there is run.
"""

from __future__ import annotations

import json
import os
import pwd
import re
from collections.abc import Iterable
from functools import partial

from ..host.as_user import Errand, ask_user, find_person, name_person
from ..host.door import ForeignError, open_file, walk
from ..host.files import list_folder
from ..host.program import run_program

_TIME_LIMIT = 10.0
_MOST_FOLDERS = 100
_MOST = 65536  # Bytes of a METADATA; its head holds the version, a description follows.
_ASK = """
import json, os, site, sys
home = os.path.dirname(os.path.dirname(os.path.abspath(sys.executable)))
config = os.path.join(home, "pyvenv.cfg")
below = "python%d.%d/site-packages" % sys.version_info[:2]
found, user, shared = [], "lib/" + below, True
if os.path.exists(config):
    with open(config, encoding="utf-8") as file:
        shared = "include-system-site-packages=true" in file.read().lower().replace(" ", "")
    found, user = [os.path.join(home, lib, below) for lib in ("lib", "lib64")], ""
if shared:
    found += site.getsitepackages([sys.prefix, sys.exec_prefix])
print(json.dumps([found, user]))
"""
_INFO = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)(?:-py[0-9.]+)?\.(?:dist|egg)-info")
_FIELD = re.compile(r"^Version:[ \t]*(\S+)", re.MULTILINE)


def read_versions(
    python: str, user: str | None, names: Iterable[str], seconds: float = _TIME_LIMIT
) -> dict[str, str]:
    """Return the versions of those packages that are installed, by the names asked for.

    :param user: Who will run it; ``None`` for whoever this process is, or, for root, for whose the
        interpreter is.
    :raises OSError: If the interpreter does not say where its packages are.
    """
    person = _find_person(python, user)
    asked = sorted(names)
    if person.pw_uid == os.geteuid():
        return _read_versions(python, person, asked, seconds)
    if os.geteuid() != 0:
        raise OSError(f"{python}: only root can start it as {name_person(person)}")
    import subprocess  # noqa: F401 - a child that became a user may not reach Python's own files

    task = partial(_read_versions, python, person, asked, seconds)
    report = ask_user(Errand(person, task, seconds=2 * seconds))
    if report.problem:
        raise OSError(report.problem)
    return {str(name): str(version) for name, version in report.value.items()}


def _find_person(python: str, user: str | None) -> pwd.struct_passwd:
    """Return who starts the interpreter: root never starts what is not root's."""
    if user is not None:
        return pwd.getpwnam(user)
    try:
        with walk(python):
            pass
    except ForeignError as error:
        if error.uid:
            return find_person(error.uid)
        raise
    except (FileNotFoundError, NotADirectoryError):
        pass
    return find_person(os.geteuid())


def _read_versions(
    python: str, person: pwd.struct_passwd, names: Iterable[str], seconds: float
) -> dict[str, str]:
    words = [python, "-I", "-S", "-c", _ASK]
    status, text = run_program(words, seconds, with_errors=False, environment={})
    try:
        folders, below = json.loads(text) if status == 0 else ((), "")
        folders = [str(folder) for folder in folders]
    except (ValueError, TypeError, RecursionError):
        status = 1
    if status:
        why = text if status < 0 else "it does not say where its packages are"
        raise OSError(f"{python} could not be asked: {why}")
    users = [f"{person.pw_dir}/.local/{below}"] if below else []
    return find_versions([*users, *folders[:_MOST_FOLDERS]], names)


def find_versions(folders: Iterable[str], names: Iterable[str]) -> dict[str, str]:
    """Return the versions that the first folder holds which has a package, as imports find it."""
    wanted = {_normal(name): name for name in names}
    found: dict[str, str] = {}
    for folder in folders:
        here = _list_packages(folder, wanted.keys() - {_normal(name) for name in found})
        found.update({wanted[name]: version for name, version in here.items()})
    return found


def _list_packages(folder: str, wanted: Iterable[str]) -> dict[str, str]:
    """Return the versions of the wanted packages in one folder, by their normal names."""
    found = {}
    try:
        entries = list_folder(folder)
    except OSError:
        return {}
    for entry in entries:
        match = _INFO.fullmatch(entry)
        name = _normal(match["name"]) if match else ""
        if match and name in wanted:
            found[name] = _read_version(f"{folder}/{entry}") or match["version"]
    return found


def _read_version(info: str) -> str:
    """Return what the metadata say; nothing where they cannot be read."""
    for name in ("METADATA", "PKG-INFO"):
        try:
            handle = open_file(f"{info}/{name}")
        except OSError:
            continue
        try:
            head = os.read(handle, _MOST).decode("utf-8", "replace").partition("\n\n")[0]
        except OSError:
            continue
        finally:
            os.close(handle)
        match = _FIELD.search(head)
        return match[1] if match else ""
    return ""


def _normal(name: str) -> str:
    """Return a package's name as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
