# SPDX-License-Identifier: BSD-2-Clause
"""Find which lines of units, crontabs and scripts are carried out by root, and what they call."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache, partial

from .boot_shell import Line, find_comment, find_dependent, is_command, list_bare, put_folders
from .boot_units import RUNS, is_doubtful, is_settled, list_commands
from .glob_pattern import matches_path

CALL = r"(?:\bsystemd-)?\bsysctl\b[^#;&|]*"
LOADS = r"\s(?:-[a-eg-oq-z]*[pf]|--load|--system)\b"

# What is seldom asked for is compiled when it is.
_FILE_NAMES = r"((?:[\"']?/[\w./-]+[\"']?\s*)+)"
_LOADED = (
    rf"(?<=\s)(?:-[a-eg-oq-z]*[pf]\s*|--load[= ]){_FILE_NAMES}",
    rf"systemd-sysctl\s+(?:-\S+\s+){{0,9}}{_FILE_NAMES}",
)
_FEW, _MOST_NAMES = 20, 200  # Of folders; of files that a text runs from there.
_FIREWALL = "/etc/default/ufw"  # ufw(8) loads the file that it names there.
_LOADED_BY_FIREWALL = r"(?m)^\s*IPT_SYSCTL=[\"']?(/[\w./-]+)"
# The slash stands first, for which Python looks faster than for what may not stand before it.
_CALLED = r"/(?<![\w/.+@-]/)(?!(?:dev|proc|run|sys)/)[\w.+@-]+/[\w./+@-]+"
_SPACES = ('"/', "'/", "\\ ", "\\x20")
_SPACED = (
    r"\"(/[^\"\n$`*]* [^\"\n$`*]*)\"|'(/[^'\n$`*]* [^'\n$`*]*)'"
    r"|(?<![\w/.-])(/[\w./+@-]+(?:\\(?:[ ]|x20)[\w./+@-]+)+)"
)
_INTERPRETER = (
    r"(?:\b(?:(?:ba|da|k|mk|z|a)?sh|python[\d.]*|perl|ruby|source)|(?<!\S)\.)"
    r"[ \t]+(?:-\S+[ \t]+){0,9}"
)
_GIVEN = rf"{_INTERPRETER}[\"']?(?:\./)?([\w./+@-]+)"
_ENTERED = r"(?:\bcd\s+|\bWorkingDirectory\s*=\s*)[\"']?(/[\w./-]+)"
_RELATIVE = rf"(?:(?<![\w/.-])\./|{_INTERPRETER}[\"']?)(\w[\w./-]*)"
_SEARCH_PATH = r"(?m)(?:^|[\s;&\"'=(])PATH\+?=(\S+)"
_OF_PACKAGES = frozenset(("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/games"))
_LONGEST = 4096  # Characters of a line in which patterns are looked for.
_GLOB = r"(.*?)(?<![\w./+@*-])(/[\w./+@-]*/[\w.+@*-]*\*[\w.+@*-]*)"
_MOVES = (
    r"\s*(?:sudo\s+)?(?:\S*/)?(?:cp|mv|ln|install|tar|rsync|dos2unix|chattr|shellcheck)\s[^;&|]*$"
)
_ASKS = (
    r"\bsystemctl\s+(?:-\S+\s+)*(?:(?:re)?start|enable\s+--now)\s+([^;&|>]*)"
    r"|\bservice\s+([\w.@-]+)\s+(?:re)?start\b"
    r"|\bSYSTEMD_WANTS\}\s*\+?=\s*\"([^\"]*)"
)
_IS_OPEN = re.compile("[$%]")
_MAY_ASK = ("systemctl", "service", "SYSTEMD_WANTS")
_OF_RULE = r"\b(?:RUN|PROGRAM|IMPORT)(?:\{program\})?\s*[+=]?=\s*\"([\w.+@-][\w./+@-]*)"
_PROGRAMS_OF_RULES = "/usr/lib/udev"
_SEARCHED = (
    r"\bfind\s+(?:-[HLP]\s+)?[\"']?(/[\w./+@-]*[\w+@-])/?[\"']?\s[^\n|]{0,200}?"
    r"(?:-exec(?:dir)?\s+|\|\s*xargs\s+(?:-\S+\s+)*(?:\d+\s+)?)"
    r"(?:sudo\s+|env\s+|nice\s+)?(?:(?:\S*/)?(?:ba|da)?sh\b|\{\})"
)
_MOST_SEARCHED = 2**20
_MOST_COMMANDS = 10_000
_NAME_OF_SETTING = rf"^\s*(?:{RUNS}|Environment)\s*="
_PARTS = r"\brun-parts\b[^\n;&|]{0,99}[ \t](/[\w./-]+)"
_WORD = r"(?<![\w./-])\w[\w.-]*"
# A job's time, and then a user; what is set at the top of a crontab has no such field.
_OF_OTHERS = r"\s*(?:@\w+|[\d*]\S*(?:\s+\S+){4})\s+(?!root\s)[\w.-]+\s"
_END = r"(?:exit(?:\s+\d+)?|exec\s+(?![-\d<>&])[^;&|\\]*)\s*;?\s*(?:#.*)?"
_OPENS = r"\b(?:if|case|do)\b|[{(]"
_CLOSES = r"(?:^|;)\s*(?:(?:fi|esac|done)\b|\})|\)"


def is_crowded(text: str) -> bool:
    """Tell whether a text has more commands about sysctls than anybody writes: none is judged."""
    return text.count("sysctl") + text.count("/proc/sys") > _MOST_COMMANDS


def list_running(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that root has carried out, with their numbers; of a unit, its commands."""
    if is_unit(path):
        yield from list_commands(path, text)
        return
    is_of_others = partial(re.match, _OF_OTHERS) if _is_crontab(path) else None
    last = 0 if is_of_others else _find_end(text)
    for number, line in enumerate(text.split("\n"), 1):
        if number == last:
            return
        if not line.lstrip().startswith("#") and not (is_of_others and is_of_others(line)):
            yield number, line


