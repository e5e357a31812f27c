# SPDX-License-Identifier: GPL-3.0-or-later
"""A value is stated where it counts, beside what others state."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.core.values import Declaration
from mlhost_limits.kernel.boot_scripts import ScriptWrite
from mlhost_limits.kernel.remedies import compare_lines, fix_by_stating, fix_script

from tests.worlds.kernel_world import MAPS, World

ETC, RUN, RC = "/etc/sysctl.d", "/run/sysctl.d", "/etc/rc.local"


@pytest.mark.parametrize(
    ("line", "rival", "code"),
    [
        ((f"{ETC}/a.conf", 2), (f"{ETC}/a.conf", 1), "sysctl-later-line-wins"),
        ((f"{ETC}/a.conf", 1), (f"{ETC}/a.conf", 2), "sysctl-name-beats-pattern"),
        ((f"{ETC}/a.conf", 1), (f"{ETC}/b.conf", 1), "sysctl-name-beats-pattern"),
        ((f"{ETC}/b.conf", 1), (f"{ETC}/a.conf", 1), "sysctl-later-file-wins"),
        ((f"{RUN}/a.conf", 1), (f"{ETC}/a.conf", 1), "sysctl-run-file-wins"),
        (("/usr/lib/sysctl.d/b.conf", 1), (f"{ETC}/a.conf", 1), "sysctl-vendor-file-wins"),
        ((f"{ETC}/a.conf", 1), ("/etc/sysctl.conf", 1), "sysctl-later-file-wins"),
        (("/etc/sysctl.conf", 1), (f"{ETC}/z.conf", 1), "sysctl-conf-wins"),
    ],
)
def test_why_one_line_beats_another(
    line: tuple[str, int], rival: tuple[str, int], code: str
) -> None:
    first, second = (Declaration(path, number, "", "") for path, number in (line, rival))
    assert compare_lines(first, second) == code


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({}, "95-site.conf"),
        ({f"{ETC}/95-site.conf": "a.b = 1"}, "95-site.conf"),
        ({f"{ETC}/95-site.conf": " \n"}, "99-zz-site.conf"),
        ({f"{RUN}/95-site.conf": "a.b = 1"}, "99-zz-site.conf"),
        ({"/lib/sysctl.d/95-site.conf": "a.b = 1"}, "99-zz-site.conf"),
        ({f"{ETC}/96-a.conf": f"{MAPS} = 1"}, "99-zz-site.conf"),
        ({f"{ETC}/zzzzz.conf": f"{MAPS} = 1"}, "zzzzz.site.conf"),
    ],
)
def test_the_file_in_which_a_value_is_stated(
    files: dict[str, str], name: str, tmp_path: Path
) -> None:
    before = World(tmp_path, {}, "1").gather()._replace(files=files)
    after = fix_by_stating(before, "7").facts.files
    (changed,) = [path for path, text in after.items() if files.get(path) != text]
    assert changed == f"{ETC}/{name}"
    assert after[changed].split("\n")[-2:] == [f"{MAPS} = 7", ""]


@pytest.mark.parametrize("index", [0, 1, 2])
def test_of_several_commands_one_is_changed(index: int, tmp_path: Path) -> None:
    head = f"sysctl -w {MAPS}="
    writes = [
        ScriptWrite(Declaration(RC, one, f"{head}{one}", str(one)), head) for one in (1, 2, 3)
    ]
    facts = World(tmp_path, {}, "1").gather()._replace(scripts=tuple(writes))
    values = [write.at.value for write in fix_script(index, facts, "7").facts.scripts]
    assert values == [*"123"[:index], "7", *"123"[index + 1 :]]
