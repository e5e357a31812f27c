# SPDX-License-Identifier: GPL-3.0-or-later
"""Make cases for dockerd: a daemon.json, right, wrong or odd, and flags, from a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import NamedTuple

CONFIG = "/etc/docker/daemon.json"


class Case(NamedTuple):
    """What dockerd is given: its files by path, and its flags."""

    files: Mapping[str, bytes]
    flags: tuple[str, ...] = ()

    @property
    def text(self) -> bytes:
        return self.files.get(CONFIG, b"")


NAMES = (
    *("nofile",) * 9,
    *("memlock",) * 4,
    *("core", "core", "nproc", "stack", "fsize", "cpu", "locks", "sigpending", "msgqueue"),
    *("rss", "data", "rttime", "rtprio", "nice", "as"),
)
ODD_NAMES = (
    *("NOFILE", "NoFile", "nofiles", "RLIMIT_NOFILE", " nofile", "nofile ", "", "x", "maxlogins"),
    *("\u017ftack", "n\u0131ce", "memloc\u212a", "no\ufb01le", "r\u00df", "nofile\\u0000"),
    *("n\\u006ffile", "stac\\u006b", "priority"),
)
VALUES: Mapping[str, tuple[int, ...]] = {
    "nofile": (1024, 1024, 4096, 9000, 19999, 20000, 20001, 5, 64, -1),
    "memlock": (0, 65536, 2**20, 2**23),
    "core": (0, 0, -1, 2**20),
    "nproc": (4096, 65536, 0),
    "stack": (2**20, 2**23, -1, 2**18),
    "fsize": (-1, 2**30, 0),
    "cpu": (600, -1, 0, 1),
    "locks": (100, 0),
    "sigpending": (100, 0),
    "msgqueue": (0, 1000),
    "rss": (2**30, 0),
    "data": (2**28, 2**32, 2**20),
    "rttime": (10**6, -1),
    "rtprio": (0,),
    "nice": (0,),
    "as": (2**33, -1, 2**24),
}
ODD_NUMBERS = (
    *('"1024"', '"unlimited"', "1024.0", "1.024e3", "1024e0", "1e4", "-0", "0", "-2", "null"),
    *("true", "[1024]", "{}", "01024", "+1024", "0x400", "1_024", "1,024", "1024k", "Infinity"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808"),
    *("-9223372036854775809", "18446744073709551615", "1" * 400, "-1", '""', "1024.5", "2E2"),
)
SIZES = (
    *('"8g"', '"64M"', '"128m"', '"1G"', '"1024"', '"1GiB"', '"1 gb"', '"1.5g"', '"100 MiB"'),
    *('"0"', '"0m"', '"8Gi"', '"8ib"', '"8i"', '"1e3"', '"1e3k"', '".5g"', '"5.m"', '"+5m"'),
    *('"-1"', '"-0"', '" 8m"', '"8m "', '"8 "', '"8  m"', '"8\\u0067"', '"8\\t"', '""', '"g"'),
    *('"1.2.3g"', '"8gg"', '"8gbi"', '"8bb"', '"99999999999g"', '"9223372036854775807"', '"5p"'),
    *('"1_0m"', '"0x10m"', '"0x1p20"', '"inf "', '"nan"', '"1e400"', '"1e300"', '"\u0661g"'),
    *('"0.4"', '"1.9"', "67108864", "null", "true", "[]", '"8388608p"', '"1E2k"', '"8 KIB"'),
)
OTHERS = (
    *('"debug": true', '"log-level": "info"', '"live-restore": true', '"log-driver": "json-file"'),
    *('"log-opts": {"max-size": "10m", "max-file": "3"}', '"labels": ["site=a"]', '"features": {}'),
    *('"registry-mirrors": ["https://mirror.example.com"]', '"max-concurrent-downloads": 3'),
    *(
        '"insecure-registries": []',
        '"exec-opts": []',
        '"dns": ["192.0.2.1"]',
        '"shutdown-timeout": 5',
    ),
    *(
        '"runtimes": {"nvidia": {"path": "/usr/bin/runc", "runtimeArgs": []}}',
        '"experimental": false',
    ),
    *('"storage-opts": []', '"default-runtime": "runc"', '"log-opts": {}', '"tls": false'),
    *('"default-runtime": "nvidia"', '"default-runtime": ""', '"default-runtime": "Runc"'),
    *('"default-ipc-mode": "host"', '"default-ipc-mode": "private"', '"default-ipc-mode": ""'),
    *('"log-level": "chatty"', '"log-level": "WARNING"', '"log-level": "trace"', '"log-level": ""'),
    *('"log-level": "warning"', '"log-level": "Debug"'),
    '"default-runtime": "io.containerd.runc.v2"',
    *('"dns": ["nonsense"]', '"dns": [" 192.0.2.1 "]', '"dns": [""]', '"dns": ["fe80::1%eth0"]'),
    *('"dns": ["::1"]', '"labels": ["a"]', '"labels": [""]'),
    *('"labels": ["=b"]', '"labels": ["a=b", "a=c"]', '"max-concurrent-downloads": -1'),
    *('"max-concurrent-uploads": -1', '"max-download-attempts": -1', '"max-download-attempts": 0'),
    *('"mtu": -1', '"node-generic-resources": ["x"]', '"node-generic-resources": ["gpu=a,gpu=b"]'),
    *('"node-generic-resources": ["a=1,a=b"]', '"node-generic-resources": [""]'),
    *('"exec-opts": ["native.cgroupdriver=foo"]', '"exec-opts": ["native.cgroupdriver=cgroupfs"]'),
    *('"exec-opts": ["other=x"]', '"exec-opts": ["native.cgroupdriver"]', '"exec-opts": [""]'),
    *('"runtimes": {"runc": {"path": "/usr/bin/runc"}}', '"runtimes": {"x": {}}'),
    *('"hosts": ["foo://x"]', '"hosts": ["x y"]', '"ip": "x"', '"default-gateway": "x"'),
    *('"bip": "x"', '"fixed-cidr": "x"', '"log-driver": "nonsense"'),
    *('"registry-mirrors": ["x y"]', '"registry-mirrors": ["mirror.example.com"]'),
    *('"insecure-registries": ["http://x"]', '"default-address-pools": [{"base": "x", "size": 3}]'),
    *('"dns-search": ["a b"]'),
    *('"log-opts": {"max-size": "x"}', '"log-opts": {"nonsense": "1"}', '"icc": false'),
    *('"default-cgroupns-mode": "x"', '"shutdown-timeout": -5', '"metrics-addr": "x"'),
    *('"log-format": "x"', '"cgroup-parent": "x"'),
    *('"default-init": true', '"init": true', '"init-path": "/none"', '"no-new-privileges": true'),
)
STRANGE = (
    *('"default-ulimit": {"nofile": {"Name": "nofile", "Hard": 1, "Soft": 1}}', '"ulimits": {}'),
    *('"Default-Ulimits": {"nofile": {}}', '"default_ulimits": {"nofile": 5}', '"shm-size": "1g"'),
    *('"DEFAULT-SHM-SIZE": "1g"', '"default-shm": {}', '"anything": {}', '"x": {"debug": true}'),
    *('"x": {"default-shm-size": "1g"}', '"ulimit": 1024', '"hosts": ["unix:///run/x.sock"]'),
    *('"bridge": "none"', '"": {}', '"x": {"labels": ["a=b"]}', '"max-download-attempts": 1e999'),
    *('"default-ulimits": null', '"default-ulimits": []', '"default-ulimits": "nofile=1:2"'),
    *('"default-ulimits": ["nofile=1024:4096"]', '"default-ulimits": {}', '"default-ulimits": 5'),
    *('"Default-Ulimits": {}', '"Default-Ulimits": null', '"default-ulimits": true'),
)
ENTRIES = (
    *('"nofile": null', '"nofile": 1024', '"nofile": "1024:4096"', '"nofile": []', '"nofile": {}'),
    *('"nofile": {"Name": "nofile"}', '"x": null', '"nofile": {"Name": null}', '"nofile": true'),
    *('"nofile": {"Name": 5, "Name": "nofile", "Hard": 2048, "Soft": 1024}', '"nofile": "-1"'),
    *('"nofile": {"Hard": 1.5, "Name": "nofile", "Hard": 2048, "Soft": 1024}', '"": {}'),
    *('"nofile": {"Name": "nofile", "Hard": 2048, "Soft": 1024, "Soft": null}',),
    *('"nofile": {"Name": "nofile", "Hard": 2048, "\u017foft": 1024}',),
    *('"nofile": {"Name": "nofile", "Hard": 2048, "soft": 9, "SOFT": 1024, "more": [{}]}',),
)
FLAGS = (
    *(("--default-ulimit", "nofile=1024:4096"), ("--default-ulimit=nofile=2048",)),
    *(("--default-ulimit=core=0", "--default-ulimit=nofile=512:1024"), ("--default-ulimit=as=-1",)),
    *(("--default-ulimit=nofile=1024:4096", "--default-ulimit=nofile=512:600"),),
    *(
        ("--default-ulimit=core=-1:5",),
        ("--default-ulimit=core=5:-1",),
        ("--default-ulimit=core=-1",),
    ),
    *(
        ("--default-ulimit=nofile=5:4",),
        ("--default-ulimit=nofile=",),
        ("--default-ulimit=nofile",),
    ),
    *(("--default-ulimit=NOFILE=1024",), ("--default-ulimit=nofile=1024:4096:1",)),
    *(("--default-ulimit=nofile=1k",), ("--default-ulimit=nofile=+1024",)),
    *(("--default-ulimit=nofile=01024",), ("--default-ulimit=nofile= 1024",)),
    *(("--default-ulimit=core=-5",), ("--default-ulimit=core=9223372036854775808",)),
    *(("--default-ulimit=nofile=4:9",), ("--default-ulimit=nofile=-1",), ("--default-ulimit=x=1",)),
    *(("--default-shm-size=1g",), ("--default-shm-size", "128M"), ("--default-shm-size=0",)),
    *(("--default-shm-size=1e3",), ("--default-shm-size=",), ("--default-shm-size=8Gi",)),
    *(
        ("--default-shm-size=-1",),
        ("--default-shm-size", "-1"),
        ("--default-shm-size=99999999999g",),
    ),
    *(("--default-shm-size=1g", "--default-shm-size=2g"), ("--debug",), ("-D",), ("-Dl", "info")),
    *(
        ("--label=a=b",),
        ("--label", "a=b"),
        ("--log-level=info",),
        ("-l", "warn"),
        ("--tls=false",),
    ),
    *(("--log-opt", "max-size=5m"), ("--dns=192.0.2.2",), ("--add-runtime=x=/usr/bin/runc",)),
    *(("--config-file=/etc/other.json",), ("--config-file", CONFIG), ("--live-restore",)),
    *(
        ("--registry-mirror=https://mirror.example.com",),
        ("--exec-opt=native.cgroupdriver=cgroupfs",),
    ),
)
LAYOUTS = (
    *((", ", ": ", "", ""), (",", ":", "", ""), (",\n  ", ": ", "\n  ", "\n")),
    *((",\r\n\t", " : ", "\r\n\t", "\r\n"), ("\n , ", ":\n", " \t", " ")),
)


def make_case(rng: random.Random) -> Case:
    """Return a case; about half of them are meant to be right."""
    flags = rng.choice(FLAGS) if rng.random() < 0.25 else ()
    if flags and rng.random() < 0.4:
        members = [rng.choice(OTHERS)] if rng.random() < 0.5 else []
    else:
        members = make_members(rng)
    text = lay_out(rng.choice(LAYOUTS), members)
    if rng.random() < 0.12:
        text = spoil(rng, text)
    files = {} if text == "{}" and rng.random() < 0.3 else {CONFIG: text.encode()}
    if "other.json" in "".join(flags) and rng.random() < 0.7:
        files["/etc/other.json"] = lay_out(LAYOUTS[0], make_members(rng)).encode()
    return Case(files, flags)


def make_members(rng: random.Random) -> list[str]:
    members = [rng.choice(OTHERS) for _ in range(rng.choice((0, 0, 0, 1, 2)))]
    for _ in range(rng.choices((0, 1, 2), (12, 80, 8))[0]):
        entries = [make_entry(rng) for _ in range(rng.choices((0, 1, 2, 3), (5, 45, 30, 20))[0])]
        members.append(f'"default-ulimits": {lay_out(rng.choice(LAYOUTS[:2]), entries)}')
    if rng.random() < 0.3:
        members.append(f'"default-shm-size": {rng.choice(SIZES)}')
    if rng.random() < 0.12:
        members.append(rng.choice(STRANGE))
    rng.shuffle(members)
    return members


def lay_out(layout: tuple[str, str, str, str], members: list[str]) -> str:
    between, _, first, last = layout
    return f"{{{first}{between.join(members)}{last}}}" if members else "{}"


def make_entry(rng: random.Random) -> str:
    if rng.random() < 0.08:
        return rng.choice(ENTRIES)
    name = rng.choice(NAMES)
    soft, hard = sorted(rng.choice(VALUES[name]) % 2**64 for _ in range(2))
    if rng.random() < 0.05:
        soft, hard = hard, soft
    fields = [
        (spell(rng, "Name"), f'"{rng.choice(ODD_NAMES) if rng.random() < 0.08 else name}"'),
        (spell(rng, "Soft"), write_number(rng, soft)),
        (spell(rng, "Hard"), write_number(rng, hard)),
    ]
    rng.shuffle(fields)
    if rng.random() < 0.06:
        fields.pop()
    if rng.random() < 0.05:
        fields.append(rng.choice(fields))
    key = (
        name if rng.random() < 0.85 else rng.choice(("x", "", "NOFILE", "core", "nofile", "\u00e9"))
    )
    inner = ", ".join(f'"{field}": {value}' for field, value in fields)
    return f"{json.dumps(key)}: {{{inner}}}"


def spell(rng: random.Random, field: str) -> str:
    return rng.choice((field, field, field, field.lower(), field.upper(), field.swapcase()))


def write_number(rng: random.Random, value: int) -> str:
    if rng.random() < 0.05:
        return rng.choice(ODD_NUMBERS)
    return str(value - 2**64 if value >= 2**63 else value)


def spoil(rng: random.Random, text: str) -> str:
    """Return a text with a mistake that people or programs make."""
    place = rng.randrange(len(text) + 1)
    return rng.choice(
        (
            *(
                f"{text[:-1]},}}",
                text[:-1],
                f"\ufeff{text}",
                f"{text} x",
                f"{text}\n{{}}",
                "",
                "\n",
            ),
            *(f"// ours\n{text}", f"{text[:-1]}/* ours */}}", text.replace('"', "'"), text[:place]),
            *(text[:place] + "\x00" + text[place:], text[:place] + "," + text[place:], f"[{text}]"),
            *(text.replace('"', "\u201c"), text.replace(":", "="), "null", "5", f"\x0c{text}"),
            *(text[:place] + "\\" + text[place:], f"{text}\r\n\r\n", text.replace(": ", ":\t")),
        )
    )


RAISED = (
    '"nofile": {"Name": "nofile", "Soft": 65536, "Hard": 1048576}',
    '"nofile": {"Name": "nofile", "Soft": 1048576, "Hard": 1048576}',
    '"nofile": {"Name": "nofile", "Soft": 65536, "Hard": 1048577}',
    '"nofile": {"Name": "nofile", "Soft": 65536, "Hard": -1}',
    '"memlock": {"Name": "memlock", "Soft": -1, "Hard": -1}',
    '"memlock": {"Name": "memlock", "Soft": 65536, "Hard": 1099511627776}',
    '"memlock": {"Name": "memlock", "Soft": -1, "Hard": 65536}',
    '"nice": {"Name": "nice", "Soft": 20, "Hard": 40}, "rtprio": {"Name": "rtprio", "Soft": 5,'
    ' "Hard": 99}, "x": {"Name": "sigpending", "Soft": 99999, "Hard": -1}',
    '"a": {"Name": "memlock", "Soft": -2, "Hard": -1}, "b": {"Name": "core", "Hard": -1},'
    ' "c": {"Name": "nofile", "Soft": 524288, "Hard": 524288}',
)


def raised() -> list[Case]:
    """Return limits that only a root with CAP_SYS_RESOURCE may give."""
    files = [f'{{"default-ulimits": {{{entries}}}}}'.encode() for entries in RAISED]
    flags = ("--default-ulimit=nofile=65536:1048576", "--default-ulimit=memlock=-1")
    return [*(Case({CONFIG: text}) for text in files), Case({}, flags)]


def hand_picked() -> list[Case]:
    """Return every hard value once, each in a file or a flag of its own."""
    sound = '{"Name": "nofile", "Soft": 1024, "Hard": 4096}'
    seconds = ("null", "{}", "[]", '{"b": {"Name": "core", "Soft": 0, "Hard": 0}}', '{"a": 5}')
    texts = [
        *(f"{{{member}}}" for member in (*STRANGE, *OTHERS)),
        *(f'{{"default-shm-size": {size}}}' for size in SIZES),
        *(f'{{"default-ulimits": {{{entry}}}}}' for entry in ENTRIES),
        *(
            f'{{"default-ulimits": {{"x": {{"Name": "core", "Hard": -1, "Soft": {number}}}}}}}'
            for number in ODD_NUMBERS
        ),
        *(
            f'{{"default-ulimits": {{"x": {{"Name": "{name}", "Hard": 0, "Soft": 0}}}}}}'
            for name in ODD_NAMES
        ),
        *(f'{{"default-ulimits": {{"a": {sound}}}, "default-ulimits": {one}}}' for one in seconds),
        f'{{"default-ulimits": {{"a": {sound}, "a": {{}}}}}}',
        f'{{"default-ulimits": {{"a": 5, "a": {sound}}}}}',
        f'{{"default-ulimits": {{"a": {sound}, "b": {sound}}}}}',
        '{"default-shm-size": 5, "default-shm-size": "1g"}',
        '{"default-shm-size": "1g", "default-shm-size": "99999999999g"}',
        *("", "\n", "null", "5", "[]", "{}x", "{} {}", "\ufeff{}", "{,}", '{"a"}', "{'a': 1}"),
        '{"debug": true,}',
    ]
    raw = [text.encode() for text in texts]
    raw += [b'{"labels": ["a=\xff"]}', "{}".encode("utf-16"), b"\xff", b'{"\xc3": {}}', b"{}\x00"]
    conflict = b'{"default-ulimits": {}, "default-shm-size": "1g", "labels": [], "runtimes": {}}'
    return [
        *(Case({CONFIG: text}) for text in raw),
        *(Case({}, flags) for flags in FLAGS),
        *(Case({CONFIG: conflict}, flags) for flags in FLAGS),
    ]
