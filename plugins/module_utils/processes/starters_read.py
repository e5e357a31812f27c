# SPDX-License-Identifier: BSD-2-Clause
"""Find what a unit starts that sets limits after systemd has: its commands, and their scripts.

Sources: prlimit(1), softlimit(8), chpst(8), the startup files and BASH_ENV of bash(1).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

from ..core.reader import Limit
from ..core.values import RLIMITS, NamedTuple, Rlimit
from ..host.door import ForeignError, open_file, read_handle
from ..host.files import LARGEST, read_change, read_text
from ..host.owned import ask_owner, read_as_owner
from ..sessions.shell_files_read import find_shared_lines
from ..sessions.shell_limits import ShellLine, find_shell_limits
from ..sessions.shell_sources import find_sources
from ..systemd.unit_file import Setting, merge_units, split_words
from ..systemd.want import is_enough
from .causes import blame_starter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..systemd.model import UnitFacts
    from .causes import Verdict

_PROGRAMS = ("prlimit", "softlimit", "chpst")
_MOST = 8  # Programs that start programs that start programs.
_SOFT_ITEMS = {"o": "nofile", "p": "nproc", "f": "fsize", "c": "core"}
_SOFT_OPTION = "-([opfc])([0-9]{1,40})"
_LOGIN_SHELL = r"[-@:+!|]*(?:/\S+/)?(?:ba|da|k|z)?sh(?:\s+-\S+)*?\s+(?:-[a-z]*l[a-z]*|--login)\b.*"
_FIRST_FILE = r"(?:^|[\s\"'])BASH_ENV=([^\s\"']+)"
_SETTINGS = "/etc/(?:default|sysconfig)/"
_SETTINGS_FILE = _SETTINGS + r"[\w.${}-]+"
_NAME = r"^[ \t]*(\w+)=[\"']?([\w.-]+)[\"']?[ \t]*$"


class _Reader(NamedTuple):
    """Where scripts are read: in which tree, and as which user where the unit is no system's."""

    root: str
    uid: int | None


def list_starters(
    facts: UnitFacts, uid: int | None = None, root: str = "/"
) -> tuple[ShellLine, ...]:
    """Return what the files of a unit have it start that sets limits; see :func:`find_starters`."""
    return tuple(find_starters(merge_units(facts.files.main, facts.files.dropins), uid, root))


def find_starters(
    settings: Sequence[Setting], uid: int | None = None, root: str = "/"
) -> Iterator[ShellLine]:
    """Yield what a unit's command lines set, and the scripts that they name or that shells read.

    :param uid: Whose unit it is, where it is not the system's: the scripts are read as that user.
    :param root: The tree that the scripts lie in.
    """
    reader = _Reader(root, uid)
    for setting in settings:
        if setting.section != "Service":
            continue
        if setting.key == "ExecStart":
            yield from _find_in_command(setting, reader)
        elif setting.key == "ExecStartPost" and "prlimit" in setting.value:
            yield from _find_programs(setting)
        elif setting.key == "Environment" and "BASH_ENV" in setting.value:
            for path in re.findall(_FIRST_FILE, setting.value):
                yield from find_shell_limits(_read_script(path, reader), path)


def doubt_start(
    item: str,
    limit: Limit,
    verdict: Verdict,
    lines: Sequence[ShellLine],
    since: float,
    facts: UnitFacts,
) -> Verdict:
    """Return a verdict for which no start is known, if it foretells enough and a line may not.

    What a shell computes counts where its file is newer than what runs: that has gone through it.

    :param since: When what runs was started; 0 where nothing does, and less in a tree.
    """
    given = verdict.next_start
    if given is None or not is_enough(limit, given):
        return verdict
    about = [line for line in reversed(lines) if line.item == item]
    at = next((one.at for one in about if _may_leave_less(limit, given, one, since)), None)
    if at is None:
        return verdict
    doubt = blame_starter(at, facts, "may set")
    return verdict._replace(next_start=None, at_boot=None, doubts=(doubt,))


def _may_leave_less(limit: Limit, given: Rlimit, line: ShellLine, since: float) -> bool:
    value = line.at.value
    if isinstance(value, str):
        return read_change(line.at.path) > since
    return not is_enough(limit, _lower(given, line.bounds, value))


