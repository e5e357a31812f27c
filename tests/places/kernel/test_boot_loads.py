# SPDX-License-Identifier: GPL-3.0-or-later
"""What a boot loads, of sysctls and of modules, is read off the lines that say so."""

from __future__ import annotations

import pytest
from mlhost_limits.kernel.boot_changes import find_change
from mlhost_limits.kernel.boot_loader import find_loader_stops, find_loader_units
from mlhost_limits.kernel.boot_loads import FILES, GIVEN, OTHERS, find_made, judge_loads
from mlhost_limits.kernel.boot_modules import find_loads, find_stops

KNOWN = {"/a.conf": "a.b = 1\n"}


@pytest.mark.parametrize(
    ("text", "loads"),
    [
        ("sysctl --system", FILES),
        ("sysctl -p", FILES),
        ("sysctl -p /a.conf", ""),
        ("sysctl -p /b.conf", FILES),
        ("sysctl -w a.b=1", ""),
        ("echo a.b=1 | sysctl -p -", GIVEN),
        ("curl x | sysctl -p -", OTHERS),
        ("sysctl -p - < /x", OTHERS),
        ("echo a.b=1 > /b.conf\nsysctl -p /b.conf", GIVEN),
        ("curl x > /b.conf\nsysctl -p /b.conf", OTHERS),
        ("rm /etc/sysctl.d/a.conf\nsysctl --system", OTHERS),
        ("rm /etc/sysctl.d/a.conf\nsysctl -p /a.conf", ""),
        ("curl x > /etc/sysctl.conf\nsysctl -p /etc/sysctl.conf", OTHERS),
        ("ls /etc/sysctl.conf\nsysctl -p /etc/sysctl.conf", FILES),
        ("ls /etc/sysctl.d/x.conf\nsysctl -p /etc/sysctl.d/x.conf", FILES),
        ("ls /srv/x.conf\nsysctl -p /srv/x.conf", OTHERS),
        ("systemctl restart systemd-sysctl", FILES),
        ("systemctl try-restart procps.service", FILES),
        ("service procps restart", FILES),
        ("systemctl start systemd-sysctl", ""),
        ("systemctl restart foo; ls systemd-sysctl", ""),
        ("/usr/lib/systemd/systemd-sysctl", FILES),
        ("rm /etc/sysctl.d/a.conf\nsystemctl start procps", OTHERS),
        ("rm /etc/sysctl.d/a.conf\nsystemctl status procps", ""),
        ("please restart systemd-sysctl", ""),
    ],
)
def test_what_a_line_has_read(text: str, loads: str) -> None:
    assert judge_loads(text.split("\n")[-1], text, KNOWN) == loads


def test_the_files_that_a_script_writes() -> None:
    text = "echo > /a/b; echo >> '/c' | tee -a /d > /dev/null\necho > /proc/x > /a/b"
    assert find_made(text) == ["/a/b", "/c", "/d"]
    many = [f"/a/{number}" for number in range(51)]
    assert find_made("\n".join(f"echo > {one}" for one in many)) == many[:50]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("rm /etc/sysctl.d/a.conf", 1),
        ("true\n\nrm \\\n /etc/sysctl.d/a.conf", 3),
        ("# rm /etc/sysctl.d/a.conf", 0),
        ("ls /etc/sysctl.d/a.conf", 0),
        ("D=/etc/sysctl.d\nrm $D/a.conf", 2),
        ("D=/etc/sysctl.d\nE=/srv\nrm $E/a.conf", 0),
        ("cp /etc/sysctl.d/a.conf /srv", 0),
        ("cp /srv/a.conf /etc/sysctl.d/", 1),
        ("cp -t /etc/sysctl.d /srv/a.conf", 1),
        ("cat /x > /etc/sysctl.d/a.conf", 1),
        ("echo a.b=1 > /etc/sysctl.d/a.conf", 0),
        ("echo $A > /etc/sysctl.d/a.conf", 1),
        ("cat > /etc/sysctl.d/a.conf <<E\na.b=$A\nE", 1),
        ("[Service]\nExecStart=/bin/rm /etc/sysctl.d/a.conf", 2),
        ("[Service]\nDescription=rm /etc/sysctl.d/a.conf", 0),
        ("rm /etc/x", 0),
        ('# rm "/etc/sysctl.d/a.conf', 0),
        ("cp /srv/a.conf /etc/sysctl.d/ -f", 1),
        ("cp /etc/sysctl.d/a.conf /srv -f", 1),
    ],
)
def test_the_line_that_changes_what_a_boot_reads(text: str, line: int) -> None:
    assert find_change(text) == line


@pytest.mark.parametrize(("length", "line"), [(4096, 0), (4097, 2)])
def test_a_very_long_line_may_change_what_a_boot_reads(length: int, line: int) -> None:
    assert find_change(f"true\n{'ls /etc/sysctl.d/a.conf '.ljust(length, 'x')}") == line


def test_the_modules_that_a_boot_loads_or_not() -> None:
    text = "# x\n; y\n\n br-netfilter \nnf_conntrack"
    assert find_loads({"/a": text}) == {"br_netfilter", "nf_conntrack"}
    stops = "blacklist a-b\ninstall c /bin/true\ninstall d modprobe --ignore-install d\n# e\n"
    assert {name: at.line for name, at in find_stops({"/a": stops}).items()} == {"a_b": 1, "c": 2}


def test_the_words_of_a_boot_loader() -> None:
    text = "# systemd.wants=no\nX=systemd.wants=a systemd.wants=b.target\n"
    assert find_loader_units({"/c": text}) == ["a.service", "b.target"]
    text = "modprobe.blacklist=a-b,c module_blacklist=d systemd.mask=systemd-modules-load.service"
    assert list(find_loader_stops({"/c": text})) == ["a_b", "c", "d", ""]
