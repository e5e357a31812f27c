# SPDX-License-Identifier: BSD-2-Clause
"""Find what sets a sysctl after the files of sysctl.d were read: units, cron, udev, rc.local.

A line that names a key and neither plainly reads it nor plainly sets it may do anything to it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from ..core.values import Declaration, NamedTuple
from .boot_calls import CALL, LOADS, find_calls, find_loaded, is_crowded, list_lines
from .boot_changes import find_change
from .boot_credentials import Credentials
from .boot_loads import FILES, GIVEN, OTHERS, find_made, judge_loads
from .boot_names import is_joined, may_name
from .boot_shell import put_braces
from .boot_specifiers import find_written
from .boot_units import is_doubtful, is_early, is_settled, list_unread
from .glob_pattern import expand_braces, matches_path
from .sysctl_conf import parse_sysctl_conf, parse_sysctl_number

_TMPFILES = "tmpfiles.d"
_MAKES, _LEAVES = ("f", "F"), ("x", "X", "r", "R")
_WRITES = ("w", *_MAKES)
"""Types of lines of tmpfiles.d(5): but for those that make a file, the first of a path counts."""
_LONGEST = 4096  # Characters; to read a line word by word takes the square of its length.
_ONCE = (
    *("/etc/cloud/", "/var/lib/cloud/seed/", "/var/lib/cloud/scripts/vendor/"),
    *("/var/lib/cloud/scripts/per-instance/", "/var/lib/cloud/scripts/per-once/"),
)
"""What cloud-init may carry out at the first boot alone."""
_INTO = r"(?:>|\btee\b[^;&|]*?)\s*[\"']?"
_INTO_VARIABLE = rf"{_INTO}/proc/sys/([\w./-]*)[$*?\[{{`]"
_INTO_FOLDER = rf"{_INTO}\$\{{?\w+\}}?((?:/[\w.-]+)+)"
_INTO_NAMED = rf"{_INTO}\$"
_GLOB = r"/proc/sys/[\w./*?-]*[*?][\w./*?-]*"
_SETS_VARIABLE = (
    r"\s(?:-\S*w|--write|-[a-eg-oq-z]*[pf]|--load[= ])\s*[\"']?[$`]"
    r"|\s[\"']?\$(?:\w+|\{\w+\})=|\bsystemd-sysctl\s(?:[^;&|]*\s)?[\"']?\$"
    r"|\bsysctl\s+(?:-[eqi]+\s+){0,9}[\"']?\$"
    r"|\s(?:-[a-eg-oq-z]*[pf]|--load[= ])\s*[\"']?(?:[A-Za-z_.]|/\S*[*?\[])"
)
_NEAR = r"/proc(?!/(?!sys)[\w.*])"  # What lies there beside it sets none.
_LOAD = rf"{LOADS}|\b(?:systemd-sysctl|procps)\b"
_NO_SHELL = r"#!.*\b(?:python|perl|ruby)"
_IS_OPEN = r"[$*?`]|\bxargs\b|\{[^\s{}]*,"
_OPEN = r"[$*?`{]|\bxargs\b|\bsysctl\b.*\s-\w*[pf]\b"
_PATH = r"/proc/sys/[\w./-]+"
_READERS = r"cat|head|tail|ls|stat|test|read|grep|awk|cut|wc|sed\s+-n"
_READS = (
    rf"(?:<\s*|\b(?:{_READERS})\b[^|;&>]*?|\[\[?\s[^|;&>]*?)[\"']?{_PATH}"
    rf"|\bcp\s+(?:-\w+\s+)*{_PATH}(?=\s)"
    r"|\bsysctl\b[^=#;&|>]*(?=$|[#;&|>])"
)


class ScriptWrite(NamedTuple):
    """A line that runs at boot or later and sets a key.

    The value of ``at`` is what it sets: a number as text, or nothing where that is not plain.
    ``before`` and ``after`` are the parts of the line around it, of the command that does so.
    ``loads`` says that it has procps read the files again instead, ``depends`` that it does so
    where a condition holds. ``blocks`` says instead that no file may be applied on its account.
    """

    at: Declaration
    before: str = ""
    after: str = ""
    loads: bool = False
    depends: bool = False
    blocks: bool = False


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
    taken: dict[str, str] = {}
    for path, text in texts.items():
        if path in loaded:
            yield from _find_settings(key, path, text)
        elif path.rpartition("/")[0].endswith(_TMPFILES):
            yield from _find_in_tmpfiles(key, path, text, taken)
        elif is_crowded(text):
            yield from _find_first(key, path, text)
        else:
            yield from _find_in_script(key, path, text, texts)


def find_credential_writes(key: str, credentials: Credentials) -> Iterator[ScriptWrite]:
    """Yield the lines of credentials that set a key, and the credentials that may."""
    for path, text in credentials.sysctls.items():
        yield from _find_settings(key, path, text)
        for line in parse_sysctl_conf(text, path):
            if line.key != key and fnmatchcase(key, line.key):
                yield ScriptWrite(Declaration(path, line.line, line.text, ""))
    for path, text in credentials.tmpfiles.items():
        yield from _find_in_tmpfiles(key, path, text, {})
    yield from (ScriptWrite(one._replace(value="")) for one in credentials.unclear)


def _find_in_script(
    key: str, path: str, text: str, texts: Mapping[str, str]
) -> Iterator[ScriptWrite]:
    names_it = (last := key.rpartition(".")[2]) in text
    unread = list_unread(text)
    is_open = re.search(_IS_OPEN, text) or re.search(_LOAD, text) or is_early(text)
    is_open = is_open or is_joined(text)
    if not (names_it or unread or is_open):
        return
    change = find_change(text) if is_early(text) else 0
    if change:
        yield ScriptWrite(Declaration(path, change, text.split("\n")[change - 1], ""))
    tails = _find_tails(key, text) if names_it else ()
    made = find_calls(path, text, find_made(text)) if names_it else ()
    for number, put, bare, runs, depends in list_lines(path, text, is_settled(text)):
        line = find_written(text, number, put)
        is_about = _concerns(bare, last) or "$" in bare
        if number not in unread and number not in made and not is_about:
            continue
        writes = list(_find_writes(bare, key, tails)) if names_it else []
        is_sure = runs and not path.startswith(_ONCE) and not is_doubtful(text, number)
        for found in writes:
            plain = parse_sysctl_number(found.value) is not None and is_sure
            plain = plain and f"{found.before}{found.value}{found.after}" in line
            at = Declaration(path, number, line, found.value if plain else "")
            yield ScriptWrite(at, found.before, found.after, depends=depends)
        is_open = number in unread or number in made or _may_set(bare, key, text)
        is_open = is_open or may_name(bare, key, text)
        loads = judge_loads(bare, text, texts)
        if not writes and (is_open or (loads == GIVEN and names_it) or loads == OTHERS):
            yield ScriptWrite(Declaration(path, number, line, ""))
        elif loads == FILES:
            yield ScriptWrite(Declaration(path, number, line, ""), loads=True)


def _find_first(key: str, path: str, text: str) -> Iterator[ScriptWrite]:
    """Yield the first line of a text, of which none is judged, that may set a key."""
    for number, line in enumerate(text.split("\n"), 1):
        if _concerns(line, key.rpartition(".")[2]) and not line.lstrip().startswith("#"):
            yield ScriptWrite(Declaration(path, number, line, ""))
            return


def _concerns(line: str, last: str) -> bool:
    """Tell whether a line has a word without which it sets no key of that last name."""
    return (
        last in line or "sysctl" in line or "/proc" in line or "SYSCTL" in line or "procps" in line
    )


def _find_in_tmpfiles(
    key: str, path: str, text: str, taken: dict[str, str]
) -> Iterator[ScriptWrite]:
    """Yield the lines of tmpfiles.d(5) that write to a key's file, of which they match the path.

    :param taken: What the first line for each path says, of those of this file and before it:
        another that says otherwise is ignored, save one that appends.
    """
    file = f"/proc/sys/{key.replace('.', '/')}"
    for number, line in enumerate(text.split("\n"), 1):
        kind, name, value = _split_tmpfiles(line)
        is_write = kind[:1] in _WRITES and value != ""
        if not (is_write or kind[:1] in _LEAVES) or not _covers(name, file):
            continue
        is_first = kind[0] in _MAKES or taken.setdefault(name, value) == value
        if is_write and (is_first or "+" in kind):
            is_plain = kind[0] == "w" and parse_sysctl_number(value) is not None
            at = Declaration(path, number, line, value if is_plain else "")
            yield ScriptWrite(at, line[: line.rindex(value)] if is_plain else "")


def _split_tmpfiles(line: str) -> tuple[str, str, str]:
    """Return the type of a line of tmpfiles.d(5), its path and its argument."""
    words = line.split(None, 6)
    kind, name = words[:2] if len(words) > 1 else ("", "")
    value = words[6].strip() if len(words) > 6 else ""
    return kind, name.strip("\"'"), value.strip("\"'")


def _covers(name: str, file: str) -> bool:
    return name == file or any(matches_path(one, file) for one in expand_braces(name))


def _find_tails(key: str, text: str) -> list[str]:
    """Return the names that a key's file has in the folders to which a script goes."""
    parts = f"proc/sys/{key.replace('.', '/')}".split("/")
    goes = r"(?m)(?:\b(?:cd|pushd)[ \t]+(?:-\w+[ \t]+)?|WorkingDirectory=)[\"']?"
    tails = [
        "/".join(parts[at:])
        for at in range(1, len(parts))
        if re.search(rf"{goes}/{re.escape('/'.join(parts[:at]))}/?(?=[\s\"';&|)]|$)", text)
    ]
    if re.match(_NO_SHELL, text) and "/proc/sys" in text:
        return [*tails, parts[-1]]  # It may join the parts of a path.
    return [*tails, parts[-1]] if tails and re.search(rf"{goes}\w", text) else tails


