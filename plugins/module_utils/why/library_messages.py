# SPDX-License-Identifier: BSD-2-Clause
"""What single libraries, schedulers and shells write in words of their own.

Sources: llama.cpp, Ray, Dask, joblib, R, Go, OpenJDK, DuckDB, UCX, Open MPI, YARN, LSF and PBS.
"""

from __future__ import annotations

from .message import AFTER, PLAIN, WRAPPER, say
from .no_limits import BY_HAND, OTHERS
from .reasons import (
    CGROUP,
    COMMIT,
    HOST,
    HUGE,
    MEMLOCK,
    NOFILE,
    NPROC,
    OOMD,
    PIDS,
    SHM,
    SPACE,
    TERMINALS,
    THREADS,
)

TASKS = (NPROC, PIDS, THREADS)
KILL = (CGROUP, HOST, OOMD, BY_HAND)
_NO_SPACE = "no space left on device|errno 28]"

_GPUS = (
    say("unable to allocate", ("gpu-memory",), r"\b(CUDA|ROCm|Vulkan|SYCL|Metal|MUSA)\d* buffer"),
    say("device memory allocation of size", ("gpu-memory",), r"failed"),
    say("out of resource: ", ("gpu-memory",), r"hardware limit|shared"),
    say("bad_alloc: cuda error|bad_alloc: out_of_memory: cuda", ("gpu-memory",)),
    say("failed to allocate memory for requested buffer", ("gpu-memory", SPACE, COMMIT)),
    say("too many resources requested for launch", ("gpu-memory",)),
)
_MEMORY = (
    say("killed due to memory pressure", ("ray-monitor",), r"workers? \(tasks|raylet|node_manager"),
    say("memory budget. restarting|exceeded 95% memory", ("own-setting",), r"nanny|worker"),
    say("could not allocate block of size", ("own-setting",), r"used\)"),
    say("oom when allocating", (SPACE, COMMIT), r"CPU:\d|by allocator cpu"),
    say("cannot allocate vector of size|cannot allocate heap metadata", (SPACE, COMMIT)),
    say("cannot reserve arena virtual address space", (SPACE,)),
    say("xmalloc: cannot allocate|xrealloc: cannot allocate", (SPACE, COMMIT)),
    say("failed to allocate buffer of size", (SPACE, COMMIT), r"ggml|cpu_buffer"),
    say("backing store for guest ram", (HUGE, SPACE, COMMIT)),
    say("hugepages reported", (HUGE,), r"no free"),
    say("vfio_dma_map", (MEMLOCK,), r"Cannot allocate memory|= -12\b"),
    say("perf_event_mlock_kb", (MEMLOCK,), r"increas"),
    say("failed with error bad address", ("exception",), r"ibv_reg_mr"),
    say("c stack usage", ("stack", "exception"), r"too close to the limit"),
    say("system oom encountered", (HOST,)),
    say('received "killed" signal|get\u00f6tet', KILL),
    say("with an exit code 9|exitcode=9", KILL, r"unexpectedly|child process"),
    say("not enough memory to write total|not enough space for /dev/shm", (SHM,), "/dev/shm"),  # noqa: S108
)
_TASKS_AND_FILES = (
    say("thread creation via pthread_create|cannot create worker gc thread", TASKS),
    say("number of children a process can have", TASKS, r"limit"),
    say("limit on number of pipes|too many events are opened", (NOFILE,)),
    say(_NO_SPACE, (TERMINALS,), r"/dev/ptmx|/dev/pts|openpty|posix_openpt"),
    say("no more ptys", (TERMINALS,)),
    say("creating new namespace failed|_namespaces exceeded|in /proc/sys/user/max_user_namespaces",
        ("user-namespaces",)),
    say("no permissions to create new namespace", ("namespaces-forbidden",)),
    say("can't propagate rlimit|crun: setrlimit", ("hard-limit",)),
    say("ulimit: ", ("hard-limit",), r"can't raise|denied when changing|error setting limit"),
    say("too many logins (max", ("maxlogins",)),
    say("database or disk is full", ("disk-full", "disk-quota")),
    say("errno = 122", ("disk-quota",), r"write failed"),
    say("errno = 28", ("disk-full", "inodes"), r"write failed"),
)  # fmt: skip
_SCHEDULERS = (
    say("term_cpulimit|job killed: cput|exceeded hard wallclock time", ("job-time",)),
    say("term_swap|has gone over memory limit|exceeding memory limits", ("job-memory",)),
    say("memory limit", ("job-memory",), r"beyond the '(PHYSICAL|VIRTUAL)' memory limit"),
    say("exceeds job hard limit", ("job-memory",), r"_vmem|_rss|mem"),
    say("term_processlimit|term_threadlimit", TASKS),
    say("term_owner", (BY_HAND,)),
    say("unable to create step for job|unable to allocate resources", ("exception",),
        r"srun|salloc", rank=PLAIN),
    say("forcefully terminating all other processes", (OTHERS,), rank=WRAPPER),
    say("abruptly died during map|worker proc ", (OTHERS, CGROUP, HOST, "crash"), r"died",
        rank=AFTER),
    say("unexpectedly terminated. this could be caused by", (CGROUP, HOST, "crash", OTHERS),
        rank=AFTER),
)  # fmt: skip
LIBRARIES = (*_GPUS, *_MEMORY, *_TASKS_AND_FILES, *_SCHEDULERS)
