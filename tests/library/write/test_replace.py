# SPDX-License-Identifier: GPL-3.0-or-later
"""A file is replaced whole or not at all, keeps what it was besides its bytes, and a failure
leaves every file as it stood."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mlhost_limits.core.edit import Edit
from mlhost_limits.host.marks import make_mark
from mlhost_limits.write import replace
from mlhost_limits.write import temporary as rename
from mlhost_limits.write.lock import remove_leftovers
from mlhost_limits.write.replace import apply_edits, commit_edits, find_target, revert_edits
from mlhost_limits.write.temporary import remove_abandoned

from tests.worlds.dead import make_dead_mark

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="owners and mounts are root's to change")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "etc").mkdir()
    (tmp_path / "run").mkdir()
    return tmp_path


@pytest.fixture
def small_disk(root: Path) -> Iterator[Path]:
    """Mount a disk of a few pages on /etc of the tree."""
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "tmpfs", str(root / "etc")],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("no mounts here")
    yield root / "etc"
    subprocess.run(["umount", str(root / "etc")], check=True)


def tree(root: Path) -> dict[str, tuple[int, bytes | str]]:
    """Return mode and content of everything below a folder, temporary files too."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(root.rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        if path.is_symlink():
            found[str(path)] = (mode, os.readlink(path))
        elif path.is_file():
            found[str(path)] = (mode, path.read_bytes())
    return found


def refuse(*_arguments: object) -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_files_are_made_changed_and_removed(root: Path) -> None:
    (root / "etc/b").write_bytes(b"old")
    (root / "etc/c").write_bytes(b"old")
    edits = [
        Edit("/etc/x/y/a", None, b"\xff", mode=0o640),
        Edit("/etc/b", b"old", b""),
        Edit("/etc/c", b"old", None),
    ]
    os.umask(umask := os.umask(0o077))
    try:
        os.umask(0o077)
        commit_edits(apply_edits(edits, str(root)))
    finally:
        os.umask(umask)
    assert tree(root) == {
        str(root / "etc/b"): (0o644, b""),
        str(root / "etc/x/y/a"): (0o640, b"\xff"),
    }
    assert stat.S_IMODE((root / "etc/x").stat().st_mode) == 0o755


def identity(root: Path) -> dict[str, tuple[int, int, int]]:
    """Return which file each path names, and when that was last written."""
    return {
        str(path): (path.stat().st_ino, path.stat().st_mtime_ns, path.stat().st_uid)
        for path in root.rglob("*")
        if path.is_file()
    }


