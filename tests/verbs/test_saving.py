# SPDX-License-Identifier: GPL-3.0-or-later
"""What training code saves is whole or as it was, and what it keeps for a job is that job's."""

from __future__ import annotations

import errno
import io
import os
import pickle
import signal
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlhost_limits
import pytest
from mlhost_limits import saving
from mlhost_limits.saving import atomic_save, job_cache_dir, verify_checkpoint
from mlhost_limits.training import cache_open_read
from mlhost_limits.training.file_verdict import find_owner

from tests.worlds.archives import make_pt, make_safetensors

TOP = Path(__file__).parents[2]
START = f"""
import sys; sys.path.insert(0, {str(TOP)!r})
import importlib.util
spec = importlib.util.spec_from_file_location("mlhost_limits", "{TOP}/plugins/module_utils/__init__.py",
    submodule_search_locations=["{TOP}/plugins/module_utils"])
sys.modules["mlhost_limits"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["mlhost_limits"])
sys.modules["torch"] = None
import os, time
from mlhost_limits import atomic_save, job_cache_dir, verify_checkpoint
"""


@pytest.fixture(autouse=True)
def _without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(cache_open_read, "YOUNG", 0.05)
    monkeypatch.setattr(cache_open_read, "PAUSE", 0.01)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)


def load(path: Path) -> Any:
    return pickle.loads(path.read_bytes())