def _lower(given: Rlimit, bounds: Sequence[str], value: int) -> Rlimit:
    hard = value if "hard" in bounds else given.hard
    return Rlimit(min(value if "soft" in bounds else given.soft, hard), hard)


def _find_in_command(setting: Setting, reader: _Reader) -> Iterator[ShellLine]:
    value = setting.value
    if "limit" in value or "chpst" in value:
        text = _unquote(value).replace("prlimit", "-")
        for line in find_shell_limits(text, ""):
            yield line._replace(at=setting.declare(line.at.value))
        yield from _find_programs(setting)
    if "sh" in value and reader.uid is None and re.fullmatch(_LOGIN_SHELL, value, re.DOTALL):
        yield from (one for one in _find_shared(reader.root) if one.item)
    for path, text in _find_scripts(value, reader):
        yield from find_shell_limits(text, path)


def _find_shared(root: str) -> Iterator[ShellLine]:
    if root == "/":
        return find_shared_lines("/bin/bash", RLIMITS)
    from ..sessions.tree_read import read_tree_shell_lines  # No host needs what reads trees.

    return read_tree_shell_lines(root)


def _unquote(value: str) -> str:
    return value.replace('"', " ").replace("'", " ")


def _find_programs(setting: Setting) -> Iterator[ShellLine]:
    """Yield what programs set that start another one, by the options before its name."""
    words = _unquote(setting.value).split()
    names = [word.rpartition("/")[2] for word in words]
    found = (place for place, name in enumerate(names) if name in _PROGRAMS)
    for place in islice(found, _MOST):
        name = names[place]
        if name == "prlimit":
            read = find_shell_limits(f"prlimit {' '.join(_take_options(words, place))}", "")
            for line in read:
                if isinstance(line.at.value, int) or line.at.value.startswith("$"):
                    yield line._replace(at=setting.declare(line.at.value))
        else:
            options = re.sub(r"(-\w) (?=[0-9])", r"\1", " ".join(_take_options(words, place)))
            for match in re.finditer(rf"(?<!\S){_SOFT_OPTION}(?!\S)", options):
                at = setting.declare(int(match[2]))
                yield ShellLine(_SOFT_ITEMS[match[1]], ("soft",), at)


def _take_options(words: Sequence[str], place: int) -> Iterator[str]:
    for word in words[place + 1 :]:
        if not (word.startswith(("-", "$")) or word.isdigit()):
            return
        yield word


def _find_scripts(command: str, reader: _Reader) -> Iterator[tuple[str, str]]:
    """Yield the script that a command line runs, and the files that it reads."""
    try:
        words = [word.lstrip("-@:+!|") for word in split_words(command)]
    except ValueError:
        return
    for path in words[:3]:
        text = _read_script(path, reader, "#!") if path.startswith("/") else ""
        if text:
            yield path, text
            for named in _list_read(text, path):
                yield named, _read_script(named, reader)


def _list_read(text: str, path: str) -> list[str]:
    """Return the files that a script reads: those of settings by any way, as its name is in them.

    Source: what /etc/init.d/skeleton did, ``. /etc/default/$NAME``.
    """
    names = dict(re.findall(_NAME, text, re.MULTILINE)) if re.search(_SETTINGS, text) else {}
    named = [
        re.sub(r"\$\{?(\w+)\}?", lambda found: names.get(found[1], "$"), one)
        for one in re.findall(_SETTINGS_FILE, text)
    ]
    named += [name for name, _at in find_sources(text, path, "/root").named]
    return [name for name in dict.fromkeys(named) if not re.search(r"[$*?\[]", name)]


def _read_script(path: str, reader: _Reader, start: str = "") -> str:
    """Return a file, as its owner may read it; nothing where it cannot be or is too large.

    :param start: What it must begin with: of a program, no more than that is read.
    """
    try:
        if reader.uid is not None and os.geteuid() == 0:
            text = str(ask_owner(reader.uid, partial(read_text, path)) or "")
        else:
            text = _read_from(path, start, reader.root)
    except OSError:
        return ""
    return text if text.startswith(start) else ""


def _read_from(path: str, start: str, root: str) -> str:
    try:
        handle = open_file(path, root)
    except ForeignError:
        return (read_as_owner(path) if root == "/" else "") or ""
    if os.pread(handle, len(start), 0) != start.encode():
        os.close(handle)
        return ""
    return read_handle(handle, LARGEST, path).decode("latin-1")
