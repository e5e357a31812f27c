# SPDX-License-Identifier: BSD-2-Clause
"""Read systemd units, their drop-ins, command lines, environment files and limits.

Syntax: systemd.syntax(7), systemd.unit(5), systemd.service(5), systemd.exec(5); in the source
``config_parse()``, ``unit_file_find_dropin_paths()``, ``replace_env_argv()``,
``parse_env_file_internal()`` and ``rlimit_parse()``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .rlimit import ITEMS, UNLIMITED, Rlimit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

UNIT_DIRECTORIES = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)
"""Where units lie, the strongest first."""

_LIST_KEY = re.compile(
    "(Pass|Unset)?Environment(File)?|Exec(Condition|Reload|(Start|Stop)(Pre|Post)?)"
)
_BLANK = " \t\n\r"
_MARKS = "\ufeff\xef\xbb\xbf"  # A byte order mark, read as UTF-8 and as latin-1.
_EXEC_PREFIXES = "-@:+!|"
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "s": " ", "t": "\t", "v": "\v"}
_WORD = re.compile(
    r"""(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')+""", re.DOTALL | re.ASCII
)
_PIECE = re.compile(r"""\\(x[0-9a-fA-F]{2}|[0-7]{3}|.)|["']|[^\\"']+""", re.DOTALL)
_BRACED = re.compile(r"\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_ASSIGNMENT = re.compile(
    r"""^[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*=
    ((?:[ \t]*(?:"(?:[^"\\]|\\.)*(?:"|\Z)|'[^']*(?:'|\Z)))*(?:[^\\\n]|\\.)*)""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_ASSIGNED = re.compile(r"""[ \t]*(?:"((?:[^"\\]|\\.)*)(?:"|\Z)|'([^']*)(?:'|\Z)|(.+))""", re.DOTALL)
_COUNT = re.compile(r"\+?(?:0[xX][0-9a-fA-F]+|0b[01]+|0o?[0-7]*|[1-9][0-9]*)")
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([BKMGTPE]?)")
_SIZE_UNITS = ("", *"BKMGTPE")
_TIME = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([A-Za-z\u00b5\u03bc]*)\s*")
_MICROSECONDS = {
    unit: factor
    for units, factor in (
        ("us usec \u00b5s \u03bcs", 1),
        ("ms msec", 1000),
        ("s sec second seconds", 10**6),
        ("m min minute minutes", 60 * 10**6),
        ("h hr hour hours", 3600 * 10**6),
        ("d day days", 86400 * 10**6),
        ("w week weeks", 7 * 86400 * 10**6),
        ("M month months", 2629800 * 10**6),
        ("y year years", 31557600 * 10**6),
    )
    for unit in units.split()
}


class Setting(NamedTuple):
    """One ``key=value`` with the place where it stands. ``line`` counts from 1."""

    section: str
    key: str
    value: str
    path: str
    line: int

    @property
    def place(self) -> str:
        """Return ``file:line``, the way compilers name a place."""
        return f"{self.path}:{self.line}" if self.line else self.path


class Source(NamedTuple):
    """A file that systemd reads. A link to /dev/null has an empty text."""

    path: str
    text: str


def parse_unit(text: str, path: str) -> list[Setting]:
    """Return every assignment in the order it is written; what systemd ignores is left out."""
    settings = []
    section = ""
    for number, line in _join_lines(text):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
            continue
        key, equals, value = line.partition("=")
        if equals and section:
            settings.append(
                Setting(section, key.rstrip(_BLANK), value.lstrip(_BLANK), path, number)
            )
    return settings


def _join_lines(text: str) -> list[tuple[int, str]]:
    """Join continued lines with a space; comments are dropped, inside a continuation too."""
    joined: list[tuple[int, str]] = []
    pending, start = "", 0
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text.lstrip(_MARKS)), 1):
        if line.lstrip(_BLANK)[:1] in ("#", ";"):
            continue
        start = start if pending else number
        pending += line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = pending[:-1] + " "
            continue
        joined.append((start, pending.strip(_BLANK)))
        pending = ""
    return [*joined, (start, pending.strip(_BLANK))]