def start(code: str, *words: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", START + code, *words], stdout=pipe, text=True)


def test_the_package_offers_them() -> None:
    for name in ("atomic_save", "job_cache_dir", "verify_checkpoint"):
        assert getattr(mlhost_limits, name) is getattr(saving, name)


def test_importing_it_loads_nothing_but_the_standard_library() -> None:
    code = """
known = set(sys.stdlib_module_names) | {"mlhost_limits", "torch", "__main__", "numpy"}
verify_checkpoint("/nowhere"); atomic_save(1, sys.argv[1] + "/x.pkl"); job_cache_dir(sys.argv[1])
print(*sorted({name.partition(".")[0] for name in sys.modules} - known - set(before)))
"""
    with tempfile.TemporaryDirectory() as top, start(
        f"before = {sorted(sys.modules)!r}\n{code}", top
    ) as done:
        assert done.stdout
        assert (done.stdout.read().split(), done.wait()) == ([], 0)


def test_a_file_is_saved_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    atomic_save({"a": 1}, path)
    umask = os.umask(0)
    os.umask(umask)
    assert (load(path), stat.S_IMODE(path.stat().st_mode)) == ({"a": 1}, 0o666 & ~umask)
    path.chmod(0o640)
    atomic_save([2], str(path))
    assert (load(path), stat.S_IMODE(path.stat().st_mode)) == ([2], 0o640)
    assert os.listdir(tmp_path) == ["x.pt"]


def test_torch_saves_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def save(_obj: object, path: str) -> None:
        Path(path).write_bytes(make_pt())

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(save=save))
    atomic_save({}, tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == make_pt()


def test_what_has_no_checksums_is_saved(tmp_path: Path) -> None:
    whole = make_pt()

    def save(_obj: object, path: str) -> None:
        content = whole
        with zipfile.ZipFile(io.BytesIO(whole)) as archive:
            for row in archive.infolist():
                content = content.replace(row.CRC.to_bytes(4, "little"), b"\0" * 4)
        Path(path).write_bytes(content)

    atomic_save(None, tmp_path / "x.pt", save)
    assert (tmp_path / "x.pt").stat().st_size == len(whole)


def test_a_link_stays_one_and_a_long_name_fits(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.pkl").symlink_to("real/x.pkl")
    atomic_save(1, tmp_path / "link.pkl")
    assert (tmp_path / "link.pkl").is_symlink()
    assert load(tmp_path / "real" / "x.pkl") == 1
    name = "\u00e9" * 120
    atomic_save(2, tmp_path / name)
    assert load(tmp_path / name) == 2


def test_the_name_beside_it_says_whose_it_is(tmp_path: Path) -> None:
    seen: list[str] = []

    def save(_obj: object, path: str) -> None:
        seen.append(path)
        Path(path).write_bytes(b"x")

    atomic_save(None, tmp_path / "x.odd", save)
    assert os.path.dirname(seen[0]) == str(tmp_path)
    assert find_owner(os.path.basename(seen[0])) == os.getpid()


def fail(_obj: object, path: str) -> None:
    Path(path).write_bytes(b"half")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def stop(_obj: object, path: str) -> None:
    Path(path).write_bytes(b"half")
    raise KeyboardInterrupt("by hand")


def cut(_obj: object, path: str) -> None:
    Path(path).write_bytes(make_pt()[:-1])


def hurt(_obj: object, path: str) -> None:
    Path(path).write_bytes(make_pt((b"\7" * 900,)).replace(b"\7" * 900, b"\7" * 899 + b"\1"))


def write_elsewhere(_obj: object, path: str) -> None:
    Path(f"{path}.pt").write_bytes(make_pt())


def remove(_obj: object, path: str) -> None:
    os.unlink(path)


@pytest.mark.parametrize(
    ("save", "error", "told"),
    [
        (fail, OSError, "No space left on device"),
        (stop, KeyboardInterrupt, "by hand"),
        (cut, OSError, "what was written has no central directory"),
        (hurt, OSError, "what was written has a wrong checksum at archive/data/0"),
        (write_elsewhere, OSError, "nothing was written to the path"),
        (remove, FileNotFoundError, "No such file"),
        (lambda _obj, _path: None, OSError, "nothing was written to the path"),
    ],
)
def test_after_an_error_all_is_as_it_was(
    tmp_path: Path, save: saving.Save, error: type[BaseException], told: str
) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(b"old")
    with pytest.raises(error, match=told):
        atomic_save({}, path, save)
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["x.pt"])


def test_what_cannot_be_pickled_or_placed_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises((AttributeError, pickle.PicklingError)):
        atomic_save(lambda: None, tmp_path / "x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        atomic_save(1, tmp_path / "folder")
    with pytest.raises(FileNotFoundError):
        atomic_save(1, tmp_path / "none" / "x")
    assert os.listdir(tmp_path) == ["folder"]


def test_the_file_is_on_the_disk_before_its_name_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    sync, rename = os.fsync, os.replace

    def note_sync(handle: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    def note_rename(source: str, target: str) -> None:
        steps.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_rename)
    atomic_save(1, tmp_path / "x")
    assert steps == ["file", "rename", "folder"]


@pytest.mark.parametrize(("number", "dies"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_a_folder_that_cannot_be_synced_is_no_error_unless_the_disk_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, dies: bool
) -> None:
    sync = os.fsync

    def refuse(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        sync(handle)

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="Input/output") if dies else nullcontext():
        atomic_save(1, tmp_path / "x")
    assert load(tmp_path / "x") == 1


KILLED = """
def save(obj, path):
    with open(path, "wb") as file:
        file.write(b"half"); file.flush()
        print(1, flush=True)
        time.sleep(60)
atomic_save(None, sys.argv[1], save)
"""


def test_kill_in_the_middle_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    atomic_save("old", path)
    with start(KILLED, str(path)) as process:
        assert process.stdout
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert load(path) == "old"
    (left,) = set(os.listdir(tmp_path)) - {"x.pt"}
    assert find_owner(left) == process.pid
    atomic_save("new", path)
    assert load(path) == "new"


TWO = """
import pickle
mine = sys.argv[2] * 300_000
for _time in range(30):
    atomic_save(mine, sys.argv[1])
    found = pickle.load(open(sys.argv[1], "rb"))
    assert len(set(found)) == 1 and len(found) == 300_000
print("whole")
"""


def test_two_that_save_at_the_same_time_leave_one_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    both = [start(TWO, str(path), letter) for letter in "ab"]
    assert [one.communicate()[0] for one in both] == ["whole\n", "whole\n"]
    assert set(load(path)) in ({"a"}, {"b"})
    assert os.listdir(tmp_path) == ["x.pt"]


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """Give a disk of 256 KiB."""
    with tempfile.TemporaryDirectory() as name:
        words = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", name]
        if os.geteuid() or subprocess.run(words, stderr=subprocess.DEVNULL).returncode:
            pytest.skip("only root mounts a disk")
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", name], check=True)


def test_a_full_disk_leaves_the_old_file(small_disk: Path) -> None:
    path = small_disk / "x.pt"
    atomic_save(b"x" * 100_000, path)
    with pytest.raises(OSError, match="No space left") as raised:
        atomic_save(b"y" * 200_000, path)
    assert raised.value.errno == errno.ENOSPC
    assert (load(path), os.listdir(small_disk)) == (b"x" * 100_000, ["x.pt"])


def test_a_disk_that_is_full_at_the_sync_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with delayed allocation, or a quota of a file server."""
    atomic_save("old", tmp_path / "x")

    def refuse(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space left"):
        atomic_save("new", tmp_path / "x")
    assert (load(tmp_path / "x"), os.listdir(tmp_path)) == ("old", ["x"])


def checkpoint(top: Path) -> Path:
    folder = top / "checkpoint-100"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(make_safetensors())
    (folder / "trainer_state.json").write_text("{}")
    return folder


def test_a_checkpoint_that_can_be_resumed_from_has_no_problems(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path)
    started = time.monotonic()
    assert verify_checkpoint(folder) == verify_checkpoint(f"{folder}/") == []
    assert time.monotonic() - started < 1.0


def test_every_problem_of_a_checkpoint_is_a_sentence(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path)
    (folder / "trainer_state.json").write_text("")
    (folder / "model.safetensors").rename(folder / "model.safetensors.old")
    weights = "no model.safetensors, pytorch_model.bin, index of shards, adapter"
    assert verify_checkpoint(folder) == [
        f"{folder}/trainer_state.json is empty",
        f"{folder} has no weights: {weights}, pytorch_model_fsdp* or global_step*",
    ]
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "m-1.safetensors"}}')
    assert verify_checkpoint(folder)[1] == f"{folder}/m-1.safetensors is missing"


def test_what_is_no_checkpoint_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert verify_checkpoint(tmp_path / "none") == [
        f"{tmp_path}/none cannot be opened: No such file or directory"
    ]
    assert verify_checkpoint(tmp_path / "file") == [
        f"{tmp_path}/file cannot be opened: Not a directory"
    ]
    (tmp_path / "empty").mkdir()
    assert (
        verify_checkpoint(tmp_path / "empty")[0]
        == f"{tmp_path}/empty/trainer_state.json is missing"
    )


def test_what_cannot_be_told_is_a_problem(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path)
    (folder / "rng_state.pth").write_bytes(b"\x80\2cjoblib\nx\n")
    assert verify_checkpoint(folder) == [
        f"{folder}/rng_state.pth is a pickle that cannot be read without its classes"
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else is root's")
def test_root_in_a_container_verifies_what_is_a_users(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path)
    for path in (folder, *folder.iterdir()):
        os.chown(path, 65534, 65534)
    assert verify_checkpoint(folder) == []


def test_a_job_of_slurm_has_one_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    path = job_cache_dir(tmp_path / "new" / "base")
    assert path == f"{tmp_path}/new/base/mlhost-{os.geteuid()}-job-4711"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
    os.chmod(path, 0o755)
    assert job_cache_dir(tmp_path / "new" / "base") == path
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700


def test_without_slurm_each_process_has_its_own(tmp_path: Path) -> None:
    with start("print(job_cache_dir(sys.argv[1]))", str(tmp_path)) as other:
        theirs = other.communicate()[0].strip()
    mine = job_cache_dir(tmp_path)
    assert mine == job_cache_dir(tmp_path) != theirs
    began = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    assert mine.endswith(f"-run-{os.getpid()}-{began}")
    assert sorted(os.listdir(tmp_path)) == sorted(map(os.path.basename, (mine, theirs)))


@pytest.mark.parametrize("number", ["../../etc", "4711/..", "", "\u0664"])
def test_what_is_no_number_is_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", number)
    assert os.path.dirname(job_cache_dir(tmp_path)) == str(tmp_path)
    assert "-run-" in job_cache_dir(tmp_path)


def take_by_link(path: Path) -> None:
    (path.parent / "theirs").mkdir()
    path.symlink_to(path.parent / "theirs")


def take_by_dangling_link(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere")


def take_by_owner(path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root gives a folder away")
    path.mkdir(mode=0o777)
    os.chown(path, 65534, 65534)


@pytest.mark.parametrize("take", [take_by_link, take_by_dangling_link, Path.touch, take_by_owner])
def test_a_name_that_somebody_took_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, take: Any
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    name = f"mlhost-{os.geteuid()}-job-4711"
    take(tmp_path / name)
    path = job_cache_dir(tmp_path)
    assert path.startswith(f"{tmp_path}/{name}-")
    found = os.lstat(path)
    assert (stat.S_ISDIR(found.st_mode), stat.S_IMODE(found.st_mode)) == (True, 0o700)
    assert not (tmp_path / "theirs").exists() or not os.listdir(tmp_path / "theirs")


def test_where_anybody_may_exchange_it_none_is_made(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(PermissionError, match="its mode is 0777, and not 1777"):
        job_cache_dir(tmp_path)
    assert os.listdir(tmp_path) == []
    tmp_path.chmod(0o1777)
    assert job_cache_dir(tmp_path)


def test_a_local_disk_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    far, near = tmp_path / "far", tmp_path / "near"
    far.mkdir()
    near.mkdir()
    monkeypatch.setenv("SLURM_TMPDIR", str(far))
    monkeypatch.setenv("TMPDIR", str(near))
    assert os.path.dirname(job_cache_dir()) == str(far)
    monkeypatch.setattr(saving, "_is_local", lambda path: path == str(near))
    assert os.path.dirname(job_cache_dir()) == str(near)
    monkeypatch.setattr(saving, "_is_local", lambda _path: False)
    assert os.path.dirname(job_cache_dir()) == str(far)
    monkeypatch.setattr(os, "access", lambda *_asked: False)
    with pytest.raises(FileNotFoundError, match="no directory can be written; tried were"):
        job_cache_dir()


def test_the_name_of_a_file_system_tells_whether_it_is_local(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert saving._is_local("/dev/shm")
    monkeypatch.setattr(
        "mlhost_limits.training.folder_measure.find_mount", lambda _handle: {"kind": "nfs4"}
    )
    assert not saving._is_local("/dev/shm")


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/null")])
def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "a.pt")
    before = os.stat(tmp_path / "a.pt").st_rdev
    with pytest.raises(OSError, match="is not a regular file, and is not replaced"):
        atomic_save({"a": 1}, tmp_path / "a.pt")
    assert os.stat(tmp_path / "a.pt").st_rdev == before
    assert os.listdir(tmp_path) == ["a.pt"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file away")
def test_a_file_that_root_saves_stays_its_owner_s(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(b"old")
    os.chown(path, 65534, 65533)
    path.chmod(0o640)
    atomic_save({"a": 1}, path)
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (65534, 65533, 0o640)
