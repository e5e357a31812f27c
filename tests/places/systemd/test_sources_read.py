# SPDX-License-Identifier: GPL-3.0-or-later
"""All that decides a unit is found, with what lies beside it unread, and when it changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mlhost_limits.systemd import sources_read as unit_sources
from mlhost_limits.systemd.sources_read import find_change, read_sources

LINE = "[Service]\nLimitNOFILE=5\n"


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Return the folder of a person's units and that of packages."""
    etc, lib = tmp_path / "etc", tmp_path / "lib"
    for folder in (etc / "x.service.d", lib):
        folder.mkdir(parents=True)
    (etc / "x.service").write_text(LINE)
    monkeypatch.setattr(unit_sources, "_WRITABLE", (str(etc),))
    monkeypatch.setattr(unit_sources, "_TOP", str(etc))
    return str(etc), str(lib)


def strays(folders: tuple[str, str]) -> list[tuple[str, str]]:
    found = read_sources("x.service", folders).strays
    return [(stray.source.path, stray.path) for stray in found]


def test_a_weaker_file_of_the_same_name_is_hidden(folders: tuple[str, str]) -> None:
    Path(folders[1], "x.service").write_text("[Service]\n")
    files = read_sources("x.service", folders)
    assert files.main
    assert files.main.text == LINE
    assert [one.path for one in files.others] == [f"{folders[1]}/x.service"]


def test_a_link_to_the_same_file_hides_nothing(folders: tuple[str, str]) -> None:
    Path(folders[1], "x.service").hardlink_to(Path(folders[0], "x.service"))
    assert read_sources("x.service", folders).others == ()


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("limits", "limits.conf"),
        ("50-limits.cfg", "50-limits.conf"),
        ("limits.CONF", "limits.conf"),
        ("override.conf.txt", "override.conf"),
        (".hidden.conf", "hidden.conf"),
        ("taken.txt", "taken-site.conf"),
    ],
)
def test_a_file_of_another_name_is_not_read(
    folders: tuple[str, str], name: str, better: str
) -> None:
    folder = f"{folders[0]}/x.service.d"
    Path(folder, "taken.conf").write_text("")
    Path(folder, name).write_text(LINE)
    assert strays(folders) == [(f"{folder}/{name}", f"{folder}/{better}")]


@pytest.mark.parametrize("name", ["a.conf~", "a.conf.bak", "a.conf.dpkg-old", ".a.conf.swp", "d"])
def test_what_somebody_left_is_no_drop_in(folders: tuple[str, str], name: str) -> None:
    path = Path(folders[0], "x.service.d", name)
    path.mkdir() if name == "d" else path.write_text(LINE)
    assert strays(folders) == []


@pytest.mark.parametrize("name", ["x.d", "X.service.d", "x.services.d"])
def test_a_drop_in_in_another_folder_is_not_read(folders: tuple[str, str], name: str) -> None:
    Path(folders[0], name).mkdir()
    Path(folders[0], name, "a.conf").write_text(LINE)
    right = f"{folders[0]}/x.service.d/a.conf"
    assert strays(folders) == [(f"{folders[0]}/{name}/a.conf", right)]


def test_files_that_are_too_large_are_refused(folders: tuple[str, str]) -> None:
    Path(folders[0], "x.service").write_text("#" * 2**19)
    with pytest.raises(ValueError, match=r"x\.service: its files are too large"):
        read_sources("x.service", folders)


def test_aliases_in_a_ring_are_refused(folders: tuple[str, str]) -> None:
    Path(folders[0], "a.service").symlink_to(f"{folders[0]}/b.service")
    Path(folders[0], "b.service").symlink_to(f"{folders[0]}/a.service")
    with pytest.raises(ValueError, match="ring"):
        read_sources("a.service", folders)


def test_the_last_change_is_a_file_s_or_else_a_folder_s(folders: tuple[str, str]) -> None:
    files = read_sources("x.service", folders)
    path, changed = find_change(files, "x.service", 0.0, folders)
    assert changed > 0
    main = f"{folders[0]}/x.service"
    since = os.stat(main).st_ctime
    assert find_change(files, "x.service", since - 1, folders)[0] in (path, main)
    later = since + 3600
    assert find_change(files, "x.service", later, folders) == ("", 0.0)
    # What was removed shows in its folder alone.
    only = files._replace(manager=None, manager_dropins=(), main=None)
    assert find_change(only, "x.service", since - 1, folders)[0] != ""
