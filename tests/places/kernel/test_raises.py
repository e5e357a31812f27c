# SPDX-License-Identifier: GPL-3.0-or-later
"""However many findings ask for fs.nr_open, and in whatever order: the highest is what stays."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest
from mlhost_limits.core.values import Declaration
from mlhost_limits.kernel.raises import raise_nr_open

VALUES = ("1048576", "2000000", "3000000")


def paste(tmp_path: Path, values: tuple[str, ...], line: Declaration | None = None) -> str:
    """Return what is stated last of files below a folder, after all commands, each from a shell."""
    for value in values:
        command = raise_nr_open(int(value), 0, line).commands[-1][-1]
        subprocess.run(
            ["/bin/sh", "-c", command.replace("/etc/sysctl.d", str(tmp_path))], check=True
        )
    (file,) = tmp_path.iterdir()
    return file.name + ": " + file.read_text().split("\n")[-2]


@pytest.mark.parametrize("values", [*itertools.permutations(VALUES)])
@pytest.mark.parametrize("before", [None, "vm.swappiness = 1", "fs.nr_open = 9\n", ""])
def test_the_highest_stays(tmp_path: Path, values: tuple[str, ...], before: str | None) -> None:
    file = tmp_path / "95-site.conf"
    if before is not None:
        file.write_text(before)
    assert paste(tmp_path, values) == "95-site.conf: fs.nr_open = 3000000"
    assert (before or "").strip() in file.read_text().split("\n")


def test_it_is_read_after_what_beat_it(tmp_path: Path) -> None:
    line = Declaration("/usr/lib/sysctl.d/zz.conf", 1, "fs.nr_open = 9", 9)
    assert paste(tmp_path, ("4",), line) == "zz.site.conf: fs.nr_open = 4"
    line = line._replace(path="/usr/lib/sysctl.d/50-a.conf")
    (tmp_path / "zz.site.conf").unlink()
    assert paste(tmp_path, ("4",), line) == "95-site.conf: fs.nr_open = 4"


def test_it_hides_what_has_its_name(tmp_path: Path) -> None:
    line = Declaration("/usr/lib/sysctl.d/95-site.conf", 1, "fs.nr_open = 9", 9)
    assert paste(tmp_path, ("4",), line) == "95-site.conf: fs.nr_open = 4"


@pytest.mark.parametrize(
    "path", ["/etc/rc.local", "/etc/tmpfiles.d/a.conf", "/etc/tuned/x/tuned.conf"]
)
def test_a_script_that_sets_it_is_left_to_a_person(path: str) -> None:
    line = Declaration(path, 2, "sysctl -w fs.nr_open=9", 9)
    remedy = raise_nr_open(4, 0, line)
    assert (remedy.text, remedy.commands) == (
        f'let {path}:2 "sysctl -w fs.nr_open=9" give fs.nr_open 4 at least',
        (),
    )
    assert len(raise_nr_open(4, 4, line).commands) == 1
