# SPDX-License-Identifier: GPL-3.0-or-later
"""A kept library is the one that was sent, and is used only where nobody else can write it."""

from __future__ import annotations

import base64
import importlib
import io
import os
import py_compile
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from mlhost_limits import kept, kept_folder
from mlhost_limits.host.marks import make_mark
from mlhost_limits.kept_folder import find_library, name_folder, seal

from tests.worlds.dead import make_dead_mark

LIBRARY = Path(kept.__file__).parent
FILES = {"__init__.py": b"", "check_host.py": b"x = 1\n", "core/schema.py": b"y = 2\n"}
DIGEST = kept.digest_files(FILES)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "mlhost-limits" / "library")


def test_what_is_packed_arrives_whole() -> None:
    assert kept.unpack(kept.pack(FILES), DIGEST) == FILES


def test_the_digest_tells_names_and_contents_apart() -> None:
    others = [
        {**FILES, "check_host.py": b"x = 2\n"},
        {**FILES, "check2.py": b""},
        {"__init__.py": b"", "chec.py": b"x = 1\n", "core/schema.py": b"y = 2\n"},
    ]
    assert len({DIGEST, *map(kept.digest_files, others)}) == 4


def pack_as(name: str) -> str:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(f"{kept.PACKAGE}/{name}", b"x")
    sealed: str = seal(base64.b64encode(target.getvalue()).decode())
    return sealed


@pytest.mark.parametrize("name", ["../x.py", "/etc/x.py", "a/b/c.py", "policy/../../x.py", "x.so"])
def test_a_file_outside_of_the_library_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not the one that was sent"):
        kept.unpack(pack_as(name), kept.digest_files({name: b"x"}))


@pytest.mark.parametrize("text", ["", "%%", kept.pack(FILES)[:400], "AAAA", seal("AAAA")])
def test_what_is_cut_short_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="did not arrive whole"):
        kept.unpack(text, DIGEST)


def test_another_library_is_refused() -> None:
    with pytest.raises(ValueError, match="is not the one that was sent"):
        kept.unpack(kept.pack({"check_host.py": b""}), DIGEST)


def test_a_library_is_found_once_it_is_kept(folder: str) -> None:
    assert find_library(DIGEST, folder) is None
    path = kept.keep_library(FILES, DIGEST, folder)
    assert path == find_library(DIGEST, folder) == f"{folder}/{DIGEST}"
    assert Path(path, "mlhost_limits", "core", "schema.py").read_bytes() == b"y = 2\n"
    assert kept.keep_library(FILES, DIGEST, folder) == path
    assert os.listdir(folder) == [DIGEST]
    modes = {os.stat(top).st_mode & 0o777 for top, _folders, _files in os.walk(folder)}
    assert modes == {0o700}


