# SPDX-License-Identifier: BSD-2-Clause
"""Find what sets a sysctl after the files of sysctl.d were read: units, cron, udev, rc.local.

A line that names a key and neither plainly reads it nor plainly sets it may do anything to it.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import lru_cache

from ..core.values import Declaration, NamedTuple
from .boot_calls import CALL, LOADS, find_loaded, list_loaded, list_running
from .boot_units import Script, is_doubtful
from .sysctl_conf import parse_sysctl_conf, parse_sysctl_number

_LONGEST = 4096  # Characters; to read a line word by word takes the square of its length.
_ONCE = "/etc/cloud/"  # What cloud-init may carry out at the first boot alone.
_INTO = r"(?:>|\btee\b[^;&|]*?)\s*[\"']?"
_INTO_VARIABLE = rf"{_INTO}/proc/sys/([\w./-]*)[$*?\[{{`]"
_INTO_FOLDER = rf"{_INTO}\$\{{?\w+\}}?((?:/[\w.-]+)+)"
_SETS_VARIABLE = (
    r"\s(?:-\S*w|--write|-[a-eg-oq-z]*[pf]|--load[= ])\s*[\"']?[$`]"
    r"|\s[\"']?\$(?:\w+|\{\w+\})=|\bsystemd-sysctl\s(?:[^;&|]*\s)?[\"']?\$"
    r"|\bsysctl\s+(?:-[eqi]+\s+){0,9}[\"']?\$"
    r"|\s(?:-[a-eg-oq-z]*[pf]|--load[= ])\s*[\"']?(?:[A-Za-z_.]|/\S*[*?\[])"
)
_OPEN = re.compile(r"[$*?`]|\bxargs\b|\bsysctl\b.*\s-\w*[pf]\b")
_PATH = r"/proc/sys/[\w./-]+"
_READERS = r"cat|head|tail|ls|stat|test|read|grep|awk|cut|wc|sed\s+-n"
_READS = (
    rf"(?:<\s*|\b(?:{_READERS})\b[^|;&>]*?|\[\[?\s[^|;&>]*?)[\"']?{_PATH}"
    r"|\bsysctl\b[^=#;&|>]*(?=$|[#;&|>])"
    r"|(?:^|[;&|({])\s*(?:echo|printf|logger)\b[^;&|>]*"
    r"(?:>>?\s*[\"']?/(?!proc/|etc/sysctl)[\w./-]+[\"']?\s*|>&2\s*)?(?=$|[;&])"
)


class ScriptWrite(NamedTuple):
    """A line that runs at boot or later and sets a key.

    The value of ``at`` is what it sets: a number as text, or nothing where that is not plain.
    ``before`` and ``after`` are the parts of the line around it, of the command that does so.
    ``loads`` says that it has procps read the files again instead.
    """

    at: Declaration
    before: str = ""
    after: str = ""
    loads: bool = False


class _Written(NamedTuple):
    """The value that a command sets, and the parts of the command around it."""

    value: str
    before: str = ""
    after: str = ""


def find_script_writes(key: str, texts: Mapping[str, str]) -> Iterator[ScriptWrite]:
    """Yield the lines that set a key, in the order of the files.

    :param texts: Text of what runs at boot, by path; of units, the whole file.
    """
    loaded = {name for path, text in texts.items() for name in find_loaded(path, text)}
    for path, text in texts.items():
        if path in loaded:
            yield from _find_settings(key, path, text)
        else:
            yield from _find_in_script(key, path, text, texts)


def _find_in_script(
    key: str, path: str, text: str, texts: Mapping[str, str]
) -> Iterator[ScriptWrite]:
    names_it = key.rpartition(".")[2] in text
    unread = text.unread if isinstance(text, Script) else frozenset()
    if (
        not names_it
        and not unread
        and not re.search(r"[$*?`]|\bxargs\b", text)
        and not re.search(LOADS, text)
    ):
        return
    enters = names_it and _enters(key, text)
    for number, line in list_running(path, text):
        writes = list(_find_writes(line, key, enters)) if names_it else []
        is_sure = not path.startswith(_ONCE) and not is_doubtful(text, number)
        for found in writes:
            plain = parse_sysctl_number(found.value) is not None and is_sure
            value = found.value if plain else ""
            at = Declaration(path, number, line, value)
            yield ScriptWrite(at, found.before, found.after)
        if not writes and (number in unread or _may_set(line, key)):
            yield ScriptWrite(Declaration(path, number, line, ""))
        elif any(_loads_others(call, texts) for call in re.findall(CALL, line)):
            yield ScriptWrite(Declaration(path, number, line, ""), loads=True)


def _enters(key: str, text: str) -> bool:
    """Tell whether a script goes to the key's folder, so that its last name is enough."""
    folder = f"/proc/sys/{key.replace('.', '/')}".rpartition("/")[0]
    return re.search(rf"\bcd\s+[\"']?{re.escape(folder)}\b", text) is not None


