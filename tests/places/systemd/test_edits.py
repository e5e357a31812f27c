# SPDX-License-Identifier: GPL-3.0-or-later
"""What a change of a unit's files leaves in thought is what the commands leave on the host."""

from __future__ import annotations

from mlhost_limits.systemd.edits import move, remove, state
from mlhost_limits.systemd.model import Stray
from mlhost_limits.systemd.unit_file import Source

from tests.worlds.unit_world import CONF_D, UNIT, D, manager, service, unit


def test_our_drop_in_goes_on_to_hold_what_it_held() -> None:
    other = f"{D}/10.conf"
    facts = unit({UNIT: service(), other: service("Nice=2"), f"{D}/95-site.conf": "[Unit]\nA=1\n"})
    _remedy, after = state("LimitNOFILE=5", facts)
    assert after.files.dropins == (
        Source(f"{D}/95-site.conf", "[Unit]\nA=1\n\n[Service]\nLimitNOFILE=5\n"),
        Source(other, service("Nice=2")),
    )


def test_so_does_that_of_the_manager() -> None:
    other = f"{CONF_D}/10.conf"
    files = {other: manager("A=2"), f"{CONF_D}/95-site.conf": manager("A=1")}
    facts = unit({UNIT: service(), **files})._replace(defaults_of="system.conf")
    remedy, after = state("LimitNOFILE=5", facts)
    assert remedy.text == f'state "DefaultLimitNOFILE=5" in {CONF_D}/95-site.conf'
    assert after.files.manager_dropins == (
        Source(f"{CONF_D}/95-site.conf", "[Manager]\nA=1\n\n[Manager]\nDefaultLimitNOFILE=5\n"),
        Source(other, manager("A=2")),
    )


def test_a_file_that_is_moved_is_no_stray_any_more_and_others_still_are() -> None:
    strays = tuple(Stray(Source(f"{D}/{one}", one), "", f"{D}/{one}.conf") for one in "ab")
    facts = unit({UNIT: service(), f"{D}/z.conf": "z"}, strays=strays)
    _remedy, after = move(strays[0].source, strays[0].path, facts)
    assert after.files.strays == strays[1:]
    assert after.files.dropins == (Source(f"{D}/a.conf", "a"), Source(f"{D}/z.conf", "z"))


def test_what_is_removed_is_gone_from_the_unit_and_from_the_manager() -> None:
    facts = unit({UNIT: service(), f"{D}/a.conf": "a", f"{D}/b.conf": "b", f"{CONF_D}/a.conf": "m"})
    _remedy, after = remove(f"{D}/a.conf", facts)
    assert [one.text for one in after.files.dropins] == ["b"]
    assert [one.text for one in after.files.manager_dropins] == ["m"]
    _remedy, after = remove(f"{CONF_D}/a.conf", after)
    assert after.files.manager_dropins == ()