def order_dropins(dropins: Iterable[Source]) -> list[Source]:
    """Return the drop-ins that count, in the order they apply: by base name over all folders.

    Of one base name only the strongest folder's file counts. The folders of the unit itself
    come before ``service.d``, then /etc before /run, /usr/local/lib and /usr/lib.
    """
    chosen: dict[str, Source] = {}
    for source in sorted(dropins, key=_strength):
        chosen.setdefault(source.path.rpartition("/")[2], source)
    return [chosen[name] for name in sorted(chosen)]


def _strength(source: Source) -> tuple[bool, int]:
    folder = source.path.rpartition("/")[0].rpartition("/")
    rank = UNIT_DIRECTORIES.index(folder[0]) if folder[0] in UNIT_DIRECTORIES else -1
    return "." not in folder[2][:-2], rank


def merge_units(main: Source | None, dropins: Iterable[Source]) -> list[Setting]:
    """Return what a unit and its drop-ins state together, in the order in which it applies.

    An empty value resets a list such as ``ExecStart``; of any other key the last valid one wins.

    :param main: The unit file of the strongest folder; ``None`` where there is none.
    :returns: An empty list for a unit that is absent or masked.
    """
    if main is None or not main.text:
        return []
    merged: list[Setting] = []
    for source in (main, *order_dropins(dropins)):
        for setting in parse_unit(source.text, source.path):
            if not setting.value and _LIST_KEY.fullmatch(setting.key):
                same = (setting.section, setting.key)
                merged = [other for other in merged if (other.section, other.key) != same]
            else:
                merged.append(setting)
    return merged


def split_words(value: str) -> list[str]:
    """Split at white space outside quotes, and take quotes and C escapes away.

    :raises ValueError: If a quote is not closed.
    """
    words = _WORD.findall(value)
    if _WORD.sub("", value).strip(_BLANK):
        raise ValueError(f"{value!r} is no list of words: a quote or an escape is not closed")
    return [_unquote(word) for word in words]


def _unquote(word: str) -> str:
    quote, result = "", ""
    for match in _PIECE.finditer(word):
        piece = match[0]
        if match[1]:
            result += _unescape(match[1])
        elif piece in ("'", '"') and quote in ("", piece):
            quote = "" if quote else piece
        else:
            result += piece
    return result


def _unescape(code: str) -> str:
    if len(code) == 3:
        return chr(int(code[1:], 16) if code[0] == "x" else int(code, 8))
    return _ESCAPES.get(code, code)


def expand_word(word: str, environment: Mapping[str, str]) -> list[str]:
    """Expand a word: ``$VAR`` alone becomes as many words as it holds, ``${VAR}`` never splits."""
    if word.startswith("$") and word[1:2] not in ("{", "$"):
        return split_words(environment.get(word[1:], ""))
    return [_BRACED.sub(lambda match: environment.get(match[1], "") if match[1] else "$", word)]


def split_exec(value: str, environment: Mapping[str, str]) -> list[str]:
    """Return the argument vector that an ``ExecStart=`` line gives; specifiers stay as they are."""
    first, *rest = split_words(value.replace("%%", "%"))
    words = [first.lstrip(_EXEC_PREFIXES), *rest]
    return [part for word in words for part in expand_word(word, environment)]


def parse_environment(setting: Setting) -> list[Setting]:
    """Return the variables of one ``Environment=`` line, each with that line's place."""
    pairs = (word.partition("=") for word in split_words(setting.value.replace("%%", "%")))
    return [setting._replace(key=key, value=value) for key, equals, value in pairs if equals]


def parse_environment_file(text: str, path: str = "") -> list[Setting]:
    """Return the assignments of an ``EnvironmentFile=``, quotes and escapes taken away."""
    text = re.sub(r"\r\n?", "\n", text.lstrip(_MARKS))
    text = re.sub(r"^[ \t]*[#;].*$", "", text, flags=re.MULTILINE)
    return [
        Setting(
            "", match[1], _read_assigned(match[2]), path, text.count("\n", 0, match.start(1)) + 1
        )
        for match in _ASSIGNMENT.finditer(text)
    ]


