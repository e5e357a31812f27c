# SPDX-License-Identifier: BSD-2-Clause
"""Say which keys of daemon.json, besides the limits, dockerd refuses: unknown ones, wrong types.

Source: the ``json`` names of moby's daemon/config, the flags of cmd/dockerd and their names in
the file (``NamedOption``), and ``findConfigurationConflicts()``, from 19.03 to 29.
"""

from __future__ import annotations

import re

from ..core.json_text import Member

_LAST = 29  # The last version of dockerd whose keys are these.


def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


_BOOLS = _split(
    """debug experimental icc init ip-forward ip-forward-no-drop ip-masq ip6tables iptables ipv6
    live-restore no-new-privileges raw-logs rootless selinux-enabled tls tlsverify userland-proxy
    cri-containerd allow-direct-routing"""
)
_NUMBERS = _split(
    """cpu-rt-period cpu-rt-runtime max-concurrent-downloads max-concurrent-uploads
    max-download-attempts mtu network-control-plane-mtu network-diagnostic-port shutdown-timeout
    swarm-raft-election-tick swarm-raft-heartbeat-tick oom-score-adjust"""
)
_LISTS = _split(
    """allow-nondistributable-artifacts authorization-plugins cdi-spec-dirs default-address-pools
    dns dns-opts dns-search exec-opts hosts host-gateway-ips insecure-registries labels
    node-generic-resources registry-mirrors storage-opts"""
)
_TEXTS = _split(
    """api-cors-header bip bip6 bridge bridge-accept-fwmark cgroup-parent containerd
    containerd-namespace containerd-plugin-namespace data-root default-cgroupns-mode
    default-gateway default-gateway-v6 default-ipc-mode default-runtime
    exec-root firewall-backend fixed-cidr fixed-cidr-v6 group host-gateway-ip http-proxy
    https-proxy init-path ip log-driver log-format log-level metrics-addr no-proxy pidfile
    resolv-conf seccomp-profile storage-driver swarm-default-advertise-addr tlscacert tlscert
    tlskey userland-proxy-path userns-remap"""
)
_OTHERS = _split(
    """builder cluster-advertise cluster-store cluster-store-opts default-network-opts
    default-shm-size default-ulimits deprecated-key-path disable-legacy-registry features graph
    log-opts max-concurrent-downloads proxies runtimes
    add-runtime authorization-plugin cdi-spec-dir cluster-store-opt config-file
    containerd-plugins-namespace default-address-pool default-network-opt default-ulimit dns-opt
    exec-opt help host insecure-registry label log-opt node-generic-resource
    registry-mirror restart storage-opt validate version"""
)
"""Objects, keys of old versions, and flags: a name of a flag is not a key that is not known."""

_KNOWN = _BOOLS | _NUMBERS | _LISTS | _TEXTS | _OTHERS
_TYPES = (
    *((_BOOLS, "true or false"), (_NUMBERS, "a whole number"), (_LISTS, "a list")),
    *((_TEXTS, "a string"), (("log-opts", "features", "runtimes"), "an object")),
)
WHOLE = (
    *("builder", "cluster-store-opts", "default-network-opts", "default-ulimits", "features"),
    *("log-opts", "proxies", "runtimes"),
)
"""Objects that dockerd takes as one option; of any other the members count as options."""


def find_unknown_keys(member: Member, version: str) -> list[str]:
    """Return what dockerd names as options that it does not know, for one key of the file.

    :param version: The daemon's; a newer one than is known here may know more.
    """
    release = re.match("[0-9]+", version)
    if release and int(release[0]) > _LAST:
        return []
    deep = isinstance(member.value, dict) and member.key not in WHOLE
    names = member.value if deep and isinstance(member.value, dict) else [member.key]
    return [name for name in names if name not in _KNOWN]


def describe_type_fault(member: Member) -> str:
    """Return what dockerd takes in the place of a value that it refuses, or nothing."""
    key, value = member.key, member.value
    if value is None:
        return ""
    if key == "log-opts" and isinstance(value, dict):
        texts = all(one is None or isinstance(one, str) for one in value.values())
        return "" if texts else "strings alone in it, numbers in quotes too"
    seen = _name_type(value)
    for keys, accepted in _TYPES:
        if key in keys and seen != accepted:
            return f"{accepted}, not {seen}"
    return ""


def _name_type(value: object) -> str:
    """Return what a value is; what it says may be a secret."""
    if isinstance(value, bool):
        return "true or false"
    for kind, name in ((int, "a whole number"), (str, "a string"), (list, "a list")):
        if isinstance(value, kind):
            return name
    return "an object" if isinstance(value, dict) else "another number"