@pytest.fixture(params=["renameat2", "link"])
def either_rename(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with renameat2(2) and again without, as on NFS."""
    if request.param == "link":
        monkeypatch.setattr(rename, "_renameat2", lambda *_given: False)


def test_edits_are_taken_back(root: Path, either_rename: None) -> None:
    (root / "etc/b").write_bytes(b"old")
    (root / "etc/c").write_bytes(b"old")
    (root / "etc/c").chmod(0o600)
    os.utime(root / "etc/b", ns=(5, 7))
    before, files = tree(root), identity(root)
    edits = [
        Edit("/etc/made/a", None, b"new"),
        Edit("/etc/b", b"old", b"new"),
        Edit("/etc/c", b"old", None),
    ]
    changes = apply_edits(edits, str(root))
    assert (root / "etc/b").read_bytes() == b"new"
    revert_edits(changes)
    assert (tree(root), identity(root)) == (before, files)
    assert not (root / "etc/made").exists()


def test_one_file_that_cannot_be_put_back_does_not_keep_the_others(root: Path) -> None:
    for letter in "abc":
        (root / "etc" / letter).write_bytes(b"old")
    changes = apply_edits([Edit(f"/etc/{letter}", b"old", b"new") for letter in "abc"], str(root))
    (root / "etc/b").unlink()
    with pytest.raises(OSError, match=r"/etc/b: could not be put back: .*No such file"):
        revert_edits(changes)
    assert (root / "etc/a").read_bytes() == (root / "etc/c").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (Edit("/etc/a", b"other", b"new"), "was changed by somebody else"),
        (Edit("/etc/a", b"other", None), "was changed by somebody else"),
        (Edit("/etc/a", None, b"new"), "was made by somebody else"),
    ],
)
def test_what_somebody_else_wrote_meanwhile_stays(
    root: Path, either_rename: None, edit: Edit, says: str
) -> None:
    """Their file is left as they made it, and so is every file before it."""
    (root / "etc/a").write_bytes(b"theirs")
    (root / "etc/b").write_bytes(b"old")
    before, files = tree(root), identity(root)
    with pytest.raises(OSError, match=f"^/etc/a: {says} while this run was at work$"):
        apply_edits([Edit("/etc/b", b"old", b"new"), edit], str(root))
    assert (tree(root), identity(root)) == (before, files)


def test_the_other_names_of_a_file_keep_the_old_content(root: Path) -> None:
    """A backup made of hard links must not change with the file that it backs up."""
    (root / "etc/a").write_bytes(b"old")
    os.link(root / "etc/a", root / "etc/backup")
    commit_edits(apply_edits([Edit("/etc/a", b"old", b"new")], str(root)))
    assert (root / "etc/backup").read_bytes() == b"old"
    assert (root / "etc/a").read_bytes() == b"new"


@needs_root
def test_a_file_that_is_a_mount_point_is_named(root: Path, small_disk: Path) -> None:
    path = small_disk / "a"
    path.write_bytes(b"old")
    (root / "other").write_bytes(b"old")
    subprocess.run(["mount", "--bind", str(root / "other"), str(path)], check=True)
    try:
        before = tree(root)
        with pytest.raises(OSError, match=r"^/etc/a: is a mount point, which cannot be replaced"):
            apply_edits([Edit("/etc/a", b"old", b"new")], str(root))
        assert tree(root) == before
    finally:
        subprocess.run(["umount", str(path)], check=True)


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775])
def test_a_folder_that_others_may_write_to_is_refused(root: Path, mode: int) -> None:
    (root / "etc/open").mkdir()
    (root / "etc/open").chmod(mode)
    with pytest.raises(
        OSError, match=r"^/etc/open/x/a: users other than root may write to /etc/open$"
    ):
        apply_edits([Edit("/etc/open/x/a", None, b"new")], str(root))
    assert tree(root) == {}


@needs_root
@pytest.mark.parametrize("name", ["/home/alice/.bashrc", "/home/alice/.config/made/here"])
def test_a_users_file_is_never_edited_as_root(root: Path, name: str) -> None:
    """Nor is anything made there, whether the content is what the plan saw or not."""
    home = root / "home/alice"
    home.mkdir(parents=True)
    (home / ".bashrc").write_bytes(b"ulimit -n 64\n")
    os.chown(home, 65534, 65534)
    before = tree(root)
    with pytest.raises(OSError, match=rf"^{name}: users other than root may write to /home/alice$"):
        apply_edits([Edit(name, b"ulimit -n 64\n", b"")], str(root))
    assert tree(root) == before
    assert sorted(path.name for path in home.iterdir()) == [".bashrc"]


@needs_root
def test_a_link_that_a_user_put_in_place_of_a_folder_is_refused(root: Path) -> None:
    """A folder on the way that is a user's leads root nowhere, wherever its links lead."""
    shared = root / "etc/shared"
    (root / "etc/secret").write_bytes(b"root's")
    shared.mkdir()
    (shared / "a").symlink_to("/etc/secret")
    (root / "etc/long").symlink_to("shared/a")
    os.chown(shared, 65534, 65534)
    for path in ("/etc/shared/a", "/etc/long"):
        with pytest.raises(
            OSError, match=r"^/etc/secret: users other than root may write to /etc/sh"
        ):
            apply_edits([Edit(path, b"root's", b"")], str(root))
    assert (root / "etc/secret").read_bytes() == b"root's"


def test_leftovers_of_a_killed_run_are_removed(root: Path) -> None:
    (root / "var/tmp").mkdir(parents=True)
    dead, canary, living = make_dead_mark(), make_dead_mark(), make_mark()
    kept = [".mlhost-notes", f".mlhost-{living}", "mlhost.conf"]
    for name in (f".mlhost-{dead}", *kept):
        (root / "etc" / name).write_bytes(b"half")
    (root / f"etc/.mlhost-{make_dead_mark()}").mkdir()
    folders = [f"run/mlhost-limits-{dead}", f"var/tmp/mlhost-canary-{canary}"]
    for folder in (*folders, f"run/mlhost-limits-{living}"):
        (root / folder).mkdir(mode=0o700)
        (root / folder / "su").write_bytes(b"account")
    gone = [f"/etc/.mlhost-{dead}", *(f"{root}/{folder}" for folder in folders)]
    said = [f"{path}: left by a run that was killed, removed" for path in gone]
    assert remove_leftovers(["/etc", "/etc", "/gone"], str(root)) == said
    left = [*(f"etc/{name}" for name in kept), f"run/mlhost-limits-{living}/su"]
    assert sorted(tree(root)) == sorted(f"{root}/{name}" for name in left)
    assert remove_leftovers(["/etc"], str(root)) == []


@needs_root
def test_only_what_root_made_counts_where_others_may_write(root: Path) -> None:
    """A name of ours proves nothing in such a folder; in a closed one nobody else can give it."""
    theirs, ours = make_dead_mark(), make_dead_mark()
    for mark, owner in ((theirs, 12), (ours, 0)):
        (root / f"etc/.mlhost-{mark}").write_bytes(b"")
        os.chown(root / f"etc/.mlhost-{mark}", owner, owner)
    (root / "etc").chmod(0o775)
    assert remove_abandoned(str(root / "etc")) == [f".mlhost-{ours}"]
    (root / "etc").chmod(0o755)
    assert remove_abandoned(str(root / "etc")) == [f".mlhost-{theirs}"]


@needs_root
def test_owner_mode_and_attributes_stay(root: Path) -> None:
    path = root / "etc/a"
    path.write_bytes(b"old")
    os.chown(path, 12, 34)
    path.chmod(0o4751)
    os.setxattr(path, "user.note", b"\0said")
    commit_edits(apply_edits([Edit("/etc/a", b"old", b"new")], str(root)))
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (12, 34, 0o4751)
    assert os.getxattr(path, "user.note") == b"\0said"


def test_a_reader_finds_the_old_file_or_the_new(root: Path) -> None:
    path = root / "etc/a"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        apply_edits([Edit("/etc/a", b"old", b"new")], str(root))
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("target", ["real", "../etc/real", "/etc/real", "/etc/./other", "made"])
def test_a_link_inside_the_tree_is_followed_and_stays(root: Path, target: str) -> None:
    (root / "etc/real").write_bytes(b"old")
    (root / "etc/other").symlink_to("/etc/real")
    (root / "etc/a").symlink_to(target)
    before = None if target == "made" else b"old"
    apply_edits([Edit("/etc/a", before, b"new")], str(root))
    assert os.readlink(root / "etc/a") == target
    real = "made" if target == "made" else "real"
    assert (root / "etc" / real).read_bytes() == b"new"


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("/usr/a", "/usr/a"),
        ("../usr/a", "/usr/a"),
        ("/etcetera/a", "/etcetera/a"),
        ("/", ""),
        ("..", ""),
    ],
)
def test_a_link_that_leads_out_is_refused(root: Path, target: str, found: str) -> None:
    (root / "etc/a").symlink_to(target)
    (root / "etc/b").write_bytes(b"old")
    before = tree(root)
    with pytest.raises(OSError, match=f"^/etc/a: is a symbolic link to {found}, outside of /etc$"):
        apply_edits([Edit("/etc/b", b"old", b"new"), Edit("/etc/a", b"", b"new")], str(root))
    assert tree(root) == before


