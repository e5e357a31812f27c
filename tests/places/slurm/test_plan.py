# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan for slurmd states what the policy asks, leaves slurm.conf alone unless told otherwise,
and can be taken back."""

from __future__ import annotations

import pytest
from mlhost_limits.core.edit import HEADER
from mlhost_limits.core.plan import SectionPlan
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.slurm.plan import DROP_IN, SlurmOptions, SlurmState, plan_slurm
from mlhost_limits.slurm.policy import SlurmPolicy
from mlhost_limits.systemd.model import Files, UnitFacts
from mlhost_limits.systemd.unit_file import Source

from tests.worlds.unit_world import MANAGER

C = "/etc/slurm/slurm.conf"
VENDOR = "/lib/systemd/system/slurmd.service"
LATER = "/etc/systemd/system/slurmd.service.d/95-site.conf"
FOREIGN = "/usr/lib/systemd/system/slurmd.service.d/99-vendor.conf"
DEBIAN = "[Service]\nExecStart=/usr/sbin/slurmd\nLimitNOFILE=131072\nLimitMEMLOCK=infinity\n"
POLICY = SlurmPolicy(
    {"nofile": Limit(65536, 200000), "memlock": Limit(UNLIMITED, UNLIMITED), "core": Limit(max=0)}
)
TEXT = f"{HEADER}\n[Service]\nLimitNOFILE=65536:200000\nLimitMEMLOCK=infinity\n"
LINE = "PropagateResourceLimitsExcept=MEMLOCK,NOFILE"
BLOCK = f"# BEGIN mlhost.limits\n{LINE}\n# END mlhost.limits\n"
DEFAULT, WRITE = SlurmOptions(), SlurmOptions(write_conf=True)


def unit(dropins: dict[str, str], main: str = DEBIAN) -> UnitFacts:
    sources = tuple(Source(path, text) for path, text in dropins.items())
    return UnitFacts("slurmd.service", Files(Source(VENDOR, main), sources), MANAGER)


def plan(
    files: dict[str, str],
    options: SlurmOptions = DEFAULT,
    policy: SlurmPolicy = POLICY,
    main: str = DEBIAN,
    served: bool = False,
) -> SectionPlan:
    confs = {path: text for path, text in files.items() if path.startswith("/etc/slurm/")}
    facts = unit({path: text for path, text in files.items() if path not in confs}, main)
    return plan_slurm(policy, SlurmState(facts, confs, C, served), 1048576, options)


def after(files: dict[str, str], planned: SectionPlan) -> dict[str, str]:
    """Return the files with the plan carried out."""
    assert not planned.problems
    result = dict(files)
    for edit in planned.edits:
        assert (edit.before or b"").decode() == files.get(edit.path, "")
        assert edit.kind == ("lines" if edit.path == C else "")
        if edit.after is None:
            del result[edit.path]
        else:
            result[edit.path] = edit.after.decode()
    return result


def test_limits_go_to_a_dropin_and_slurm_conf_is_left_alone() -> None:
    planned = plan({C: "ClusterName=x\n"})
    assert after({C: "ClusterName=x\n"}, planned) == {C: "ClusterName=x\n", DROP_IN: TEXT}
    assert planned.notes == (
        f"no line of {C} says otherwise, so Slurm lets each login decide memlock, nofile of its jobs;"
        f' write "{LINE}" in {C} on every node and run scontrol reconfigure'
        " (slurm_conf: true does it here)",
    )


def test_the_line_that_lets_logins_decide_is_named() -> None:
    planned = plan({C: "A=1\nPropagateResourceLimits=ALL\n"})
    assert planned.notes[0].startswith(
        f'{C}:2 "PropagateResourceLimits=ALL" lets each login decide memlock, nofile of its jobs; '
    )


@pytest.mark.parametrize("conf", ["PropagateResourceLimits=NONE\n", f"{LINE},CORE\n"])
def test_a_slurm_conf_that_does_needs_nothing(conf: str) -> None:
    planned = plan({C: conf}, WRITE)
    assert planned.notes == ()
    assert [edit.path for edit in planned.edits] == [DROP_IN]


@pytest.mark.parametrize("conf", ["A=1\n", "A=1", "", "PropagateResourceLimits=ALL\n", "B=\\\n1\n"])
def test_a_block_in_slurm_conf_comes_and_goes(conf: str) -> None:
    files = {C: conf}
    written = after(files, plan(files, WRITE))
    assert LINE in written[C]
    assert [edit.path for edit in plan(files, WRITE).edits] == [DROP_IN, C]
    assert "the same on every node" in plan(files, WRITE).notes[-1]
    assert plan(written, WRITE).edits == ()
    assert plan(written, WRITE).notes == ()
    assert after(written, plan(written, SlurmOptions(absent=True))) == files
    assert after(written, plan(written))[C] == conf  # It is no longer allowed.


def test_a_block_that_a_later_line_beats_moves_to_the_end() -> None:
    conf = f"{BLOCK}PropagateResourceLimitsExcept=CPU\n"
    written = after({C: conf}, plan({C: conf}, WRITE))
    start, _, end = written[C].partition("\n")
    assert start == "PropagateResourceLimitsExcept=CPU"
    assert "PropagateResourceLimitsExcept=CPU,MEMLOCK,NOFILE\n" in end


@pytest.mark.parametrize(
    ("conf", "problem"),
    [
        ("PropagateResourceLimits=foo\n", f"{C}:1: 'foo' is not a limit that Slurm knows"),
        ("nonsense\n", f"{C}:1 \"nonsense\": 'nonsense' is more than a key and its value; Slurm starts with none"),
        ("include x\n", f"/etc/slurm/x: is included by {C}, and missing"),
        ("# BEGIN mlhost.limits\n", f"{C}: '# BEGIN mlhost.limits' and '# END mlhost.limits' must stand there once each, in order"),
    ],
)  # fmt: skip
def test_a_slurm_conf_that_cannot_be_read_is_refused_where_it_would_be_written(
    conf: str, problem: str
) -> None:
    assert plan({C: conf}, WRITE).problems == (problem,)
    assert plan({C: conf}).problems == ()


def test_what_the_controller_hands_out_is_not_written() -> None:
    served = plan({C: ""}, WRITE, served=True)
    assert served.problems == (
        "slurm_conf: this node gets slurm.conf from its controller; write it there",
    )
    assert plan({}, WRITE).problems == (f"slurm_conf: {C} is missing on this host",)
    assert plan({}).problems == ()
    assert plan({}, WRITE._replace(absent=True)).problems == ()


def test_a_host_without_slurmd_has_no_dropin() -> None:
    planned = plan_slurm(POLICY, SlurmState(), 1048576, SlurmOptions())
    assert planned.edits == ()
    assert planned.notes == ("there is no slurmd.service here, so no job runs here",)
    assert plan_slurm(POLICY, SlurmState(), None, SlurmOptions(absent=True)) == SectionPlan()


def test_a_bound_that_is_not_asked_for_stays() -> None:
    policy = SlurmPolicy({"nofile": Limit(soft=200000), "memlock": Limit(hard=2**30)})
    text = after({}, plan({}, policy=policy))[DROP_IN]
    assert "LimitNOFILE=200000\n" in text
    assert "LimitMEMLOCK=1G\n" in text
    policy = SlurmPolicy({"nofile": Limit(hard=200000)})
    assert "LimitNOFILE=131072:200000\n" in after({}, plan({}, policy=policy))[DROP_IN]


def test_a_line_of_others_that_beats_ours_is_told_and_silenced_only_when_asked() -> None:
    low = "[Service]\nLimitNOFILE=1024\nLimitCORE=0\nLimitNOFILE=300000\n"
    files = {DROP_IN: TEXT, LATER: low, FOREIGN: "[Service]\nLimitNOFILE=2048\n"}
    shortfalls = [str(one) for one in plan(files).shortfalls]
    assert shortfalls == [
        f'{LATER}:2 "LimitNOFILE=1024" beats our "LimitNOFILE=65536:200000"',
        f'{FOREIGN}:2 "LimitNOFILE=2048" beats our "LimitNOFILE=65536:200000"',
    ]
    assert plan(files).edits == ()
    planned = plan(files, SlurmOptions(override=True))
    written = after(files, planned)
    assert written[LATER] == low.replace("LimitNOFILE=1", "#mlhost.limits# LimitNOFILE=1")
    assert written[FOREIGN] == files[FOREIGN]  # A package's file is left as it is.
    assert "was beating" in str(planned.shortfalls[0])
    assert after(written, plan(written))[LATER] == low
    gone = after(written, plan(written, SlurmOptions(absent=True)))
    assert gone == {LATER: low, FOREIGN: files[FOREIGN]}


def test_a_later_line_that_does_is_no_shortfall() -> None:
    enough = "[Service]\nLimitNOFILE=1024\nLimitNOFILE=300000\n"
    assert plan({LATER: enough}).shortfalls == ()


def test_no_file_is_made_where_nothing_is_set() -> None:
    policy = SlurmPolicy({"core": Limit(max=0)}, propagate=frozenset())
    assert plan({DROP_IN: TEXT}, policy=policy).edits[0].after is None


@pytest.mark.parametrize(
    ("files", "main", "problem"),
    [
        ({DROP_IN: "[Service]\n"}, DEBIAN, f"{DROP_IN}: was not written by mlhost.limits; move it"),
        (
            {"/run/systemd/system/slurmd.service.d/90-mlhost-slurm.conf": ""},
            DEBIAN,
            f"/run/systemd/system/slurmd.service.d/90-mlhost-slurm.conf: hides {DROP_IN}, or is hidden by it; move it",
        ),
        ({}, "[Service\n", "slurmd.service: systemd cannot read its file"),
    ],
)
def test_what_is_refused(files: dict[str, str], main: str, problem: str) -> None:
    assert plan(files, main=main).problems == (problem,)


def test_a_block_that_is_still_right_stays_where_it_is() -> None:
    old = BLOCK.replace("MEMLOCK,", "")
    written = after({C: f"{old}A=1\n"}, plan({C: f"{old}A=1\n"}, WRITE))
    assert written[C] == f"{BLOCK}A=1\n"


def test_more_than_the_kernel_allows_is_refused() -> None:
    assert plan_slurm(POLICY, SlurmState(unit({})), 200000, SlurmOptions()).problems == ()
    planned = plan_slurm(POLICY, SlurmState(unit({})), 131072, SlurmOptions())
    assert planned.problems == ("jobs.slurm.limits.nofile: 200000 is above fs.nr_open 131072",)
