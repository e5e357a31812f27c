# SPDX-License-Identifier: GPL-3.0-or-later
"""Who else writes a file is named with each cause, and before it is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.core.cause import Cause, Remedy
from mlhost_limits.core.edit import HEADER, Edit
from mlhost_limits.core.finding import FAIL, Finding, Observation, Requirement
from mlhost_limits.core.plan import SectionPlan, Shortfall
from mlhost_limits.core.report import format_reasons
from mlhost_limits.core.values import Declaration
from mlhost_limits.host import rivals as writers


@pytest.fixture
def puppet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declaration:
    path = tmp_path / "95-site.conf"
    path.write_text("# Managed by Puppet\n* - nofile 9\n")
    monkeypatch.setattr(writers, "find_packages", lambda _paths, _root: {"/etc/pack": "package p"})
    return Declaration(str(path), 2, "* - nofile 9", 9)


def test_a_cause_names_the_writer_of_its_file(puppet: Declaration) -> None:
    causes = (
        Cause("x", "why", Remedy("fix"), puppet),
        Cause("x", "why", Remedy("fix"), puppet._replace(path="/etc/pack")),
        Cause("x", "why", Remedy("fix"), puppet._replace(path="/etc/absent")),
        Cause("x", "why", Remedy("fix"), puppet._replace(path="command line")),
        Cause("x", "why", Remedy("fix")),
    )
    finding = Finding(FAIL, Requirement("p", "i", "soft", 1), Observation(0, ""), causes)
    (named,) = writers.name_writers([finding])
    puppets = 'line 1 says "# Managed by Puppet"'
    assert [cause.writer for cause in named.causes] == [puppets, "package p", "", "", ""]
    assert f"     who  {puppets}" in format_reasons(named)
    assert named.causes[0].as_dict()["writer"] == puppets


def test_a_plan_says_who_may_undo_it(puppet: Declaration) -> None:
    beaten = SectionPlan(shortfalls=(Shortfall(puppet, "ours", False),))
    changed = SectionPlan((Edit(puppet.path, b"# Managed by Puppet\n", b"x"),))
    own = SectionPlan((Edit(puppet.path, HEADER.encode(), b"x"), Edit("/etc/new", None, b"x")))
    said = f'{puppet.path}: line 1 says "# Managed by Puppet"; what is changed there may be undone'
    assert list(writers.describe_rivals([beaten])) == [said]
    assert list(writers.describe_rivals([changed])) == [said]
    assert list(writers.describe_rivals([own])) == []
