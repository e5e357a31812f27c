# SPDX-License-Identifier: GPL-3.0-or-later
"""A sysctl that holds several numbers must have each of them, and none is ever lowered."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.core.edit import HEADER
from mlhost_limits.core.fields import parse_fields, raise_fields
from mlhost_limits.core.finding import FAIL, PASS, UNKNOWN, Observation, judge
from mlhost_limits.host.image import Tree
from mlhost_limits.host.look import Look
from mlhost_limits.kernel import diagnose
from mlhost_limits.kernel.causes import find_kernel_causes
from mlhost_limits.kernel.image import foresee_kernel
from mlhost_limits.kernel.model import KernelFacts
from mlhost_limits.kernel.plan import KernelOptions, plan_kernel
from mlhost_limits.kernel.policy import KernelValue, require_kernel
from mlhost_limits.schema import load_policy

SEM, OURS = "kernel.sem", "/etc/sysctl.d/90-mlhost.conf"
WANTED = KernelValue(fields=(250, 32000, 100, 128))
LOW, HIGH = "32000\t1024000000\t500\t32", "32000\t1024000000\t500\t32000"
ASKED = require_kernel(SEM, WANTED)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (HIGH, PASS),
        ("250 32000 100 128", PASS),
        (LOW, FAIL),
        ("249 32000 100 128", FAIL),
        ("250 32000 100", UNKNOWN),
        ("250", UNKNOWN),
        ("250 32000 100 many", UNKNOWN),
    ],
)
def test_each_number_is_judged(text: str, status: str) -> None:
    assert judge(ASKED, Observation(text, "")).status == status


def test_what_is_asked_for_is_told() -> None:
    assert ASKED.describe() == "250 32000 100 128"
    assert parse_fields("1 -2\t3") == (1, -2, 3)
    assert raise_fields((1, 5), "3 2", "9", "a b") == "3 5"


@pytest.mark.parametrize("raw", [[250, 32000, 100, 128], {"min": [250, 32000, 100, 128]}])
def test_a_policy_states_it_as_a_list(raw: object) -> None:
    assert load_policy({"kernel": {SEM: raw}}, "none").get("kernel") == {SEM: WANTED}


@pytest.mark.parametrize(
    ("running", "line", "write", "written"),
    [
        (LOW, "", "32000 1024000000 500 128", f"{SEM} = 32000 1024000000 500 128"),
        (HIGH, "", "", f"{SEM} = 32000 1024000000 500 32000"),
        (LOW, "1 32000 100 500", "32000 1024000000 500 128", f"{SEM} = 32000 1024000000 500 500"),
        (HIGH, "250 32000 100 128", "", ""),  # Somebody else states enough.
    ],
)
def test_no_number_is_lowered(running: str, line: str, write: str, written: str) -> None:
    files = {"/etc/sysctl.d/50-x.conf": f"{SEM} = {line}\n"} if line else {}
    plan = plan_kernel({SEM: WANTED}, files, {SEM: running}, KernelOptions())
    assert plan.writes == (((SEM, write),) if write else ())
    texts = [(edit.path, (edit.after or b"").decode()) for edit in plan.section.edits]
    assert texts == ([(OURS, f"{HEADER}\n{written}\n")] if written else [])
    again = plan_kernel(
        {SEM: WANTED}, {**files, **dict(texts)}, {SEM: write or running}, KernelOptions()
    )
    assert (again.section.edits, again.writes) == ((), ())


def test_another_number_of_numbers_is_refused() -> None:
    plan = plan_kernel({SEM: WANTED}, {}, {SEM: "1 2 3"}, KernelOptions())
    assert plan.section.problems == ("kernel.kernel.sem: holds '1 2 3', and 4 numbers were given",)


def test_a_line_that_states_too_little_of_one_is_named_and_mended() -> None:
    path = "/etc/sysctl.d/50-x.conf"
    facts = KernelFacts(SEM, LOW, {path: f"{SEM} = {LOW}\n"}, {}, {})
    (cause,) = find_kernel_causes(ASKED, facts)
    assert (cause.code, cause.at and cause.at.place) == ("sysctl-stated-too-low", f"{path}:1")
    assert f"{SEM} = 32000 1024000000 500 128" in cause.remedy.text


def test_a_running_value_is_judged_with_its_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnose, "read_sysctl", lambda _key: LOW)
    monkeypatch.setattr(diagnose, "explain_kernel", lambda findings, _look: findings)
    (found,) = diagnose.check_kernel({SEM: WANTED}, Look())
    assert (found.status, found.observation.value) == (FAIL, LOW)


@pytest.mark.parametrize(
    ("line", "status"), [(HIGH, PASS), (LOW, FAIL), ("250 32000", UNKNOWN), ("", UNKNOWN)]
)
def test_an_image_states_it_in_its_files(tmp_path: Path, line: str, status: str) -> None:
    for path in ("etc/sysctl.d", "usr/lib/systemd"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "usr/lib/systemd/systemd-sysctl").touch()
    (tmp_path / "etc/os-release").write_text("ID=debian\nVERSION_ID=12\n")
    (tmp_path / "etc/sysctl.d/a.conf").write_text(f"{SEM} = {line}\n" if line else "")
    ((_wanted, forecast),) = foresee_kernel({SEM: WANTED}, Tree(str(tmp_path)))
    assert forecast.status == status
