# SPDX-License-Identifier: GPL-3.0-or-later
"""What logind does about shared memory is predicted, and the line that decides it is named."""

from __future__ import annotations

import pytest
from mlhost_limits.core.distribution import find_distribution
from mlhost_limits.services.logind_causes import RELOAD, find_logind_causes
from mlhost_limits.services.logind_conf import predict_remove_ipc
from mlhost_limits.systemd.model import Files
from mlhost_limits.systemd.unit_file import Source

from tests.worlds.distributions import DEBIAN

CONF, CONF_D = "/etc/systemd/logind.conf", "/etc/systemd/logind.conf.d"


def files(main: str = "", **dropins: str) -> Files:
    sources = [Source(f"{CONF_D}/{name}.conf", text) for name, text in dropins.items()]
    conf = Source(CONF, main) if main else None
    return Files(None, (), conf, tuple(sources), vendor=DEBIAN)


NO, YES = "[Login]\nRemoveIPC=no\n", "[Login]\nRemoveIPC=yes\n"


@pytest.mark.parametrize(
    ("known", "removes"),
    [
        (files(), True),
        (files(NO), False),
        (files(NO.replace("no", "OFF")), False),
        (files(NO.replace("no", "never")), True),
        (files(NO.replace("Login", "Manager")), True),
        (files(NO.replace("RemoveIPC", "removeipc")), True),
        (files(NO, a=YES), True),
        (files(YES, b=NO, a=YES), False),
        (files(YES + "[broken", b=NO), True),
    ],
)
def test_what_logind_will_do(known: Files, removes: bool) -> None:
    assert predict_remove_ipc(known) is removes


@pytest.mark.parametrize("seen", [None, False])
def test_nothing_is_blamed_where_all_is_well(seen: bool | None) -> None:
    assert not find_logind_causes(False, files(NO), seen)


UNKNOWN = files()._replace(vendor=find_distribution({"ID": "plan9"}))


@pytest.mark.parametrize(
    ("seen", "codes"),
    [(None, []), (False, []), (True, ["logind-not-stated"])],
)
def test_where_no_default_is_known_what_is_seen_counts(seen: bool | None, codes: list[str]) -> None:
    assert [one.code for one in find_logind_causes(False, UNKNOWN, seen)] == codes


def test_a_line_is_blamed_and_a_later_one_states_it() -> None:
    (cause,) = find_logind_causes(False, files(a=NO, z=YES), True)
    assert cause.code == "logind-states-otherwise"
    assert cause.text == f'{CONF_D}/z.conf:2 "RemoveIPC=yes" says otherwise'
    assert cause.remedy.text == f'state "RemoveIPC=no" in {CONF_D}/zz-site.conf'
    assert cause.remedy.commands[-1] == RELOAD


def test_nobody_states_it() -> None:
    (cause,) = find_logind_causes(False, files(), True)
    assert cause.code == "logind-not-stated"
    assert cause.text == "no file states RemoveIPC, and logind's default is yes"
    assert cause.at is None


@pytest.mark.parametrize(
    ("wanted", "known", "what"),
    [(False, files(NO), f'{CONF}:2 "RemoveIPC=no"'), (True, files(), "what the files say now")],
)
def test_logind_has_not_read_its_files(wanted: bool, known: Files, what: str) -> None:
    (cause,) = find_logind_causes(wanted, known, not wanted)
    assert cause.code == "logind-not-reloaded"
    assert cause.text == f"{what} is not read yet by logind"
    assert cause.remedy.commands == (RELOAD,)
