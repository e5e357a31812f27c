# SPDX-License-Identifier: GPL-3.0-or-later
"""Generated limits files under which a login can still live, for the users of a booted host."""

from __future__ import annotations

import random

from tests.places.sessions.limits_files import LIMITS_CONF, LIMITS_D, Files

_DOMAINS = (
    *("*", "*", "alice", "alice", "root", "root", "@mlusers", "@alice", "@root", "@:1000"),
    *("1000:", ":1000", ":0", "0:", "0:0", "999:1001", "@1000:1000", "@:0", "@0:", "% ", "%"),
    *("bob", "Alice", "1000", "1001:", "@nobody", "%mlusers", "1:2:3", "@", "alic*"),
)
_TYPES = ("soft", "soft", "hard", "hard", "-", "-", "HARD", "both")
_COUNTS = ("1000", "4096", "65536", "4096k", "+5000", "004097", "unlimited", "-1", "-", "infinity")
_WRONG = ("x", "", '"4096"', "-5", "99999999999999999999", "18446744073709551615")
_GIBIBYTES = ("1048576", "2097152", "8388608.5", "unlimited", "-1", "18014398509481983")
_VALUES = {
    "nofile": (*_COUNTS, *_WRONG, "2000000", "1048576", "1048577", "524288", "500"),
    "as": _GIBIBYTES,
    "data": _GIBIBYTES,
    "fsize": _GIBIBYTES,
    "stack": ("8192", "16384", "unlimited", "65536k"),
    "cpu": ("60", "1440", "unlimited", "x", "1h", "600"),
    "nice": ("0", "-5", "19", "-20", "x", "-1"),
    "priority": ("0", "5", "-5", "x"),
    "rtprio": ("0", "1", "50", "unlimited", "x"),
}
_ITEMS = (
    *("nofile",) * 6,
    *("memlock", "core", "nproc", "locks", "sigpending", "msgqueue", "rss") * 2,
    *("as", "data", "fsize", "stack", "cpu", "nice", "priority", "rtprio", "rttime", "nofiles"),
)
_LINES = (
    *("", "# note", "alice -", "root -", "@mlusers -", "* -", ":1000 -", "0: -", "* - nofile"),
    *("@:0 -", "alice - maxlogins 0", "* - maxlogins 1000", "\xef\xbb\xbf* - nofile 75"),
    *("* - nofile 4099#glued", "#".ljust(1023) + "* - nofile 4098", "root - maxlogins 0"),
)
_NAMES = ("10-a", "9-z", "B", "a", "_", "99-limits")


def make_login_files(seed: int, number: int) -> Files:
    """Return one set of files by path, as latin-1 text."""
    rng = random.Random(f"logins {seed}/{number}")
    names = rng.sample(_NAMES, rng.choice((0, 1, 1, 2)))
    paths = [LIMITS_CONF, *(f"{LIMITS_D}/{name}.conf" for name in names)]
    return {path: _make_text(rng, _DOMAINS) for path in paths}


def make_files_of_many(seed: int, number: int, users: dict[str, int]) -> Files:
    """Return files that hold a few rules for each of many users, mixed.

    :param users: Their numbers, which are those of their groups as well.
    """
    rng = random.Random(f"many {seed}/{number}")
    lines = []
    for name, uid in users.items():
        domains = (name, name, f":{uid}", f"{uid}:{uid}", f"@{name}", f"@:{uid}", f"@{uid}:{uid}")
        lines += [_make_entry(rng, domains) for _ in range(rng.randint(1, 5))]
        lines += [f"{name} -"] if rng.random() < 0.05 else []
    lines += [_make_entry(rng, ("*", "1000:", "@mlusers")) for _ in range(4)]
    rng.shuffle(lines)
    middle = rng.randrange(len(lines))
    return {
        LIMITS_CONF: "\n".join(lines[:middle]) + "\n",
        f"{LIMITS_D}/many.conf": "\n".join(lines[middle:]) + "\n",
    }


def _make_text(rng: random.Random, domains: tuple[str, ...]) -> str:
    end = rng.choice(("\n", "\n", "\n", "\r\n"))
    lines = [
        rng.choice(_LINES) if rng.random() < 0.12 else _make_entry(rng, domains)
        for _ in range(rng.randint(1, 7))
    ]
    return end.join(lines) + rng.choice((end, ""))


def _make_entry(rng: random.Random, domains: tuple[str, ...]) -> str:
    item = rng.choice(_ITEMS)
    value = rng.choice(_VALUES.get(item, _COUNTS + _WRONG))
    words = (rng.choice(domains), rng.choice(_TYPES), item, value)
    return rng.choice((" ", "\t", "  ")).join(words) + rng.choice(("", "", " ", " # said"))
