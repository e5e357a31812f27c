# SPDX-License-Identifier: BSD-2-Clause
"""Find what sets a sysctl after the files of sysctl.d were read: units, cron, udev, rc.local.

A line that names a key and neither plainly reads it nor plainly sets it may do anything to it.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import lru_cache

from ..core.values import Declaration, NamedTuple
from .sysctl_conf import parse_sysctl_conf, parse_sysctl_number

_CALL = r"\bsysctl\b[^#;&|]*"
_LOADS = r"\s(?:-[a-oq-z]*p|--load|--system)\b"
_EXEC = re.compile(r"[ \t]*Exec(?:Start|StartPre|StartPost|Condition)[ \t]*=")
_LOADED = r"\s(?:-[a-oq-z]*p\s*|--load[= ])((?:[\"']?/[\w./-]+[\"']?\s*)+)"
# The slash stands first, for which Python looks faster than for what may not stand before it.
_CALLED = re.compile(r"/(?<![\w/.-]/)(?:etc|opt|root|srv|usr|s?bin)/[\w./-]+")
# A job's time, and then a user; what is set at the top of a crontab has no such field.
_OF_OTHERS = re.compile(r"\s*(?:@\w+|[\d*]\S*(?:\s+\S+){4})\s+(?!root\s)[\w.-]+\s")
_USER = r"(?m)^[ \t]*User[ \t]*=[ \t]*(?!(?:root|0)?[ \t]*$)"
"""Who may set no sysctl, unless a command has the '+' of systemd.service(5)."""
_INTERPRETER = (
    r"(?:\b(?:(?:ba|da|k|mk|z|a)?sh|python[\d.]*|perl|ruby|source)|(?<!\S)\.)"
    r"[ \t]+(?:-\S+[ \t]+){0,9}"
)
_LONGEST = 4096  # Characters; to read a line word by word takes the square of its length.
_ONCE = "/etc/cloud/"  # What cloud-init may carry out at the first boot alone.
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
    last = key.rpartition(".")[2]
    loaded = {name for path, text in texts.items() for name in find_loaded(path, text)}
    for path, text in texts.items():
        if path in loaded:
            yield from _find_settings(key, path, text)
            continue
        if last not in text and not re.search(_LOADS, text):
            continue
        patterns, mention = _compile(key)
        folder = f"/proc/sys/{key.replace('.', '/')}".rpartition("/")[0]
        enters = re.search(rf"\bcd\s+[\"']?{re.escape(folder)}\b", text) is not None
        for number, line in list_running(path, text):
            for found in _find_writes(line, patterns, mention, enters):
                plain = parse_sysctl_number(found.value) is not None and not path.startswith(_ONCE)
                value = found.value if plain else ""
                at = Declaration(path, number, line, value)
                yield ScriptWrite(at, found.before, found.after)
            if any(_loads_others(call[0], texts) for call in re.finditer(_CALL, line)):
                yield ScriptWrite(Declaration(path, number, line, ""), loads=True)


def _loads_others(call: str, texts: Mapping[str, str]) -> bool:
    """Tell whether a call has files read that are not among these texts."""
    named = _list_loaded(call)
    return re.search(_LOADS, call) is not None and not (named and set(named) <= texts.keys())


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


def _find_writes(
    line: str, patterns: Sequence[re.Pattern[str]], mention: re.Pattern[str], enters: bool
) -> Iterator[_Written]:
    """Yield what a line sets: plain values, or one that is not known, as in a very long line.

    :param enters: Whether the script goes to the key's folder, so that its last name is enough.
    """
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
    for call in re.finditer(_CALL, line):
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


def find_called(path: str, text: str) -> list[str]:
    """Return the files of the administrator that a file has run at boot."""
    if _is_unit(path) or _is_crontab(path):
        running = list_running(path, text) if _CALLED.search(text) else ()
        return [name for _number, line in running for name in _CALLED.findall(line)]
    # Most files are long and name none: those that do are not taken apart line by line.
    return [one[0] for one in _CALLED.finditer(text) if not _is_comment(text, one.start())]


def is_interpreted(path: str, caller: str) -> bool:
    """Tell whether a text gives a file to an interpreter, or sources it: it is a script anyhow."""
    return re.search(rf"{_INTERPRETER}[\"']?{re.escape(path)}(?![\w./-])", caller) is not None


def _is_unit(path: str) -> bool:
    return path.endswith(".service") or ".service.d/" in path


def _is_crontab(path: str) -> bool:
    """Tell whether each line of a file names the user whose job it is."""
    return path == "/etc/crontab" or path.startswith("/etc/cron.d/")


def _is_comment(text: str, at: int) -> bool:
    """Tell whether a place of a text is on a line that begins with a '#'."""
    return text[text.rfind("\n", 0, at) + 1 : at].lstrip()[:1] == "#"


def find_loaded(path: str, text: str) -> list[str]:
    """Return the files that a script has sysctl(8) read, as far as their names are plain."""
    calls = (
        call[0]
        for _number, line in (list_running(path, text) if re.search(_LOADS, text) else ())
        for call in re.finditer(_CALL, line)
    )
    return [name for call in calls for name in _list_loaded(call)]


def _list_loaded(call: str) -> list[str]:
    return [name.strip("\"'") for names in re.findall(_LOADED, call) for name in names.split()]


def list_running(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that root has carried out, with their numbers; of a unit, its commands."""
    is_unit, is_crontab = _is_unit(path), _is_crontab(path)
    is_others = is_unit and re.search(_USER, text) is not None and "Capabilities" not in text
    goes_on = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("#") or (is_crontab and _OF_OTHERS.match(line)):
            continue
        runs = goes_on or not is_unit or _EXEC.match(line) is not None
        runs = runs and not (is_others and "=+" not in line.replace(" ", ""))
        goes_on = is_unit and runs and line.endswith("\\")
        if runs:
            yield number, line


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
