# SPDX-License-Identifier: GPL-3.0-or-later
"""Generated limits files, users and groups: each set follows from a seed and its number alone.

What is drawn from are the forms of limits.conf(5) and what people mistake for them. Runs on
Python 3.9 with nothing but the standard library.
"""

from __future__ import annotations

import random

LIMITS_CONF = "/etc/security/limits.conf"
LIMITS_D = "/etc/security/limits.d"

Files = dict[str, str]
"""Text by path; a path ending in ``HANGING`` is a link that leads nowhere."""
HANGING = " -> nowhere"

PASSWD = """\
root:x:0:0:root:/root:/bin/sh
toor:x:0:2001::/nonexistent:/bin/sh
alice:x:1001:2001::/nonexistent:/bin/sh
bob:x:1002:2002::/nonexistent:/bin/sh
Dora:x:1003:2003::/nonexistent:/bin/sh
carol:x:70000:5555::/nonexistent:/bin/sh
zo\xc3\xab:x:1004:2001::/nonexistent:/bin/sh
far:x:4294967290:4294967290::/nonexistent:/bin/sh
"""
GROUP = """\
root:x:0:
wheel:x:10:root,alice
ml:x:2001:bob,carol
hpc:x:2002:alice
Staff:x:2003:zo\xc3\xab,far
"""
USERS = ("root", "toor", "alice", "bob", "Dora", "carol", "zo\xeb", "far")
LOGGED_IN = ("alice", "alice", "bob", "root")
"""Whose sessions the system knows of, which maxlogins counts."""

_NAMES = (
    *("*", "*", "*", "*", "alice", "alice", "bob", "carol", "root", "root", "toor", "far"),
    *("zo\xc3\xab", "Dora", "dora", "Alice", "1001", "al*", "-", "#", "ALICE", "nobody"),
)
_GROUPS = (
    *("@ml", "@ml", "@hpc", "@wheel", "@root", "@Staff", "@staff", "@2001", "@", "@*", "@@ml"),
    *("@:2001", "@:5555", "@:0", "@0:", "@0:99", "@2001:2002", "@2002:", "@:1001", "@1001:", "@:"),
    *("@4294967290:", "@:4294967290", "@2003:2001", "@:2003", "@10:10", "@:10"),
    *("%", "%ml", "%hpc", "%:2001", "%:1001", "%1000:", "%0:5", "%:0", "%root", "%:", "%:5555"),
)
_RANGES = (
    *("1000:1002", "1000:", ":1001", ":0", "0:", "0:0", "0:500", ":", "::", "1:2:3", "1003:70000"),
    *("+1000:", "-1:", ":-1", "4294968297:", ":4294968298", "18446744073709551616:", "1002:1001"),
    *("00:0", "x:1", "1:x", "0x3e9:", "1e3:2000", "1001: ", ":4294967290", "1000:4294967295"),
)
DOMAINS = _NAMES * 2 + _GROUPS + _RANGES
TYPES = ("soft", "soft", "hard", "hard", "-", "-", "HARD", "Soft", "both", "-x", "", "--")
NUMBERS = (
    *("0", "1", "7", "64", "100", "256", "500", "650", "699", "700", "701", "64k", "65;", "+80"),
    *("0x10000", "0X40", "1e6", "1,000", "007", "0100", "64.0", "5.9", "64KiB", "0b11", "1_000"),
)
WORDS = (
    *("-", "-1", "-2", "-5", "unlimited", "INFINITY", "Unlimited", "infinity", "unlimitedx"),
    *("inf", "none", "max", "nan", "abc", '"64"', "'64'", "\\", "\xb2", "--5", "+", "+-1", "64 65"),
    *("64 more words", "unlimited 1", "", "unlimited\t", "$((64))", "-0", "+unlimited"),
)
HUGE = (
    *("2147483647", "2147483648", "4294967295", "4294967296", "9223372036854775807"),
    *("9223372036854775808", "18446744073709551614", "18446744073709551615"),
    *("-18446744073709551615", "18446744073709551616", "-18446744073709551616", "9" * 40),
    *("-" + "9" * 40, "-600000000000000000000", "18446744073709551000", "1048576", "1048577"),
)
VALUES = NUMBERS * 2 + WORDS + HUGE
SIZES = (
    *("4194304", "8388608", "16777216", "unlimited", "-", "-1", "4194304k", "x", "8388608.5"),
    *("18014398509481982", "18014398509481983", "18014398509481984", "-18014398509481984"),
)
MINUTES = (
    *("5", "60", "unlimited", "-1", "1h", "307445734561825859", "307445734561825860", "x"),
    *("307445734561825861", "-307445734561825861", "0x5", "5.5", "0", "99999999999999999999"),
)
LOGINS = ("0", "1", "2", "3", "4", "5", "1000", "-1", "-", "unlimited", "-3", "2x", "x", "+2")
ROOMY = ("as", "data", "stack", "rss")
"""Of these a small value leaves nothing to run the test with; see :func:`make_files`."""

