# SPDX-License-Identifier: GPL-3.0-or-later
"""A name tells whether the process that made a thing is gone; in doubt it is not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mlhost_limits.host import marks
from mlhost_limits.host.marks import is_abandoned, make_mark

from tests.worlds.dead import make_dead_mark, of_another_boot, of_another_space, use_again

LIBRARY = Path(__file__).parents[3]


def is_gone(mark: str, changed: float = 0.0) -> bool:
    return bool(is_abandoned(mark, changed))


def test_a_living_process_abandons_nothing_and_a_dead_one_all() -> None:
    assert not is_gone(make_mark())
    assert is_gone(make_dead_mark())


def test_a_number_that_another_process_has_now_saves_nothing() -> None:
    mark = make_mark()
    again = use_again(mark)
    assert again.split("-")[0] == mark.split("-")[0]
    assert is_gone(again)


def test_a_zombie_is_dead() -> None:
    code = "from mlhost_limits.host.marks import make_mark; print(make_mark())"
    script = f"import tests.conftest\n{code}"
    process = subprocess.Popen([sys.executable, "-c", script], cwd=LIBRARY, stdout=subprocess.PIPE)
    assert process.stdout
    with process.stdout as output:
        mark = output.read().decode().strip()
    while b"\nState:\tZ" not in Path(f"/proc/{process.pid}/status").read_bytes():
        time.sleep(0.01)
    assert is_gone(mark)
    process.wait()


def test_what_another_boot_made_is_abandoned_and_what_another_container_made_is_not() -> None:
    """What was changed since this boot by a process of another one is another host's."""
    assert is_gone(of_another_boot(make_mark()))
    assert not is_gone(of_another_boot(make_mark()), time.time())
    assert is_gone(of_another_space(of_another_boot(make_mark())))
    assert not is_gone(of_another_space(make_dead_mark()))


def test_where_the_boot_is_not_known_nothing_is_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = of_another_boot(make_mark())
    monkeypatch.setattr(marks, "_read_boot", lambda: "0" * 8)
    assert not is_gone(mark)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "9999999-x",
        "9999999",
        "1",
        "exporter",
        "9999999-0-0123abcd-0123abcd",
        "9999999-0-0123abcd-0123abcd-0123456789abcdef\n",
        "9999999-0-0123abcd-0123abcd-0123456789abcdef.d",
        "09-0-0123abcd-0123abcd-0123456789abcdef",
        "-1-0-0123abcd-0123abcd-0123456789abcdef",
        "٣-0-0123abcd-0123abcd-0123456789abcdef",
        "../etc",
    ],
)
def test_a_name_of_another_form_is_nobodys_to_remove(name: str) -> None:
    assert not is_gone(name)


def test_a_forked_process_makes_marks_of_its_own() -> None:
    assert make_dead_mark().split("-")[0] != str(os.getpid())
