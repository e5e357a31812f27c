# SPDX-License-Identifier: BSD-2-Clause
"""Read the scripts that scripts call, as far as root may open them."""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from ..host.door import open_file, read_handle
from ..host.files import list_folder, read_text, under
from .boot_calls import (
    find_called,
    find_calls,
    find_globs,
    find_parts,
    find_rule_programs,
    find_search_folders,
    find_searched,
    find_words,
    is_crowded,
    is_interpreted,
    join_commands,
    judge_call,
    list_paths,
    may_ask,
)
from .boot_conditions_read import OF_BOOT
from .boot_quiet_read import Looked
from .boot_shell import put_folders
from .boot_units import Script, is_early, mark
from .glob_pattern import matches_path

_LOCAL_COMMANDS = ("/usr/local/sbin", "/usr/local/bin")
"""Where systemd, and the shells that it starts, look for a command first."""
_WITHOUT_CALLS = ("/etc/tmpfiles.d/", "/usr/local/lib/tmpfiles.d/", "/usr/lib/tmpfiles.d/")
_FOLDERS_WITHOUT_COMMANDS = ("/usr/lib/", "/etc/pam.d/", *_WITHOUT_CALLS)
_COMMENTS = r"(?m)^[ \t]*#.*"
_LARGEST = 2**20
_DEEPEST = 8  # Scripts that scripts call.
_HEAD = 512
_MOST_OF_FOLDER = 100
_LEVELS = 3


class Called:
    """What scripts call, each read once."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.looked = Looked(f"{one}/" for one in _LOCAL_COMMANDS)
        self._texts: dict[str, tuple[str, bool] | None] = {}
        self._names: dict[str, list[str]] = {}
        self._local = {
            name: f"{folder}/{name}"
            for folder in reversed(_LOCAL_COMMANDS)
            for name in list_folder(folder, root)
        }

    def may_matter(self, path: str, text: str, is_wanted: Callable[[str], bool]) -> bool:
        """Tell whether a script, or what it may call, is wanted or starts a unit.

        Most neither are nor do. Of those nothing is taken apart, only paths are looked for.
        """
        if path.startswith(_WITHOUT_CALLS):
            return is_wanted(text)
        seen, waiting = {path}, [(path, join_commands(path, text))]
        while waiting:
            name, caller = waiting.pop()
            caller = put_folders(name, re.sub(_COMMENTS, "", caller))
            if is_wanted(caller) or may_ask(caller):
                return True
            names = {*list_paths(caller), *self._find_more(caller)}
            names.update(one for word, one in self._local.items() if word in caller)
            for name in names - seen:
                seen.add(name)
                called = self._read(name, caller)
                if called is None:
                    return True
                waiting += [(name, called)] if called else []
        return False

    def read_all(self, path: str, text: str) -> dict[str, Script]:
        """Return the scripts that one calls, and those that they call, by path; itself last."""
        found = {path: mark(text, text)}
        if is_crowded(text):
            return found
        waiting = deque([(path, found[path], 0)])
        while waiting:
            caller, script, depth = waiting.popleft()
            words = mark(put_folders(caller, script), script)
            unread = []
            for name in self._find_names(caller, words) if depth <= _DEEPEST else ():
                called = self._read(name, words)
                if called is None:
                    unread.append(name)
                    continue
                runs = judge_call(caller, script, name) if called and name not in found else False
                if runs is not False:
                    found[name] = mark(called, "", () if runs else {0})
                    found[name].early = is_early(text)
                    waiting.append((name, found[name], depth + 1))
            numbers = find_calls(caller, words, unread)
            found[caller] = mark(found[caller], found[caller], unread=numbers)
        found[path] = found.pop(path)
        return found

    def _read(self, path: str, caller: str) -> str | None:
        """Return a script; nothing where it is not one by itself, or to its caller.

        A shell runs a text that may be executed and names no interpreter, execve(2) does not.

        :returns: ``None`` where it is there, and nobody may say what it holds.
        """
        if path.startswith(OF_BOOT):
            return ""
        if path not in self._texts:
            self.looked.add(path)
            self._texts[path] = _read_short(path, self._root)
        found = self._texts[path]
        if found is None:
            return None
        text, runs = found
        is_script = text.startswith("#!") or (text and (runs or is_interpreted(path, caller)))
        return text if is_script else ""

    def _find_names(self, path: str, text: str) -> list[str]:
        if path not in self._names:
            self._names[path] = list(dict.fromkeys(self._find_called(path, text)))
        return self._names[path]

    def _find_called(self, path: str, text: str) -> Iterable[str]:
        """Return the files that a script calls by path or by name, or all of a folder."""
        names = [*find_called(path, text), *self._find_more(text)]
        if self._local and not path.startswith(_FOLDERS_WITHOUT_COMMANDS):
            names += [self._local[one] for one in find_words(path, text) & self._local.keys()]
        return names

    def _find_more(self, text: str) -> Iterator[str]:
        """Yield the files that a script runs because of the folder in which they lie."""
        for folder in find_parts(text) if "run-parts" in text else ():
            yield from self._list_or_note(folder)
        yield from find_rule_programs(text)
        for folder in find_searched(text):
            yield from self._list_below(folder)
        for folder in find_search_folders(text) if "PATH" in text else ():
            paths = self._list_or_note(folder)
            yield from (one for one in paths if _is_word(one.rpartition("/")[2], text))
        for pattern in find_globs(text):
            paths = self._list_or_note(pattern.rpartition("/")[0], pattern)
            fit = (one for one in paths if matches_path(pattern, one))
            yield from islice(fit, _MOST_OF_FOLDER)

    def _list_below(self, folder: str) -> list[str]:
        """Return what lies in a folder and in those in it, as far as root may look."""
        found: list[str] = []
        level = [folder]
        for _depth in range(_LEVELS):
            level = [name for one in level for name in self._list_or_note(one)][:_MOST_OF_FOLDER]
            found += level
        return found

    def _list_or_note(self, folder: str, name: str = "") -> list[str]:
        """Return the paths in a folder, or what names it where nobody may say what lies there."""
        if f"{folder}/".startswith(OF_BOOT):
            return []
        self.looked.add(f"{folder}/")
        try:
            return [f"{folder}/{name}" for name in list_folder(folder, self._root)]
        except OSError:
            self._texts[name or folder] = None
            return [name or folder]


def _is_word(name: str, text: str) -> bool:
    """Tell whether a text has a name that stands for a command."""
    return re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w./-])", text) is not None


def _read_short(path: str, root: str) -> tuple[str, bool] | None:
    """Return a file that another names, and whether it may be executed.

    :returns: An empty text where it holds none; ``None`` where it is not root's, or too large.
    """
    try:
        found = os.stat(under(path, root))
    except OSError:
        return "", False
    if not stat.S_ISREG(found.st_mode):
        return "", False
    try:
        text = _read_if_text(path, root, found.st_size) if found.st_size else read_text(path, root)
    except OSError:
        return None
    return "" if "\0" in (text or "") else text or "", bool(found.st_mode & 0o111)


def _read_if_text(path: str, root: str, size: int) -> str:
    """Return a file; nothing where its first bytes are no text, as those of a program.

    :raises OSError: If it cannot be read, or is too large and names its interpreter, as an archive
        may too.
    """
    handle = open_file(path, root)
    try:
        head = os.pread(handle, _HEAD, 0)
    except OSError:
        os.close(handle)
        raise
    if b"\0" in head or (size > _LARGEST and not head.startswith(b"#!")):
        os.close(handle)
        return ""
    return read_handle(handle, _LARGEST, path).decode("latin-1")
