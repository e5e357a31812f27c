# SPDX-License-Identifier: BSD-2-Clause
"""Show of daemon.json only what is known to be harmless."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Optional, Tuple

from .json_text import byte_order_mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    Place = Tuple[Optional[str], ...]
    """The keys above a value and its own; ``None`` stands for an array."""

_PATH = r"/(?:[\w.-]+/?)*"
_PROGRAM = r"/(?:[\w.-]+/?)*|[a-z][a-z0-9_-]{0,15}(?:[.-][a-z][a-z0-9_]{0,15}){0,4}"
_WORD = r"[a-z][a-z_.-]{0,31}\d{0,2}"
_SIZE = r"\d{1,15}(?:\.\d{1,6})?\s?[kmgtKMGT]?(?:i?[bB])?"
_SWITCH = "true|false"
_ADDRESS = r"\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?|(?=.*:)[\da-fA-F:]{2,39}(?:/\d{1,3})?"
_SOCKET = r"fd://|unix:///[\w./-]*|tcp://(?:\d{1,3}(?:\.\d{1,3}){3}|localhost)?(?::\d{1,5})?"
_DRIVERS = "json-file|local|none|syslog|journald|gelf|fluentd|awslogs|splunk|etwlogs|gcplogs"
_STORAGE = "overlay2?|fuse-overlayfs|btrfs|zfs|vfs|aufs|devicemapper|windowsfilter"

_HARMLESS: dict[Place, str] = {
    ("default-shm-size",): _SIZE,
    ("default-ulimits", "*"): r"[a-z]*=?-?\d{1,20}(?::-?\d{1,20})?",
    ("default-ulimits", "*", "Name"): "[A-Za-z_]{1,20}",
    ("log-driver",): _DRIVERS,
    ("log-level",): "debug|info|warn|error|fatal",
    ("log-format",): "text|json",
    ("log-opts", "max-size"): _SIZE,
    ("log-opts", "max-file"): r"\d{1,6}",
    ("log-opts", "compress"): _SWITCH,
    ("log-opts", "mode"): "blocking|non-blocking",
    ("storage-driver",): _STORAGE,
    ("exec-opts", None): "native[.]cgroupdriver=(?:systemd|cgroupfs)",
    ("data-root",): _PATH,
    ("graph",): _PATH,
    ("exec-root",): _PATH,
    ("pidfile",): _PATH,
    ("cgroup-parent",): _PATH,
    ("init-path",): _PATH,
    ("containerd",): _PATH,
    ("userns-remap",): r"[a-z_][a-z0-9_-]{0,31}(?::[a-z_][a-z0-9_-]{0,31})?|\d+(?::\d+)?",
    ("default-runtime",): _WORD,
    ("runtimes", "*", "path"): _PROGRAM,
    ("runtimes", "*", "runtimeType"): r"io\.containerd\.[a-z.]{1,30}\.v\d",
    ("default-cgroupns-mode",): "host|private",
    ("default-ipc-mode",): "private|shareable",
    ("bridge",): _WORD,
    ("group",): _WORD,
    ("bip",): _ADDRESS,
    ("bip6",): _ADDRESS,
    ("ip",): _ADDRESS,
    ("mtu",): r"\d{1,5}",
    ("fixed-cidr",): _ADDRESS,
    ("fixed-cidr-v6",): _ADDRESS,
    ("default-gateway",): _ADDRESS,
    ("default-gateway-v6",): _ADDRESS,
    ("dns", None): _ADDRESS,
    ("default-address-pools", None, "base"): _ADDRESS,
    ("hosts", None): _SOCKET,
    ("seccomp-profile",): f"builtin|unconfined|{_PATH}",
    ("builder", "gc", "defaultKeepStorage"): _SIZE,
}  # fmt: skip
"""What a string may look like, by its place; ``*`` stands for any key."""

_SWITCHES = """
    live-restore experimental debug iptables ip6tables icc ipv6 ip-forward ip-masq features init
    selinux-enabled no-new-privileges userland-proxy max-concurrent-downloads shutdown-timeout
    max-concurrent-uploads max-download-attempts network-control-plane-mtu oom-score-adjust
    containerd-snapshotter buildkit cdi raw-logs Soft Hard nofile memlock nproc stack core