def _may_set(line: str, key: str) -> bool:
    """Tell whether a line sets what only the variables of its script tell, which may be a key."""
    if not _OPEN.search(line):
        return False
    if len(line) > _LONGEST:
        return "sysctl" in line or "/proc/sys/" in line
    into = re.findall(_INTO_VARIABLE, line) if "/proc/sys/" in line else []
    calls = re.findall(CALL, line) if "sysctl" in line else []
    path = f"/proc/sys/{key.replace('.', '/')}"
    below = re.findall(_INTO_FOLDER, line) if "$" in line else []
    return (
        any(path.startswith(f"/proc/sys/{start}") for start in into)
        or any(path.endswith(end) for end in below)
        or (bool(calls) and "xargs" in line)
        or any(re.search(_SETS_VARIABLE, call) for call in calls)
    )


def _loads_others(call: str, texts: Mapping[str, str]) -> bool:
    """Tell whether a call has files read that are not among these texts."""
    named = list_loaded(call)
    return re.search(LOADS, call) is not None and not (named and set(named) <= texts.keys())


def _find_settings(key: str, path: str, text: str) -> Iterator[ScriptWrite]:
    """Yield the line of a file that counts where a script has sysctl(8) read it."""
    for line in [one for one in parse_sysctl_conf(text, path) if one.key == key][-1:]:
        value = line.value if parse_sysctl_number(line.value or "") is not None else ""
        head = re.match(r"[^=]*=\s*", line.text)
        yield ScriptWrite(
            Declaration(path, line.line, line.text, value or ""), head[0] if head else ""
        )


@lru_cache(maxsize=64)
def _compile(key: str) -> tuple[tuple[re.Pattern[str], ...], re.Pattern[str]]:
    return tuple(map(re.compile, _describe_writes(key))), re.compile(_describe_mention(key))


def _find_writes(line: str, key: str, enters: bool) -> Iterator[_Written]:
    """Yield what a line sets: plain values, or one that is not known, as in a very long line."""
    patterns, mention = _compile(key)
    left = mention.search(line)
    if left and len(line) <= _LONGEST:
        rest = yield from _find_plain(line, patterns)
        left = mention.search(re.sub(_READS, "", rest))
    if left and (enters or left.lastgroup != "last"):
        yield _Written("")


def _find_plain(line: str, patterns: Sequence[re.Pattern[str]]) -> Generator[_Written, None, str]:
    """Yield the plain values that a line sets, and return the rest of it."""
    rest = line
    by_call, *others = patterns
    for call in re.finditer(CALL, line):
        found = by_call.search(line, call.start(), call.end())
        whole = by_call.match(line, found.start()) if found else None  # A value may hold a '#'.
        if whole:
            yield _split(line[call.start() : whole.end()], whole, call.start())
            rest = rest.replace(line[call.start() : whole.end()], "", 1)
    for pattern in others:
        for plain in pattern.finditer(line):
            yield _split(plain[0], plain, plain.start())
            rest = rest.replace(plain[0], "", 1)
    return rest


def _split(command: str, found: re.Match[str], start: int) -> _Written:
    first, end = found.start("value") - start, found.end("value") - start
    return _Written(found["value"], command[:first], command[end:])


def find_loader_words(key: str, texts: Mapping[str, str]) -> Iterator[Declaration]:
    """Yield the words ``sysctl.KEY=VALUE`` that a boot loader has for the kernel's command line.

    :param texts: The boot loader's files, by path: grub.cfg, its defaults, entries of loader(7).
    """
    word = rf"(?<![\w.])sysctl[./]{_describe_name(key)}=(?P<value>[^\s\"']*)"
    for path, text in texts.items():
        for number, line in enumerate(text.split("\n"), 1):
            if not line.lstrip().startswith("#"):
                for found in re.finditer(word, line):
                    yield Declaration(path, number, found[0], found["value"])


def is_about_sysctls(text: str) -> bool:
    """Tell whether a script may set any key at all."""
    return "sysctl" in text or "/proc/sys" in text or "SYSCTL{" in text


def _describe_writes(key: str) -> Iterator[str]:
    """Yield patterns of the plain ways to set a key: sysctl(8), its file, a rule of udev(7)."""
    name = _describe_name(key)
    value = r"[\"']?(?P<value>[^\s\"';&|<>\\]*)"
    yield rf"[\s\"']{name}\s*=\s*{value}"
    path = re.escape("/proc/sys/" + key.replace(".", "/"))
    into = r"[\"']?\s*(?:1?>>?|\|\s*(?:sudo\s+)?tee(?:\s+-a)?)\s*[\"']?"
    options = r"(?:-\S+\s+|[\"']%[sd](?:\\+n)?[\"']\s+){0,3}"
    yield rf"\b(?:echo|printf)\s+{options}{value}(?:\\n)?{into}{path}(?![\w/.-])"
    yield rf"\bSYSCTL\{{{name}\}}\s*=\s*{value}"
    yield rf"^\s*w\S*\s+{path}(?:\s+\S+){{4}}\s+{value}"  # tmpfiles.d(5)


def _describe_mention(key: str) -> str:
    """Return a pattern of whatever names a key; the group ``last`` is its last name alone."""
    name, last = _describe_name(key), re.escape(key.rpartition(".")[2])
    end = r"(?![\w/-]|\.\w)"
    return rf"(?<![\w.-])(?:/proc/sys/)?{name}{end}|(?<![\w./-])(?P<last>{last}){end}"


def _describe_name(key: str) -> str:
    return "[./]".join(re.escape(part) for part in key.split("."))
