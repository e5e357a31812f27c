# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a workspace are ours alone, and given back byte for byte."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from mlhost_limits.core.edit import HEADER
from mlhost_limits.workspace.plan import (
    FSTAB,
    PROFILE,
    TMPFILES,
    VARIABLES,
    Workspace,
    is_ours,
    plan_workspace,
)

PLAIN = Workspace("/scratch/cache", variables=VARIABLES)
PROLOG = "/etc/slurm/task-prolog.sh"
OPTIONS = "rw,nosuid,nodev,size=1048576,mode=1777,uid=root,gid=root,x-mlhost.workspace"
LINE = f"tmpfs /scratch/cache tmpfs {OPTIONS} 0 0"


def apply(wanted: Workspace, files: dict[str, str]) -> dict[str, str]:
    """Return the files after a plan."""
    plan = plan_workspace(wanted, files)
    assert not plan.problems
    after = dict(files)
    for edit in plan.edits:
        after.pop(edit.path, None)
        if edit.after is not None:
            after[edit.path] = edit.after.decode()
    assert not plan_workspace(wanted, after).edits
    return after


def test_a_plain_directory_has_a_rule_and_variables() -> None:
    after = apply(PLAIN._replace(age="10d"), {})
    assert after[TMPFILES] == f"{HEADER}\nd /scratch/cache 1777 root root 10d\n"
    assert 'export WIDS_CACHE="$mlhost_cache"' in after[PROFILE]
    assert set(after) == {TMPFILES, PROFILE}
    assert apply(PLAIN._replace(absent=True), after) == {}
    assert set(apply(PLAIN._replace(variables=()), after)) == {TMPFILES}


def test_a_second_workspace_leaves_the_first_alone() -> None:
    first = PLAIN._replace(age="10d", prolog=PROLOG)
    second = Workspace("/srv/embeddings", owner="alice", group="alice", mode="750", size=2**20)
    one = apply(first, {})
    both = apply(second, one)
    assert both[TMPFILES].split("\n")[1:] == [
        "d /scratch/cache 1777 root root 10d",
        "d /srv/embeddings 0750 alice alice -",
        "",
    ]
    assert {key: both[key] for key in (PROFILE, PROLOG)} == {
        key: one[key] for key in (PROFILE, PROLOG)
    }
    assert not plan_workspace(first, both).edits
    assert plan_workspace(second._replace(variables=("X",)), both).problems == (
        f"{PROFILE}: names directories below /scratch/cache; take that back with state absent, or"
        " give no variables for one of the two",
    )
    assert apply(second._replace(absent=True), both) == {**one, FSTAB: ""}
    left = apply(first._replace(absent=True), both)
    assert set(left) == {TMPFILES, FSTAB}


@pytest.mark.parametrize("fstab", [None, "", "# none\n", "/dev/sda1 / ext4 rw 0 1", "# end\n\n"])
def test_a_tmpfs_has_a_line_that_is_taken_out_again(fstab: str | None) -> None:
    files = {} if fstab is None else {FSTAB: fstab}
    wanted = PLAIN._replace(size=2**20)
    after = apply(wanted, files)
    assert LINE in after[FSTAB].split("\n")
    assert is_ours(after[FSTAB], "/scratch/cache")
    larger = apply(wanted._replace(size=2**21), after)
    assert larger[FSTAB] == after[FSTAB].replace("1048576", "2097152")
    back = apply(wanted._replace(absent=True), after)
    assert back.get(FSTAB, "") == (fstab or "")
    assert apply(PLAIN, after).get(FSTAB, "") == (fstab or "")