def test_a_loop_of_links_is_refused(root: Path) -> None:
    (root / "etc/a").symlink_to("b")
    (root / "etc/b").symlink_to("a")
    with pytest.raises(OSError, match=r"^/etc/a: is a loop of symbolic links$"):
        find_target("/etc/a", str(root))


EDITS = [
    Edit("/etc/a", b"old", b"new"),
    Edit("/etc/made", None, b"new"),
    Edit("/etc/b", b"old", None),
    Edit("/etc/c", b"old", b"new"),
]


@pytest.mark.parametrize("call", range(1, 4))
@pytest.mark.parametrize("name", ["fsync", "fchmod"])
def test_a_failure_leaves_every_file_as_it_stood(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: int
) -> None:
    for letter in "abc":
        (root / "etc" / letter).write_bytes(b"old")
        (root / "etc" / letter).chmod(0o600)
    before = tree(root)
    calls = iter(range(1, 99))
    real = getattr(os, name)
    monkeypatch.setattr(
        replace.os, name, lambda *given: refuse() if next(calls) == call else real(*given)
    )
    with pytest.raises(OSError, match="Input/output error"):
        apply_edits(EDITS, str(root))
    assert tree(root) == before


@pytest.mark.parametrize("call", range(1, 5))
def test_a_rename_that_fails_leaves_every_file_as_it_stood(
    root: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    for letter in "abc":
        (root / "etc" / letter).write_bytes(b"old")
    before, files = tree(root), identity(root)
    calls = iter(range(1, 99))

    def fail_once(real: Callable[..., object]) -> Callable[..., object]:
        return lambda *given: refuse() if next(calls) == call else real(*given)

    for name in ("swap", "place", "take_away"):
        monkeypatch.setattr(replace, name, fail_once(getattr(replace, name)))
    with pytest.raises(OSError, match="Input/output error"):
        apply_edits(EDITS, str(root))
    assert (tree(root), identity(root)) == (before, files)


@pytest.mark.parametrize("call", range(1, 4))
def test_an_old_file_that_cannot_be_read_any_more_is_put_back(
    root: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """It is looked at after the swap, when a failure must still undo that swap."""
    for letter in "abc":
        (root / "etc" / letter).write_bytes(b"old")
    before, files = tree(root), identity(root)
    calls = iter(range(1, 99))
    real = replace._read
    monkeypatch.setattr(
        replace, "_read", lambda path: refuse() if next(calls) == call else real(path)
    )
    with pytest.raises(OSError, match="Input/output error"):
        apply_edits(EDITS, str(root))
    assert (tree(root), identity(root)) == (before, files)


def test_a_file_that_is_gone_already_stops_everything(root: Path) -> None:
    (root / "etc/a").write_bytes(b"old")
    before = tree(root)
    with pytest.raises(FileNotFoundError):
        apply_edits(EDITS[:3], str(root))
    assert tree(root) == before


def test_an_interrupt_leaves_no_temporary_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(replace.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        apply_edits([Edit("/etc/a", None, b"new")], str(root))
    assert tree(root) == {}


@needs_root
def test_a_full_disk_changes_nothing(small_disk: Path, root: Path) -> None:
    (small_disk / "a").write_bytes(b"a" * 20000)
    before = tree(root)
    edits = [Edit("/etc/a", b"a" * 20000, b"b" * 30000), Edit("/etc/b", None, b"c" * 30000)]
    with pytest.raises(OSError, match="No space left on device"):
        apply_edits(edits, str(root))
    assert tree(root) == before