def _may_set(line: str, key: str, text: str) -> bool:
    """Tell whether a line sets what only the variables of its script tell, which may be a key."""
    if not re.search(_OPEN, line):
        return False
    if len(line) > _LONGEST:
        return "sysctl" in line or "/proc/sys/" in line
    whole = put_braces(line)
    if whole != line and any(_find_writes(whole, key, ())):
        return True
    into = re.findall(_INTO_VARIABLE, line) if "/proc/sys/" in line else []
    calls = re.findall(CALL, line) if "sysctl" in line else []
    path = f"/proc/sys/{key.replace('.', '/')}"
    below = re.findall(_INTO_FOLDER, line) if "$" in line else []
    globs = re.findall(_GLOB, line) if "for" in line and re.search(_INTO_NAMED, text) else []
    return (
        any(path.startswith(f"/proc/sys/{start}") for start in into)
        or any(matches_path(one, path) for one in globs)
        or any(path.endswith(end) for end in below)
        or (bool(calls) and "xargs" in line)
        or any(re.search(_SETS_VARIABLE, call) for call in calls)
    )


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


def _find_writes(line: str, key: str, tails: Collection[str]) -> Iterator[_Written]:
    """Yield what a line sets: plain values, or one that is not known, as in a very long line."""
    patterns, mention = _compile(key)
    is_left = _is_named(line, mention, tails)
    if is_left and len(line) <= _LONGEST:
        rest = yield from _find_plain(line, patterns)
        is_left = _is_named(re.sub(_READS, "", rest), mention, tails)
    if is_left:
        yield _Written("")


def _is_named(line: str, mention: re.Pattern[str], tails: Collection[str]) -> bool:
    ends = (rf"(?<![\w./-])(?:\./)?{re.escape(tail)}(?![\w/-]|\.\w)" for tail in tails)
    return mention.search(line) is not None or any(re.search(end, line) for end in ends)


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
    for pattern in others if "/proc/" in line or "SYSCTL{" in line else ():
        for plain in pattern.finditer(line):
            yield _split(plain[0], plain, plain.start())
        rest = pattern.sub("", rest)
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
    is_near = "/sys" in text or "sys/" in text
    return (is_near and re.search(_NEAR, text) is not None) or "sysctl" in text or "SYSCTL{" in text


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


def _describe_mention(key: str) -> str:
    """Return a pattern of whatever names a key."""
    return rf"(?<![\w.-])(?:/proc/sys/)?{_describe_name(key)}(?![\w/-]|\.\w)"


def _describe_name(key: str) -> str:
    return "[./]".join(re.escape(part) for part in key.split("."))
