# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds of runs of which a preflight once said the wrong thing, each with neighbors.

The command itself is asked, within real limits, files and mounts.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from . import cgroup
from .files_of_runs import (
    LEGACY,
    Spoil,
    cut,
    empty,
    remove,
    write_checkpoint,
    write_npy,
    write_tar,
    write_zip,
)
from .product import link_library
from .settings import Words, can, shared_memory, shell, soft_limit, without
from .trial import CannotShowError

pytestmark = pytest.mark.slow
GO, NO_GO, NOTHING = 0, 1, 2
ROOT = pytest.mark.skipif(not can(*without("dac_override")), reason="needs root")
HEAP = {"MALLOC_TRIM_THRESHOLD_": "131072"}


class Said(NamedTuple):
    """What a preflight ended with and printed, blanks and line ends being alike."""

    status: int
    text: str


def ask(
    *words: object,
    within: Words = (),
    environment: Mapping[str, str] | None = None,
    folder: Path = Path("/"),
    profile: str = "none",
) -> Said:
    """Ask a preflight, as a shell would."""
    command = [sys.executable, "-m", "mlhost_limits.cli", "preflight", "--profile", profile]
    paths = {"PYTHONPATH": str(link_library()), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*within, *command, *map(str, words)],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **paths, **HEAP, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        text=True,
        check=False,
    )
    return Said(done.returncode, " ".join(done.stdout.split()))


def expect(said: Said, status: int, pattern: str = "") -> None:
    assert said.status == status, said.text
    assert re.search(pattern, said.text), said.text


def spell(words: str) -> list[str]:
    return words.split()


FILE_SYSTEM = "--workers 4 --tensors-per-batch 2000 --sharing file_system --only descriptors --hold"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (f"{FILE_SYSTEM} 40", NO_GO),
        (f"{FILE_SYSTEM} 20", GO),
        (f"{FILE_SYSTEM} 20 --loaders 2 --tensors-per-batch 2500", NO_GO),
    ],
)
def test_each_tensor_is_a_mapping(words: str, status: int) -> None:
    most = int(Path("/proc/sys/vm/max_map_count").read_text())
    if most != 65530:
        pytest.skip("needs the kernel's own vm.max_map_count")
    expect(ask(*spell(words)), status, "vm.max_map_count")


def be_somebody(number: int) -> Words:
    ids = ("--reuid=54321", "--regid=54321", "--clear-groups")
    return ("prlimit", f"--nproc={number}:{number}", "setpriv", *ids)


@ROOT
@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("--workers 64", NO_GO),
        ("--workers 8", GO),
        ("--workers 8 --threads 16", NO_GO),
        ("--workers 4 --ranks-per-node 4", NO_GO),
    ],
)
def test_tasks_of_a_user_are_bounded(words: str, status: int) -> None:
    run = ("--threads", 1, *spell(words), "--only", "tasks")
    expect(ask(*run, within=be_somebody(40)), status, "(?i)nproc|tasks")


@ROOT
@pytest.mark.parametrize(("workers", "status"), [(64, NO_GO), (4, GO)])
def test_tasks_of_a_cgroup_are_bounded(workers: int, status: int) -> None:
    try:
        within = cgroup.limit_tasks(40, f"kinds-{os.getpid()}")
    except CannotShowError as exc:
        pytest.skip(str(exc))
    try:
        run = ("--workers", workers, "--threads", 1, "--only", "tasks")
        expect(ask(*run, within=within), status, "tasks")
    finally:
        cgroup.remove_all(f"kinds-{os.getpid()}")


@pytest.mark.parametrize(
    ("limit", "words", "status"),
    [
        ("as", "--workers 1 --worker-memory 4GiB", NO_GO),
        ("data", "--workers 1 --worker-memory 4GiB", NO_GO),
        ("as", "--workers 1 --worker-memory 100MiB --threads 1", GO),
        ("as", "--workers 2 --batch-size 512MiB --prefetch 4", NO_GO),
    ],
)
def test_address_space_is_bounded(limit: str, words: str, status: int) -> None:
    within = ("prlimit", f"--{limit}={2**31}:{2**31}")
    expect(ask(*spell(words), "--only", "memory", within=within), status, f"{limit}")


@pytest.mark.parametrize(("size", "status"), [("2GiB", NO_GO), ("1025MiB", NO_GO), ("1GiB", GO)])
def test_a_file_may_be_too_large(tmp_path: Path, size: str, status: int) -> None:
    within = ("prlimit", f"--fsize={2**30}:{2**30}")
    run = ("--output-dir", tmp_path, "--checkpoint-size", size, "--only", "output")
    expect(ask(*run, within=within), status, "fsize" if status else "")


OF_TRAINER = "--workers 2 --prefetch 2 --tensors-per-batch 8 --epochs 1 --only descriptors"