@lru_cache(maxsize=64)
def list_lines(path: str, text: str, _is_settled: bool) -> list[Line]:
    """Return the lines that root has carried out, with what counts of them."""
    if is_unit(path):
        return list(list_bare(list_running(path, text)))
    own, put = text.split("\n"), put_folders(path, text).split("\n")
    running = [(number, put[number - 1]) for number, _line in list_running(path, text)]
    found = list(list_bare(running))
    rows = [one.text if one.bare else "" for one in found]  # Not what is text over lines.
    dependent = find_dependent(rows) if _is_script(path, text) else ()
    return [
        one._replace(text=own[one.number - 1], depends=at in dependent)
        for at, one in enumerate(found)
    ]


def _is_script(path: str, text: str) -> bool:
    return text.startswith("#!") or path.startswith("/etc/profile") or path.endswith("rc")


def _find_end(text: str) -> int:
    """Return the line after which a script carries nothing out, or 0.

    It is an ``exit`` or ``exec`` at the start of a line that no condition, loop or function
    surrounds.
    """
    if "\nexit" not in text and "\nexec" not in text:
        return 0
    depth, goes_on = 0, False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("#"):
            continue
        if depth == 0 and not goes_on and re.fullmatch(_END, line):
            return number + line.startswith("exec")
        goes_on = goes_on if not line.strip() else re.search(r"(?:&&|\||\\)\s*$", line) is not None
        depth += len(re.findall(_OPENS, line)) - len(re.findall(_CLOSES, line))
        if depth < 0 or "<<" in line or line.count("'") % 2 or line.count('"') % 2:
            break  # It is not understood: what is quoted over lines holds words of its own.
    return 0


def is_unit(path: str) -> bool:
    """Tell whether a file is a unit with commands, or a drop-in of some."""
    return re.search(r"\.(?:service|socket)$|[./](?:service|socket)\.d/", path) is not None


def _is_crontab(path: str) -> bool:
    """Tell whether each line of a file names the user whose job it is."""
    return path == "/etc/crontab" or path.startswith("/etc/cron.d/")


def find_called(path: str, text: str) -> list[str]:
    """Return the files that a file has run at boot."""
    relative = list(_find_relative(text)) if re.search(_ENTERED, text) else []
    if is_unit(path) or _is_crontab(path):
        running = list(list_running(path, text)) if re.search(_CALLED, text) else []
        running += (
            list_commands(path, text, "Environment")
            if is_unit(path) and "Environment" in text
            else []
        )
        return [*(name for _at, line in running for _i, name in _list_paths(line)), *relative]
    # Most files are long and name none: those that do are not taken apart line by line.
    called = (name for at, name in _list_paths(text) if not _is_comment(text, at))
    return [*called, *relative]


