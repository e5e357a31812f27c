# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that would not survive on a provisioned host, for what a check prints of each.

``python -m tests.faults.runs`` makes them on one guest, one after the other, and keeps the examples.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from typing import Any, NamedTuple

from tests.host import guest

from .base import prepare
from .examples import find_examples, keep, read_examples, write_examples
from .shell import Shell, TrialError, opened

CACHE, OUTPUT = "/srv/cache", "/srv/run-17"
PYTHON = "/usr/bin/python3"
PID = "/run/run-16.pid"
PACKAGES = "/usr/lib/python3/dist-packages"
LOADER = {"workers": 16, "tensors_per_batch": 64}
BREAK = f"""
import ctypes, os
fd = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={{fd}},rootmode=40000,user_id=0,group_id=0".encode()
ended = ctypes.CDLL(None, use_errno=True).mount(b"shards", b"{CACHE}", b"fuse", 0, options)
assert ended == 0, os.strerror(ctypes.get_errno())
"""
"""A file system whose program ends at once."""
CORRUPT = f"mkdir {CACHE}; printf cut-short > {CACHE}/embeddings.safetensors"


class Run(NamedTuple):
    """A script that makes the host, what the run says of itself, and the codes that it must show."""

    name: str
    codes: tuple[str, ...]
    training: dict[str, Any]
    make: str = "true"
    through: str = ""


def install(name: str, version: str) -> str:
    """Return the script that leaves a package's metadata, all that is read of it."""
    folder = f"{PACKAGES}/{name}-{version}.dist-info"
    text = f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n"
    return f"mkdir {folder}; printf '{text}' > {folder}/METADATA"


def tmpfs(path: str, options: str) -> str:
    return f"mkdir -p {path}; mount -t tmpfs -o {options} tmpfs {path}"


def checkpoints(*numbers: int) -> str:
    """Return the script that makes whole checkpoints, the first the oldest."""
    made = [
        f"mkdir -p {OUTPUT}/checkpoint-{number}; echo {{}} > {OUTPUT}/checkpoint-{number}/trainer_state.json;"
        f" touch -d '{10 - age} hours ago' {OUTPUT}/checkpoint-{number}/trainer_state.json"
        for age, number in enumerate(numbers)
    ]
    return "\n".join(made)


