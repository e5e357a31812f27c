# SPDX-License-Identifier: GPL-3.0-or-later
"""The line that wins a sysctl is the one whose value the kernel has in the end.

The expectations were measured with systemd 247, 252 and 257, procps 3.3.17, 4.0.2 and 4.0.4.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.core.distribution import find_distribution
from mlhost_limits.kernel.sysctl_conf import SYSCTL_CONF, parse_sysctl_number
from mlhost_limits.kernel.sysctl_writes import (
    PROCPS,
    PROCPS_3,
    SYSTEMD,
    Reader,
    find_procps,
    resolve_sysctl,
)

ETC = "/etc/sysctl.d"
TTL = "net.ipv4.ip_default_ttl"
LAN = "net.ipv4.conf.eth0/100.rp_filter"


def is_number(_key: str, value: str) -> bool:
    return parse_sysctl_number(value) is not None


def winner(*texts: str, reader: Reader = SYSTEMD, key: str = TTL) -> object:
    """Return the value that wins over the files a.conf, b.conf … with these texts."""
    files = {f"{ETC}/{name}.conf": text for name, text in zip("abcdef", texts)}
    bound = resolve_sysctl(files, [key], reader, is_number).get(key)
    return bound.winner.value if bound else None


@pytest.mark.parametrize(
    ("texts", "at_boot", "by_procps"),
    [
        ([f"{TTL} = 10", f"{TTL} = 11"], 11, 11),
        ([f"{TTL} = 10\n{TTL}=11"], 11, 11),
        (["net/ipv4/ip_default_ttl = 10"], 10, 10),
        (["/net/ipv4/ip_default_ttl = 10"], 10, 10),
        (["net//ipv4/./ip_default_ttl = 10"], 10, 10),
        (["net/ipv4/ip_default_ttl/ = 10"], 10, None),
        (["net/ipv6/../ipv4/ip_default_ttl = 10"], None, 10),
        (["net/ipv4.ip_default_ttl = 10"], None, None),
        (["NET.ipv4.ip_default_ttl = 10"], None, None),
        ([f"-{TTL} = 10"], 10, 10),
        ([f"- {TTL} = 10"], 10, None),
        ([f"--{TTL} = 10"], None, 10),
        ([f"{TTL} = 10\r\n"], 10, 10),
        ([f"{TTL} = 10\0junk"], 10, 10),
        ([f"{TTL} = 10\0{TTL} = 11"], 11, 10),
        # A later line is never refused in favor of an earlier one at boot; by procps it is.
        ([f"{TTL} = 10", f"{TTL} = 11x"], "11x", 10),
        ([f"{TTL} = 10", f"{TTL} ="], "", 10),
        ([f"{TTL} = 10\\\n{TTL} = 11"], 11, 11),
        (["net.ipv4.*_ttl = 10"], 10, 10),
        (["net.*.ip_default_ttl = 10"], 10, 10),
        (["net.ipv4.ip_default_tt? = 10"], 10, 10),
        (["net.ipv4.ip_default_tt[l] = 10"], 10, 10),
        (["net.ipv4.{ip_default_tt[l],x} = 10"], 10, None),
        (["net.ipv4.{ip_default_ttl,x} = 10"], None, None),
        (["net.* = 10"], None, None),
        (["net.ipv4.ip_*x = 10"], None, None),
        ([f"{TTL} = 10", "net.ipv4.*_ttl = 11"], 10, 10),
        (["net.ipv4.*_ttl = 10\nnet.ipv6.{a,b*} = 1"], 10, 10),
        (["net//ipv4/ip_default_ttl = 10", "net.ipv4.*_ttl = 11"], 10, 11),
        (["net.ipv4.*_ttl = 11", "net.ipv4.ip_* = 12"], 12, 12),
        (["net.ipv4.*_ttl = 11", "net.ipv4.ip_* = x"], 11, 11),
        # A pattern that states what it stated before keeps its old place at boot.
        (["net.ipv4.*_ttl = 11", "net.ipv4.ip_* = 12\nnet.ipv4.*_ttl = 11"], 12, 11),
        # "-key" alone undoes at boot what stands before it, and keeps the patterns away.
        ([f"{TTL} = 10", f"-{TTL}"], "", 10),
        ([f"-{TTL}", f"{TTL} = 10"], 10, 10),
        ([f"-{TTL}", "net.ipv4.*_ttl = 11"], "", ""),
        (["net.ipv4.*_ttl = 11", "-net.ipv4.*_ttl"], "", 11),
        (["net.ipv4.*_ttl = 11", "-net.ipv4.ip_*"], 11, 11),
        ([], None, None),
    ],
)
def test_the_value_that_wins(texts: list[str], at_boot: object, by_procps: object) -> None:
    assert winner(*texts) == at_boot
    assert winner(*texts, reader=PROCPS) == by_procps


@pytest.mark.parametrize(
    ("texts", "value"),
    [
        ([f"{TTL} = 10\n{TTL} = 7k"], 10),
        ([f"{TTL} = 10\n-{TTL}\n{TTL} ="], 10),
        (["net.ipv4.*_ttl = 10"], None),
        ([f"=={TTL} = 10"], 10),
        (["/net//ipv4/ip_default_ttl = 10"], 10),
    ],
)
def test_procps_3_knows_no_patterns(texts: list[str], value: object) -> None:
    assert winner(*texts, reader=PROCPS_3) == value


def test_a_pattern_is_a_name_too() -> None:
    assert winner("net.ipv4.*_ttl = 1", "net.ipv4.*_ttl = 2", key="net.ipv4.*_ttl") == 2
    assert winner("net.ipv4.tt[l] = 1", "net.ipv4.tt[l] = 2", key="net.ipv4.tt[l]") == 2


@pytest.mark.parametrize("reader", [SYSTEMD, PROCPS])
def test_a_name_with_a_dot_is_told_from_two_names(reader: Reader) -> None:
    texts = ["net/ipv4/conf/eth0.100/rp_filter = 1", "net.ipv4.conf.eth0/100.rp_filter = 2"]
    assert winner(*texts, reader=reader, key=LAN) == 2
    assert winner("net.ipv4.conf.*.rp_filter = 3", reader=reader, key=LAN) == 3


def test_sysctl_conf_is_read_by_procps_alone_and_last() -> None:
    files = {f"{ETC}/z.conf": f"{TTL} = 1", SYSCTL_CONF: f"{TTL} = 2"}
    assert resolve_sysctl(files, [TTL])[TTL].winner.value == 1
    assert resolve_sysctl(files, [TTL], PROCPS)[TTL].winner.place == f"{SYSCTL_CONF}:1"


@pytest.mark.parametrize("reader", [SYSTEMD, PROCPS])
def test_a_winner_knows_what_it_shadows(reader: Reader) -> None:
    files = {
        f"{ETC}/b.conf": f"{TTL} = 1\n{TTL} = 2",
        f"{ETC}/a.conf": f"net.ipv4.*_ttl = 3\n{TTL}=4",
    }
    bound = resolve_sysctl(files, [TTL], reader)[TTL]
    assert bound.winner.place == f"{ETC}/b.conf:2"
    assert [one.value for one in bound.shadowed] == [3, 4, 1]


@given(st.text(st.characters(max_codepoint=255)))
def test_any_bytes_are_resolved(text: str) -> None:
    files = {f"{ETC}/a.conf": text}
    for reader in (SYSTEMD, PROCPS, PROCPS_3):
        keys = [line.key for line in reader.read(files)]
        resolve_sysctl(files, keys, reader)


@pytest.mark.parametrize(
    ("distribution", "version", "reader"),
    [
        ("debian", "11", PROCPS_3),
        ("debian", "12", PROCPS),
        ("ubuntu", "22.04", PROCPS_3),
        ("ubuntu", "24.04", PROCPS),
        ("rocky", "9.4", PROCPS),
        ("rhel", "8.10", PROCPS_3),
        ("debian", "", PROCPS),
        ("arch", "1", PROCPS),
    ],
)
def test_the_procps_of_a_distribution(distribution: str, version: str, reader: Reader) -> None:
    vendor = find_distribution({"ID": distribution, "VERSION_ID": version})
    assert find_procps(vendor) is reader
