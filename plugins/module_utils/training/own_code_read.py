# SPDX-License-Identifier: BSD-2-Clause
"""Find out whether a command that root is to try runs code that another may change.

What is named is seen in whatever word or variable it stands, and so is what Python imports from
beside it: modules, and packages with an ``__init__.py``. What a program opens by a name that it
makes itself is not seen.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence

from ..host.as_user import find_person, name_person
from ..host.door import ForeignError, open_file, walk
from ..host.files import list_folder

_SEPARATORS = re.compile(r"[=:,;@\s'\"()\[\]{}<>|&]+")
_ABSOLUTE = re.compile(r"/[^=:,;\s'\"()\[\]{}<>|&]*")
_CODE = re.compile(r"[A-Za-z_]\w*(?:\.(?:py|pyc|so|pth)|\.[\w-]+\.so)?")
"""What Python imports by name: a module, or the folder of a package."""

_LEADS = re.compile(r"PATH|PYTHON\w+|LD_\w+|GCONV_PATH|BASH_ENV|ENV|VIRTUAL_ENV|CONDA_PREFIX")
"""Variables that say where code comes from."""

_MOST = 20000
_LONGEST_LINE = 512


def require_own(words: Sequence[str], variables: Mapping[str, str]) -> None:
    """Refuse a command if it is seen that another than root may change what it runs.

    :param variables: Its whole environment.
    :raises ValueError: If so.
    """
    program = shutil.which(words[0], path=variables.get("PATH"))
    leading = [text for name, text in variables.items() if _LEADS.fullmatch(name)]
    named = [*_find_paths([*words[1:], *leading]), *_find_interpreters(program)]
    for path in dict.fromkeys([*([program] if program else []), *named]):
        _refuse_foreign(path)
    searched = [text for name, text in variables.items() if name == "PYTHONPATH"]
    imports = [one for text in searched for one in text.split(":")]
    scripts = [path for path in _find_paths(words[1:]) if path.endswith((".py", ".pyc"))]
    imports += map(os.path.dirname, scripts)
    left = _MOST
    for folder in dict.fromkeys([os.getcwd(), *map(os.path.abspath, filter(None, imports))]):
        left = _refuse_open(folder, left)


def _find_paths(texts: Sequence[str]) -> Iterator[str]:
    """Yield what there is on this host of all that texts may name."""
    for text in texts:
        parts = [text, *_SEPARATORS.split(text), *_ABSOLUTE.findall(text)]
        for part in dict.fromkeys(parts):
            if part and "\0" not in part and os.path.lexists(part):
                yield os.path.abspath(part)


def _find_interpreters(program: str | None) -> Iterator[str]:
    """Yield what the first line of a script hands it to."""
    if program is None:
        return
    try:
        handle = open_file(program)
    except OSError:
        return  # Whose it is will be asked.
    try:
        head = os.read(handle, _LONGEST_LINE)
    finally:
        os.close(handle)
    if head.startswith(b"#!"):
        yield from _find_paths([head.partition(b"\n")[0][2:].decode("utf-8", "replace")])


def _refuse_foreign(path: str) -> None:
    """:raises ValueError: If another than root may change what is at a path."""
    try:
        with walk(path):
            return
    except ForeignError as error:
        raise ValueError(_tell(error.path, error.uid)) from None


def _refuse_open(folder: str, left: int) -> int:
    """Refuse a folder that Python imports from, if another may put a module there.

    :param left: How many names may still be looked at.
    :returns: How many are left then.
    """
    try:
        found = os.stat(folder)
        others = stat.S_IWOTH | (stat.S_IWGRP if found.st_gid else 0)
        if not stat.S_ISDIR(found.st_mode):
            return left
        if found.st_mode & others:
            raise ValueError(_tell(folder, 0))
        names = [one for one in list_folder(folder) if _CODE.fullmatch(one)]
    except ForeignError as error:
        raise ValueError(_tell(error.path, error.uid)) from None
    left -= len(names)
    if left < 0:
        told = f"--try: more than {_MOST} files may be imported from {folder}"
        raise ValueError(f"{told}; state --as-user root if all of them are root's")
    for name in names:
        path = f"{folder}/{name}"
        _refuse_foreign(path)
        if os.path.isfile(f"{path}/__init__.py") and not os.path.islink(path):
            left = _refuse_open(path, left)
    return left


def _tell(path: str, uid: int) -> str:
    name = name_person(find_person(uid)) if uid else "USER"
    whose = f"is {name}'s" if uid else "can be changed by users other than root"
    return f"--try: {path} {whose}, and root runs nothing of a user's; state --as-user {name}"