"""
_KNOWN = {key for place in _HARMLESS for key in place if key} | set(_SWITCHES.split())
_TOKEN = re.compile(r'[ \t\r\n]+|"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^ \t\r\n{}\[\]:,"]+')
_NUMBER = re.compile(r"-?\d[\d.eE+-]*")
_PLAIN_KEY = re.compile(r"(?!(?:\D*\d){3})[A-Za-z][\w.-]{0,31}", re.ASCII)
_SECRET_KEY = re.compile(
    "pass|pwd|phrase|pin|secret|token|cred|auth|key|login|private|sas|signature|bearer|cookie"
    "|session|otp|salt|proxies|header|label|opts|registr|env|code",
    re.IGNORECASE,
)
_BROKEN_LINE = re.compile(
    r'[ \t]*(?:"(?P<key>[\w.-]+)"[ \t]*:[ \t]*(?:-?\d{1,9}|true|false|null|\{|\[)?)?'
    r"[ \t{}\[\],]*\r?",
    re.ASCII,
)
_BLOT = '"REDACTED"'


def redact_json(text: str) -> str:
    """Blank out of daemon.json every string that is not known to be harmless.

    Keys, numbers and switches stay readable, unless they may be secrets themselves. Of a text
    that is not JSON only lines stay that hold a known key with a number or a switch. The lines
    keep their number.
    """
    mark = byte_order_mark(text)
    body = text[len(mark) :]
    if not _is_json(body):
        return mark + "\n".join(map(_redact_line, body.split("\n")))
    return mark + "".join(shown for _part, shown in _walk(body))


def find_hidden(text: str) -> set[str]:
    """Return the strings of a daemon.json that :func:`redact_json` blanks out, decoded."""
    body = text[len(byte_order_mark(text)) :]
    if not _is_json(body):
        return set()
    hidden = {word for word, shown in _walk(body) if word != shown}
    return {str(json.loads(word)) for word in hidden}


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _walk(text: str) -> Iterator[tuple[str, str]]:
    """Yield the tokens of a valid JSON text, each with what is shown of it."""
    place: list[str | None] = []
    at_key = False
    for word in _TOKEN.findall(text):
        shown = word
        if word in ("{", "["):
            place.append("" if word == "{" else None)
            at_key = word == "{"
        elif word in ("}", "]"):
            place.pop()
        elif word == ",":
            at_key = place[-1] is not None
        elif at_key and word[0] == '"':
            key = str(json.loads(word))
            place[-1] = key
            at_key = False
            shown = _show_key(word, key)
        elif word != ":" and word.strip():
            shown = _show_value(word, tuple(place))
        yield word, shown


def _show_key(word: str, key: str) -> str:
    return word if key in _KNOWN or _PLAIN_KEY.fullmatch(word[1:-1]) else _BLOT


def _show_value(word: str, place: Place) -> str:
    if word in ("true", "false", "null", '""'):
        return word
    if word[0] == '"':
        middle = (*place[:1], "*", *place[2:])
        allowed = _HARMLESS.get(place) or _HARMLESS.get(middle)
        plain = allowed and re.fullmatch(allowed, str(json.loads(word)), re.ASCII)
        return word if plain else _BLOT
    if place[:1] == ("default-ulimits",):
        return word if _NUMBER.fullmatch(word) and len(word) <= 21 else _BLOT
    secret = any(_SECRET_KEY.search(key) for key in place if key)
    return word if _NUMBER.fullmatch(word) and len(word) <= 12 and not secret else _BLOT


def _redact_line(line: str) -> str:
    """Return a line of a text that is not JSON, or its indent and a mark."""
    match = _BROKEN_LINE.fullmatch(line)
    if match and (match["key"] is None or match["key"] in _KNOWN):
        return line
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    return f"{indent}REDACTED" + ("\r" if line.endswith("\r") else "")
