# SPDX-License-Identifier: GPL-3.0-or-later
"""What the specifiers of a unit stand for is put in before its commands are judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.kernel.boot_scripts import find_script_writes
from mlhost_limits.kernel.boot_scripts_read import read_boot_scripts
from mlhost_limits.kernel.boot_specifiers import find_written, put_specifiers
from mlhost_limits.kernel.boot_units import list_unread

KEY = "vm.max_map_count"
UNITS = "/etc/systemd/system"
UNIT, TEMPLATE = f"{UNITS}/x.service", f"{UNITS}/tune@.service"


@pytest.mark.parametrize(
    ("path", "text", "started", "put"),
    [
        (TEMPLATE, "run %i", ["tune@b.service", "tune@a.service"], "run a ; run b"),
        (TEMPLATE, "run %I %i", ["tune@a-b.service"], "run a/b a-b"),
        (TEMPLATE, "run %p %j %%i %n", ["tune@a.timer"], "run tune tune %i tune@a.service"),
        (TEMPLATE, "run %i", ["other@a.service"], "run %i"),
        (TEMPLATE, "run it", ["tune@a.service"], "run it"),
        (TEMPLATE, "# %i %%\nrun %i", ["tune@a.service"], "# %i %%\nrun a"),
        (UNIT, "run %n %t %F", ["x@a.service"], "run x.service /run %F"),
        (f"{TEMPLATE}.d/a.conf", "run %i", ["tune@a.service"], "run a"),
        (f"{UNITS}/tune@a.service.d/a.conf", "run %i", [], "run a"),
        ("/etc/cron.d/x", "run %i", [], "run %i"),
    ],
)
def test_a_template_stands_for_what_is_started(
    path: str, text: str, started: list[str], put: str
) -> None:
    found = put_specifiers(path, text, started)
    assert found == put
    assert [
        find_written(found, at, row) for at, row in enumerate(put.split("\n"), 1)
    ] == text.split("\n")


@pytest.mark.parametrize(
    ("line", "is_unread"),
    [
        ("ExecStart=-/opt/%H.sh", True),
        ("ExecStart=/bin/sh -e /opt/%H.sh", True),
        ("ExecStart=/sbin/sysctl -p /etc/%m.conf", True),
        ("ExecStart=/bin/sh -c 'date +%F; logger %m'", False),
        ("ExecStart=/bin/agent --host=%H --run=%t", False),
        ("# ExecStart=/opt/%H.sh", False),
    ],
)
def test_what_no_specifier_tells_is_unread(line: str, is_unread: bool) -> None:
    assert bool(list_unread(put_specifiers(UNIT, line, []))) is is_unread


def test_of_more_instances_than_anybody_starts_none_is_judged() -> None:
    started = [f"tune@{number:02}.service" for number in range(21)]
    found = put_specifiers(TEMPLATE, "[Service]\nExecStart=/opt/%i", started)
    assert (found, list_unread(found)) == ("[Service]\nExecStart=/opt/%i", {2})


@pytest.mark.parametrize(
    ("command", "instance", "value"),
    [
        ("/sbin/sysctl -w vm.%i=5", "max_map_count", ""),
        ("/sbin/sysctl -w %I=5", "vm-max_map_count", ""),
        (f"/sbin/sysctl -w {KEY}=5 kernel.hostname=%i", "a", "5"),
        ('/bin/sh -c "echo 5 > /proc/sys/vm/%i"', "max_map_count", ""),
        ("/sbin/sysctl -p /etc/tune/%i.conf", "low", "5"),
        ("/sbin/sysctl -w vm.%i=5", "swappiness", None),
    ],
)
def test_an_instance_names_a_key_or_a_file(
    tmp_path: Path, command: str, instance: str, value: str | None
) -> None:
    files = {
        TEMPLATE: f"[Service]\nType=oneshot\nExecStart={command}\n",
        f"{UNITS}/multi-user.target.wants/tune@{instance}.service": "",
        "/etc/tune/low.conf": f"{KEY} = 5\n",
    }
    for name, text in files.items():
        (tmp_path / name[1:]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name[1:]).write_text(text)
    writes = list(find_script_writes(KEY, read_boot_scripts(str(tmp_path), of_packages=True)))
    assert [one.at.value for one in writes if not one.loads] == [value] * (value is not None)
    assert all(one.at.text in files[one.at.path] for one in writes)
