# SPDX-License-Identifier: BSD-2-Clause
"""Read the lines of sysctl.d(5) as systemd-sysctl does at boot and ``sysctl --system`` after it.

Sources: ``conf_files_list()``, ``parse_file()`` and ``sysctl_normalize()`` of systemd;
 ``PreloadSystem()``, ``parse_setting_line()`` and ``slashdot()`` in sysctl.c of procps,
``Preload()`` before its version 4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ..core.systemd_text import split_lines
from ..core.values import Declaration, NamedTuple
from .glob_pattern import is_pattern

SYSCTL_DIRECTORIES = (
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
)
"""Where a file of the same name hides those of the folders after it."""

SYSCTL_CONF = "/etc/sysctl.conf"
DROP_IN = "/etc/sysctl.d/90-mlhost.conf"
"""Read by procps alone, after every other file."""

FILE_MAX_OF_SYSTEMD = 2**63 - 1
NR_OPEN_OF_SYSTEMD = 1073741816
NR_OPEN_OF_KERNEL = 1048576
LARGEST_NR_OPEN = 2147483584  # sysctl_nr_open_max: the kernel takes no more.
MAX_MAP_COUNT_OF_KERNEL = 65530

_COMMENTS = ("#", ";")
_DEPRECATED = ("base_reachable_time", "retrans_time")  # procps 3 leaves them alone.
_SWAP = str.maketrans("./", "/.")
_BLANK = " \t\n\r"
_SPACE = " \t\n\v\f\r"
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]{1,39}|0[0-7]{0,39}|[1-9][0-9]{0,39})(?![^ \t\n\0])")
_PLAIN = re.compile(
    r"([A-Za-z][\w*?-]*(?:\.[\w*?-]+)*)[ \t]*=[ \t]*([!-~](?:[ -~]*[!-~])?)"
    r"|[ \t]*(?:[#;][\t -~]*)?",
    re.ASCII,
)
"""A line that systemd and procps 4 read alike, as nearly every one is."""


class SysctlLine(NamedTuple):
    """One assignment; ``name`` is its file below /proc/sys, ``glob`` if it names many.

    ``value`` is as written, and ``None`` for ``-key`` alone, which assigns nothing.
    """

    path: str
    line: int
    text: str
    name: str
    value: str | None
    glob: bool

    @property
    def key(self) -> str:
        """Return the name with dots, as sysctl(8) prints it."""
        return spell_key(self.name)

    @property
    def declaration(self) -> Declaration:
        """Return the value as a number where it is one and nothing else."""
        text = self.value or ""
        if text.isdecimal() and text.isascii() and text[0] != "0" and len(text) < 40:
            return Declaration(self.path, self.line, self.text, int(text))
        number = None if len(text.split(None, 1)) != 1 else parse_sysctl_number(text)
        return Declaration(self.path, self.line, self.text, text if number is None else number)


def order_files(files: Mapping[str, str], procps: bool = False) -> list[str]:
    """Return the files that count, by their names over all folders; the last line wins."""
    chosen: dict[str, str] = {}
    for folder in SYSCTL_DIRECTORIES:
        for path in files:
            head, name = path.rpartition("/")[::2]
            if head == folder and name.endswith(".conf") and (procps or not name.startswith(".")):
                chosen.setdefault(name, path)
    last = [SYSCTL_CONF] if procps and SYSCTL_CONF in files else []
    return [chosen[name] for name in sorted(chosen)] + last


@lru_cache(maxsize=64)
def _parse_plain_conf(text: str, path: str) -> list[SysctlLine] | None:
    """Return the lines of a file that nobody reads otherwise; ``None`` if it holds another."""
    found = []
    for number, row in enumerate(text.split("\n"), start=1):
        match = _PLAIN.fullmatch(row)
        if match is None:
            return None
        key, value = match.groups()
        if key:
            name = key.replace(".", "/")
            found.append(SysctlLine(path, number, row, name, value, is_pattern(name)))
    return found


def parse_sysctl_conf(text: str, path: str) -> list[SysctlLine]:
    """Return every line that systemd-sysctl heeds; it ignores the others."""
    plain = _parse_plain_conf(text, path)
    if plain is not None:
        return plain
    found = []
    lines, rows = split_lines(text), text.split("\n")
    rows = rows if len(rows) == len(lines) else lines
    for number, (raw, row) in enumerate(zip(lines, rows), start=1):
        line = raw.strip(_BLANK)
        key, equals, value = line.partition("=")
        excludes = not equals and key.startswith("-")
        if line.startswith(_COMMENTS) or not (equals or excludes):
            continue
        name = simplify(with_slashes(key[key.startswith("-") :].strip(_BLANK)))
        stated = None if excludes else value.strip(_BLANK)
        if name:
            found.append(SysctlLine(path, number, row, name, stated, is_pattern(name)))
    return found


def parse_procps_conf(text: str, path: str) -> list[SysctlLine]:
    """Return every line that procps 4 heeds: blanks after the ``-`` belong to the key."""
    plain = _parse_plain_conf(text, path)
    if plain is not None:
        return plain
    found = []
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.split("\0")[0].lstrip(_SPACE)
        key, equals, value = line.partition("=")
        minus = key.startswith("-")
        if len(line) < 2 or line.startswith(_COMMENTS) or not (equals or minus):
            continue
        # A second "-" goes as well (setting_new()).
        name = with_slashes(re.sub("^-{1,2}", "", key).rstrip(_SPACE))
        stated = value.strip(_SPACE) if equals else None
        found.append(SysctlLine(path, number, line.rstrip(), name, stated, is_pattern(name)))
    return found


def parse_procps3_conf(text: str, path: str) -> list[SysctlLine]:
    """Return every line that procps 3 heeds: it knows neither patterns nor exclusions.

    Leading ``=`` vanish and an empty value assigns nothing, because ``strtok(3)`` cuts the line.
    """
    found = []
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.split("\0")[0].rstrip(_BLANK).lstrip(" \t")
        key, value = line.lstrip("=").partition("=")[::2]
        value = re.split("[\n\r]", value.lstrip("\n\r"))[0]
        if line.startswith(_COMMENTS) or not value:
            continue
        name = with_slashes(key[key.startswith("-") :].rstrip(_BLANK))
        if name.rpartition("/")[2] not in _DEPRECATED:
            found.append(SysctlLine(path, number, line, name, value.lstrip(" \t"), False))
    return found


def with_slashes(key: str) -> str:
    """Return the name of a key's file: the first separator says which of the two separates."""
    dot, slash = key.find("."), key.find("/")
    return _swap(key) if dot >= 0 and (slash < 0 or dot < slash) else key


