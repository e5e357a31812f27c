# SPDX-License-Identifier: BSD-2-Clause
"""Read which sysctls a profile of tuned sets.

Sources: ``Loader._load_profile()``, ``Merger._merge_two()`` and plugin_sysctl.py of tuned 2.20.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from ..core.values import Declaration, NamedTuple

PROFILE_FOLDERS = ("/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned")
"""Where a profile is looked for; the first that has it counts."""

MAIN_CONF = "/etc/tuned/tuned-main.conf"

_SECTION = r"\[(?P<name>[^\]]+)\]"
_WITHOUT = "balanced"
_OFF = ("0", "false", "no", "off", "n")
_ON = ("1", "true", "yes", "on", "y")


class Tuned(NamedTuple):
    """What tuned does at boot: the line for each key, and what comes after.

    ``reapplies`` says that it then writes what the files in /etc and /run state once more;
    ``switch`` is the line that keeps it from that, ``exclude`` that which does so for some keys
    (since 2.27). ``enabled`` says that it starts at boot.
    """

    lines: Mapping[str, Declaration]
    reapplies: bool = True
    switch: Declaration | None = None
    enabled: bool = True
    exclude: Declaration | None = None

    def excludes(self, key: str) -> bool:
        """Tell whether the files have no say in a key after tuned has set it."""
        return any(fnmatchcase(key, one) for one in list_excluded(self.exclude))


def list_excluded(line: Declaration | None) -> list[str]:
    """Return the keys, or patterns of keys, that a line of tuned-main.conf excludes."""
    words = re.split(r"[\s,;]+", _value(line))
    return [word.replace("/", ".") for word in words if word]


class _Option(NamedTuple):
    section: str
    name: str
    at: Declaration


def find_includes(text: str) -> list[str]:
    """Return the profiles that a profile stands on, in their order."""
    for option in _read_options(text, ""):
        if (option.section, option.name) == ("main", "include"):
            return [name.lstrip("-") for name in _split(str(option.at.value)) if name]
    return []


def find_recommended(texts: Sequence[str]) -> list[str]:
    """Return the profiles that files of recommend.d name, of which the machine decides one.

    A section may have a number behind the name. What tuned takes where none fits is one of them.
    """
    headers = (re.match(_SECTION, line) for text in texts for line in text.split("\n"))
    names = (header["name"].partition(",")[0].strip() for header in headers if header)
    return list(dict.fromkeys((*names, _WITHOUT)))


def merge_profiles(profiles: Sequence[tuple[str, str]]) -> dict[str, Declaration]:
    """Return the line that counts for each key, by its name with dots.

    :param profiles: Path and text of each profile, those that others stand on first. The
        value is as written: it may begin with ``>`` or ``<``, or hold a variable.
    """
    units: dict[str, dict[str, Declaration]] = {}
    for path, text in profiles:
        sections: dict[str, dict[str, Declaration]] = {}
        for option in _read_options(text, path):
            sections.setdefault(option.section, {})[option.name] = option.at
        for section, options in sections.items():
            old = {} if _is(options.get("replace"), _ON) else units.get(section, {})
            dropped = set(_split(_value(options.get("drop"))))
            kept = {name: at for name, at in old.items() if name not in dropped}
            units[section] = {**kept, **options}
    found: dict[str, Declaration] = {}
    for section, options in units.items():
        kind = _value(options.get("type")) or section
        if kind == "sysctl" and not _is(options.get("enabled"), _OFF):
            conditional = any(f"{name}_regex" in options for name in ("uname", "cpuinfo"))
            found.update(_find_keys(options, conditional))
    return found


def _find_keys(options: Mapping[str, Declaration], conditional: bool) -> dict[str, Declaration]:
    """Return the options that are keys; what depends on the machine has a value not known."""
    return {
        name.replace("/", "."): at._replace(value="${}") if conditional else at
        for name, at in options.items()
        if "." in name or "/" in name
    }


def read_reapply(text: str) -> Declaration | None:
    """Return the line of tuned-main.conf that keeps it from writing the files' values again."""
    for option in _read_options(f"{text}", MAIN_CONF, section="main"):
        if option.name == "reapply_sysctl" and _is(option.at, _OFF):
            return option.at
    return None


def read_exclude(text: str) -> Declaration | None:
    """Return the line of tuned-main.conf that keeps the files' values of some keys from that."""
    for option in _read_options(text, MAIN_CONF, section="main"):
        if option.name == "reapply_sysctl_exclude" and option.at.value:
            return option.at
    return None


def _read_options(text: str, path: str, section: str = "") -> list[_Option]:
    """Return the assignments as Python's configparser reads them: the last of a name counts."""
    found: dict[tuple[str, str], _Option] = {}
    for number, raw in enumerate(text.split("\n"), 1):
        line = re.split(r"(?:^|\s)#", raw, maxsplit=1)[0].rstrip()
        header = re.match(_SECTION, line)
        if header:
            section = header["name"]
            continue
        name, equals, value = line.partition("=")
        # An indented line goes on with the value before it.
        if equals and not line.startswith((" ", "\t", ";")):
            at = Declaration(path, number, raw, value.strip().strip("\"'"))
            found[section, name.strip()] = _Option(section, name.strip(), at)
    return list(found.values())


def _split(text: str) -> list[str]:
    return [word.strip() for word in re.split("[,;]", text)]


def _value(at: Declaration | None) -> str:
    return "" if at is None else str(at.value)


def _is(at: Declaration | None, words: Sequence[str]) -> bool:
    return _value(at).lower() in words
