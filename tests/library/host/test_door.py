# SPDX-License-Identifier: GPL-3.0-or-later
"""Root opens only what is root's all the way down, and nothing that is not a regular file."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.core.quote import say_error
from mlhost_limits.host import door
from mlhost_limits.host.children import run_in_children
from mlhost_limits.host.door import ForeignError, NoFileError, connect, open_file, open_folder
from mlhost_limits.host.files import read_each
from mlhost_limits.host.owned import ask_owner
from mlhost_limits.host.policy_file import read_policy_file

NOBODY = 65534
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="whom to trust is a question for root")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Make a file of root's with links to it, as a host has them."""
    (tmp_path / "etc/x.d").mkdir(parents=True)
    (tmp_path / "etc/x.d/file").write_text("own")
    (tmp_path / "etc/link").symlink_to("x.d/file")
    (tmp_path / "etc/up").symlink_to("../etc/./x.d/../link")
    (tmp_path / "etc/folder").symlink_to("x.d")
    (tmp_path / "absolute").symlink_to("/etc/up")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "hangs").symlink_to("none")
    return tmp_path


@pytest.fixture
def closed() -> Iterator[Path]:
    """Make a folder that all may enter, with a file and a folder that root alone may open."""
    top = Path(tempfile.mkdtemp())
    top.chmod(0o755)
    (top / "shut").mkdir(mode=0o700)
    (top / "file").write_text("x")
    (top / "file").chmod(0o600)
    yield top
    shutil.rmtree(top)


def read(path: str, root: str = "/") -> str:
    return str(door.read_handle(open_file(path, root), 99, path).decode())


@pytest.mark.parametrize("path", ["etc/x.d/file", "etc/link", "etc/up", "etc/folder/file"])
def test_what_is_roots_is_opened_through_links(tree: Path, path: str) -> None:
    assert read(f"{tree}/{path}") == "own"
    assert read(f"/{path}", str(tree)) == "own"


def test_an_absolute_link_starts_at_the_top_of_the_tree(tree: Path) -> None:
    assert read("/absolute", str(tree)) == "own"
    assert read("/../../../etc/link", str(tree)) == "own"


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("none", FileNotFoundError),
        ("none/none", FileNotFoundError),
        ("hangs", FileNotFoundError),
        ("etc/link/none", NotADirectoryError),
        ("etc", IsADirectoryError),
        ("loop", OSError),
    ],
)
def test_what_is_not_there(tree: Path, path: str, error: type[OSError]) -> None:
    for root, asked in (("/", f"{tree}/{path}"), (str(tree), path)):
        with pytest.raises(error):
            open_file(asked, root)


def give(path: Path, **what: Any) -> None:
    os.chown(path, what.get("uid", 0), what.get("gid", 0), follow_symlinks=False)
    if "mode" in what:
        path.chmod(what["mode"])


def exchange(path: Path) -> None:
    """Put a link of somebody else's in the place of a folder."""
    path.rename(path.with_name("aside"))
    path.symlink_to("aside")
    give(path, uid=NOBODY)


def name_twice(top: Path) -> None:
    """Give a file of a sticky folder a second name."""
    give(top / "etc/x.d", mode=0o1777)
    os.link(top / "etc/x.d/file", top / "2")


CASES: dict[str, tuple[Callable[[Path], None], int]] = {
    "a file of another": (lambda top: give(top / "etc/x.d/file", uid=NOBODY), NOBODY),
    "a folder of another": (lambda top: give(top / "etc/x.d", uid=NOBODY), NOBODY),
    "a folder above": (lambda top: give(top / "etc", uid=NOBODY), NOBODY),
    "a link of another": (lambda top: exchange(top / "etc/x.d"), NOBODY),
    "a file that all may write": (lambda top: give(top / "etc/x.d/file", mode=0o666), 0),
    "a file of a group": (lambda top: give(top / "etc/x.d/file", gid=9, mode=0o660), 0),
    "a folder that all may write": (lambda top: give(top / "etc/x.d", mode=0o777), 0),
    "a folder of a group": (lambda top: give(top / "etc", gid=9, mode=0o775), 0),
    "a second name in a sticky folder": (name_twice, 0),
}


@pytest.mark.parametrize(("change", "uid"), CASES.values(), ids=CASES)
def test_what_others_decide_is_not_opened(
    tree: Path, change: Callable[[Path], None], uid: int
) -> None:
    change(tree)
    with pytest.raises(ForeignError) as caught:
        open_file(f"{tree}/etc/x.d/file")
    assert caught.value.uid == uid


def test_what_stays_roots_is_opened(tree: Path) -> None:
    """A sticky folder keeps its owner's files; the group of root is root's."""
    give(tree / "etc/x.d", mode=0o1777)
    assert read(f"{tree}/etc/link") == "own"
    give(tree / "etc/x.d", mode=0o775)
    assert read(f"{tree}/etc/link") == "own"