@pytest.mark.parametrize(
    ("soft", "words", "status"),
    [
        (1024, "--library transformers --gradient-accumulation 64", NO_GO),
        (1024, "--library trl --gradient-accumulation 64", NO_GO),
        (1024, "--library transformers --gradient-accumulation 16", GO),
        (290, "--library transformers --gradient-accumulation 16", NO_GO),
        (60, "--loaders 1", GO),
        (60, "--loaders 2", NO_GO),
        (70, "--library accelerate --workers 3", NO_GO),
        (88, "--library accelerate --tensors-per-batch 16", NO_GO),
        (100, "--library accelerate --tensors-per-batch 16", GO),
    ],
)
def test_a_library_keeps_batches(soft: int, words: str, status: int) -> None:
    run = (*spell(OF_TRAINER), *spell(words))
    expect(ask(*run, within=soft_limit("n", soft)), status, f"nofile (soft )?{soft}")


@ROOT
@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("--trainable-parameters 33M --workers 0", GO),
        ("--workers 0", NO_GO),
        ("--trainable-parameters 33M --workers 2 --start-method spawn", GO),
        ("--trainable-parameters 60M --workers 2", NO_GO),
    ],
)
def test_frozen_parameters_need_less(words: str, status: int) -> None:
    try:
        within = cgroup.limit_memory(3 * 2**30, f"kinds-{os.getpid()}")
    except CannotShowError as exc:
        pytest.skip(str(exc))
    run = "--stage 3 --parameters 268M --largest-layer 16777216 --offload-optimizer yes"
    try:
        run += " --offload-parameters yes --only memory --only deepspeed"
        expect(ask(*spell(run), *spell(words), within=within), status, "model_states|memory")
    finally:
        cgroup.remove_all(f"kinds-{os.getpid()}")


@ROOT
@pytest.mark.parametrize(
    ("size", "environment", "status"),
    [
        ("40m", {}, GO),
        ("40m", {"LOCAL_WORLD_SIZE": "8", "WORLD_SIZE": "8"}, NO_GO),
        ("320m", {"LOCAL_WORLD_SIZE": "8", "WORLD_SIZE": "8"}, GO),
        ("40m", {"SLURM_NTASKS_PER_NODE": "8"}, NO_GO),
    ],
)
def test_ranks_share_a_node(size: str, environment: dict[str, str], status: int) -> None:
    run = spell("--workers 2 --tensors-per-batch 2 --batch-size 4MiB --epochs 1")
    within = shared_memory(size)
    said = ask(*run, "--only", "shared_memory", within=within, environment=environment)
    expect(said, status, "/dev/shm")


