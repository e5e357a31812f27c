# SPDX-License-Identifier: GPL-3.0-or-later
"""A name that a script's shell puts together is seen, and another's is left alone."""

from __future__ import annotations

import pytest
from mlhost_limits.kernel.boot_names import _LONGEST, may_name
from mlhost_limits.kernel.boot_scripts import find_script_writes

KEY = "vm.max_map_count"
SETS = [
    "for k in max_map_count; do sysctl -w vm.$k=65530; done",
    "for k in swappiness max_map_count\ndo\n  sysctl -q -w vm.$k=65530\ndone",
    "N=max_map\nsysctl -w vm.${N}_count=65530",
    'N=max_map_count\nsysctl -w "vm.$N=65530"',
    "A=map\nB=max_${A}\nsysctl -w vm.${B}_count=65530",
    "sysctl -w vm.max_'map'_count=65530",
    'sysctl -w "vm.max"_map_count=65530',
    "sysctl -w vm.max\\_map_count=65530",
    "sysctl -w vm.$(echo max_map_count)=65530",
    "sysctl -w vm.`echo max_map`_count=65530",
    "sysctl -w vm.max_${M:-map}_count=65530",
    "sysctl vm/$UNSET=65530",
    "set_it() { sysctl -w vm.$1=65530; }\nset_it max_map_count",
    "while read k v; do sysctl -w vm.$k=$v; done < /opt/list",
    "k=swappiness\nread k\nsysctl -w vm.$k=1",
    "k=max\nk+=_map_count\nsysctl -w vm.$k=1",
    "k=$(cat /opt/k)\nsysctl -w vm.$k=1",
    "LIST='swappiness max_map_count'\nfor k in $LIST; do sysctl -w vm.$k=65530; done",
    "a=(max_map_count)\nsysctl -w vm.${a[0]}=65530",
    "C='sysctl -w vm.max_map'\neval ${C}_count=65530",
    "cd /proc/sys/vm && echo 65530 | tee max_${N}_count",
    "N=max_map_count\nF=/proc/sys/vm/$N\necho 65530 > $F",
    'N=max_map\nF=/proc/sys/vm/${N}_count\necho 65530 | tee -a "$F"',
]
HARMLESS = [
    "N=swappiness\nsysctl -w vm.$N=10",
    "for k in rp_filter accept_redirects; do sysctl -w net.ipv4.conf.all.$k=1; done",
    "for i in eth0 eth1; do sysctl -w net.ipv4.conf.$i.rp_filter=1; done",
    "for k in swappiness dirty_ratio; do\n  sysctl -w vm.$k=10\ndone",
    "for i in $(ls /sys/class/net); do sysctl -w net.ipv6.conf.$i.accept_ra=0; done",
    "sysctl -n vm.$N",
    "V=10\nsysctl -w vm.swappiness=$V",
    "sysctl -w vm.'swappiness'=10",
    "LOG=/var/log/x\nsysctl -w vm.swappiness=1 > $LOG",
    "cd /proc/sys/vm\nN=swappiness\necho 1 > $N",
    'cd /proc/sys/vm\necho 1 > "/var/log/$N"',
    "sysctl -w net.core.$N=1",
    "N=max_map_count_of_mine\nsysctl -w vm.$N=1",
]


@pytest.mark.parametrize("script", SETS)
def test_a_name_that_is_put_together_is_not_known(script: str) -> None:
    writes = list(find_script_writes(KEY, {"/etc/rc.local": f"#!/bin/sh\n{script}\n"}))
    assert writes
    assert {write.at.value for write in writes} == {""}


@pytest.mark.parametrize("script", HARMLESS)
def test_another_name_that_is_put_together_is_left_alone(script: str) -> None:
    assert list(find_script_writes(KEY, {"/etc/rc.local": f"#!/bin/sh\n{script}\n"})) == []


def test_what_is_long_or_has_many_values_ends_soon() -> None:
    assert not may_name(f"sysctl -w vm.$k={'1' * 5000}", KEY, "")
    many = "".join(f"{name}='{' '.join(f'{name}{at}' for at in range(50))}'\n" for name in "abcde")
    loops = "".join(f"for {name * 2} in ${name}; do :; done\n" for name in "abcde")
    assert may_name("sysctl -w vm.$aa$bb$cc$dd$ee=1", KEY, f"{many}{loops}")
    ring = "a=$b\nb=$a\n"
    assert may_name("sysctl -w vm.$a=1", KEY, ring)


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("\n".join(f"{a}={n}${b}" for a, b in zip("ABCDEFGH", "BCDEFGHA") for n in range(30)),
         "sysctl -w vm.$A=1", True),
        (f"B={'x' * 4000}\nC={'$B' * 1300}\nA={'$C' * 1300}", "sysctl -w vm.$A=1", True),
        ("\n".join(f"V{n}=$V{n * 7 % 2000}$V{n * 13 % 2000}" for n in range(2000)),
         "sysctl -w " + " ".join(f"vm.$V{n}=1" for n in range(300)), True),
        ("\n".join(f"A{n}={m}" for n in range(400) for m in range(3)),
         "sysctl -w vm." + "".join(f"$A{n}" for n in range(400)) + "=1", False),
    ],
    ids=["chain", "long", "web", "product"],
)  # fmt: skip
def test_variables_that_name_one_another_end(text: str, line: str, told: bool) -> None:
    """What is too much to be followed may set it, and is not followed for ever."""
    assert may_name(line, KEY, text) == told


def test_many_parts_that_are_computed_end() -> None:
    assert not may_name(f"sysctl vm.{'$(x)' * 40}Z=1", KEY, "")
    assert may_name(f"sysctl vm.{'$(x)' * 40}t=1", KEY, "")


def test_a_word_that_stands_whole_is_no_name_put_together() -> None:
    assert not may_name(f"sysctl -w {KEY}=1", KEY, "")
    assert may_name("sysctl -w vm.$N=1", KEY, "")
    assert not may_name(f"sysctl -w vm.$N=1 {'x' * _LONGEST}", KEY, "")


@pytest.mark.parametrize(
    ("line", "text", "may"),
    [
        *(
            ("sysctl -w vm.$X=1", f"for X in {' '.join(map(str, range(number)))}; do", may)
            for number, may in ((32, False), (33, True))
        ),
        *(
            ("sysctl -w vm.$A=1", f"{chain}=swappiness", may)
            for chain, may in (("A=$B\nB=$C\nC=$D\nD", False), ("A=$B\nB=$C\nC=$D\nD=$E\nE", True))
        ),
        ("sysctl -w vm.$X=1".ljust(4096), "", True),
        ("sysctl -w vm.$X=1".ljust(4097), "", False),
        ("sysctl -w vm.$X=1".ljust(4096 - 8), "X=swappiness", False),
        ("sysctl -w vm.$X=1".ljust(4097 - 8), "X=swappiness", True),
        ("sysctl -w fs.$X=1", f"X={'a' * 4096}", True),
        ("sysctl -w fs.$X=1", f"X={'a' * 4097}", False),
        ("echo 1 > sys/vm/$X", "cd /proc", True),
        ("echo 1 > sys/fs/$X", "cd /proc", False),
        ("echo 1 > /$X", "cd /proc", False),
    ],
    ids=range(13),
)
def test_what_is_more_or_longer_than_that_may_be_anything(line: str, text: str, may: bool) -> None:
    assert may_name(line, KEY, text) is may
