# SPDX-License-Identifier: GPL-3.0-or-later
"""Make trees of sysctl.d files that try every rule, and write them."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

FOLDERS = ("etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d")
CONF = "etc/sysctl.conf"

Tree = dict[str, str]
"""Texts by path, in latin-1; ``-> target`` is a link and ``/`` a folder."""

INTERFACE = "lo.100"  # A dot in a name tells the two separators apart.
NUMBERS = ("1", "7", "12", "0x0b", "012", "33", "77 # kept", "5", "9 9", "21\t;", "200")
REFUSED = ("", "x", "7k", "-1", "1e3", "99999999999999999999", "08", "1,2", "0x", "+3", "3.5")
BASES = {
    "net/ipv4/ip_default_ttl": "64",
    "net/ipv4/tcp_retries1": "3",
    "net/ipv4/tcp_retries2": "15",
    "net/ipv4/tcp_fin_timeout": "60",
    "net/ipv4/tcp_syn_retries": "6",
    "net/ipv4/igmp_max_memberships": "20",
    "net/ipv4/ip_local_reserved_ports": "6",
    "net/unix/max_dgram_qlen": "10",
    "net/ipv4/conf/all/rp_filter": "0",
    f"net/ipv4/conf/{INTERFACE}/rp_filter": "0",
    f"net/ipv4/conf/{INTERFACE}/tag": "4",
}
"""The keys of a network namespace that the trees state, by their files below /proc/sys."""

FEW = tuple(BASES)[:3]  # Most lines are about few keys, so that they meet.
PATTERNS = (
    *("net/ipv4/tcp_retries*", "net/ipv4/tcp_retries?", "net/ipv4/tcp_retries[12]"),
    *("net/ipv4/tcp_retries[!1]", "net/ipv4/tcp_retries[^2]", "net/ipv4/tcp_r[a-f]tries[[:digit:]]"),
    *("net/ipv4/ip_default_*", "net/*/ip_default_ttl", "net/*", "*", "net/ipv4/*_ttl"),
    *("net/ipv4/conf/*/rp_filter", "net/ipv4/conf/*/tag", "*/ipv4/*/*/rp_filter"),
    *("net/ipv4/{ip_default_tt?,tcp_retries*}", "net/ipv4/tcp_[", "net/ipv4/tcp_retries[2-1]"),
    *("net/ipv4/ip_default_tt\\l*", "net/ipv4/ip_def[au]ult_ttl", "net/ipv4/tcp_retries[]12]"),
)  # fmt: skip
UNKNOWN = ("net/ipv4/no_such_key", "net/ipv4", "no.such/key", "tag", "net/ipv4/tcp_retries1/x")
NOISE = (
    *("", "#", ";", "# net.ipv4.tcp_retries1 = 9", "; net.ipv4.tcp_retries1 = 9", "   ", "\t"),
    *("net.ipv4.tcp_retries1", "net.ipv4.tcp_retries1 9", "=", "= 9", "-", "-=", "- = 9", "=="),
    *("=net.ipv4.tcp_retries1=9", "net.ipv4.tcp_retries1==9", "\xef\xbb\xbfnet.ipv4.tcp_retries1=9"),
    *("net.ipv4.tcp_retries1 = 9\\", "\x0bnet.ipv4.tcp_retries1=9", "\xa0net.ipv4.tcp_retries2=9"),
    *("net.ipv4.tcp_retries1=9\x0b", "\0net.ipv4.tcp_retries1 = 8", "\rnet.ipv4.tcp_retries2 = 8"),
)  # fmt: skip


def make_tree(rng: random.Random) -> Tree:
    """Return files in all folders; few names, so that some hide others."""
    names = rng.sample(["10-a", "9-b", "B", "a", "z", "50-default", "99-sysctl"], 3)
    tree = {}
    for _ in range(rng.choice((1, 2, 3, 4, 6))):
        path = f"{rng.choice(FOLDERS)}/{rng.choice(names)}.conf"
        tree[path] = _make_content(rng)
    if rng.random() < 0.15:
        odd = rng.choice([".hidden.conf", ".conf", "a.CONF", "a.conf.bak", "aconf", "a.conf~"])
        tree[f"{rng.choice(FOLDERS)}/{odd}"] = _make_text(rng)
    if rng.random() < 0.4:
        tree[CONF] = _make_content(rng)
    return tree


def _make_content(rng: random.Random) -> str:
    if rng.random() < 0.12:
        return rng.choice(["-> /dev/null", "-> /no/such", "-> ../sysctl.conf", "", "/"])
    return _make_text(rng)


def _make_text(rng: random.Random) -> str:
    end = rng.choice(("\n", "\n", "\n", "\n", "\r\n"))
    text = end.join(_make_line(rng) for _ in range(rng.randint(1, 6)))
    return text + rng.choice((end, end, ""))


def _make_line(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.1:
        return rng.choice(NOISE)
    name = rng.choice(rng.choice((FEW, FEW, tuple(BASES), PATTERNS, PATTERNS[:3])))
    name = rng.choice(UNKNOWN) if kind > 0.97 else name
    key = _spell(name, rng)
    if rng.random() < 0.15:
        return rng.choice(("", " ")) + "-" + rng.choice(("", "", " ")) + key + rng.choice(("", " "))
    values = rng.choice((NUMBERS, NUMBERS, REFUSED))
    minus = rng.choice(("", "", "", "", "", "-", "- ", "--"))
    start, gap = rng.choice(("", "", "", " ", "\t")), rng.choice(("", " ", " ", "\t"))
    return f"{start}{minus}{key}{gap}={gap}{rng.choice(values)}" + rng.choice(
        ("", "", "", " ", "\r")
    )


def _spell(name: str, rng: random.Random) -> str:
    """Write a key with dots or with slashes, now and then with too many."""
    kind = rng.random()
    if kind > 0.95:
        odd = ["/" + name, name.replace("/", "//", 1), "./" + name, name + "/"]
        return rng.choice(odd[: 3 if name in PATTERNS else 4])
    if kind > 0.92:
        return rng.choice(("." + _with_dots(name), name.replace("/", ".", 1), name.upper()))
    return _with_dots(name) if kind < 0.7 else name


def _with_dots(name: str) -> str:
    return name.translate(str.maketrans("./", "/."))


def write_tree(tree: Tree, root: Path) -> None:
    """Make these the only files there are."""
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
        for old in (root / folder).iterdir():
            old.rmdir() if old.is_dir() and not old.is_symlink() else old.unlink()
    conf = root / CONF
    shutil.rmtree(conf) if conf.is_dir() and not conf.is_symlink() else conf.unlink(missing_ok=True)
    for path, content in tree.items():
        if content == "/":
            (root / path).mkdir()
        elif content.startswith("-> "):
            (root / path).symlink_to(content[3:])
        else:
            (root / path).write_bytes(content.encode("latin-1"))


def find_smaller(tree: Tree) -> list[Tree]:
    """Return trees with one file or one line less."""
    smaller = [{key: text for key, text in tree.items() if key != path} for path in tree]
    for path, text in tree.items():
        lines = text.split("\n")
        for index in range(len(lines)) if len(lines) > 1 else ():
            smaller.append({**tree, path: "\n".join(lines[:index] + lines[index + 1 :])})
    return smaller