@pytest.mark.parametrize(
    ("name", "data", "status"),
    [
        ("whole.pt", gzip.compress(write_zip()), GO),
        ("cut.pt", gzip.compress(write_zip())[:-20], NO_GO),
        ("whole.pt", write_zip(), GO),
        ("whole.tar", write_tar(), GO),
        ("cut.tar", write_tar()[:2000], NO_GO),
        ("empty.tar", b"", NO_GO),
        ("whole.npy", write_npy(), GO),
        ("cut.npy", write_npy()[:500], NO_GO),
        ("pytorch_model.bin", write_zip(), GO),
        ("pytorch_model.bin", write_zip()[:-40], NO_GO),
        ("legacy.pt", LEGACY, GO),
        ("legacy.pt", LEGACY[: len(LEGACY) // 2], NO_GO),
    ],
)
def test_files_of_a_cache_are_read(tmp_path: Path, name: str, data: bytes, status: int) -> None:
    (tmp_path / name).write_bytes(data)
    os.utime(tmp_path / name, (1e9, 1e9))
    run = ("--cache-dir", tmp_path, "--only", "cache_integrity")
    expect(ask(*run), status, f"damaged files {int(status == NO_GO)}")


@pytest.mark.parametrize("name", ["cut.pt", "cut.tar"])
def test_a_file_that_is_being_written_is_not_damaged(tmp_path: Path, name: str) -> None:
    with (tmp_path / name).open("wb") as file:
        file.write(write_zip()[:-40] if name == "cut.pt" else write_tar()[:2000])
        file.flush()
        said = ask("--cache-dir", tmp_path, "--only", "cache_integrity")
    expect(said, NOTHING, "being written")
    assert "mv -n" not in said.text


@ROOT
@pytest.mark.parametrize(("mode", "status"), [(0o600, NO_GO), (0o644, GO)])
def test_a_file_is_read_as_who_runs(mode: int, status: int) -> None:
    """The folder of pytest is root's alone."""
    folder = Path(f"/var/tmp/kinds-{os.getpid()}")
    folder.mkdir()
    try:
        folder.chmod(0o755)
        (folder / "whole.pt").write_bytes(write_zip())
        (folder / "whole.pt").chmod(mode)
        run = ("--cache-dir", folder, "--only", "cache_integrity", "--as-user", "nobody")
        expect(ask(*run), status, "closed files" if status else "damaged files 0")
    finally:
        subprocess.run(["rm", "-r", folder], check=True)


@ROOT
@pytest.mark.parametrize(
    ("words", "within"),
    [
        (
            "--workers 1 --tensors-per-batch 1",
            (*shared_memory("8m"), *shell("head -c 8m /dev/zero > /dev/shm/full || true")),
        ),
        (
            "--cache-dir /mnt --only cache",
            ("unshare", "--mount", *shell("mount -t tmpfs -o size=1m t /mnt"))
            + shell("head -c 1m /dev/zero > /mnt/full || true"),
        ),
        (
            "--output-dir /mnt --only output",
            ("unshare", "--mount", *shell("mount -t tmpfs -o nr_inodes=2 t /mnt"))
            + shell("touch /mnt/full"),
        ),
    ],
)
def test_a_full_file_system_is_seen(words: str, within: Words) -> None:
    expect(ask(*spell(words), within=within), NO_GO, "(?i)free|full|no space|inode")


STATE, SHARD = "trainer_state.json", "model-00002-of-00002.safetensors"


@pytest.mark.parametrize(
    ("spoil", "resume", "status"),
    [
        (empty(STATE), "yes", NO_GO),
        (cut(STATE), "yes", NO_GO),
        (remove(STATE), "yes", NO_GO),
        (remove(SHARD), "yes", NO_GO),
        (cut(SHARD), "yes", NO_GO),
        (empty("optimizer.pt"), "yes", NO_GO),
        (cut("training_args.bin"), "yes", GO),
        (cut(STATE), "no", GO),
        (empty(SHARD), "no", GO),
        (lambda _one: None, "yes", GO),
    ],
)
def test_a_run_resumes(tmp_path: Path, spoil: Spoil, resume: str, status: int) -> None:
    checkpoint = write_checkpoint(tmp_path)
    spoil(checkpoint)
    for path in checkpoint.iterdir():
        os.utime(path, (1e9, 1e9))
    run = ("--output-dir", tmp_path, "--resume", resume, "--only", "output")
    expect(ask(*run), status, "checkpoints")


@pytest.mark.parametrize(
    ("name", "resume", "status"),
    [("new", "no", GO), ("new/below", "no", GO), ("new", "yes", NO_GO), ("", "yes", NO_GO)],
)
def test_a_run_begins(tmp_path: Path, name: str, resume: str, status: int) -> None:
    run = ("--output-dir", tmp_path / name, "--resume", resume, "--only", "output")
    expect(ask(*run), status)


@pytest.fixture(params=["cat > log", "exec {python} -m http.server 0 --bind 127.0.0.1"])
def bystander(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Have something at work in the folder that is no run."""
    script = request.param.format(python=sys.executable)
    with subprocess.Popen(
        ["sh", "-c", script], cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        yield tmp_path
        process.terminate()


def test_who_only_stands_by_is_no_run(bystander: Path) -> None:
    expect(ask("--output-dir", bystander, "--only", "output"), GO, "other runs none")


@ROOT
@pytest.mark.parametrize(("is_pinned", "status"), [(True, NO_GO), (False, GO)])
def test_buffers_of_deepspeed_are_locked(tmp_path: Path, is_pinned: bool, status: int) -> None:
    device = "nvme" if is_pinned else "cpu"
    offload = {"device": device, "nvme_path": "/tmp", "pin_memory": is_pinned}
    zero = {"stage": 3, "offload_optimizer": offload, "offload_param": offload}
    (tmp_path / "ds.json").write_text(json.dumps({"zero_optimization": zero}))
    within = (*soft_limit("l", 64), *without("ipc_lock"))
    run = ("--parameters", "10M", "--largest-layer", "1M", "--workers", "0", "--only", "memory")
    expect(ask(*run, tmp_path / "ds.json", within=within), status, "memlock" if status else "")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--as-user", "nosuchuser"], "nosuchuser"),
        (["--as-user", ""], "user"),
        (["--as-user", "a b"], "user"),
        (["--place", "container:docker/nope"], "nope|[Dd]ocker"),
        (["--place", "service:nosuch.service"], "nosuch.service"),
        (["--place", "somewhere"], "somewhere"),
        (["--cache-dir", ""], "cache_dir|cache-dir"),
        (["--output-dir", ""], "output_dir|output-dir"),
        (["--batch-size", "64"], "64"),
        (["--batch-size", ""], "batch"),
        (["--workers", ""], "workers"),
        (["--policy", "/nonexistent/policy.yml"], "nonexistent"),
        (["/nonexistent/run.yaml"], "nonexistent"),
        (["--python", ""], "python"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(words: list[str], named: str) -> None:
    run = () if words[0] == "--workers" else ("--workers", 1)
    said = ask(*run, *words)
    expect(said, NOTHING, named)
    assert "Traceback" not in said.text
