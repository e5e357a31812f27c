# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate texts of slurm.conf: what people write, and what trips a reader."""

from __future__ import annotations

import random

NAMES = ("CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS")
FOLDER = "/etc/slurm"


def make_conf(rng: random.Random) -> dict[str, str]:
    """Return what stands below the base of slurm.conf, and files that it includes."""
    files = {f"{FOLDER}/slurm.conf": ""}
    lines = [_make_line(rng) for _ in range(rng.randint(0, 5))]
    for number in range(rng.randint(0, 2)):
        name = f"part{number}.conf"
        # An empty file is one of its own kind: Slurm does not even open it.
        files[f"{FOLDER}/{name}"] = "".join(_make_line(rng) for _ in range(rng.randint(0, 3)))
        word = rng.choice(("Include", "include", "INCLUDE"))
        where = rng.choice((name, f"{FOLDER}/{name}"))
        at = rng.randint(0, len(lines))
        lines.insert(
            at, f"{word}{rng.choice((' ', '  ', chr(9)))}{where}{rng.choice(('', ' ', ' # x'))}\n"
        )
    text = "".join(lines)
    if rng.random() < 0.1:
        text = text.rstrip("\n") if not text.rstrip("\n").lower().endswith(".conf") else text
    files[f"{FOLDER}/slurm.conf"] = text
    return files


def _make_line(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.12:
        return rng.choice(
            ("\n", "# a comment\n", "   \n", "#PropagateResourceLimits=NONE\n", "\t# x\n")
        )
    if kind < 0.15:
        return rng.choice(("nonsense\n", "UsePAM=1 UsePAM=0\n", "= 1\n", "NoSuchKey\n"))
    if kind < 0.6:
        key = rng.choice(("PropagateResourceLimits", "PropagateResourceLimitsExcept"))
        value = _make_names(rng)
    elif kind < 0.75:
        key, value = "UsePAM", rng.choice(("1", "0", "yes", "No", "TRUE", "up", "down", "on", "2"))
    else:
        key = rng.choice(("MailDomain", "TaskProlog", "TaskEpilog"))
        value = rng.choice(("/a/b", '"/a b"', "x\\#y", 'a"b', "/x=y", '"a#b', "a\\\\b", '""'))
    key = rng.choice((key, key, key.lower(), key.upper()))
    equals = rng.choice(("=", "=", " = ", "= ", " ="))
    line = f"{rng.choice(('', '', ' ', chr(9)))}{key}{equals}{value}"
    line += rng.choice(("", "", "", " ", " # why", "#why", "\r"))
    if rng.random() < 0.15:
        at = rng.randint(1, len(line))
        line = f"{line[:at]}\\{rng.choice(('', ' ', ' # c'))}\n{line[at:]}"
    return line + "\n"


def _make_names(rng: random.Random) -> str:
    if rng.random() < 0.4:
        return rng.choice(("ALL", "NONE", "ALL", "NONE", "all", "None", '"ALL"', '""'))
    names = rng.sample(NAMES, rng.randint(1, 4))
    names = [rng.choice((name, name, f"RLIMIT_{name}")) for name in names]
    if rng.random() < 0.1:
        names.append(rng.choice(("FOO", "memlock", "Core")))
    text = rng.choice((",", ",", ",,")).join(names)
    if rng.random() < 0.25:
        text = '"' + rng.choice((", ", " ", ",\t")).join(names) + '"'
    return text