RUNS = (
    Run(
        "many workers under a soft limit of 256",
        ("run-descriptors", "run-workers"),
        LOADER,
        through="prlimit --nofile=256:4096 bash -c",
    ),
    Run(
        "as many files as fs.file-max allows",
        ("run-file-handles",),
        {**LOADER, "checks": ["descriptors"]},
        "sysctl -w fs.file-max=2000",
    ),
    Run(
        "a small /dev/shm",
        ("run-shared-memory",),
        {"workers": 4, "tensors_per_batch": 4, "batch_size": "16MiB", "checks": ["shared_memory"]},
        "mount -o remount,size=64M /dev/shm",
    ),
    Run(
        "leftovers in /dev/shm",
        ("run-shared-memory-leftovers",),
        {"workers": 4, "tensors_per_batch": 4, "batch_size": "4MiB", "checks": ["shared_memory"]},
        "mount -o remount,size=64M /dev/shm; head -c 50M /dev/zero > /dev/shm/torch_4711_17",
    ),
    Run(
        "a cgroup with little memory",
        ("run-memory-cgroup",),
        {"workers": 8, "checks": ["memory"]},
        through="systemd-run --quiet --scope --unit=run-17 -p MemoryMax=300M bash -c",
    ),
    Run(
        "more memory than the host has",
        ("run-memory-host",),
        {"workers": 8, "worker_memory": "8GiB"},
    ),
    Run(
        "buffers that cannot be locked",
        ("run-memlock",),
        {"workers": 1, "pinned_buffer": "64MiB", "user": "alice"},
        "printf '%s\\n' 'alice - memlock 64' > /etc/security/limits.d/95-site.conf",
    ),
    Run(
        "more tensors than a process may map",
        ("run-mappings",),
        {"workers": 2, "tensors_per_batch": 2000, "hold": 600, "sharing": "file_system"},
    ),
    Run(
        "an address space that is too small for a worker",
        ("run-address-space",),
        {"workers": 1, "worker_memory": "64MiB", "user": "alice"},
        "printf '%s\\n' 'alice hard as 60000' > /etc/security/limits.d/95-site.conf",
    ),
    Run(
        "files that may not grow as large as a checkpoint",
        ("run-file-size",),
        {"output_dir": OUTPUT, "checkpoint_size": "64MiB", "user": "alice"},
        f"mkdir -m 0777 {OUTPUT}; "
        "printf '%s\\n' 'alice - fsize 1024' > /etc/security/limits.d/95-site.conf",
    ),
    Run(
        "more workers than the user's tasks allow",
        ("run-tasks",),
        {"workers": 64, "user": "alice", "checks": ["tasks"]},
        "printf '%s\\n' 'alice - nproc 40' > /etc/security/limits.d/95-site.conf",
    ),
    Run(
        "a cgroup that holds few tasks",
        ("run-tasks",),
        {"workers": 64, "checks": ["tasks"]},
        through="systemd-run --quiet --scope --unit=run-18 -p TasksMax=60 bash -c",
    ),
    Run("more workers than CPUs", ("run-cpus",), {"workers": 16, "checks": ["cpus"]}),
    Run("no cache", ("folder-absent",), {"cache_dir": CACHE}),
    Run("a file for a cache", ("folder-not-one",), {"cache_dir": CACHE}, f"touch {CACHE}"),
    Run(
        "a cache below root's folder",
        ("folder-closed",),
        {"cache_dir": "/root/cache", "user": "alice"},
        "mkdir -m 0777 /root/cache",
    ),
    Run(
        "a cache of root's",
        ("folder-not-writable",),
        {"cache_dir": CACHE, "user": "alice"},
        f"mkdir {CACHE}",
    ),
    Run(
        "a cache that is mounted read-only",
        ("folder-read-only",),
        {"cache_dir": CACHE},
        tmpfs(CACHE, "ro,size=8M"),
    ),
    Run(
        "a cache whose FUSE program has ended",
        ("folder-broken",),
        {"cache_dir": CACHE},
        f"modprobe fuse; mkdir {CACHE}; python3 -c {shlex.quote(BREAK)}",
    ),
    Run(
        "a small disk for a cache",
        ("folder-full",),
        {"cache_dir": CACHE, "cache_free": "200GiB"},
        tmpfs(CACHE, "size=8M"),
    ),
    Run(
        "a disk for few files",
        ("folder-no-inodes",),
        {"cache_dir": CACHE, "shards": 1000},
        tmpfs(CACHE, "size=8M,nr_inodes=20"),
    ),
    Run(
        "a cache that all jobs share",
        ("cache-not-of-one-job",),
        {"cache_dir": CACHE},
        f"mkdir {CACHE}",
        "env SLURM_JOB_ID=4711 bash -c",
    ),
    Run(
        "a cache that containers share",
        ("cache-shared-by-containers",),
        {"cache_dir": CACHE},
        f"mkdir {CACHE}\n"
        + "\n".join(
            f"docker run -d --name {name} -v {CACHE}:/cache tiny /busybox sleep 600"
            for name in ("one", "two")
        ),
    ),
    Run(
        "a variable that names another cache",
        ("cache-variable-elsewhere",),
        {"cache_dir": CACHE, "python": PYTHON},
        f"mkdir {CACHE}; {install('webdataset', '0.2.100')}",
        "env WDS_CACHE=/tmp/shards bash -c",
    ),
    Run(
        "a variable that nobody reads",
        ("cache-variable-unread",),
        {"cache_dir": CACHE, "python": PYTHON},
        f"mkdir {CACHE}; {install('webdataset', '1.0.2')}",
        f"env WIDS_CACHE={CACHE} bash -c",
    ),
    Run(
        "fewer shards than workers",
        ("cache-few-shards",),
        {"cache_dir": CACHE, "workers": 8, "shards": 4},
        f"mkdir {CACHE}",
    ),
    Run("a file that is cut short", ("cache-file-corrupt",), {"cache_dir": CACHE}, CORRUPT),
    Run(
        "a file with the name of a checkpoint",
        ("checkpoint-conflict",),
        {"output_dir": OUTPUT},
        f"mkdir {OUTPUT}; touch {OUTPUT}/checkpoint-500",
    ),
    Run(
        "a checkpoint without its state",
        ("checkpoint-broken",),
        {"output_dir": OUTPUT},
        f"{checkpoints(500)}; mkdir {OUTPUT}/checkpoint-1000",
    ),
    Run(
        "a hidden file in a checkpoint",
        ("checkpoint-hidden-files",),
        {"output_dir": OUTPUT},
        f"{checkpoints(500)}; mkdir {OUTPUT}/checkpoint-1000; touch {OUTPUT}/checkpoint-1000/.nfs0012",
    ),
    Run(
        "checkpoints of an older run",
        ("checkpoint-stale",),
        {"output_dir": OUTPUT, "save_total_limit": 2, "resume": True},
        checkpoints(2000, 500),
    ),
    Run(
        "another run in the directory",
        ("output-in-use",),
        {"output_dir": OUTPUT},
        f"mkdir {OUTPUT}; setsid python3 -c 'import time; time.sleep(600)'"
        f" > {OUTPUT}/log 2>&1 < /dev/null & echo $! > {PID}",
    ),
    Run(
        "a package that is not there",
        ("package-absent",),
        {"packages": {"transformers": ">=4.50"}, "python": PYTHON},
    ),
    Run(
        "an old package",
        ("package-version",),
        {"packages": {"transformers": ">=4.50"}, "python": PYTHON},
        install("transformers", "4.48.3"),
    ),
    Run(
        "a package between two releases",
        ("package-development",),
        {"packages": {"transformers": ""}, "python": PYTHON},
        install("transformers", "4.49.0.dev0"),
    ),
)
CLEAN = f"""
docker rm -f one two >/dev/null 2>&1 || true
if [ -e {PID} ]; then kill $(cat {PID}); rm {PID}; fi
umount {CACHE} 2>/dev/null || true
rm -rf {CACHE} {OUTPUT} /root/cache /dev/shm/torch_* /etc/security/limits.d/95-site.conf
rm -rf {PACKAGES}/webdataset-* {PACKAGES}/transformers-*
mount -o remount,size=50% /dev/shm
sysctl -q -w fs.file-max=2097152
"""


def try_run(shell: Shell, run: Run) -> dict[str, Any]:
    """Return what is shown of a run, as the results of faults have it.

    :raises TrialError: If it cannot be made, or does not show what it must.
    """
    shell.do(run.make)
    look = shell.check({"training": run.training}, "none", run.through)
    found = find_examples(look)
    missing = set(run.codes) - set(found)
    if missing:
        raise TrialError("\n".join([f"not shown: {', '.join(sorted(missing))}", *look.report]))
    return {"name": run.name, "examples": {code: found[code] for code in run.codes}}


def main() -> int:
    """Make the runs; the status is 0 where each shows its codes."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.runs", description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX", help="of names")
    only = parser.parse_args().only
    results, wrong = [], 0
    with guest.running(guest.DEFAULT_RELEASE) as host:
        prepare(host)
        with opened(host) as shell:
            for run in (run for run in RUNS if re.search(only, run.name)):
                try:
                    results.append(try_run(shell, run))
                    print(f"shown      {run.name}", flush=True)
                except TrialError as error:
                    wrong += 1
                    print(f"NOT SHOWN  {run.name}: {error}", flush=True)
                shell.do(CLEAN)
    write_examples(keep(results, read_examples()))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
