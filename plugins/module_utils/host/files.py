# SPDX-License-Identifier: BSD-2-Clause
"""Read configuration files of a host, or of a tree that will be one, as text by path."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import groupby

from .door import (
    LoopError,
    NoFileError,
    hold_folder,
    open_file,
    open_folder,
    read_handle,
    read_kernel_file,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.distribution import Distribution

LARGEST = 8 * 2**20
"""Bytes; a configuration file larger than this is a mistake or an attack."""

_KERNEL = re.compile(
    r"/proc/(?:cmdline|stat|(?:self|[0-9]+)/(?!(?:root|cwd|exe)$)(?:[a-z_]+|fdinfo/[0-9]+))"
    r"|/sys/(?:(?!\.\.?/)[^/]+/)*(?!\.\.?$)[^/]+"
)
"""What the kernel makes, without a link that leads out; of all else the owner is asked for."""

_MOST_LINKS = 40


def read_text(path: str, root: str = "/") -> str | None:
    """Return a file as latin-1, so that every byte survives; ``None`` where it is absent.

    A link that hangs, or leads in a ring, counts as absent. A folder counts as empty, as the C
    library reads it.

    :raises OSError: If it cannot be read or is larger than 8 MiB.
    """
    content = read_bytes(path, root)
    return None if content is None else content.decode("latin-1")


def read_bytes(path: str, root: str = "/") -> bytes | None:
    """Return a file's content; ``None`` where it is absent. A named pipe is empty, unopened.

    :raises OSError: If it cannot be read, is larger than 8 MiB, or is not root's to its end.
    """
    if _is_absent(path, root):
        return None
    try:
        if root == "/" and _KERNEL.fullmatch(path):
            return read_kernel_file(path, LARGEST)
        return read_handle(open_file(path, root), LARGEST, path)
    except (FileNotFoundError, NotADirectoryError):
        return b"" if leads_to_null(path, root) else None
    except LoopError:
        return None
    except IsADirectoryError:
        return b""
    except NoFileError as exc:
        if exc.is_empty:
            return b""
        raise


def read_each(
    paths: Iterable[str], root: str = "/", read: Callable[[str, str], str | None] = read_text
) -> Iterator[tuple[str, str]]:
    """Yield the files that are there with their text; one walk leads to those of one folder.

    :param read: What reads the others, and says why one cannot be read.
    """
    for folder, group in groupby(paths, lambda path: path.rpartition("/")[0]):
        together = list(group)
        found = _read_together(folder, together, root) if len(together) > 1 else {}
        for path in together:
            text = found[path] if path in found else read(path, root)
            if text is not None:
                yield path, text


def _read_together(folder: str, paths: Iterable[str], root: str) -> dict[str, str]:
    """Return the files of a folder that are regular ones and can be read."""
    found = {}
    with suppress(OSError), hold_folder(folder, root) as open_named:
        for path in paths:
            with suppress(OSError):
                handle = open_named(path[len(folder) + 1 :])
                if handle is not None:
                    found[path] = read_handle(handle, LARGEST, path).decode("latin-1")
    return found


def leads_to_null(path: str, root: str) -> bool:
    """Tell whether a path of a tree is a link to /dev/null, which such a tree need not have."""
    try:
        return root != "/" and follow_links(path, root) == "/dev/null"
    except OSError:
        return False  # A loop of links.


def read_folder(folder: str, root: str = "/") -> dict[str, str]:
    """Return the text of every ``*.conf`` in a folder, by its path in the tree."""
    names = (name for name in list_folder(folder, root) if name.endswith(".conf"))
    return dict(read_each([f"{folder}/{name}" for name in names], root))


def list_folder(folder: str, root: str = "/") -> list[str]:
    """Return the names in a folder, sorted; none where it is absent.

    :raises OSError: If it cannot be read, or is not root's to its end.
    """
    if _is_absent(folder, root):
        return []
    try:
        handle = open_folder(folder, root)
    except (FileNotFoundError, NotADirectoryError):
        return []
    try:
        return sorted(os.listdir(handle))
    finally:
        os.close(handle)


def find_tree_paths(pattern: str, root: str) -> list[str]:
    """Return the paths of a tree that fit a pattern, links followed inside of it."""
    found = [""]
    for part in pattern.strip("/").split("/"):
        if re.search(r"[*?\[]", part):
            names = [(top, name) for top in found for name in list_folder(top or "/", root)]
            fit = [(top, name) for top, name in names if fnmatchcase(name, part)]
            found = [f"{top}/{name}" for top, name in fit if part[0] == "." or name[0] != "."]
        else:
            found = [f"{top}/{part}" for top in found]
    return found


def leave_out_run(folders: Iterable[str], root: str) -> list[str]:
    """Return the folders that are there at boot: a tree's /run is empty then."""
    return [one for one in folders if root == "/" or not f"{one}/".startswith("/run/")]


def _is_absent(path: str, root: str) -> bool:
    """Tell whether a host has no such path, which some looks show where a walk takes a dozen.

    Only folders of root's are on the way: where a link leads, or another's folder, the walk asks
    whose it is.
    """
    if root != "/" or os.path.lexists(path):
        return False
    here = ""
    for part in path.split("/")[1:]:
        here += f"/{part}"
        try:
            found = os.lstat(here)
        except FileNotFoundError:
            return True
        except OSError:
            return False  # Who opens it says why.
        if found.st_uid or not stat.S_ISDIR(found.st_mode):
            return False
    return False


def under(path: str, root: str) -> str:
    """Return where a path of the tree lies on this machine, links followed inside the tree."""
    return path if root == "/" else root.rstrip("/") + follow_links(path, root)


def follow_links(
    path: str, root: str = "/", visit: Callable[[str, str], None] | None = None
) -> str:
    """Return the path in the tree that *path* means; an absolute link starts at *root*.

    :param visit: Called with each folder on the way, links followed, and the entry taken there.
    :raises LoopError: If the links form a loop.
    """
    links = _MOST_LINKS
    done, parts = "", path.strip("/").split("/")
    while parts:
        part = parts.pop(0)
        if part in ("", ".", ".."):
            done = done.rpartition("/")[0] if part == ".." else done
            continue
        here = f"{root.rstrip('/')}{done}/{part}"
        if visit:
            visit(done, part)
        if not os.path.islink(here):
            done = f"{done}/{part}"
            continue
        links -= 1
        if links < 0:
            raise LoopError(path)
        target = os.readlink(here)
        done = "" if target.startswith("/") else done
        parts = [*target.split("/"), *parts]
    return done


def read_os_release(root: str = "/") -> dict[str, str]:
    """Return the fields of os-release(5); none where the file is absent."""
    text = read_text("/etc/os-release", root) or read_text("/usr/lib/os-release", root) or ""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip().strip("\"'") for name, value in pairs}


def read_distribution(root: str = "/") -> Distribution:
    """Return whose system it is, and what is known of that."""
    from ..core.distribution import find_distribution  # Where a file is read, few ask.

    return find_distribution(read_os_release(root))


def read_change(path: str) -> float:
    """Return when a file, its mode or its name last changed; 0 where it is absent."""
    try:
        return os.stat(path).st_ctime
    except OSError:
        return 0.0