def join_commands(path: str, text: str) -> str:
    """Return what of a file may run something: of a unit, the values of some of its settings."""
    if not is_unit(path):
        return text
    lines = list_commands(path, text, rf"{RUNS}|Environment|WorkingDirectory")
    return "\n".join(re.sub(_NAME_OF_SETTING, "", line) for _number, line in lines)


def list_paths(text: str) -> list[str]:
    """Return what may be the path of a file that a text runs, in comments too."""
    relative = _find_relative(text) if re.search(_ENTERED, text) else ()
    return [*(name for _at, name in _list_paths(text)), *relative]


def _list_paths(text: str) -> Iterator[tuple[int, str]]:
    """Yield what may be the path of a file, and where it starts: blanks are quoted, or escaped."""
    yield from ((found.start(), found[0]) for found in re.finditer(_CALLED, text))
    for found in re.finditer(_SPACED, text) if any(one in text for one in _SPACES) else ():
        name = found[1] or found[2] or found[3].replace("\\x20", " ").replace("\\ ", " ")
        yield found.start(), name


def find_calls(path: str, text: str, names: Collection[str]) -> list[int]:
    """Return the lines that run one of these files as root, or may."""
    if not names:
        return []
    last = re.compile("|".join(re.escape(name.rpartition("/")[2]) for name in names))
    return [
        number
        for number, line in list_running(path, text)
        if ("\\" in line or last.search(line) or "*" in line or "find" in line)
        and _may_run(line[: find_comment(line)], names)
    ]


def _may_run(line: str, names: Collection[str]) -> bool:
    searched, globs = find_searched(line), find_globs(line)
    return any(
        _runs(line, name)
        or name in globs
        or any(f"{name}/".startswith(f"{one}/") for one in searched)
        for name in names
    )


def judge_call(path: str, text: str, name: str) -> bool | None:
    """Tell whether a script surely runs a file that it names; ``None`` where it may."""
    last, folder = name.rpartition("/")[2], name.rpartition("/")[0]
    found = list_lines(path, text, is_settled(text))
    lines = [(one.number, one.bare) for one in found]
    sure = [one for one in found if not (one.depends or is_doubtful(text, one.number))]
    if any(_runs(one.bare, name) for one in sure):
        return True
    if any(find_parts(bare) & {folder} for _number, bare in lines):
        return None if is_doubtful(text) else True
    escaped = last.replace(" ", "\\ ")
    named = [bare for _number, bare in lines if last in bare or escaped in bare]
    if any(not re.match(_MOVES, bare) for bare in named) or (is_unit(path) and not named):
        return None
    if any(name.startswith(f"{one}/") for _at, bare in lines for one in find_searched(bare)):
        return None
    some = (bare for _number, bare in lines if "*" in bare and len(bare) <= _LONGEST)
    globs = (one for bare in some for one in re.finditer(_GLOB, bare))
    return None if any(matches_path(one[2], name) for one in globs if _gives(one[1])) else False


def _gives(before: str) -> bool:
    """Tell whether what is left of a pattern runs, or goes through, the files that match it."""
    return re.search(r"\bfor\s+\w+\s+in\s", before) is not None or is_command(before)


def find_searched(text: str) -> list[str]:
    """Return the folders in which find(1) looks for files that it has run."""
    return (
        [str(one) for one in re.findall(_SEARCHED, text)]
        if "find" in text and len(text) <= _MOST_SEARCHED
        else []
    )


def find_globs(text: str) -> set[str]:
    """Return the patterns of files that a script goes through, to run them."""
    lines = (line for line in text.split("\n") if "*" in line) if "*" in text else ()
    found = (re.match(_GLOB, line) for line in lines if "/" in line and len(line) <= _LONGEST)
    return {one[2] for one in found if one and _gives(one[1])}


def may_ask(text: str) -> bool:
    """Tell whether a script may have a unit started whose name is plain."""
    found = re.findall(_ASKS, text) if any(one in text for one in _MAY_ASK) else ()
    names = [name for groups in found for one in groups for name in one.split()]
    return any(not (_IS_OPEN.search(_name_asked(name)) or name.isdigit()) for name in names)


def find_asked(path: str, text: str) -> set[str]:
    """Return the units that a script has started."""
    lines = list_running(path, text) if any(one in text for one in _MAY_ASK) else ()
    found = (re.findall(_ASKS, line[: find_comment(line)]) for _number, line in lines)
    names = {name for one in found for names in one for name in " ".join(names).split()}
    return {_name_asked(name) for name in names if name[:1] != "-"}