def spell_key(name: str) -> str:
    """Return the key of a file below /proc/sys."""
    return _swap(simplify(name))


def _swap(name: str) -> str:
    return name.translate(_SWAP) if "." in name and "/" in name else _swap_one(name)


def _swap_one(name: str) -> str:
    """Swap the one separator that there is: far cheaper, and nearly every name."""
    return name.replace("/", ".") if "/" in name else name.replace(".", "/")


def simplify(name: str) -> str:
    """Drop empty parts and single dots from the name of a file."""
    if "//" not in name and "/." not in name and name[:1] not in "/." and name[-1] != "/":
        return name  # Nearly every one.
    return "/".join(part for part in name.split("/") if part not in ("", "."))


def parse_sysctl_number(text: str) -> int | None:
    """Read a value as the kernel's parser does: it stops at the first blank, and a leading zero
    makes a number octal (``proc_get_long()`` in kernel/sysctl.c)."""
    match = _NUMBER.match(text)
    if match is None:
        return None
    base = 16 if match[0][:2] in ("0x", "0X") else 8 if match[0][0] == "0" else 10
    return int(match[0], base)


def find_number(declaration: Declaration) -> int | None:
    """Return what the kernel makes of a value for a key that holds one number."""
    value = declaration.value
    return value if isinstance(value, int) else parse_sysctl_number(value)


def find_boot_default(key: str, running: int | None) -> int | None:
    """Return the value a key has at boot if no file states it; ``None`` where not known.

    systemd raises fs.file-max to its highest value before any file is read (since v240), and
    fs.nr_open on builds that allow it; the running value shows whether it did.
    """
    if key == "fs.file-max":
        return running if running == FILE_MAX_OF_SYSTEMD else None
    if key == "fs.nr_open":
        return NR_OPEN_OF_SYSTEMD if running == NR_OPEN_OF_SYSTEMD else NR_OPEN_OF_KERNEL
    return MAX_MAP_COUNT_OF_KERNEL if key == "vm.max_map_count" else None
