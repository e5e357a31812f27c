# SPDX-License-Identifier: BSD-2-Clause
"""Find the library that a target keeps, and import from it: all that a run needs where it is kept.

Ansible has Python compile what a module imports each time, so that this imports nothing of ours.
"""

from __future__ import annotations

import marshal
import os
import re
import stat
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType

PACKAGE = "mlhost_limits"
DIGEST = re.compile(r"[0-9a-f]{64}")
_HEAD = 16  # Bytes of a .pyc before its code.


def digest_files(files: Mapping[str, bytes]) -> str:
    """Return what names a library by its content."""
    from hashlib import sha256  # Long, and who finds a kept library needs none of it.

    whole = sha256()
    for name in sorted(files):
        whole.update(f"{name}\0{sha256(files[name]).hexdigest()}\n".encode())
    return whole.hexdigest()


def seal(text: str) -> str:
    """Return a text with what shows that it arrived whole."""
    return f"{_sum(text)}:{text}"


def unseal(text: str) -> str:
    """Return what was sealed.

    :raises ValueError: If it is not whole.
    """
    told, _colon, content = text.partition(":")
    if told != _sum(content):
        raise ValueError("the library did not arrive whole")
    return content


def _sum(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode()).hexdigest()


def name_folder() -> str:
    """Return where this user's libraries are kept, if they are: in memory."""
    uid = os.geteuid()
    return f"/run{f'/user/{uid}' if uid else ''}/mlhost-limits/library"


def find_library(digest: str, folder: str) -> str | None:
    """Return the folder to import from, if the library is kept and only this user can write it."""
    if not DIGEST.fullmatch(digest):
        return None
    path = f"{folder}/{digest}"
    parts = (os.path.dirname(folder), folder, path, f"{path}/{PACKAGE}")
    return path if all(map(_is_own, parts)) else None


def _is_own(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    own = found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return own and stat.S_ISDIR(found.st_mode)


class _Together:
    """Imports modules from the code of many, which was read at once: half of what each costs."""

    def __init__(self, path: str, codes: dict[str, bytes]) -> None:
        self.path, self.codes = path, codes

    def find_spec(self, name: str, *_more: object) -> ModuleSpec | None:
        for file in (f"{name.replace('.', '/')}.py", f"{name.replace('.', '/')}/__init__.py"):
            if file in self.codes:
                place, is_package = f"{self.path}/{file}", file.endswith("/__init__.py")
                spec = ModuleSpec(name, self, origin=place, is_package=is_package)  # type: ignore[arg-type]
                spec.has_location = True
                if is_package:
                    spec.submodule_search_locations = [os.path.dirname(place)]
                return spec
        return None

    def create_module(self, _spec: ModuleSpec) -> None:
        """Leave that to Python."""

    def exec_module(self, module: ModuleType) -> None:
        file = (module.__file__ or "")[len(self.path) + 1 :]
        exec(marshal.loads(self.codes[file]), module.__dict__)  # noqa: S102, S302 - our own


def open_library(path: str, verb: str) -> bool:
    """Have Python import from a kept library. Return whether what a verb needs lies together."""
    sys.path.insert(0, path)
    try:
        with open(_name_together(path, verb), "rb") as file:
            codes = marshal.loads(file.read())  # noqa: S302 - only this user can write it
    except (OSError, ValueError, EOFError, TypeError):
        return False
    sys.meta_path.insert(0, _Together(path, codes))
    return True


def put_together(path: str, verb: str) -> None:
    """Put together what Python has compiled of a library, once a verb has run."""
    ending = f".{sys.implementation.cache_tag}.pyc"
    codes = {}
    for folder, _folders, files in os.walk(f"{path}/{PACKAGE}"):
        top = os.path.dirname(folder)[len(path) + 1 :]
        for name in files:
            if name.endswith(ending):
                with open(f"{folder}/{name}", "rb") as file:
                    codes[f"{top}/{name[: -len(ending)]}.py"] = file.read()[_HEAD:]
    place = _name_together(path, verb)
    mine = f"{place}.{os.getpid()}"
    if not codes:
        return  # Python compiles for itself alone here.
    try:
        with open(os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(marshal.dumps(codes))
        os.rename(mine, place)
    except OSError:
        return  # There is no room: each is imported by itself.


def _name_together(path: str, verb: str) -> str:
    """Return the file for this very Python, whose code no other understands."""
    return f"{path}/{verb}-{sys.implementation.cache_tag}-{sys.hexversion:x}"