def test_a_missing_file_is_missing_wherever_it_would_be(tree: Path) -> None:
    """Many a host has /usr/local open to a group, and nothing of ours in it."""
    give(tree / "etc", gid=9, mode=0o775)
    with pytest.raises(FileNotFoundError):
        open_file(f"{tree}/etc/none")


def test_a_tree_of_somebodys_is_theirs(tree: Path) -> None:
    """An image may be its builder's, in which what is another's is not opened."""
    for path in [tree, *tree.rglob("*")]:
        give(path, uid=NOBODY)
    assert read("/etc/up", str(tree)) == "own"
    give(tree / "etc/x.d/file", uid=0)
    with pytest.raises(ForeignError):
        read("/etc/up", str(tree))


def test_nothing_but_regular_files_is_opened(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe waits, a device acts: opening a watchdog arms it."""
    os.mkfifo(tree / "pipe")
    os.mknod(tree / "device", 0o20600, os.makedev(1, 5))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tree / "socket"))
    opened: list[object] = []
    really_open = os.open

    def note(path: str, *rest: Any, **more: Any) -> int:
        opened.append(path)
        return really_open(path, *rest, **more)

    monkeypatch.setattr(os, "open", note)
    for name, is_empty in (("pipe", True), ("device", False), ("socket", False)):
        with pytest.raises(NoFileError, match=r"not a regular file$") as caught:
            open_file(f"{tree}/{name}")
        assert caught.value.is_empty == is_empty
        assert name not in opened
    listener.close()
    with pytest.raises(NoFileError) as caught:
        open_file("/dev/null")
    assert caught.value.is_empty


def test_a_folder_is_listed_by_the_same_rule(tree: Path) -> None:
    os.close(open_folder(f"{tree}/etc/folder"))
    give(tree / "etc/x.d", uid=NOBODY)
    with pytest.raises(ForeignError):
        open_folder(f"{tree}/etc/folder")


def test_a_socket_is_roots_and_answered_by_root(tree: Path) -> None:
    address = str(tree / "s")
    until = time.monotonic() + 60
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        connect(address, until).close()
        give(tree / "s", uid=NOBODY)
        with pytest.raises(ForeignError):
            connect(address, until)
    with pytest.raises(OSError, match="is not a socket"):
        connect(f"{tree}/etc/link", until)
    with pytest.raises(FileNotFoundError):
        connect(f"{tree}/none", until)


def test_a_socket_of_roots_that_somebody_else_answers(tree: Path) -> None:
    """The name may be root's and who listens not: a folder that was given away for a moment."""
    address = str(tree / "s")
    for path in (tree, *tree.parents):
        if "pytest-of" in str(path):
            path.chmod(0o777 if path == tree else 0o755)
    code = (
        f"import socket, time; s = socket.socket(socket.AF_UNIX); s.bind({address!r}); s.listen()"
    )
    words = ["/usr/bin/python3", "-c", f"{code}; print(1, flush=True); time.sleep(60)"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, user=NOBODY) as child:
        assert child.stdout
        child.stdout.readline()
        tree.chmod(0o755)
        give(tree / "s", uid=0)
        with pytest.raises(ForeignError) as caught:
            connect(address, time.monotonic() + 60)
        child.kill()
    assert caught.value.uid == NOBODY


def test_who_is_not_root_opens_what_the_kernel_lets_them(tree: Path) -> None:
    for path in (tree, *tree.parents):
        if str(path).startswith("/tmp/"):
            path.chmod(0o755)
    give(tree / "etc/x.d/file", uid=NOBODY)

    def look() -> str:
        os.setuid(NOBODY)
        return read(f"{tree}/etc/link")

    assert run_in_children([look], 60.0)[0].value == "own"


def test_a_file_of_the_kernel_is_bounded() -> None:
    assert door.read_kernel_file("/proc/self/comm")
    with pytest.raises(OSError, match="is larger than 5 bytes"):
        door.read_kernel_file("/proc/self/status", 5)


@pytest.mark.parametrize(
    ("name", "look", "named"),
    [
        ("file", open_file, "file"),
        ("file", read_policy_file, "file"),
        ("shut", open_folder, "shut"),
        ("shut/a/b", open_file, "shut/a"),
        ("./shut//a", lambda path: list(read_each([path, f"{path}b"])), "shut/a"),
        ("file", lambda path: open_file("/file", path.rpartition("/")[0]), "file"),
    ],
)
def test_what_a_user_may_not_open_is_named_from_the_top(
    closed: Path, name: str, look: Callable[[str], object], named: str
) -> None:
    def attempt() -> str:
        try:
            look(f"{closed}/{name}")
        except OSError as error:
            return str(say_error(error))
        return ""

    assert ask_owner(NOBODY, attempt) == f"{closed}/{named}: Permission denied"
