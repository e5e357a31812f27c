# SPDX-License-Identifier: GPL-3.0-or-later
"""Of the files of one name in tmpfiles.d, udev's rules.d and modprobe.d, the strongest is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.kernel.boot_scripts import find_script_writes
from mlhost_limits.kernel.boot_scripts_read import read_boot_scripts

KEY = "vm.max_map_count"
FILE = "/proc/sys/vm/max_map_count"
RULE = f'SUBSYSTEM=="net", RUN+="/sbin/sysctl -w {KEY}=%s"\n'
INSTALL = f"install x /sbin/sysctl -w {KEY}=%s\n"
WRITE = f"w {FILE} - - - - %s\n"
KINDS = [
    *(("udev/rules.d", "5.rules", RULE), ("tmpfiles.d", "a.conf", WRITE)),
    ("modprobe.d", "a.conf", INSTALL),
]


def _find(top: Path, files: dict[str, str], of_packages: bool = True) -> list[tuple[str, str]]:
    for name, text in files.items():
        file = top / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("/"):
            file.symlink_to(text)
        else:
            file.write_text(text)
    scripts = read_boot_scripts(str(top), of_packages=of_packages)
    return [(one.at.path, one.at.value) for one in find_script_writes(KEY, scripts)]


@pytest.mark.parametrize(("folder", "name", "line"), KINDS)
@pytest.mark.parametrize(
    ("tops", "strongest"),
    [
        (["/usr/lib", "/usr/local/lib", "/etc"], "/etc"),
        (["/usr/lib", "/usr/local/lib"], "/usr/local/lib"),
        (["/usr/lib"], "/usr/lib"),
        (["/lib", "/usr/lib"], "/usr/lib"),
    ],
)
def test_the_strongest_is_read(
    tmp_path: Path, folder: str, name: str, line: str, tops: list[str], strongest: str
) -> None:
    files = {f"{top[1:]}/{folder}/{name}": line % place for place, top in enumerate(tops, 5)}
    path = f"{strongest}/{folder}/{name}"
    assert _find(tmp_path, files) == [(path, str(5 + tops.index(strongest)))]


@pytest.mark.parametrize(("folder", "name", "line"), KINDS)
@pytest.mark.parametrize("mask", ["/dev/null", "# off\n"])
def test_a_mask_hides_what_a_package_brings(
    tmp_path: Path, folder: str, name: str, line: str, mask: str
) -> None:
    files = {f"usr/lib/{folder}/{name}": line % 5, f"etc/{folder}/{name}": mask}
    assert _find(tmp_path, files) == []


@pytest.mark.parametrize(
    ("files", "value"),
    [
        # The first line for a path is heeded, by the names of the files over all folders.
        ({"etc/tmpfiles.d/b.conf": WRITE % 5, "usr/lib/tmpfiles.d/a.conf": WRITE % 6}, "6"),
        ({"etc/tmpfiles.d/a.conf": WRITE % 5, "usr/lib/tmpfiles.d/b.conf": WRITE % 6}, "5"),
        ({"etc/tmpfiles.d/a.conf": WRITE % 5 + WRITE % 6}, "5"),
        ({"etc/tmpfiles.d/a.conf": WRITE % 5 + (WRITE % 6).replace("w", "w+")}, "6"),
        ({"etc/tmpfiles.d/a.conf": WRITE % 5 + (WRITE % 6).replace("nt ", "n? ")}, "6"),
        ({"etc/tmpfiles.d/a.conf": f"x {FILE}\n{WRITE % 5}"}, None),
        ({"etc/tmpfiles.d/a.conf": f"w {FILE}\n{WRITE % 5}"}, "5"),
    ],
)
def test_one_line_of_tmpfiles_for_each_path(
    tmp_path: Path, files: dict[str, str], value: str | None
) -> None:
    assert [value for _path, value in _find(tmp_path, files)][-1:] == [value] * bool(value)


def test_every_folder_of_cron_is_read(tmp_path: Path) -> None:
    for folder in ("crontabs/", "", "tabs/"):
        path = f"/var/spool/cron/{folder}root"
        assert (path, "5") in _find(tmp_path, {path[1:]: f"@reboot sysctl -w {KEY}=5\n"})
