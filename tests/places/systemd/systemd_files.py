# SPDX-License-Identifier: GPL-3.0-or-later
"""Make files of units and of their manager that try every rule of how limits are read."""

from __future__ import annotations

import random
from typing import NamedTuple

Files = dict[str, str]
"""Texts by path, in latin-1; ``-> target`` is a link."""

BASES = ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system")
MANAGER_BASES = ("/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd")
START = "[Unit]\nDefaultDependencies=no\n[Service]\nType=exec\nExecStart=/bin/sleep 600\n"

COUNTS = (
    *("1024", "4096:8192", "0x1000", "0X1f:0x20", "0700", "0b1100:0o777", "+500", "infinity"),
    *("500:infinity", "5000:", "300:400:", ":500", "1:2:3", "64K", "1e5", "-1", "unlimited", ""),
    *("1024 4096", "1024 # x", "200:100", "-0", "1024 :4096", "1024: 4096", "50%", "09", "5.0"),
    *("18446744073709551615", "18446744073709551614", "18446744073709551616", "INFINITY"),
    *("30\\24", "300\\:400", "3\\\\0", '"1024"', "0x", "0b", "0b12", "0o8", "2000000", "65536"),
)  # fmt: skip
SIZES = (
    *("4194304", "8M:16M", "1.5G", "1 G", "1G 500M", "8E", "16E", "16383P", "16384P", "15.99E"),
    *("1.5.5G", "+5G", "1M 1G", "64m", "64MB", "64MiB", "10%", "64.M", "4.25M", "1G500M", "1G5"),
    *("infinity", "8M:infinity", "0x400000", "-1", "", "unlimited", "1G:1M", "99999999999999999999"),
    *("1G 2", "1G :2G", "1G: 2G", "3T:4P", "64M:", "0.1G", "1,5G", "5000000B", "1 2", "1G+5M"),
)  # fmt: skip
TIMES = (
    *("100", "1min 30s", "150000ms", "2h:1d", "infinity", "infinity ", "5.5min", ".5h", "500."),
    *("1h30", "10 parsecs", "-1", "1.2.3s", "1y", "600000y", "100.0000009s", "5minx", "1us"),
    *("900000000\xc2\xb5s", "1 h 2 ms", "", "x", "100:50", "1m:1M", "3weeks", "2hr", "+100"),
    *("9223372036854775807", "9223372036854775808", "100 .5h", "100 5", "1d2h", "50%", "5. h"),
)  # fmt: skip
NICE = (
    *("5", "+5", "-5", "-20", "-21", "+19", "+20", "0", "40", "41", "+0x5", "+0", "-0", "x", ""),
    *("infinity", "+5:-5", "-5:+5", "1:40", "- 5", "++5", "20:10"),
)  # fmt: skip
VALUES = {
    **dict.fromkeys(("NOFILE", "NPROC", "LOCKS", "SIGPENDING", "RTPRIO"), COUNTS),
    **dict.fromkeys(("MEMLOCK", "CORE", "AS", "STACK", "FSIZE", "DATA", "RSS", "MSGQUEUE"), SIZES),
    "CPU": TIMES,
    "RTTIME": TIMES,
    "NICE": NICE,
}
TASKS = (
    *("100", "4096", "infinity", "", "33%", "33.3%", "100%", "101%", "0", "0%", "5\xe2\x80\xb0"),
    *("64K", "-1", "unlimited", "0x40", "1e3", "50 %", "18446744073709551615", "7 # x", "010"),
)
"""Shares with two places after the point, and of ten thousand, are newer than Debian 11."""

ITEMS = (*("NOFILE",) * 6, *("MEMLOCK",) * 4, *("NPROC", "CORE", "CPU") * 2, *VALUES)
NOISE = (
    *("", "# LimitNOFILE=9", ";LimitNOFILE=9", "  # x", "LimitNOFILE", "=9", "LimitNOFILE 9"),
    *("TasksMax=9", "X-Limit=1", "LimitNOFILE:9", "\xef\xbb\xbfLimitNOFILE=77", "limits=1"),
    *("LimitNOFILE=7\\\n# between\n7", "Limit\\\nNOFILE=9", "LimitNOFILE=66\\", "LimitNOFILE=6\0"),
    *("LimitNOFILE=55\r", "\rLimitNOFILE=54", "LimitCORE=1M\\\\", "\tLimitMEMLOCK\t=\t5M\t"),
)  # fmt: skip
SECTIONS = (
    "[Unit]",
    "[Install]",
    "[Servce]",
    "[X-A]",
    "[]",
    "[service]",
    "[Service] ",
    "[Manager]",
)
FAULTS = ("[Service", "LimitNOFILE=5\xff", "[", "[Service]x", "# \xff", "LimitCORE=1\xef\xbf\xbf")


