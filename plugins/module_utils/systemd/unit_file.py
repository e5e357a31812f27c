# SPDX-License-Identifier: BSD-2-Clause
"""Read systemd units, their drop-ins, command lines and environment files.

Syntax: systemd.syntax(7), systemd.unit(5), systemd.service(5), systemd.exec(5); in the source
``config_parse()``, ``unit_file_find_dropin_paths()``, ``replace_env_argv()`` and
``parse_env_file_internal()``. Texts are latin-1, so that every byte survives.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from ..core.systemd_text import expand_name, split_lines
from ..core.values import Declaration, NamedTuple

UNIT_DIRECTORIES = (
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/run/systemd/transient",
    "/run/systemd/generator.early",
    "/etc/systemd/system",
    "/etc/systemd/system.attached",
    "/run/systemd/system",
    "/run/systemd/system.attached",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
)
"""Where units lie, the strongest first (``lookup_paths_init()``)."""

_LIST_KEY = "(Pass|Unset)?Environment(File)?|Exec(Condition|Reload|(Start|Stop)(Pre|Post)?)"
_BLANK = " \t\n\r"
_MARK = "\xef\xbb\xbf"  # The byte order mark of UTF-8.
_UNSAFE = re.compile("[\x01-\x1f\x7f\"'\\\\]")
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
_ASSIGNED = r"""(?s)[ \t]*(?:"((?:[^"\\]|\\.)*)(?:"|\Z)|'([^']*)(?:'|\Z)|(.+))"""


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

    def declare(self, value: int | str) -> Declaration:
        """Return it as the statement of a value."""
        return Declaration(self.path, self.line, f"{self.key}={self.value}", value)


class Source(NamedTuple):
    """A file that systemd reads. A link to /dev/null has an empty text."""

    path: str
    text: str


class Scan(NamedTuple):
    """What systemd reads of one file, and the line at which it gives up, with the reason.

    A setting before the first header has no section.
    """

    settings: list[Setting]
    fault: Setting | None = None


def parse_unit(text: str, path: str) -> list[Setting]:
    """Return every assignment in the order it is written; what systemd ignores is left out."""
    return [setting for setting in scan_unit(text, path).settings if setting.section]


@lru_cache(maxsize=16)
def scan_unit(text: str, path: str) -> Scan:
    """Return every assignment up to a line that systemd cannot bear (``parse_line()``).

    Each place that one file concerns asks for it; nobody changes what is returned.
    """
    settings: list[Setting] = []
    names: dict[str, str] = {}
    section = ""
    for number, line in _join_lines(text):
        fault = _find_fault(line)
        if fault:
            return Scan(settings, Setting(section, line, fault, path, number))
        if line.startswith("["):
            section = line[1:-1]
            continue
        key, equals, value = line.partition("=")
        if equals and key:
            key = key.rstrip(_BLANK)
            key = names.setdefault(key, key)  # One text for the many that are alike.
            settings.append(Setting(section, key, value.lstrip(_BLANK), path, number))
    return Scan(settings)


def _find_fault(line: str) -> str:
    """Return why systemd reads no further than this line; or nothing."""
    if not _is_utf8(line):
        return "is not UTF-8"
    if line.startswith("[") and (not line.endswith("]") or _UNSAFE.search(line)):
        return "is not a section header"
    return ""


def _is_utf8(line: str) -> bool:
    if line.isascii():
        return True
    try:
        text = line.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return False
    # Code points that Unicode promises never to use (unichar_is_valid()).
    return not any(0xFDD0 <= ord(char) <= 0xFDEF or ord(char) & 0xFFFE == 0xFFFE for char in text)


def _join_lines(text: str) -> Iterator[tuple[int, str]]:
    """Join continued lines with a space; comments are dropped, inside a continuation too."""
    pending: list[str] = []
    start, marked = 0, False
    for number, line in enumerate(split_lines(text), 1):
        if not (line or pending) or line.lstrip(_BLANK)[:1] in ("#", ";"):
            continue
        if not marked and line.startswith(_MARK):  # Wherever the first one stands.
            line, marked = line[len(_MARK) :], True
        start = start if pending else number
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending.append(line[:-1] + " ")
            continue
        yield start, "".join([*pending, line]).strip(_BLANK)
        pending = []
    yield start, "".join(pending).strip(_BLANK)


def list_dropin_folders(
    names: Sequence[str], directories: Sequence[str] = UNIT_DIRECTORIES
) -> list[str]:
    """Return the folders of a unit's drop-ins, the strongest first.

    :param names: The unit's own name, then its aliases.
    """
    folders = [
        f"{base}/{name}.d"
        for unit in names
        for base in directories
        for name in list_wider_names(unit)
    ]
    kind = names[0].rpartition(".")[2]
    return [*folders, *(f"{base}/{kind}.d" for base in directories)]


def list_user_directories(home: str, uid: int) -> tuple[str, ...]:
    """Return where the units of a user's own manager lie, the strongest first.

    Source: ``lookup_paths_init()`` and ``user_dirs()``.
    """
    runtime = f"/run/user/{uid}/systemd"
    return (
        f"{home}/.config/systemd/user.control",
        f"{runtime}/user.control",
        f"{runtime}/transient",
        f"{runtime}/generator.early",
        f"{home}/.config/systemd/user",
        "/etc/xdg/systemd/user",
        "/etc/systemd/user",
        f"{runtime}/user",
        "/run/systemd/user",
        f"{runtime}/generator",
        f"{home}/.local/share/systemd/user",
        "/usr/local/share/systemd/user",
        "/usr/share/systemd/user",
        "/usr/local/lib/systemd/user",
        "/usr/lib/systemd/user",
        f"{runtime}/generator.late",
    )


def list_wider_names(unit: str) -> list[str]:
    """Return a unit's name, its template's, and those cut off after a dash, each with its own.

    ``a-b@c.service``: itself, ``a-b@.service``, ``a-.service``, ``a-@c.service``, ``a-@.service``.
    """
    stem, dot, kind = unit.rpartition(".")
    prefix, at, instance = stem.partition("@")
    names = [unit]
    if instance:
        names += list_wider_names(f"{prefix}@{dot}{kind}")
    head = prefix[:-1] if prefix.endswith("-") else prefix
    cut = head[: head.rfind("-") + 1]
    if len(cut) > 1:
        names += list_wider_names(f"{cut}{at if instance else ''}{instance}{dot}{kind}")
    return names


def list_slices(unit: str, settings: Iterable[Setting]) -> list[str]:
    """Return the slices that a service of the system lives in, the innermost first.

    The root of all is left out: what it states bounds the host (``kernel.threads-max``).

    Source: ``unit_set_default_slice()``: an instance has a slice of its template's name.
    """
    named = [one.value for one in settings if (one.section, one.key) == ("Service", "Slice")]
    prefix, at = unit.rpartition(".")[0].partition("@")[:2]
    default = f"system-{prefix.replace('-', chr(92) + 'x2d')}.slice" if at else "system.slice"
    chosen = expand_name(named[-1], unit) if named and named[-1] else default
    parts = chosen.rpartition(".")[0].split("-")
    return ["-".join(parts[:count]) + ".slice" for count in range(len(parts), 0, -1)]


def order_sources(main: Source | None, dropins: Iterable[Source]) -> list[Source]:
    """Return the files of a unit, or of a manager, in the order in which they apply."""
    return [*([main] if main else []), *order_dropins(dropins)]


def order_dropins(dropins: Iterable[Source]) -> list[Source]:
    """Return the drop-ins that count, in the order they apply: by base name over all folders.

    :param dropins: The strongest first: of one base name only the first counts.
    """
    chosen: dict[str, Source] = {}
    for source in dropins:
        chosen.setdefault(source.path.rpartition("/")[2], source)
    return [chosen[name] for name in sorted(chosen)]


def merge_units(main: Source | None, dropins: Iterable[Source]) -> list[Setting]:
    """Return what a unit and its drop-ins state together, in the order in which it applies.

    An empty value resets a list such as ``ExecStart``; of any other key the last valid one wins.

    :param main: The unit file of the strongest folder; ``None`` where there is none.
    :param dropins: The strongest first.
    :returns: An empty list for a unit that is absent or masked.
    """
    if main is None or not main.text:
        return []
    settings = [
        setting
        for source in (main, *order_dropins(dropins))
        for setting in parse_unit(source.text, source.path)
    ]
    reset = {
        (one.section, one.key): number
        for number, one in enumerate(settings)
        if not one.value and re.fullmatch(_LIST_KEY, one.key)
    }
    return [
        one for number, one in enumerate(settings) if number > reset.get((one.section, one.key), -1)
    ]


def split_words(value: str) -> list[str]:
    """Split at white space outside quotes, and take quotes and C escapes away.

    :raises ValueError: If a quote is not closed.
    """
    words = _WORD.findall(value)
    if _WORD.sub("", value).strip(_BLANK):
        raise ValueError(f"{value!r} is not a list of words: a quote or an escape is not closed")
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


def parse_environment(setting: Setting) -> list[Setting]:
    """Return the variables of one ``Environment=`` line, each with that line's place."""
    pairs = (word.partition("=") for word in split_words(setting.value.replace("%%", "%")))
    return [setting._replace(key=key, value=value) for key, equals, value in pairs if equals]


def parse_environment_file(text: str, path: str = "") -> list[Setting]:
    """Return the assignments of an ``EnvironmentFile=``, quotes and escapes taken away."""
    text = re.sub(r"\r\n?", "\n", text[len(_MARK) * text.startswith(_MARK) :])
    text = re.sub(r"^[ \t]*[#;].*$", "", text, flags=re.MULTILINE)
    found = []
    line, last = 1, 0
    for match in _ASSIGNMENT.finditer(text):
        line += text.count("\n", last, match.start())
        last = match.start()
        found.append(Setting("", match[1], _read_assigned(match[2]), path, line))
    return found


def _read_assigned(raw: str) -> str:
    value = ""
    for double, single, plain in re.findall(_ASSIGNED, raw.rstrip(" \t\n")):
        double = re.sub(r'\\(["\\`$\n])', lambda found: found[1].strip("\n"), double)
        plain = re.sub(r"\\(.)", lambda found: found[1].strip("\n"), plain, flags=re.DOTALL)
        value += double + single + plain
    return value
