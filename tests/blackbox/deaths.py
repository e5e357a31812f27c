# SPDX-License-Identifier: GPL-3.0-or-later
"""Every death that is injected: the kind, what it is a death of, and the program that dies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

NONE = ""
"""Stands for a death that no limit is at fault for."""


class Death(NamedTuple):
    """One death. ``reason`` is the code that ``why`` has for it. ``$WATCH`` starts what is watched."""

    kind: str
    number: int
    reason: str
    program: str

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.number}"


CLIMB = "$PY $HERE/climb.py"
LIMITS: dict[str, tuple[str, tuple[str, ...]]] = {
    "files": (
        "nofile",
        (
            f"ulimit -n 256; $WATCH {CLIMB} files 4 0.05",
            f"ulimit -n 1024; $WATCH {CLIMB} sockets 8 0.02",
            f"ulimit -n 400; $AS_USER $WATCH {CLIMB} pipes 3 0.06",
            f"$WATCH bash -c 'ulimit -n 300; exec {CLIMB} files 2 0.02'",
        ),
    ),
    "files-of-a-worker": (
        "nofile",
        (
            f"ulimit -n 256; IN_CHILD=1 $WATCH {CLIMB} files 4 0.05",
            f"ulimit -n 700; IN_CHILD=1 $AS_USER $WATCH {CLIMB} sockets 10 0.05",
            f"ulimit -n 300; $WATCH bash -c '{CLIMB} files 3 0.04; exit 1'",
            f"ulimit -n 512; $WATCH bash -c 'sleep 30 & {CLIMB} pipes 4 0.04 || exit 7'",
        ),
    ),
    "mappings": (
        "mappings",
        (
            f"$WATCH {CLIMB} mappings 200 0.05",
            f"$AS_USER $WATCH {CLIMB} mappings 150 0.05",
            f"IN_CHILD=1 $WATCH {CLIMB} mappings 200 0.1",
            f"$WATCH {CLIMB} mappings 100 0.02",
        ),
    ),
    "locked": (
        "memlock",
        (
            f"ulimit -l 4096; $AS_USER $WATCH {CLIMB} locked 1 0.06",
            f"ulimit -l 8192; $AS_USER $WATCH {CLIMB} locked 4 0.1",
            f"ulimit -l 2048; IN_CHILD=1 $AS_USER $WATCH {CLIMB} locked 1 0.1",
            f"$AS_USER $WATCH bash -c 'ulimit -l 6000; exec {CLIMB} locked 2 0.05'",
        ),
    ),
    "nproc-threads": (
        "nproc",
        (
            f"ulimit -u 60; $AS_USER $WATCH {CLIMB} threads 1 0.06",
            f"ulimit -u 200; $AS_USER $WATCH {CLIMB} threads 4 0.08",
            f"ulimit -u 120; IN_CHILD=1 $AS_USER $WATCH {CLIMB} threads 2 0.06",
            f"$AS_USER $WATCH bash -c 'ulimit -u 90; exec {CLIMB} threads 2 0.1'",
        ),
    ),
    "nproc-forks": (
        "nproc",
        (
            f"ulimit -u 50; $AS_USER $WATCH {CLIMB} forks 1 0.08",
            f"ulimit -u 100; $AS_USER $WATCH {CLIMB} forks 2 0.08",
            f"ulimit -u 70; $AS_USER $WATCH bash -c '{CLIMB} forks 1 0.05 || exit 9'",
            f"ulimit -u 130; $AS_USER $WATCH {CLIMB} forks 3 0.1",
        ),
    ),
    "tasks-threads": (
        "pids-max",
        (
            f"in_tasks 50 $WATCH {CLIMB} threads 1 0.04",
            f"in_tasks 200 $WATCH {CLIMB} threads 50 0.01",
            f"in_tasks 90 $AS_USER $WATCH {CLIMB} threads 3 0.1",
            f"IN_CHILD=1 in_tasks 100 $WATCH {CLIMB} threads 4 0.1",
        ),
    ),
    "tasks-forks": (
        "pids-max",
        (
            f"in_tasks 40 $WATCH {CLIMB} forks 1 0.05",
            f"in_tasks 100 $WATCH {CLIMB} forks 100 0",
            f"in_tasks 60 $AS_USER $WATCH {CLIMB} forks 2 0.1",
            f"in_tasks 80 $WATCH bash -c '{CLIMB} forks 2 0.05 || exit 3'",
        ),
    ),
    "address-space": (
        "address-space",
        (
            f"ulimit -v 600000; $WATCH {CLIMB} space 6 0.05",
            f"ulimit -v 900000; $AS_USER $WATCH {CLIMB} private 10 0.05",
            f"$WATCH bash -c 'ulimit -v 400000; exec {CLIMB} space 3 0.04'",
            f"ulimit -v 800000; IN_CHILD=1 $WATCH {CLIMB} space 6 0.05",
        ),
    ),
    "data": (
        "address-space",
        (
            f"$WATCH bash -c 'ulimit -d 200000; exec {CLIMB} memory 3 0.05'",
            f"$AS_USER $WATCH bash -c 'ulimit -d 300000; exec {CLIMB} private 4 0.05'",
            f"IN_CHILD=1 $WATCH bash -c 'ulimit -d 250000; exec {CLIMB} memory 2 0.04'",
        ),
    ),
    "cgroup-memory": (
        "cgroup-memory",
        (
            f"in_memory 80000000 $WATCH {CLIMB} memory 2 0.05",
            f"in_memory 120000000 $WATCH {CLIMB} memory 1000 0",
            f"in_memory 100000000 $AS_USER $WATCH {CLIMB} memory 4 0.1",
            f"in_memory 90000000 $WATCH bash -c '{CLIMB} memory 4 0.1'",
        ),
    ),
    "cgroup-memory-of-a-worker": (
        "cgroup-memory",
        (
            f"IN_CHILD=1 in_memory 90000000 $WATCH {CLIMB} memory 2 0.05",
            f"IN_CHILD=1 in_memory 150000000 $AS_USER $WATCH {CLIMB} memory 1000 0",
            f"in_memory 90000000 $WATCH bash -c '{CLIMB} memory 4 0.1; exit 1'",
            f"in_memory 90000000 $WATCH bash -c 'sleep 20 & {CLIMB} memory 4 0.1 || exit 137'",
        ),
    ),
    "shared-memory": (
        "shm-size",
        (
            f"in_shm size=64m $WATCH {CLIMB} shared 1 0.04",
            f"in_shm size=100m $AS_USER $WATCH {CLIMB} shared 3 0.08",
            f"IN_CHILD=1 in_shm size=64m $WATCH {CLIMB} shared 1 0.05",
            f"$WATCH unshare -m bash -c 'mount -t tmpfs -o size=50m t /dev/shm; exec {CLIMB} shared 1 0.05'",
        ),
    ),
    "shared-memory-written": (
        "shm-size",
        (
            f"in_shm size=64m $WATCH {CLIMB} shared-file 1 0.05",
            f"in_shm size=120m $WATCH {CLIMB} shared-file 4 0.1",
            f"in_shm size=80m $AS_USER $WATCH {CLIMB} shared-file 2 0.08",
        ),
    ),
    "processor-time": (
        "cpu-time",
        (
            f"$WATCH bash -c 'ulimit -S -t 1; exec {CLIMB} time 1 0'",
            f"$WATCH bash -c 'ulimit -S -t 2; exec {CLIMB} time 1 0.01'",
            f"$WATCH bash -c 'ulimit -t 1; exec {CLIMB} time 1 0'",
            f"$AS_USER $WATCH bash -c 'ulimit -t 2; exec {CLIMB} time 1 0'",
        ),
    ),
    "size-of-a-file": (
        "fsize",
        (
            f"ulimit -f 20000; $WATCH {CLIMB} growing 1 0.05",
            f"ulimit -f 40000; $AS_USER $WATCH {CLIMB} growing 4 0.05",
            f"$WATCH bash -c 'ulimit -f 9000; exec {CLIMB} growing 1 0.01'",
            f"$WATCH bash -c 'ulimit -f 8000; {CLIMB} growing 1 0.05; exit 1'",
        ),
    ),
    "stack": (
        "stack",
        (
            "$WATCH bash -c 'ulimit -s 8192; exec $STACK 15000'",
            "$WATCH bash -c 'ulimit -s 4096; exec $STACK 20000'",
            "$AS_USER $WATCH bash -c 'ulimit -s 16384; exec $STACK 8000'",
            "$WATCH bash -c 'ulimit -s 8192; $STACK 15000; exit 1'",
        ),
    ),
}
_SIGNALLED = "$WATCH bash -c '{program} & sleep 1.5; kill -{number} $!; wait $!; exit $?'"
CALM: dict[str, tuple[str, ...]] = {
    "killed-by-hand": (
        f"$WATCH {CLIMB} nothing 1 0.1 10 signal:9",
        f"ulimit -n 400; $WATCH {CLIMB} files 5 0.02 360 signal:9",
        f"ulimit -n 400; $WATCH {CLIMB} files 5 0.02 390 signal:9",
        f"in_memory 200000000 $WATCH {CLIMB} memory 5 0.05 130 signal:9",
        f"in_memory 200000000 $AS_USER $WATCH {CLIMB} memory 5 0.05 150 signal:9",
        f"in_tasks 60 $WATCH {CLIMB} threads 1 0.03 50 signal:9",
        f"ulimit -v 600000; $WATCH {CLIMB} space 6 0.05 400 signal:9",
        f"$WATCH bash -c 'ulimit -t 20; exec {CLIMB} time 1 0 30 signal:9'",
    ),
    "rank-killed-by-hand": (
        f"$WATCH {CLIMB} nothing 1 0.1 5 rank",
        f"ulimit -n 400; $WATCH {CLIMB} files 5 0.02 300 rank",
        f"in_memory 200000000 $WATCH {CLIMB} memory 5 0.05 120 rank",
        "$WATCH bash -c 'sleep 60 & sleep 1; kill -9 $!; wait $!; exit $?'",
    ),
    "segfault": (
        f"$WATCH {CLIMB} nothing 1 0.1 10 segfault",
        f"ulimit -n 400; $AS_USER $WATCH {CLIMB} files 5 0.02 380 segfault",
        f"in_memory 200000000 $WATCH {CLIMB} memory 5 0.05 150 segfault",
        f"ulimit -v 600000; $WATCH {CLIMB} space 6 0.05 400 segfault",
    ),
    "abort": (
        f"$WATCH {CLIMB} nothing 1 0.1 10 abort",
        f"ulimit -n 400; $WATCH {CLIMB} files 5 0.02 350 abort",
        f"in_tasks 60 $WATCH {CLIMB} threads 1 0.03 45 abort",
    ),
    "own-exit-137": (
        f"$WATCH {CLIMB} nothing 1 0.1 10 exit:137",
        f"in_memory 200000000 $WATCH {CLIMB} memory 5 0.05 150 exit:137",
        "$WATCH bash -c 'sleep 1; exit 137'",
        f"ulimit -n 400; $AS_USER $WATCH {CLIMB} files 5 0.02 380 exit:137",
    ),
    "exception": (
        f"$WATCH {CLIMB} nothing 1 0.1 10 raise",
        f"ulimit -n 400; $WATCH {CLIMB} files 5 0.02 200 raise",
        f"ulimit -n 400; $WATCH {CLIMB} files 5 0.02 350 raise",
        f"ulimit -n 400; $WATCH {CLIMB} files 5 0.02 385 raise",
        f"ulimit -n 1024; $AS_USER $WATCH {CLIMB} sockets 10 0.02 990 raise",
        f"in_memory 200000000 $WATCH {CLIMB} memory 5 0.05 150 raise",
        f"in_tasks 60 $WATCH {CLIMB} threads 1 0.03 52 raise",
        f"ulimit -u 100; $AS_USER $WATCH {CLIMB} threads 2 0.05 85 raise",
        f"ulimit -v 600000; $WATCH {CLIMB} space 6 0.05 450 raise",
        f"ulimit -l 4096; $AS_USER $WATCH {CLIMB} locked 1 0.04 55 raise",
        f"in_shm size=64m $WATCH {CLIMB} shared 1 0.04 57 raise",
        f"$WATCH {CLIMB} mappings 1000 0.06 50000 raise",
    ),
    "signalled": tuple(
        _SIGNALLED.format(program=program, number=number)
        for program, number in (
            (f"{CLIMB} nothing 1 0.1", 15),
            (f"{CLIMB} nothing 1 0.1", 9),
            (f"{CLIMB} nothing 1 0.1", 24),
            ("sleep 60", 1),
            ("sleep 60", 10),
            (f"(ulimit -n 400; exec {CLIMB} files 2 0.01 370 stay:60)", 15),
        )
    ),
    "timeout": (
        "timeout 2 $WATCH sleep 60",
        "timeout -s KILL 2 $WATCH sleep 60 || true",
        f"$WATCH timeout 2 {CLIMB} nothing 1 0.1",
        f"$WATCH timeout -s KILL 2 {CLIMB} nothing 1 0.1",
        f"ulimit -n 400; $WATCH timeout 4 {CLIMB} files 5 0.05 380 stay:60",
    ),
    "limit-survived": (
        f"ulimit -n 300; $WATCH {CLIMB} files 5 0.02 9999 release:7",
        f"ulimit -n 300; $WATCH {CLIMB} files 5 0.02 9999 stay:13",
        f"in_tasks 40 $WATCH {CLIMB} threads 1 0.04 9999 release:9",
        f"ulimit -v 500000; $WATCH {CLIMB} space 6 0.05 9999 release:7",
    ),
    "of-somebody-else": (
        # Another's cgroup is at its limit, and the kernel kills there.
        f"(in_memory 60000000 {CLIMB} memory 5 0.02) & $WATCH {CLIMB} nothing 1 0.1 30 signal:9",
        f"(in_memory 60000000 {CLIMB} memory 5 0.02) & $AS_USER $WATCH {CLIMB} nothing 1 0.1 25 raise",
        f"(in_tasks 30 {CLIMB} threads 1 0.02) & $WATCH {CLIMB} nothing 1 0.1 15 raise",
        # A child that is not the run's is killed at the limit of the run's own cgroup.
        f"in_memory 120000000 bash -c '{CLIMB} memory 5 0.05 & $WATCH {CLIMB} nothing 1 0.1 20 signal:9'",
        f"in_memory 120000000 $AS_USER bash -c '{CLIMB} memory 5 0.1 & $WATCH {CLIMB} nothing 1 0.1 22 signal:9'",
    ),
    "crash-of-others": (
        '$WATCH bash -c \'head -c 4096 /dev/zero > $WORK/m; exec $PY -c "import mmap,os,time; f=open(os.environ[\\"WORK\\"]+\\"/m\\",\\"r+b\\"); m=mmap.mmap(f.fileno(),4096); time.sleep(1); f.truncate(0); m[0]"\'',
        "in_small size=2m $WATCH bash -c 'sleep 1; head -c 9000000 /dev/zero > $WORK/small/file'",
        "$WATCH $PY -c 'import time; time.sleep(1); import nonesuch'",
        "$WATCH $PY -c 'import time; time.sleep(1); assert False'",
        "$WATCH bash -c 'sleep 1; nonesuch-program'",
        "$WATCH bash -c 'yes | head -1; exit 141'",
    ),
}


def list_deaths() -> Iterator[Death]:
    """Yield every death."""
    for kind, (reason, programs) in LIMITS.items():
        yield from (Death(kind, number, reason, one) for number, one in enumerate(programs))
    for kind, programs in CALM.items():
        yield from (Death(kind, number, NONE, one) for number, one in enumerate(programs))
