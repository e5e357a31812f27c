# SPDX-License-Identifier: BSD-2-Clause
"""Say which values of daemon.json dockerd refuses although their types are right.

What depends on other files of the host, such as certificates, is not judged. Source:
``config.Validate()``, ``initRuntimes()``, ``configureDaemonLogs()``, ``verifyDaemonSettings()``
and ``opts/`` of moby; each is asked of three versions of dockerd.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping

from ..core.json_text import Member
from ..core.values import NamedTuple
from .dockerd_flags import Flag

_LEVELS = ("debug", "info", "warn", "error", "fatal", "panic", "trace")
_SCHEMES = ("tcp://", "unix://", "npipe://", "fd://")
_PART = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN = rf"\s*(?:\.|{_PART}(?:\.{_PART})*\.?)\s*"
_MIRROR = r"https?://[^\s/?#][^\s?#]*"
_DRIVER = "native.cgroupdriver"
_OF_JSON_FILE = frozenset(
    {"max-file", "max-size", "compress", "labels", "labels-regex", "env", "env-regex", "tag"}
    | {"mode", "max-buffer-size"}
)
_REWORKED, _STRICT, _STRICTEST = 23, 25, 999
"""Versions from which more is refused, and the one that an unknown one counts as."""


class Daemon(NamedTuple):
    """What else decides whether dockerd takes a value: other keys, flags and its version.

    ``values`` are those of the file by their keys and of the flags by their names; ``release`` is
    the first number of the version, the strictest where it is not known.
    """

    values: Mapping[str, object]
    runtimes: Collection[str]
    release: int


def describe_daemon(members: Iterable[Member], flags: Iterable[Flag], version: str) -> Daemon:
    """Return what decides, of a daemon.json and the flags beside it."""
    values: dict[str, object] = {one.key: one.value for one in members}
    stated = values.get("runtimes")
    runtimes = set(stated) if isinstance(stated, dict) else set()
    for one in flags:
        values[one.name] = {"true": True, "false": False}.get(one.value, one.value)
        runtimes |= {one.value.partition("=")[0]} if one.name == "add-runtime" else set()
    release = re.match("[0-9]+", version)
    return Daemon(values, runtimes, int(release[0]) if release else _STRICTEST)


def describe_value_fault(member: Member, daemon: Daemon) -> str:
    """Return what dockerd takes in the place of a value that it refuses, or nothing."""
    if member.value is None or member.value == "" or member.key not in _CHECKS:
        return ""
    accepted, takes = _CHECKS[member.key]
    each = member.value if isinstance(member.value, list) else [member.value]
    return "" if all(one is None or takes(one, daemon) for one in each) else accepted


def find_clash(member: Member, daemon: Daemon) -> str:
    """Return beside what dockerd refuses a key, if it does."""
    values = daemon.values
    if member.key == "bip" and member.value and values.get("bridge"):
        return "bridge"
    if member.key == "icc" and member.value is False and values.get("iptables") is False:
        return "iptables of false"
    if member.key == "labels" and isinstance(member.value, list):
        pairs = {str(one) for one in member.value}
        names = [one.partition("=")[0] for one in pairs]
        return "another label of that name" if len(set(names)) < len(pairs) else ""
    return ""


def _is_address(value: object, _daemon: Daemon) -> bool:
    import ipaddress  # Few files hold one.

    try:
        ipaddress.ip_address(str(value))
    except ValueError:
        return False
    return "%" not in str(value)


def _is_server(value: object, daemon: Daemon) -> bool:
    is_old = daemon.release < _REWORKED
    if value == "":
        return not is_old
    return _is_address(str(value).strip() if is_old else value, daemon)


def _is_network(value: object, _daemon: Daemon) -> bool:
    import ipaddress

    try:
        ipaddress.ip_interface(str(value))
    except ValueError:
        return False
    return "/" in str(value)


def _is_on_bridge(value: object, daemon: Daemon) -> bool:
    return daemon.values.get("bridge") == "none" or _is_network(value, daemon)


def _is_pool(value: object, daemon: Daemon) -> bool:
    return not isinstance(value, dict) or _is_network(value.get("base"), daemon)


def _is_count(value: object, _daemon: Daemon) -> bool:
    return not isinstance(value, int) or value >= 0


def _is_number_of_tries(value: object, daemon: Daemon) -> bool:
    return not isinstance(value, int) or value >= (1 if daemon.release < _REWORKED else 0)


def _is_mtu(value: object, daemon: Daemon) -> bool:
    return daemon.release < _REWORKED or _is_count(value, daemon)


def _is_level(value: object, daemon: Daemon) -> bool:
    old = ("warning",) if daemon.release < _STRICT else ()
    return str(value).lower() in (*_LEVELS, *old)


def _is_host(value: object, _daemon: Daemon) -> bool:
    return str(value).startswith(_SCHEMES) or "://" not in str(value)


def _is_driver(value: object, _daemon: Daemon) -> bool:
    name, equal, driver = str(value).partition("=")
    return name.strip().lower() != _DRIVER or not equal or driver in ("", "cgroupfs", "systemd")


def _is_runtime(value: object, daemon: Daemon) -> bool:
    return value in ("runc", *daemon.runtimes) or str(value).startswith("io.containerd.")


def _are_runtimes(value: object, daemon: Daemon) -> bool:
    if not isinstance(value, dict) or daemon.release < _STRICT:
        return not isinstance(value, dict) or "runc" not in value
    keys = [one.keys() if isinstance(one, dict) else {"path"} for one in value.values()]
    return "runc" not in value and all({"path", "runtimeType"} & one for one in keys)


def _are_of_driver(value: object, daemon: Daemon) -> bool:
    is_own = daemon.values.get("log-driver") in (None, "", "json-file")
    return not is_own or not isinstance(value, dict) or value.keys() <= _OF_JSON_FILE


def _matches(pattern: str) -> Callable[[object, Daemon], bool]:
    return lambda value, _daemon: re.fullmatch(pattern, str(value)) is not None


_CHECKS: Mapping[str, tuple[str, Callable[[object, Daemon], bool]]] = {
    "default-ipc-mode": ("private or shareable", _matches("private|shareable")),
    "default-cgroupns-mode": ("host or private", _matches("host|private")),
    "log-format": ("text or json", _matches("text|json")),
    "log-level": (", ".join(_LEVELS), _is_level),
    "log-opts": ("options of json-file alone in it", _are_of_driver),
    "default-runtime": ("runc, or a name that runtimes gives", _is_runtime),
    "runtimes": ("a path or a runtimeType for each in it, and none named runc", _are_runtimes),
    "dns": ("addresses alone in it", _is_server),
    "dns-search": ("names of domains alone in it", _matches(_DOMAIN)),
    "labels": ("key=value alone in it", _matches("[^=]*=.*")),
    "node-generic-resources": ("key=value alone in it", _matches("[^=]+=[^=]+")),
    "registry-mirrors": ("http:// or https:// alone in it", _matches(_MIRROR)),
    "hosts": (f"{', '.join(_SCHEMES)} or an address in it", _is_host),
    "exec-opts": (f"{_DRIVER}=systemd or =cgroupfs in it", _is_driver),
    "max-concurrent-downloads": ("0 or more", _is_count),
    "max-concurrent-uploads": ("0 or more", _is_count),
    "max-download-attempts": ("1 or more", _is_number_of_tries),
    "mtu": ("0 or more", _is_mtu),
    "ip": ("an address", _is_address),
    "default-gateway": ("an address", _is_address),
    "default-gateway-v6": ("an address", _is_address),
    "bip": ("an address with the length of its network", _is_on_bridge),
    "fixed-cidr": ("an address with the length of its network", _is_on_bridge),
    "default-address-pools": ("an address with the length of its network as base", _is_pool),
    "metrics-addr": ("address:port", _matches(r"\S*:\w+")),
}
