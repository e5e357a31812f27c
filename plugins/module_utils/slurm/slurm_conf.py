# SPDX-License-Identifier: BSD-2-Clause
"""Read slurm.conf(5) as Slurm does, and what it says of the limits of jobs.

Sources: ``_get_next_line()``, ``_keyvalue_regex()`` and ``_parse_include_directive()`` in
parse_config.c, ``parse_rlimits()`` in slurm_rlimits_info.c, ``s_p_handle_boolean()`` in
parse_value.c. Texts are latin-1, so that every byte survives.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from ..core.values import Declaration, NamedTuple
from .policy import PROPAGATED

SLURM_CONF = "/etc/slurm/slurm.conf"

PROPAGATE, EXCEPT = "PropagateResourceLimits", "PropagateResourceLimitsExcept"
USE_PAM = "UsePAM"

_PAIR = re.compile(
    r'\s*([A-Za-z0-9_.]+)\s*[-*+/]?=\s*(?:"([^"]*)"|(\S+))(?=\s|\Z)', re.ASCII | re.DOTALL
)
_INCLUDE = re.compile(r"include\s+(\S+)", re.IGNORECASE | re.ASCII)
_WHOLE_LINES = frozenset(("nodename", "partitionname", "downnodes", "frontendname", "nodeset"))
"""Keys after which the rest of the line is theirs. After every other nothing may follow."""

_TRUE, _FALSE = ("yes", "up", "true", "1"), ("no", "down", "false", "0")
_NAMES = {name.upper(): name for name in PROPAGATED}
_DEEPEST = 16
_MOST_LINES = 500_000
"""Lines that are read, those of a file each time that it is included."""


class SlurmConf(NamedTuple):
    """What Slurm reads: every key in small letters with all its lines, the last of which counts.

    ``faults`` are lines on which every program of Slurm gives up, with the reason as their value.
    ``missing`` are files that are included and were not given.
    """

    stated: Mapping[str, Sequence[Declaration]]
    faults: tuple[Declaration, ...] = ()
    missing: tuple[str, ...] = ()

    def find(self, key: str) -> Declaration | None:
        """Return the line that counts for a key."""
        lines = self.stated.get(key.lower(), ())
        return lines[-1] if lines else None


class Propagation(NamedTuple):
    """The limits whose soft value a job takes over from the login, and the line that says so."""

    items: frozenset[str]
    line: Declaration | None = None


def parse_slurm_conf(files: Mapping[str, str], main: str) -> SlurmConf:
    """Read a file and all that it includes.

    :param files: Texts by path; a file that is included and not there is among ``missing``.
    """
    stated: dict[str, list[Declaration]] = {}
    faults: list[Declaration] = []
    missing: list[str] = []
    waiting = [(0, main, _join_lines(files.get(main, "")))]
    left = _MOST_LINES
    while waiting:
        depth, path, lines = waiting[-1]
        number, line, whole = next(lines, (0, "", ""))
        if not number:
            waiting.pop()
            continue
        included = _INCLUDE.match(line)
        at = Declaration(path, number, whole, "")
        left -= 1
        if not left:
            faults.append(at._replace(value="too much is included to be read"))
            break
        if included:
            inner = _locate(included[1], path, stated)
            if inner not in files:
                missing.append(inner)
            elif depth < _DEEPEST:
                waiting.append((depth + 1, inner, _join_lines(files[inner])))
            rest = line[included.end() :]
        else:
            rest = _read_pair(line, at, stated)
        if rest.strip():
            faults.append(at._replace(value=f"{rest.strip()!r} is more than a key and its value"))
    return SlurmConf(stated, tuple(faults), tuple(missing))


def _read_pair(line: str, at: Declaration, stated: dict[str, list[Declaration]]) -> str:
    """Add what a line states; return what is left over, which must be nothing."""
    pair = _PAIR.match(line)
    if pair is None:
        return line
    key = pair[1].lower()
    value = pair[3] if pair[2] is None else pair[2]
    stated.setdefault(key, []).append(at._replace(value=value))
    return "" if key in _WHOLE_LINES else line[pair.end() :]


def _locate(name: str, path: str, stated: Mapping[str, Sequence[Declaration]]) -> str:
    """Return the path of an included file: beside the file that names it, where it is relative."""
    cluster = stated.get("clustername")
    if cluster:
        name = name.replace("%c", str(cluster[-1].value).lower())
    return name if name.startswith("/") else f"{path.rpartition('/')[0]}/{name}"


def _join_lines(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield each line that says something, with the number of its first row and all its rows.

    A comment ends a row; a backslash before the end, blanks or a comment joins the next one.
    """
    first, joined = 1, ""
    rows = text.split("\n")
    for number, row in enumerate(rows, start=1):
        row = _strip_comment(row)
        bare = row.rstrip(" \t\r\f\v")
        slashes = len(bare) - len(bare.rstrip("\\"))
        if slashes % 2:
            joined += bare[:-1]
            if number < len(rows):
                continue
        else:
            joined += row
        line = re.sub(r"\\(.?)", r"\1", joined)
        if line.strip():
            yield first, line, "\n".join(rows[first - 1 : number])
        first, joined = number + 1, ""


