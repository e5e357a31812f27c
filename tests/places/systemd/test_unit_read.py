# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a unit are found where systemd finds them, aliases and templates included."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.host.look import Look
from mlhost_limits.host.manager_read import Shown
from mlhost_limits.systemd import read as systemd_read
from mlhost_limits.systemd.read import World
from mlhost_limits.systemd.unit_read import read_manager_files, read_unit_files

U = "a.service"
ETC, LIB = "/etc/systemd/system", "/usr/lib/systemd/system"


def write(root: Path, path: str, text: str) -> None:
    """Write a file, or a link where the text is an arrow and what it leads to."""
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if text.startswith("-> "):
        target.symlink_to(text[3:])
    else:
        target.write_text(text)


def found(root: Path, unit: str) -> tuple[str | None, list[str]]:
    main, dropins = read_unit_files(unit, str(root))
    return main.path if main else None, [source.path for source in dropins]


@pytest.mark.parametrize("unit", ["ssh.service", "sshd.service"])
@pytest.mark.parametrize(
    "link", [f"{LIB}/ssh.service", "ssh.service", "../../../usr/lib/systemd/system/ssh.service"]
)
def test_an_alias_is_the_unit_that_it_leads_to(tmp_path: Path, unit: str, link: str) -> None:
    """Debian links sshd.service to ssh.service: a drop-in of either name counts for both."""
    write(tmp_path, f"{LIB}/ssh.service", "[Service]\n")
    write(tmp_path, f"{ETC}/sshd.service", f"-> {link}")
    write(tmp_path, f"{ETC}/sshd.service.d/a.conf", "")
    write(tmp_path, f"{ETC}/ssh.service.d/b.conf", "")
    dropins = [f"{ETC}/ssh.service.d/b.conf", f"{ETC}/sshd.service.d/a.conf"]
    assert found(tmp_path, unit) == (f"{LIB}/ssh.service", dropins)


def test_a_link_to_a_file_elsewhere_keeps_its_name(tmp_path: Path) -> None:
    write(tmp_path, "/opt/other.service", "[Service]\n")
    write(tmp_path, f"{ETC}/x.service", "-> /opt/other.service")
    assert found(tmp_path, "x.service") == (f"{ETC}/x.service", [])


def test_a_link_that_hangs_is_no_unit(tmp_path: Path) -> None:
    write(tmp_path, f"{ETC}/x.service", "-> /opt/none.service")
    write(tmp_path, f"{LIB}/x.service", "[Service]\n")
    assert found(tmp_path, "x.service") == (f"{LIB}/x.service", [])
    assert found(tmp_path, "y.service") == (None, [])


def test_a_link_to_dev_null_masks(tmp_path: Path) -> None:
    write(tmp_path, f"{ETC}/x.service", "-> /dev/null")
    write(tmp_path, f"{LIB}/x.service", "[Service]\n")
    main, _ = read_unit_files("x.service", str(tmp_path))
    assert main == (f"{ETC}/x.service", "")


def test_an_instance_comes_from_its_template(tmp_path: Path) -> None:
    write(tmp_path, f"{LIB}/x@.service", "[Service]\n")
    write(tmp_path, f"{ETC}/x@.service.d/a.conf", "")
    write(tmp_path, f"{ETC}/x@.service.d/.b.conf", "")
    assert found(tmp_path, "x@1.service") == (f"{LIB}/x@.service", [f"{ETC}/x@.service.d/a.conf"])
    write(tmp_path, f"{ETC}/x@1.service", "[Service]\n")
    assert found(tmp_path, "x@1.service")[0] == f"{ETC}/x@1.service"


@pytest.mark.parametrize("unit", ["job@1.service", "work@1.service"])
def test_instances_of_a_template_and_of_its_alias_are_one_unit(tmp_path: Path, unit: str) -> None:
    """What either name, or either template, has for drop-ins counts; another instance's do not."""
    write(tmp_path, f"{LIB}/job@.service", "[Service]\n")
    write(tmp_path, f"{ETC}/work@.service", f"-> {LIB}/job@.service")
    names = ("job@1", "job@", "work@1", "work@")
    for number, name in enumerate((*names, "job@2", "work@2")):
        write(tmp_path, f"{ETC}/{name}.service.d/{number}.conf", "")
    expected = [f"{ETC}/{name}.service.d/{number}.conf" for number, name in enumerate(names)]
    assert found(tmp_path, unit) == (f"{LIB}/job@.service", expected)


def test_an_alias_of_a_template_whose_instance_has_a_file_is_another_unit(tmp_path: Path) -> None:
    write(tmp_path, f"{LIB}/job@.service", "[Service]\n")
    write(tmp_path, f"{ETC}/work@.service", f"-> {LIB}/job@.service")
    write(tmp_path, f"{ETC}/work@1.service", "[Service]\n")
    write(tmp_path, f"{ETC}/work@1.service.d/a.conf", "")
    assert found(tmp_path, "job@1.service") == (f"{LIB}/job@.service", [])


def test_an_instance_that_is_enabled_keeps_its_own_drop_ins(tmp_path: Path) -> None:
    """A link of its name leads to the template."""
    write(tmp_path, f"{ETC}/job@.service", "[Service]\n")
    write(tmp_path, f"{ETC}/job@1.service", "-> job@.service")
    write(tmp_path, f"{ETC}/job@1.service.d/a.conf", "")
    assert found(tmp_path, "job@1.service")[1] == [f"{ETC}/job@1.service.d/a.conf"]
    assert found(tmp_path, "job@2.service")[1] == []


@pytest.mark.parametrize(
    ("library", "main"),
    [
        ("/usr/lib/systemd/libsystemd-shared-247.so", None),
        ("/usr/lib/x86_64-linux-gnu/systemd/libsystemd-shared-252.22-1.so", None),
        (
            "/usr/lib/x86_64-linux-gnu/systemd/libsystemd-shared-257.so",
            "/usr/lib/systemd/system.conf",
        ),
        ("/usr/lib/none", "/usr/lib/systemd/system.conf"),
    ],
)
def test_old_systemd_knows_one_system_conf(tmp_path: Path, library: str, main: str | None) -> None:
    write(tmp_path, library, "")
    write(tmp_path, "/usr/lib/systemd/system.conf", "")
    write(tmp_path, "/etc/systemd/system.conf.d/a.conf", "[Manager]\n")
    write(tmp_path, "/run/systemd/system.conf.d/b.conf", "[Manager]\n")  # Gone at its boot.
    files = read_manager_files(str(tmp_path))
    assert (files.main.path if files.main else None) == main
    assert files.dropins == [("/etc/systemd/system.conf.d/a.conf", "[Manager]\n")]
    write(tmp_path, "/etc/systemd/system.conf", "x")
    assert read_manager_files(str(tmp_path)).main == ("/etc/systemd/system.conf", "x")


def test_a_manager_is_asked_once_about_a_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    shown = Shown({}, 7, False, 0.0)

    def show(unit: str) -> Shown | None:
        asked.append(unit)
        return shown if unit == U else None

    monkeypatch.setattr(systemd_read, "show_unit", show)
    world = World(Look())
    for _time in range(2):
        assert (world.show_unit(U), world.show_unit("b.service")) == (shown, None)
    assert asked == [U, "b.service"]