def _read_assigned(raw: str) -> str:
    value = ""
    for double, single, plain in _ASSIGNED.findall(raw.rstrip(" \t\n")):
        double = re.sub(r'\\(["\\`$\n])', lambda found: found[1].strip("\n"), double)
        plain = re.sub(r"\\(.)", lambda found: found[1].strip("\n"), plain, flags=re.DOTALL)
        value += double + single + plain
    return value


def parse_limit_setting(key: str, value: str) -> Rlimit:
    """Read ``LimitNOFILE=1024:4096`` and its like into the kernel's unit.

    :param key: ``LimitX`` of a unit or ``DefaultLimitX`` of system.conf.
    :raises ValueError: For whatever systemd ignores, with what it accepts.
    """
    name = key[key.startswith("Default") * len("Default") :]
    name = name[len("Limit") :].lower() if name.startswith("Limit") else ""
    if name not in ITEMS or ITEMS[name].resource is None:
        raise ValueError(f"{key!r} is no limit of systemd")
    try:
        bounds = [_parse_bound(name, part.lstrip(_BLANK)) for part in value.split(":", 1)]
    except ValueError:
        raise ValueError(
            f"{key}={value} is ignored by systemd: accepted is {_accepted(name)}, "
            f"'infinity', or two of them as soft:hard"
        ) from None
    limit = Rlimit(bounds[0], bounds[-1])
    if limit.soft > limit.hard:
        raise ValueError(f"{key}={value} is ignored by systemd: soft is above hard")
    return limit


def _accepted(name: str) -> str:
    if name in ("cpu", "rttime"):
        return "a time span such as 10min"
    if ITEMS[name].unit == "bytes":
        return "a number of bytes, with K, M, G, T, P or E"
    return "a nice level or 0 to 40" if name == "nice" else "a whole number"


def _parse_bound(name: str, text: str) -> int:
    if text == "infinity":
        return UNLIMITED
    if name in ("cpu", "rttime"):
        number = _parse_time(text, "s" if name == "cpu" else "us")
        number = -(-number // 10**6) if name == "cpu" else number
    elif ITEMS[name].unit == "bytes":
        number = _parse_size(text)
    elif name == "nice":
        number = _parse_nice(text)
    else:
        number = _parse_count(text)
    if number >= UNLIMITED:
        raise ValueError(text)
    return number


def _parse_count(text: str) -> int:
    if not _COUNT.fullmatch(text):
        raise ValueError(text)
    return int(text, 8) if re.match(r"\+?0[0-7]", text) else int(text, 0)


def _parse_size(text: str) -> int:
    """Add up numbers of ever smaller units, such as ``1G 500M``."""
    total, largest = 0, len(_SIZE_UNITS)
    for number, unit in _SIZE.findall(text):
        power = _SIZE_UNITS.index(unit)
        total += _scale(number, 1 << 10 * max(power - 1, 0))
        if power >= largest:
            raise ValueError(text)
        largest = power
    if _SIZE.sub("", text) or largest == len(_SIZE_UNITS):
        raise ValueError(text)
    return total


def _scale(number: str, factor: int) -> int:
    whole, fraction = number.partition(".")[::2]
    return int(whole) * factor + int(float(f"0.{fraction}") * factor)


def _parse_nice(text: str) -> int:
    number = 20 - int(text) if re.fullmatch("[-+][0-9]+", text) else _parse_count(text)
    if not 0 <= number <= 40:
        raise ValueError(text)
    return number


def _parse_time(text: str, unit: str) -> int:
    spans = _TIME.findall(text)
    if not spans or _TIME.sub("", text):
        raise ValueError(text)
    total = 0
    for number, name in spans:
        factor = _MICROSECONDS.get(name or unit)
        if factor is None:
            raise ValueError(text)
        total += _scale(number, factor)
    return total