_ITEM_VALUES = {
    "cpu": MINUTES,
    "maxlogins": LOGINS,
    "maxsyslogins": LOGINS,
    "nonewprivs": ("0", "1", "1", "2", "yes", "-", "1 1"),
    "priority": ("0", "5", "-5", "19", "20", "-20", "-21", "x", "-", "unlimited", "7k", "9" * 30),
    "nice": ("0", "5", "-5", "19", "20", "-20", "-21", "x", "-", "-1", "unlimited", "9" * 30),
    "chroot": (
        "/run/jail",
        "/run/jail",
        "/RUN/Jail",
        "/nowhere",
        "run/jail",
        "/",
        "/run/jail/",
        "/etc/passwd",
        "-",
    ),
}
_COUNTED = ("nproc", "memlock", "core", "fsize", "locks", "sigpending", "msgqueue", "rtprio")
ITEMS = (
    *("nofile",) * 10,
    *_COUNTED * 2,
    *("nice", "cpu", *ROOMY) * 2,
    *("NoFile", "MEMLOCK", "rttime", "nofiles", "no_file", "maxlogins", "maxsyslogins"),
    *("priority", "nonewprivs", "chroot"),
)
_LINES = (
    *("", "#", "# * - nofile 75", "   ", "\t", "* - nofile", "alice soft", "alice", "\\"),
    *("alice -", "bob -", "* -", "@ml -", "@:2002 -", "%:1001 -", "%1002: -", "% -", "%ml -"),
    *(":1001 -", "@wheel -", "@0: -", "0:99 -", "root -x", "alice - # gone", "Dora -", "far -"),
    *("@Staff -", "4294967290: -", "alice HARD", "alice -soft", "alice - nofile", "root -"),
    *("\xef\xbb\xbf* - nofile 75", "* - nofile 75#glued", "\0", "alice\0bob - nofile 75"),
    *("* - nofile 76\0", "\0* - nofile 74", "%ml - maxlogins 1000", "alice both maxlogins 1000"),
    *(" \v\f * \r - nofile 79", "*\x0b-\x0cnofile 78", "* - nofile \\", "77", "x" * 1100),
    *("# " + "y" * 1020, "z" * 1022 + " - nofile 73", "* - nofile " + "0" * 1000 + "72"),
    *("\x85* - nofile 71", "*\xa0-\xa0nofile 71", "* - nofile 71\x85", "* - n\xc0 7"),
)
_GAPS = (" ", " ", "\t", "  \t", "\t\t")
_INDENTS = ("", "", "", "", " ", "\t ")
_ENDS = ("", "", "", "", " ", "\t", " # said", "#said", " extra")
_FILE_NAMES = ("10-a", "9-z", "B", "a", "_", "a.b", "\xe4", "-", "z z", "a.conf", "~", "00")
_LINK_NAMES = ("x.conf", "x.conf", "x.CONF")
_ODD_NAMES = (".hidden.conf", "a.CONF", "b.conf.bak", "noend", ".conf", "x.conf~", "c.conf ")


def make_files(seed: int, number: int, small: bool) -> tuple[Files, list[str]]:
    """Return one set of files by path, as latin-1 text, and the users to open sessions of.

    :param small: Whether values may be drawn that leave a process hardly any memory; not where
        the limits of a process cannot be raised again.
    """
    rng = random.Random(f"{seed}/{number}")
    drop_ins = [f"{name}.conf" for name in rng.sample(_FILE_NAMES, rng.choice((0, 0, 1, 1, 3)))]
    drop_ins += rng.sample(_ODD_NAMES, rng.choice((0, 0, 0, 1)))
    paths = [LIMITS_CONF, *(f"{LIMITS_D}/{name}" for name in drop_ins)]
    users = [rng.choice(("root", *USERS)), rng.choice(USERS[2:])]
    files = {path: _make_text(rng, small) for path in paths}
    chance = rng.random()
    if chance < 0.02:
        del files[LIMITS_CONF]
    elif chance < 0.04:
        files[f"{LIMITS_D}/{rng.choice(_FILE_NAMES)}-{rng.choice(_LINK_NAMES)}{HANGING}"] = ""
    return files, users


def _make_text(rng: random.Random, small: bool) -> str:
    end = rng.choice(("\n", "\n", "\n", "\n", "\r\n"))
    text = end.join(_make_line(rng, small) for _ in range(rng.randint(1, 6)))
    return text + rng.choice((end, end, ""))


def _make_line(rng: random.Random, small: bool) -> str:
    chance = rng.random()
    if chance < 0.12:
        return rng.choice(_LINES)
    line = _make_entry(rng, small)
    if chance < 0.16:  # What follows byte 1023 is a line of its own to older builds.
        filling = rng.choice(("#", "#", " ", "* - nofile 70 #"))
        line = filling.ljust(1023 - rng.choice((0, 0, 1, 20)), rng.choice("z ")) + line
    elif chance < 0.24:
        line = _damage(rng, line)
    return line


def _make_entry(rng: random.Random, small: bool) -> str:
    item = rng.choice(ITEMS)
    values = _ITEM_VALUES.get(item, VALUES)
    if item in ROOMY and not (small and rng.random() < 0.5):
        values = SIZES
    words = (rng.choice(DOMAINS), rng.choice(TYPES), item, rng.choice(values))
    return rng.choice(_INDENTS) + rng.choice(_GAPS).join(words) + rng.choice(_ENDS)


def _damage(rng: random.Random, line: str) -> str:
    """Put any byte in place of one, or between two, or take one away."""
    place = rng.randrange(len(line))
    byte = rng.choice(("", chr(rng.randrange(256)), rng.choice(" \t\0\r\v#:@%-*0")))
    return line[:place] + byte + line[place + rng.randrange(2) :]