def test_a_prolog_is_a_program_and_a_note_says_where_to_name_it() -> None:
    wanted = PLAIN._replace(prolog=PROLOG)
    assert wanted.files == (*PLAIN.files, PROLOG)
    plan = plan_workspace(wanted, {})
    assert [(edit.path, edit.mode) for edit in plan.edits][1:] == [
        (PROLOG, 0o755),
        (TMPFILES, 0o644),
    ]
    assert plan.notes == (f"jobs of Slurm get it once slurm.conf states TaskProlog={PROLOG}",)
    after = apply(wanted, {})
    assert after[PROLOG].startswith(f"#!/bin/sh\n{HEADER}\n")
    assert apply(wanted._replace(absent=True), after) == {}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"path": "relative"}, "path (mlhost_limits_workspace_path): 'relative' was given"),
        ({"path": "/etc"}, "path (mlhost_limits_workspace_path): '/etc' was given"),
        ({"path": "/a b"}, "path (mlhost_limits_workspace_path): '/a b' was given"),
        ({"path": "/a/$(id)"}, "path (mlhost_limits_workspace_path): '/a/$(id)' was given"),
        ({"path": "/a/../etc"}, "path (mlhost_limits_workspace_path): '/a/../etc' was given"),
        (
            {"owner": "a b"},
            "owner (mlhost_limits_workspace_owner): 'a b' was given; accepted is a user",
        ),
        ({"group": ""}, "group (mlhost_limits_workspace_group): '' was given; accepted is a group"),
        (
            {"mode": "rwx"},
            "mode (mlhost_limits_workspace_mode): 'rwx' was given; accepted is an octal number, such as 1777",
        ),
        ({"age": "ten"}, "max_age (mlhost_limits_workspace_max_age): 'ten' was given"),
        (
            {"variables": ("A B",)},
            "variables (mlhost_limits_workspace_variables): 'A B' was given; accepted is a variable's name",
        ),
        (
            {"prolog": "x"},
            "task_prolog (mlhost_limits_workspace_task_prolog): 'x' was given; accepted is an absolute path",
        ),
        (
            {"prolog": PROLOG, "variables": ()},
            "task_prolog (mlhost_limits_workspace_task_prolog): sets variables, and variables",
        ),
    ],
)
def test_what_is_not_accepted_is_refused(change: dict[str, Any], problem: str) -> None:
    plan = plan_workspace(PLAIN._replace(**change), {})
    assert len(plan.problems) == 1
    assert plan.problems[0].startswith(problem)
    assert not plan.edits


def test_what_others_wrote_is_refused() -> None:
    foreign = {TMPFILES: "d /x\n", PROFILE: "true\n", PROLOG: "#!/bin/sh\ntrue\n"}
    foreign[FSTAB] = "/dev/sdb1 /scratch/cache/ ext4 rw 0 2\n#/dev/x /scratch/cache ext4 rw\n"
    wanted = PLAIN._replace(size=1, prolog=PROLOG)
    assert plan_workspace(wanted, foreign).problems == (
        f"{TMPFILES}: is of somebody else; move it out of the way first",
        f"{PROFILE}: is of somebody else; move it out of the way first",
        f"{PROLOG}: is of somebody else; move it out of the way first",
        '/etc/fstab:1 "/dev/sdb1 /scratch/cache/ ext4 rw 0 2" mounts /scratch/cache already;'
        " leave out the size",
    )
    assert not plan_workspace(PLAIN, {FSTAB: foreign[FSTAB]}).problems


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_each_job_has_a_directory_of_its_own(tmp_path: object, shell: str) -> None:
    """The snippets run as a login and as a task of Slurm run them; a planted link is not used."""
    top = f"{tmp_path}/cache"
    wanted = Workspace(top, variables=("WDS_CACHE",), prolog=PROLOG)
    files = apply(wanted, {})

    def run(script: str, **environment: str) -> str:
        done = subprocess.run(
            [shell],
            input=script,
            env={"PATH": "/usr/bin:/bin", **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        assert not done.stderr
        return done.stdout.strip()

    show = files[PROFILE] + 'echo "${WDS_CACHE-unset} ${mlhost_cache-unset}"\n'
    uid = run("id -u")
    subprocess.run(["mkdir", top], check=True)
    assert run(show) == f"{top}/{uid} unset"
    assert run(show, SLURM_JOB_ID="7") == f"{top}/{uid}-7 unset"
    job = {"SLURM_JOB_ID": "8", "SLURM_PROCID": "1"}
    assert run(files[PROLOG], **job) == f"export WDS_CACHE={top}/{uid}-8-1"
    subprocess.run(["ln", "-s", "/etc", f"{top}/{uid}-9"], check=True)
    assert run(show, SLURM_JOB_ID="9") == "unset unset"


@pytest.mark.parametrize(
    ("row", "mounts"),
    [
        ("/dev/sdb1 /scratch/cache ext4 rw", True),
        ("/dev/sdb1 /scratch/cache ext4", False),
        ("#/dev/sdb1 /scratch/cache ext4 rw", False),
        ("/dev/sdb1 /scratch/other ext4 rw 0 2", False),
    ],
)
def test_a_line_of_fstab_has_four_fields(row: str, mounts: bool) -> None:
    """The last two may be left out: fstab(5)."""
    problems = plan_workspace(PLAIN._replace(size=1), {FSTAB: f"{row}\n"}).problems
    assert ("already" in "".join(problems)) is mounts


def test_without_a_prolog_nothing_is_said_of_one() -> None:
    assert plan_workspace(PLAIN, {}).notes == ()
