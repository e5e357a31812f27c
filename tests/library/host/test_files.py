# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a tree are read byte for byte, and no link leads out of the tree."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from mlhost_limits.host import files
from mlhost_limits.host.door import LoopError
from mlhost_limits.host.files import (
    follow_links,
    list_folder,
    read_bytes,
    read_each,
    read_folder,
    read_os_release,
    read_text,
    under,
)
from mlhost_limits.kernel.host_read import read_sysctl_files
from mlhost_limits.sessions.limits_read import find_broken_files, read_limits_files
from mlhost_limits.sessions.pam_limits import LIMITS_CONF, LIMITS_D


def write(root: Path, path: str, content: bytes | str = "") -> None:
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content.encode() if isinstance(content, str) else content)


def link(root: Path, path: str, target: str) -> None:
    (root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
    (root / path.lstrip("/")).symlink_to(target)


def test_every_byte_survives(tmp_path: Path) -> None:
    content = bytes(range(256)) + b"\r\n"
    write(tmp_path, "/a", content)
    assert read_bytes("/a", str(tmp_path)) == content
    assert (read_text("/a", str(tmp_path)) or "").encode("latin-1") == content
    assert read_bytes(str(tmp_path / "a")) == content


@pytest.mark.parametrize("path", ["/no", "/no/a", "/a/b", "/hangs"])
def test_what_is_absent_is_nothing(tmp_path: Path, path: str) -> None:
    write(tmp_path, "/a", "x")
    link(tmp_path, "/hangs", "/no/where")
    assert read_text(path, str(tmp_path)) is None
    assert read_text(f"{tmp_path}{path}") is None
    assert list_folder(path, str(tmp_path)) == []


def test_a_folder_is_an_empty_file(tmp_path: Path) -> None:
    assert read_text("/", str(tmp_path)) == ""


def test_a_file_beyond_reason_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST", 5)
    write(tmp_path, "/a", "12345")
    write(tmp_path, "/b", "123456")
    assert read_text("/a", str(tmp_path)) == "12345"
    with pytest.raises(OSError, match=r"^/b: is larger than 5 bytes$"):
        read_text("/b", str(tmp_path))


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("/etc/real", "/etc/real"),
        ("real", "/etc/real"),
        ("../etc/real", "/etc/real"),
        ("../../../../etc/real", "/etc/real"),
        ("/etc/../etc/./real", "/etc/real"),
        ("//etc//real", "/etc/real"),
        ("/usr/lib/a", "/usr/lib/a"),
        ("/lib/a", "/usr/lib/a"),
        ("/lib/../a", "/usr/a"),
        ("/", ""),
    ],
)
@pytest.mark.parametrize("slash", ["", "/"])
def test_links_stay_in_the_tree(tmp_path: Path, target: str, found: str, slash: str) -> None:
    write(tmp_path, "/etc/real", "x")
    link(tmp_path, "/lib", "usr/lib")
    link(tmp_path, "/etc/a", target)
    link(tmp_path, "/etc/b", "a")
    root = f"{tmp_path}{slash}"
    assert follow_links("/etc/a", root) == follow_links("/etc/b", root) == found
    assert under("/etc/b", root) == f"{tmp_path}{found}"


def test_on_the_host_the_kernel_follows_links() -> None:
    assert under("/etc/../a", "/") == "/etc/../a"


@pytest.mark.parametrize("target", ["a", "b", "/etc/a", "a/x"])
def test_a_loop_of_links_leads_to_nothing(tmp_path: Path, target: str) -> None:
    link(tmp_path, "/etc/a", target)
    link(tmp_path, "/etc/b", "a")
    assert read_text("/etc/a", str(tmp_path)) is None
    with pytest.raises(LoopError, match=r"^/etc/a: is a loop of symbolic links$"):
        under("/etc/a", str(tmp_path))


def test_as_many_links_as_the_kernel_follows(tmp_path: Path) -> None:
    write(tmp_path, "/0", "x")
    for number in range(1, 42):
        link(tmp_path, f"/{number}", str(number - 1))
    assert (tmp_path / "40").read_text() == read_text("/40", str(tmp_path)) == "x"
    assert read_text("/41", str(tmp_path)) is None


def test_a_folder_is_read_by_the_ending_of_names(tmp_path: Path) -> None:
    for name in ("b.conf", "a.conf", "c.txt", ".d.conf"):
        write(tmp_path, f"/d/{name}", name)
    link(tmp_path, "/d/e.conf", "/d/c.txt")
    link(tmp_path, "/d/f.conf", "/no")
    (tmp_path / "d/g.conf").mkdir()
    assert list_folder("/d", str(tmp_path)) == [
        ".d.conf",
        "a.conf",
        "b.conf",
        "c.txt",
        "e.conf",
        "f.conf",
        "g.conf",
    ]
    assert read_folder("/d", str(tmp_path)) == {
        "/d/.d.conf": ".d.conf", "/d/a.conf": "a.conf", "/d/b.conf": "b.conf", "/d/e.conf": "c.txt", "/d/g.conf": "",
    }  # fmt: skip


