# SPDX-License-Identifier: GPL-3.0-or-later
"""What a service that states nothing gets is traced to the manager's files, or to its age."""

from __future__ import annotations

import pytest
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import Rlimit
from mlhost_limits.processes.new_services import explain_new
from mlhost_limits.systemd.model import UnitFacts, outlive_boot
from mlhost_limits.systemd.unit_file import Source, list_slices, parse_unit

from tests.worlds.unit_world import CONF, CONF_D, WIDE_D, manager, service, unit

RELOAD = (("systemctl", "daemon-reload"),)
STOCK, ENOUGH = Rlimit(1024, 524288), Rlimit(1024, 1048576)
WANTED = Limit(1024, 1048576)
RIGHT = manager("DefaultLimitNOFILE=1024:1048576")


def new(files: dict[str, str]) -> UnitFacts:
    facts = unit(files)
    main = Source("mlhost-canary-0.service", "")
    return facts._replace(files=facts.files._replace(main=main), defaults_of="system.conf")


def explain(files: dict[str, str], has: Rlimit | None) -> tuple[list[str], Rlimit | None]:
    facts = new(files)
    verdict = explain_new("nofile", WANTED, has, facts, facts, RELOAD)
    return [cause.code for cause in verdict.causes], verdict.next_start


@pytest.mark.parametrize(
    ("files", "has", "codes"),
    [
        ({CONF: RIGHT}, ENOUGH, []),
        ({CONF: RIGHT}, None, []),
        ({}, STOCK, ["unit-not-stated"]),
        ({}, None, ["unit-not-stated"]),
        ({CONF: RIGHT, f"{CONF_D}/z.conf": manager("DefaultLimitNOFILE=9")}, Rlimit(9, 9), ["unit-manager-later-wins"]),
        ({CONF: manager("DefaultLimitNOFILE=9")}, Rlimit(9, 9), ["unit-manager-too-low"]),
        ({CONF: RIGHT, f"{WIDE_D}/z.conf": service("LimitNOFILE=9")}, Rlimit(9, 9), ["unit-beats-manager"]),
        ({CONF: RIGHT}, STOCK, ["unit-not-reloaded"]),
        ({CONF: RIGHT.replace("=1024:", "=64k:")}, STOCK, ["unit-line-ignored"]),
    ],
)  # fmt: skip
def test_what_is_blamed(files: dict[str, str], has: Rlimit | None, codes: list[str]) -> None:
    assert explain(files, has)[0] == codes


def test_what_the_manager_has_not_read_the_next_start_has_not_either() -> None:
    assert explain({CONF: RIGHT}, STOCK)[1] == STOCK
    assert explain({CONF: RIGHT}, None)[1] == ENOUGH


def test_the_managers_drop_in_states_it() -> None:
    facts = new({CONF: manager("DefaultLimitNOFILE=9")})
    (cause,) = explain_new("nofile", WANTED, None, facts, facts, RELOAD).causes
    assert cause.text == f'{CONF}:2 "DefaultLimitNOFILE=9" states too little'
    path = f"{CONF_D}/95-site.conf"
    assert cause.remedy.text == f'state "DefaultLimitNOFILE=1024:1048576" in {path}'
    assert cause.remedy.commands[0] == ("mkdir", "-p", CONF_D)
    assert "[Manager]" in cause.remedy.commands[1][2]
    assert cause.remedy.commands[-1] == RELOAD[0]


def test_two_limits_go_to_one_drop_in() -> None:
    old = {f"{CONF_D}/95-site.conf": manager("DefaultLimitCORE=0")}
    facts = new(old)
    (cause,) = explain_new("nofile", WANTED, None, facts, facts, RELOAD).causes
    assert f"in {CONF_D}/95-site.conf" in cause.remedy.text


def test_a_manager_that_lacks_its_files_and_states_nothing() -> None:
    limit = Limit(1024, 4096)
    (cause,) = explain_new("nofile", limit, Rlimit(9, 9), new({}), None, RELOAD).causes
    assert cause.text == (
        "what the files say now is not read yet: the service manager gives a new service 9:9"
    )
    assert cause.at is None


def test_what_a_boot_takes_away() -> None:
    facts = new({CONF: RIGHT, f"{CONF_D}/z.conf": manager("DefaultLimitNOFILE=9")})
    low = facts._replace(files=outlive_boot(facts.files))
    high = new({CONF: RIGHT})
    verdict = explain_new("nofile", WANTED, ENOUGH, high, low, RELOAD)
    assert [cause.code for cause in verdict.causes] == ["unit-manager-later-wins"]
    assert (verdict.next_start, verdict.at_boot) == (ENOUGH, Rlimit(9, 9))


def test_what_comes_after_a_boot_may_be_unknown() -> None:
    assert explain_new("nofile", WANTED, ENOUGH, new({CONF: RIGHT}), None, RELOAD).at_boot is None


@pytest.mark.parametrize(
    ("name", "text", "slices"),
    [
        ("x.service", "", ["system.slice"]),
        ("x-y@1.service", "", [r"system-x\x2dy.slice", "system.slice"]),
        ("x.service", "[Service]\nSlice=ml-gpu-a.slice", ["ml-gpu-a.slice", "ml-gpu.slice", "ml.slice"]),
        ("x.service", "[Service]\nSlice=", ["system.slice"]),
        ("x.service", "[Unit]\nSlice=a.slice", ["system.slice"]),
        ("x.service", "[Service]\nSlice=ml-%N.slice", ["ml-x.slice", "ml.slice"]),
        ("x@a.service", "[Service]\nSlice=%p-%i.slice", ["x-a.slice", "x.slice"]),
        ("a-x@b.service", "[Service]\nSlice=%j%%.slice", ["x%.slice"]),
        (r"x@a\x2db.service", "[Service]\nSlice=%I.slice", ["a-b.slice", "a.slice"]),
    ],
)  # fmt: skip
def test_the_slices_of_a_unit(name: str, text: str, slices: list[str]) -> None:
    assert list_slices(name, parse_unit(text, "")) == slices