def _strip_comment(row: str) -> str:
    """Return a row up to a ``#`` that no backslash stands before, itself not escaped."""
    escaped = False
    for index, char in enumerate(row):
        if char == "#" and not escaped:
            return row[:index]
        escaped = char == "\\" and not escaped
    return row


def read_propagation(conf: SlurmConf) -> Propagation:
    """Return which limits jobs take over from the login that submits them: without a word all.

    :raises ValueError: If Slurm does not start with what is written there.
    """
    excepted, stated = conf.find(EXCEPT), conf.find(PROPAGATE)
    line = excepted or stated
    if line is None:
        return Propagation(frozenset(PROPAGATED))
    named = _parse_names(line)
    return Propagation(frozenset(PROPAGATED) - named if excepted else named, line)


def _parse_names(line: Declaration) -> frozenset[str]:
    """Read a list of limits. Capitals are asked for, and only ALL and NONE stand alone."""
    text = str(line.value)
    if text in ("ALL", "NONE"):
        return frozenset(PROPAGATED if text == "ALL" else ())
    words = [word for word in re.split("[, \t\n]+", text) if word]
    names = [re.sub("^(RLIMIT_)+", "", word) for word in words]
    unknown = [name for name in names if name not in _NAMES]
    if unknown:
        raise ValueError(f"{line.place}: {unknown[0]!r} is not a limit that Slurm knows")
    return frozenset(_NAMES[name] for name in names)


def read_shown(stated: str, excepted: str) -> Propagation | None:
    """Return what ``scontrol show config`` says; nothing where it does not, or not clearly."""
    lines = [
        Declaration("scontrol show config", 0, f"{key}={value}", value)
        for key, value in ((PROPAGATE, stated), (EXCEPT, excepted))
        if value not in ("", "(null)")
    ]
    if not lines:
        return None
    named = lines[-1].text.partition("=")[0].lower()
    try:
        return read_propagation(SlurmConf({named: lines}))
    except ValueError:
        return None


def read_use_pam(conf: SlurmConf) -> Declaration | None:
    """Return the line that puts jobs through PAM, or nothing where none does.

    :raises ValueError: If Slurm does not start with what is written there.
    """
    lines = conf.stated.get(USE_PAM.lower(), ())
    for line in lines:  # One that is beaten counts for nothing, and is refused all the same.
        if str(line.value).lower() not in (*_TRUE, *_FALSE):
            raise ValueError(f"{line.place}: {line.value!r} is neither yes nor no")
    return lines[-1] if lines and str(lines[-1].value).lower() in _TRUE else None


def write_propagation(items: Collection[str], conf: SlurmConf) -> str:
    """Return the line that lets jobs take over these limits and no others.

    ``Except`` counts more than the other key, so it is used wherever somebody uses it.
    """
    kept_back = [name.upper() for name in sorted(PROPAGATED) if name not in items]
    if not items and conf.find(EXCEPT) is None:
        return f"{PROPAGATE}=NONE"
    everything = len(kept_back) == len(PROPAGATED)
    return f"{EXCEPT}={'ALL' if everything else ','.join(kept_back) or 'NONE'}"
