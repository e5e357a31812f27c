# SPDX-License-Identifier: GPL-3.0-or-later
"""What an image's files will give is told before the first boot, and its remedies are for a tree."""

from __future__ import annotations

import pytest
from mlhost_limits.core.cause import RAISES, Cause, Remedy
from mlhost_limits.core.finding import FAIL, FORETOLD, PASS, UNKNOWN, Observation, Requirement
from mlhost_limits.core.forecast import (
    NEEDS_BOOT,
    Forecast,
    conclude,
    list_extremes,
    settle,
    skip,
    tell,
)
from mlhost_limits.core.values import UNLIMITED, Bound, Declaration

WANTED = Requirement("session:a", "memlock", "hard", 2**20, unit="bytes")
LINE = Declaration("/etc/x.conf", 3, "x", 2**20)


def test_nobody_starts_from_less_or_from_more() -> None:
    assert list_extremes() == ((0, 0), (UNLIMITED, UNLIMITED))


@pytest.mark.parametrize(
    ("forecast", "wanted", "told"),
    [
        (Forecast(PASS, 2**20, LINE), WANTED, "predicted memlock hard 1MiB by /etc/x.conf:3"),
        (Forecast(PASS, "a b"), WANTED._replace(bound="value"), "predicted memlock a b"),
        (Forecast(PASS), WANTED, "predicted memlock hard"),
        (Forecast(UNKNOWN), WANTED, f"{NEEDS_BOOT}, so the first boot decides"),
        (Forecast(UNKNOWN, reason="odd"), WANTED, "odd, so the first boot decides"),
    ],
)
def test_what_is_sure_passes_with_the_first_boot(
    forecast: Forecast, wanted: Requirement, told: str
) -> None:
    found = tell(wanted, forecast)
    assert (found.status, found.observation) == (UNKNOWN, Observation(None, FORETOLD, told))
    assert found.outlook == ("", "", forecast.status)


def fall_short(text: str, *commands: tuple[str, ...], root: str = "/", lacks: str = "") -> Remedy:
    cause = Cause("x", "why", Remedy(text, commands, "log in again"))
    found = tell(WANTED, Forecast(FAIL, 5, LINE, (cause,)), root, lambda folder: folder == lacks)
    assert (found.status, found.observation.value) == (FAIL, 5)
    assert found.outlook.after_boot == FAIL
    return found.causes[0].remedy


@pytest.mark.parametrize(
    "words",
    [
        *(
            ("sysctl", "--system"),
            ("systemctl", "restart", "x"),
            ("mount", "-a"),
            ("modprobe", "x"),
        ),
        ("sh", "-c", f'{RAISES}x)" ]'),
    ],
)
def test_what_changes_what_runs_is_left_out_for_a_tree(words: tuple[str, ...]) -> None:
    edit = ("sh", "-c", "echo 'x' >> /etc/sysctl.d/95-site.conf")
    assert fall_short("state it, and set the running value", words, edit) == Remedy(
        "state it", (edit,), "build it again"
    )


def test_a_folder_that_a_tree_lacks_is_made_first_and_in_the_tree() -> None:
    edit = ("sh", "-c", "echo 'x' >> /etc/sysctl.d/95-site.conf")
    made = ("mkdir", "-p", "/etc/sysctl.d")
    assert fall_short("x", edit, edit, lacks="/etc/sysctl.d").commands == (made, edit, edit)
    inside = fall_short("x", edit, root="/srv/image", lacks="/etc/sysctl.d").commands
    assert inside == (("chroot", "/srv/image", *made), ("chroot", "/srv/image", *edit))
    assert fall_short("x", edit, lacks="/etc/other").commands == (edit,)


def test_where_both_ends_say_the_same_it_is_sure() -> None:
    low, high = Forecast(PASS, 1), Forecast(PASS, 2)
    assert settle(low, high, "odd") == low
    assert settle(low, Forecast(FAIL), "odd") == Forecast(UNKNOWN, reason="odd")
    assert conclude(PASS, 1, Bound(LINE), ()) == Forecast(PASS, 1, LINE)
    assert conclude(PASS, 1, None, ()) == Forecast(PASS, 1)
    assert list(skip([WANTED], "odd")) == [(WANTED, Forecast(UNKNOWN, reason="odd"))]
