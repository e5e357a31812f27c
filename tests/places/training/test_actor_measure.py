# SPDX-License-Identifier: GPL-3.0-or-later
"""Root's remedies touch only what no user can exchange before they are pasted."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlhost_limits.core.cause import Cause
from mlhost_limits.training import folder_measure as actor
from mlhost_limits.training.cache_check import check_cache
from mlhost_limits.training.files_check import check_cache_files
from mlhost_limits.training.folder_measure import find_actor, is_roots
from mlhost_limits.training.folder_rules import FolderFacts
from mlhost_limits.training.policy import Training

NOBODY = 65534
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder away")


@pytest.fixture
def top() -> Iterator[Path]:
    """Return a folder of root's that everyone may go through."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "srv"
        folder.mkdir()
        for one in (folder.parent, folder):
            one.chmod(0o755)
        yield folder


def give(folder: Path, mode: int = 0o755) -> Path:
    folder.mkdir(parents=True)
    os.chown(folder, NOBODY, NOBODY)
    folder.chmod(mode)
    return folder


@ROOT_ONLY
def test_whose_the_way_is_says_who_acts(top: Path) -> None:
    home = give(top / "home")
    (home / "roots").mkdir()
    (top / "closed").mkdir()
    sticky, shared = top / "sticky", top / "shared"
    for folder, mode in ((sticky, 0o1777), (shared, 0o775)):
        folder.mkdir()
        folder.chmod(mode)
    (sticky / "roots").mkdir()
    give(sticky / "users")
    (top / "link").symlink_to("closed")
    (top / "file").write_text("")
    names = ("closed", "closed/absent/deeper", "sticky/roots", "absent")
    assert [name for name in names if not is_roots(f"{top}/{name}")] == []
    others = ["home", "home/roots", "home/absent", "shared", "shared/absent", "sticky"]
    others += ["sticky/absent", "sticky/users", "link", "file", "file/below"]
    assert [name for name in others if is_roots(f"{top}/{name}")] == []


@ROOT_ONLY
@pytest.mark.parametrize(
    ("user", "owner", "who"),
    [
        ("alice", "root", "alice"),
        ("root", "bob", "bob"),
        ("root", "root", None),
        ("root", "", None),
    ],
)
def test_in_a_users_folder_a_user_acts_or_nobody(
    top: Path, user: str, owner: str, who: str | None
) -> None:
    home = give(top / "home")
    facts = FolderFacts(f"{home}/run", user, "a directory", owner=owner)
    assert find_actor(facts, [facts.path]) == who
    assert find_actor(facts, [f"{top}/run"]) == ""


def test_who_is_not_root_acts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actor.os, "geteuid", lambda: 1000)
    assert find_actor(FolderFacts("/home/a/run", "a", "a directory"), ["/home/a/run"]) == ""


def blame(path: Path, user: str = "nobody") -> Cause:
    (cause,) = next(check_cache(Training(cache_dir=str(path), user=user))).causes
    return cause


@ROOT_ONLY
def test_a_directory_is_made_and_given_by_root_where_no_link_can_be(top: Path) -> None:
    run = top / "run"
    assert blame(run).remedy.lines == [f"install -d -o nobody -m 0750 {run}"]
    run.mkdir()
    assert blame(run).remedy.lines == [f"chown nobody {run}", f"chmod u+rwx {run}"]


@ROOT_ONLY
def test_in_a_users_folder_the_user_makes_it(top: Path) -> None:
    home = give(top / "home")
    (line,) = blame(home / "run").remedy.lines
    assert line == f"env -i /sbin/runuser -P -u nobody -- mkdir -p -m 0750 {home}/run >&2"
    (top / "etc").mkdir()
    (home / "run").symlink_to(top / "etc" / "new")  # By the time it is pasted.
    assert subprocess.run(["sh", "-c", line], stderr=subprocess.DEVNULL).returncode != 0
    assert list((top / "etc").iterdir()) == []


@ROOT_ONLY
def test_what_root_made_in_a_users_folder_is_given_by_nobody(top: Path) -> None:
    home = give(top / "home")
    (home / "run").mkdir()
    cause = blame(home / "run")
    assert (cause.code, cause.remedy.commands) == ("folder-not-writable", ())


@ROOT_ONLY
def test_a_users_own_closed_directory_is_opened_by_that_user(top: Path) -> None:
    home = give(top / "home")
    run = give(home / "run", 0o500)
    (line,) = blame(run).remedy.lines
    assert line == f"env -i /sbin/runuser -P -u nobody -- chmod u+rwx {run} >&2"


@ROOT_ONLY
@pytest.mark.parametrize("user", ["nobody", "root"])
def test_files_of_a_user_are_moved_by_that_user(top: Path, user: str) -> None:
    """Where a user's folder in a cache of root's leads elsewhere by then, root's files stay."""
    cache, etc = top / "cache", top / "etc"
    deep = give(cache / "of" / "deep")
    os.chown(deep.parent, NOBODY, NOBODY)
    (deep / "x.pt").write_bytes(b"")
    etc.mkdir()
    (etc / "x.pt").write_text("root's")
    training = Training(cache_dir=str(cache), user=user)
    causes = [cause for one in check_cache_files(training) for cause in one.causes]
    lines = [line for cause in causes for line in cause.remedy.lines]
    (deep / "x.pt").unlink()
    deep.rmdir()
    deep.symlink_to(etc)
    for line in lines:
        subprocess.run(["sh", "-c", line], stderr=subprocess.DEVNULL)
    assert (etc / "x.pt").read_text() == "root's"
    assert all("-u nobody --" in line for line in lines)
    assert bool(lines) == (user == "nobody")