def test_what_python_has_compiled_is_put_together_and_imported_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files that it was compiled from are gone by then."""
    monkeypatch.setattr(kept_folder, "PACKAGE", "toy_library")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    place, top = str(tmp_path), tmp_path / "toy_library"
    kept_folder.put_together(place, "check")
    assert os.listdir(place) == []
    for name, text in {"__init__": "", "rooms/__init__": "", "rooms/one": "x = 7\n"}.items():
        file = top / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        py_compile.compile(str(file), doraise=True)
    assert not kept_folder.open_library(place, "check")
    kept_folder.put_together(place, "check")
    shutil.rmtree(top)
    assert kept_folder.open_library(place, "check")
    one = importlib.import_module("toy_library.rooms.one")
    assert (one.x, one.__file__) == (7, f"{place}/toy_library/rooms/one.py")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("toy_library.rooms.two")
    assert not kept_folder.open_library(place, "provision")


SPOILT: dict[str, Callable[[Path], object]] = {
    "others may write it": lambda path: path.chmod(0o757),
    "its group may write it": lambda path: path.chmod(0o770),
    "it is somebody else's": lambda path: os.chown(path, 1, 1),
    "it is a link": lambda path: path.symlink_to(path.rename(f"{path}.1")),
    "it is a file": lambda path: path.rename(f"{path}.1").with_name(path.name).touch(),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
@pytest.mark.parametrize(
    "part", ["", "library", f"library/{DIGEST}", f"library/{DIGEST}/{kept.PACKAGE}"]
)
def test_a_library_that_others_might_have_changed_is_not_used(
    part: str, spoil: Callable[[Path], object], folder: str
) -> None:
    if os.geteuid() and spoil is SPOILT["it is somebody else's"]:
        pytest.skip("only root gives files away")
    kept.keep_library(FILES, DIGEST, folder)
    spoil(Path(folder).parent / part)
    assert find_library(DIGEST, folder) is None
    if part.startswith("library/"):
        assert kept.keep_library(FILES, DIGEST, folder) is None


@pytest.mark.parametrize("digest", ["", "../x", DIGEST[:-1], DIGEST.upper()])
def test_what_is_no_digest_is_not_looked_for(digest: str, folder: str) -> None:
    kept.keep_library(FILES, DIGEST, folder)
    assert find_library(digest, folder) is None


def test_without_a_place_it_lives_as_long_as_the_run(tmp_path: Path) -> None:
    assert kept.keep_library(FILES, DIGEST, None) is None
    (tmp_path / "file").touch()
    assert kept.keep_library(FILES, DIGEST, f"{tmp_path}/file/library") is None
    assert kept.write_library(FILES, str(tmp_path)) == str(tmp_path)
    assert (tmp_path / kept.PACKAGE / "check_host.py").read_bytes() == b"x = 1\n"


def test_the_oldest_libraries_and_what_killed_runs_left_are_removed(folder: str) -> None:
    digests = [kept.digest_files({"check_host.py": str(number).encode()}) for number in range(5)]
    for number, digest in enumerate(digests):
        kept.keep_library(FILES, digest, folder)
        os.utime(f"{folder}/{digest}", (number, number))
    dead, living = f".new-{make_dead_mark()}", f".new-{make_mark()}"
    for name in (dead, living, ".new-b", "notes"):
        Path(folder, name).mkdir(mode=0o700)
    kept.keep_library(FILES, DIGEST, folder)
    assert set(os.listdir(folder)) == {DIGEST, *digests[-2:], living, ".new-b", "notes"}


def test_users_keep_theirs_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "isdir", lambda _path: True)
    places = []
    for uid in (0, 1000):
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)
        places.append(kept.find_folder())
    assert places == ["/run/mlhost-limits/library", "/run/user/1000/mlhost-limits/library"]
    assert name_folder() == places[-1]
    monkeypatch.setattr(os.path, "isdir", lambda _path: False)
    assert kept.find_folder() is None


RUN = """
import sys
sys.path.insert(0, sys.argv[1])
from kept_folder import open_library, put_together
together = open_library(sys.argv[2], "check")
import mlhost_limits.core.first as first, mlhost_limits.core.second as second
put_together(sys.argv[2], "check")
print(together, first.__file__ == sys.argv[2] + "/mlhost_limits/core/first.py", first.x, second.x,
      type(first.__loader__).__name__, type(second.__loader__).__name__)
"""


def run_kept(path: Path, *, compiles: bool = True) -> str:
    words = [sys.executable, *([] if compiles else ["-B"]), "-c", RUN, str(LIBRARY), str(path)]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(
        words, check=True, stdout=subprocess.PIPE, text=True, env=environment
    ).stdout.strip()


def make_package(path: Path) -> Path:
    core = path / "mlhost_limits" / "core"
    core.mkdir(parents=True)
    for one in (core.parent / "__init__.py", core / "__init__.py"):
        one.write_text("")
    (core / "first.py").write_text("from .other import x\n")
    (core / "other.py").write_text("x = 7\n")
    (core / "second.py").write_text("x = 8\n")
    return core


def test_what_was_compiled_is_imported_together_the_next_time(tmp_path: Path) -> None:
    core = make_package(tmp_path)
    assert run_kept(tmp_path) == "False True 7 8 SourceFileLoader SourceFileLoader"
    assert run_kept(tmp_path) == "True True 7 8 _Together _Together"
    (together,) = tmp_path.glob("check-*")
    assert together.stat().st_mode & 0o777 == 0o600
    (core / "second.py").write_text("x = 9\n")  # Nobody does: it shows whose code it was.
    assert run_kept(tmp_path).startswith("True True 7 8 ")


def test_a_module_that_no_run_needed_yet_is_imported_by_itself(tmp_path: Path) -> None:
    core = make_package(tmp_path)
    assert run_kept(tmp_path).startswith("False")
    for one in core.glob("__pycache__/second.*"):
        one.unlink()
    (together,) = tmp_path.glob("check-*")
    together.unlink()
    run = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(LIBRARY)!r})\n"]
    run[2] += f"import kept_folder; kept_folder.put_together({str(tmp_path)!r}, 'check')"
    subprocess.run(run, check=True)
    assert run_kept(tmp_path) == "True True 7 8 _Together SourceFileLoader"


def test_where_nothing_is_compiled_nothing_is_put_together(tmp_path: Path) -> None:
    make_package(tmp_path)
    assert run_kept(tmp_path, compiles=False).startswith("False")
    assert not list(tmp_path.glob("check-*"))


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\xfb\xff"])
def test_what_is_no_code_is_left_alone(tmp_path: Path, content: bytes) -> None:
    make_package(tmp_path)
    run_kept(tmp_path)
    (together,) = tmp_path.glob("check-*")
    together.write_bytes(content)
    assert run_kept(tmp_path).startswith("False True 7 8")
    assert run_kept(tmp_path).startswith("True")