def test_the_limits_files(tmp_path: Path) -> None:
    assert read_limits_files(str(tmp_path)) == {}
    write(tmp_path, LIMITS_CONF, "a")
    write(tmp_path, f"{LIMITS_D}/x.conf", "b")
    write(tmp_path, f"{LIMITS_D}/x.txt", "c")
    assert read_limits_files(str(tmp_path)) == {LIMITS_CONF: "a", f"{LIMITS_D}/x.conf": "b"}


def test_the_sysctl_files_of_all_folders(tmp_path: Path) -> None:
    write(tmp_path, "/etc/sysctl.conf", "main")
    link(tmp_path, "/etc/sysctl.d/99-sysctl.conf", "../sysctl.conf")
    link(tmp_path, "/etc/sysctl.d/masks.conf", "/no")
    write(tmp_path, "/usr/lib/sysctl.d/50.conf", "a")
    write(tmp_path, "/usr/lib/sysctl.d/README", "b")
    link(tmp_path, "/lib", "usr/lib")
    assert read_sysctl_files(str(tmp_path)) == {
        "/etc/sysctl.d/99-sysctl.conf": "main",
        "/etc/sysctl.d/masks.conf": "",  # systemd finds the name, and hides its namesakes.
        "/usr/lib/sysctl.d/50.conf": "a",
        "/lib/sysctl.d/50.conf": "a",
    }


@pytest.mark.parametrize("path", ["/etc/os-release", "/usr/lib/os-release"])
def test_the_fields_of_os_release(tmp_path: Path, path: str) -> None:
    write(tmp_path, path, "ID=debian\nVERSION_ID=\"12\"\n# note\n\nNAME='a=b'\n")
    fields = read_os_release(str(tmp_path))
    assert (fields["ID"], fields["VERSION_ID"], fields["NAME"]) == ("debian", "12", "a=b")
    assert read_os_release(os.devnull) == {}


def test_a_named_pipe_is_empty_and_nobody_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert read_bytes("/pipe", str(tmp_path)) == b""


def test_files_that_pam_cannot_open_are_told(tmp_path: Path) -> None:
    write(tmp_path, f"{LIMITS_D}/a.conf")
    os.mkfifo(f"{tmp_path}{LIMITS_D}/b.conf")
    link(tmp_path, f"{LIMITS_D}/c.conf", "/nfs/c")
    link(tmp_path, f"{LIMITS_D}/d.conf", "d.conf")
    for name in (".e.conf", "f.txt"):
        link(tmp_path, f"{LIMITS_D}/{name}", "/nfs/c")
    pipe = (f"{LIMITS_D}/b.conf", "is a named pipe, on which every login waits")
    assert list(find_broken_files(False, str(tmp_path))) == [pipe]
    assert list(find_broken_files(True, str(tmp_path))) == [
        (LIMITS_CONF, "is missing"),
        pipe,
        (f"{LIMITS_D}/c.conf", "is a link to /nfs/c, which cannot be opened"),
        (f"{LIMITS_D}/d.conf", "is a link to d.conf, which cannot be opened"),
    ]


@pytest.mark.parametrize(
    "path",
    [
        "/proc/../dev/full",
        "/sys/../dev/full",
        "/sys/kernel/../../dev/full",
        "/proc/self/root/dev/full",
        "/proc/1/root/etc/passwd",
        "/proc/self/cwd/x",
        "/proc/self/fd/0",
        "/proc/self/mountinfo/../root",
    ],
)
def test_no_way_leads_through_proc_past_the_door(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever names a path to root chooses no device, and no link is followed unseen."""

    def refuse(asked: str, *_words: object) -> bytes:
        raise AssertionError(asked)

    monkeypatch.setattr(files, "read_kernel_file", refuse)
    with contextlib.suppress(OSError):
        files.read_bytes(path)


def test_what_the_kernel_tells_is_read_as_it_is() -> None:
    assert "self" not in (files.read_text("/proc/self/mountinfo") or "self")[:4]
    assert files.read_text("/proc/cmdline") is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_files_of_one_folder_are_read_as_each_alone(tmp_path: Path) -> None:
    names = ("plain", "link", "hangs", "leads out", "folder", "pipe", "others", "foreign", "gone")
    for name in ("plain", "others", "foreign"):
        (tmp_path / name).write_text(f"{name} \xe9\n", encoding="latin-1")
    (tmp_path / "link").symlink_to("plain")
    (tmp_path / "hangs").symlink_to("nowhere")
    (tmp_path / "leads out").symlink_to("/etc/passwd")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "others").chmod(0o666)
    os.chown(tmp_path / "foreign", 54321, 54321)

    def read(path: str, root: str) -> str | None:
        try:
            text: str | None = read_text(path, root)
        except OSError as exc:
            return type(exc).__name__
        return text

    for folder, root in ((str(tmp_path), "/"), ("", str(tmp_path))):
        paths = [f"{folder}/{name}" for name in names]
        alone = {path: read(path, root) for path in paths}
        assert dict(read_each(paths, root, read)) == {
            path: text for path, text in alone.items() if text is not None
        }
        assert alone[f"{folder}/foreign"] == alone[f"{folder}/others"] == "ForeignError"
        assert alone[f"{folder}/plain"] == "plain \xe9\n"