def _name_asked(name: str) -> str:
    """Return a unit's whole name; the template where only a boot tells of which instance."""
    whole = name if "." in name else f"{name}.service"
    stem, at, instance = whole.partition("@")
    is_open = at and _IS_OPEN.search(instance)
    return f"{stem}@.{whole.rpartition('.')[2]}" if is_open else whole


def find_rule_programs(text: str) -> Iterator[str]:
    """Yield the programs of rules of udev(7) that are named without a folder."""
    names = re.findall(_OF_RULE, text) if '="' in text else ()
    yield from (f"{_PROGRAMS_OF_RULES}/{name}" for name in names)


def _runs(line: str, name: str) -> bool:
    """Tell whether a line runs a file: one that lies where it goes to is named without a folder."""
    escaped = line.replace("\\x20", " ").replace("\\ ", " ") if "\\" in line else line
    return any(is_command(escaped[:start]) for start in _find_starts(escaped, name))


def _find_starts(line: str, name: str) -> Iterator[int]:
    """Yield where a line names a file, by its whole path or from another folder."""
    folder, _slash, last = name.rpartition("/")
    at = line.find(last)
    while at >= 0:
        end, start = at + len(last), at
        while start and _is_of_name(line[start - 1]):
            start -= 1
        whole = at - len(folder) - 1
        after = line[end : end + 1]
        if after in "/+@" or not _is_of_name(after):
            if start == at or line[at - 1] == "/":
                yield start
            if whole >= 0 and line.startswith(f"{folder}/", whole) and " " in folder:
                yield whole
        at = line.find(last, at + 1)


def _is_of_name(char: str) -> bool:
    return char.isalnum() or char in "_./+@-"


def _find_relative(text: str) -> Iterator[str]:
    """Yield the files that a text runs from where it goes before."""
    names = list(dict.fromkeys(re.findall(_RELATIVE, text)))[:_MOST_NAMES]
    for folder in list(dict.fromkeys(re.findall(_ENTERED, text)))[:_FEW]:
        yield from (f"{folder.rstrip('/')}/{name}" for name in names)


def find_words(path: str, text: str) -> set[str]:
    """Return the words of a script that may be the name of a command without its folder."""
    lines = (line for _number, line in list_running(path, text))
    return {word for line in lines for word in re.findall(_WORD, line.replace("=", " "))}


def is_interpreted(path: str, caller: str) -> bool:
    """Tell whether a text gives a file to an interpreter, or sources it: it is a script anyhow."""
    name = path.rpartition("/")[2]
    return name in caller and not _find_given(caller).isdisjoint((path, name))


@lru_cache(maxsize=16)
def _find_given(text: str) -> frozenset[str]:
    return frozenset(re.findall(_GIVEN, text))


def find_parts(text: str) -> set[str]:
    """Return the folders of which run-parts(8) runs what lies there."""
    return {one.rstrip("/") for one in re.findall(_PARTS, text)}


def find_search_folders(text: str) -> set[str]:
    """Return the folders in which a script has commands looked for, besides those of packages."""
    values = re.findall(_SEARCH_PATH, text)
    found = {one for value in values for one in re.split("[:;}\"'()&|]", value)}
    return {one.rstrip("/") for one in found if one.startswith("/")} - _OF_PACKAGES


def _is_comment(text: str, at: int) -> bool:
    """Tell whether a place of a text is in a comment."""
    start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    line = text[start : len(text) if end < 0 else end]
    return line.lstrip()[:1] == "#" or find_comment(line) <= at - start


def find_loaded(path: str, text: str) -> list[str]:
    """Return the files that a script has sysctl(8) read, as far as their names are plain."""
    return _find_loaded(path, text, is_settled(text))


@lru_cache(maxsize=64)
def _find_loaded(path: str, text: str, _is_settled: bool) -> list[str]:
    if path == _FIREWALL:
        return re.findall(_LOADED_BY_FIREWALL, text)
    if "sysctl" not in text or not (re.search(LOADS, text) or "systemd-sysctl" in text):
        return []
    text = text if is_unit(path) else put_folders(path, text)
    lines = (line for _number, line in list_running(path, text))
    return [name for line in lines for call in re.findall(CALL, line) for name in list_loaded(call)]


def list_loaded(call: str) -> list[str]:
    """Return the files that a call of sysctl(8), or of systemd-sysctl(8), reads."""
    found = (names for pattern in _LOADED for names in re.findall(pattern, call))
    return [name.strip("\"'") for names in found for name in names.split()]