class Case(NamedTuple):
    """A unit to ask for, and every file that is about it."""

    unit: str
    files: Files


def make_case(rng: random.Random, number: int) -> Case:
    """Return a unit of a name that no other has, with its files in all folders."""
    stem, at = f"u{number}-mid-leaf", rng.choice(("", "", "", "@x-y"))
    unit = f"{stem}{at}.service"
    own = rng.choice((unit, f"{stem}@.service")) if at else unit
    files = {f"{rng.choice(BASES)}/{own}": START + make_text(rng, "Service", "Limit")}
    if rng.random() < 0.3:
        files[f"{rng.choice(BASES)}/{own}"] = START + make_text(rng, "Service", "Limit")
    if rng.random() < 0.05:
        files[f"{rng.choice(BASES)}/{own}"] = rng.choice(("-> /dev/null", ""))
    folders = [unit, f"u{number}-.service", f"u{number}-mid-.service"]
    folders += [f"{stem}@.service", f"u{number}-@x-y.service"] if at else []
    if not at and rng.random() < 0.2:
        alias = f"alias{number}.service"
        files[f"/etc/systemd/system/{alias}"] = f"-> {rng.choice(('', '/usr/lib/x/'))}{own}"
        folders.append(alias)
        unit = rng.choice((unit, alias))
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        files.update(_make_dropin(rng, [f"{base}/{name}.d" for base in BASES for name in folders]))
    return Case(unit, files)


def make_shared(rng: random.Random) -> Files:
    """Return the files that concern every unit: those of the manager, and of all services."""
    files = {}
    if rng.random() < 0.7:
        files["/etc/systemd/system.conf"] = make_text(rng, "Manager", "DefaultLimit", True)
    elif rng.random() < 0.3:
        other = f"{rng.choice(MANAGER_BASES[1:3])}/system.conf"
        files[other] = make_text(rng, "Manager", "DefaultLimit", True)
    for _ in range(rng.choice((0, 1, 2, 3))):
        folders = [f"{base}/system.conf.d" for base in MANAGER_BASES]
        files.update(_make_dropin(rng, folders, "Manager", "DefaultLimit"))
    for _ in range(rng.choice((0, 0, 1))):
        files.update(_make_dropin(rng, [f"{base}/service.d" for base in BASES]))
    return files


def _make_dropin(
    rng: random.Random, folders: list[str], section: str = "Service", prefix: str = "Limit"
) -> Files:
    name = rng.choice(("50-a.conf", "50-a.conf", "60-b.conf", "9-c.conf", "B.conf", "_.conf"))
    name = rng.choice((".h.conf", "a.CONF", "a.conf~")) if rng.random() < 0.04 else name
    text = make_text(rng, section, prefix, True)
    if rng.random() < 0.08:
        text = rng.choice(("-> /dev/null", "", "-> /no/such"))
    return {f"{rng.choice(folders)}/{name}": text}


def make_text(rng: random.Random, section: str, prefix: str, header: bool = False) -> str:
    end = rng.choice(("\n", "\n", "\n", "\r\n"))
    lines = [f"[{section}]"] if header and rng.random() < 0.93 else []
    lines += [_make_line(rng, section, prefix) for _ in range(rng.randint(0, 4))]
    return end.join(lines) + rng.choice((end, end, ""))


def _make_line(rng: random.Random, section: str, prefix: str) -> str:
    kind = rng.random()
    if kind < 0.06:
        return rng.choice(NOISE).replace("LimitNOFILE", f"{prefix}NOFILE")
    if kind < 0.10:
        return rng.choice((*SECTIONS, f"[{section}]"))
    if kind < 0.11:
        return rng.choice(FAULTS)
    if kind < 0.2:
        return f"{prefix[: -len('Limit')]}TasksMax={rng.choice(TASKS)}"
    item = rng.choice(ITEMS)
    key = prefix + item
    if kind > 0.96:
        key = rng.choice((key.lower(), prefix + item.title(), "Default" + key, f"Limit{item}"))
    gap = rng.choice(("", "", "", " "))
    return f"{gap}{key}{gap}={gap}{rng.choice(VALUES[item])}{gap}"


def find_smaller(files: Files) -> list[Files]:
    """Return files with one of them or one line less."""
    smaller = [{key: text for key, text in files.items() if key != path} for path in files]
    for path, text in files.items():
        lines = text.split("\n")
        for index in range(len(lines)) if len(lines) > 1 else ():
            smaller.append({**files, path: "\n".join(lines[:index] + lines[index + 1 :])})
    return smaller
