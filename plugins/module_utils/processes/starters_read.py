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
from ..core.values import RLIMITS, Declaration, Rlimit
from ..host.door import ForeignError, open_file, read_handle
from ..host.files import read_change
from ..host.owned import ask_owner
from ..sessions.shell_commands import list_commands
from ..sessions.shell_files_read import find_shared_lines
from ..sessions.shell_limits import BOTH, ShellLine, find_shell_limits
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
_SWITCH = r"(?:^|[\s;&|({\"'])(?:/\S+/)?(?:su|runuser|sudo)\s+[\w\"'$-]"
_SETTINGS = "/etc/(?:default|sysconfig)/"
_SETTINGS_FILE = _SETTINGS + r"[\w.${}-]{1,128}"
_NAME = r"^[ \t]*(\w{1,64})=[\"']?([\w.-]{1,128})[\"']?[ \t]*$"
_LARGEST = 2**18  # Bytes of a script.
_MOST_SCRIPTS, _MOST_LINES, _MOST_TEXT = 20, 50, 500
_MOST_TOLD = 2**20
_UNTOLD = "not all of it was read"


class _LongError(OSError):
    """A script is longer than is read."""


def list_starters(
    facts: UnitFacts, uid: int | None = None, root: str = "/"
) -> tuple[ShellLine, ...]:
    """Return what the files of a unit have it start that sets limits; see :func:`find_starters`."""
    return tuple(find_starters(merge_units(facts.files.main, facts.files.dropins), uid, root))


def find_starters(
    settings: Sequence[Setting], uid: int | None = None, root: str = "/"
) -> Iterator[ShellLine]:
    """Yield what a unit's command lines set, and the scripts that they name or that shells read.

    :param uid: Whose unit it is, where it is not the system's: that user reads the scripts.
    :param root: The tree that the scripts lie in.
    """
    own = [one for one in settings if one.section == "Service"]
    for setting in own:
        yield from _find_in_setting(setting, uid, root)
    starts = (one.value for one in own if one.key == "ExecStart")
    scripts = list(dict.fromkeys(path for value in starts for path in _list_words(value)))
    some = scripts[:_MOST_SCRIPTS]
    if uid is None or os.geteuid():
        yield from _find_in_scripts(some, root)
    elif some:
        yield from _ask(uid, some)


def find_switches(settings: Sequence[Setting], root: str) -> Iterator[Declaration]:
    """Yield the lines by which a unit of a tree, or a script of it, opens a session of PAM."""
    for setting in settings:
        if (setting.section, setting.key) != ("Service", "ExecStart"):
            continue
        if re.search(_SWITCH, setting.value.lstrip("-@:+!|")):
            yield setting.declare("")
        for path in _list_words(setting.value):
            for command in list_commands(_read_text(path, "#!", root)):
                found = re.search(_SWITCH, command.text)
                if found:
                    row = command.find_row(found.end() - 1)
                    yield Declaration(path, row.number, row.text, "")


def _find_in_setting(setting: Setting, uid: int | None, root: str) -> Iterator[ShellLine]:
    if setting.key == "ExecStart":
        yield from _find_in_command(setting, uid, root)
    elif setting.key == "ExecStartPost" and "prlimit" in setting.value:
        yield from _find_programs(setting)
    elif setting.key == "Environment" and "BASH_ENV" in setting.value and uid is None:
        for path in re.findall(_FIRST_FILE, setting.value):
            yield from find_shell_limits(_read_text(path, "", root), path)


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
    about = [line for line in reversed(lines) if line.item in (item, "") and line.bounds]
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


def _find_in_command(setting: Setting, uid: int | None, root: str) -> Iterator[ShellLine]:
    value = setting.value
    if "limit" in value or "chpst" in value:
        text = _unquote(value).replace("prlimit", "-")
        for line in find_shell_limits(text, ""):
            yield line._replace(at=setting.declare(line.at.value))
        yield from _find_programs(setting)
    if "sh" in value and uid is None and re.fullmatch(_LOGIN_SHELL, value, re.DOTALL):
        yield from (one for one in _find_shared(root) if one.item)


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


def _list_words(command: str) -> list[str]:
    """Return the paths of a command line that may be its script."""
    try:
        words = [word.lstrip("-@:+!|") for word in split_words(command)]
    except ValueError:
        return []
    return [word for word in words[:3] if word.startswith("/")]


def _find_in_scripts(scripts: Sequence[str], root: str) -> Iterator[ShellLine]:
    """Yield what scripts set, and the files that they read.

    Of one that is a user's, all of that is found by that user: no word in it is root's to follow.
    """
    for path in scripts:
        try:
            text = _read_from(path, "#!", root)
        except ForeignError as error:
            if error.uid and root == "/":
                yield from _ask(error.uid, [path])
            continue
        except _LongError:
            yield _doubt_all(path)
            continue
        except OSError:
            continue
        for name in (path, *_list_read(text, path)) if text else ():
            yield from find_shell_limits(text if name == path else _read_text(name, "", root), name)


def _ask(uid: int, scripts: Sequence[str]) -> Iterator[ShellLine]:
    """Yield what a user finds in scripts of the own; of other files no line is told.

    What that user's child does not tell may set anything.
    """
    try:
        told = ask_owner(uid, partial(_look, scripts), most=_MOST_TOLD)
        claims = [(str(script), list(lines)) for script, lines in told]
        for script, lines in claims:
            for item, bounds, (path, number, text, value) in lines:
                at = Declaration(script, int(number), str(text), value)
                if path != script:
                    at = Declaration(script, 0, f"reads {str(path)[:_MOST_TEXT]}", value)
                if isinstance(value, (int, str)):
                    yield ShellLine(str(item), tuple(map(str, bounds)), at)
    except (OSError, TypeError, ValueError):
        yield from map(_doubt_all, scripts)


def _doubt_all(script: str) -> ShellLine:
    """Return what stands for lines that nobody has read: they may set any limit."""
    return ShellLine("", BOTH, Declaration(script, 0, _UNTOLD, ""))


def _look(scripts: Sequence[str]) -> list[tuple[str, list[ShellLine]]]:
    """Return what scripts set, and the files that they read. Runs as a user."""
    told = []
    for one in scripts:
        lines = [*map(_shorten, islice(_find_in_scripts([one], "/"), _MOST_LINES + 1))]
        told.append((one, lines[:_MOST_LINES] + [_doubt_all(one)] * (len(lines) > _MOST_LINES)))
    return told


def _shorten(line: ShellLine) -> ShellLine:
    return line._replace(at=line.at._replace(text=line.at.text[:_MOST_TEXT]))


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
    plain = (os.path.normpath(name) for name in named if not re.search(r"[$*?\[]", name))
    return list(dict.fromkeys(plain))[:_MOST_SCRIPTS]


def _read_text(path: str, start: str, root: str) -> str:
    """Return a file that root's script reads; nothing if it is a user's, or begins otherwise."""
    try:
        return _read_from(path, start, root)
    except OSError:
        return ""


def _read_from(path: str, start: str, root: str) -> str:
    """Return a text; nothing where it does not begin so: of a program no more than that is read."""
    handle = open_file(path, root)
    try:
        is_other = os.pread(handle, len(start), 0) != start.encode()
        is_long = os.fstat(handle).st_size > _LARGEST
    except OSError:
        os.close(handle)
        raise
    if is_other or is_long:
        os.close(handle)
        if not is_other:
            raise _LongError(f"{path}: is larger than {_LARGEST} bytes")
        return ""
    return read_handle(handle, _LARGEST, path).decode("latin-1")
