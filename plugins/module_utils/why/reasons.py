# SPDX-License-Identifier: BSD-2-Clause
"""What a run can die of: every limit, and what is mistaken for one."""

from __future__ import annotations

from ..core.values import NamedTuple

NOFILE, FILE_MAX, MAPPINGS, MEMLOCK = "nofile", "file-max", "mappings", "memlock"
NPROC, PIDS, THREADS = "nproc", "pids-max", "threads-max"
INSTANCES, WATCHES, EPOLL = "inotify-instances", "inotify-watches", "epoll-watches"
SHM, SHM_QUOTA, SHM_GONE = "shm-size", "shm-quota", "shm-removed"
SPACE, COMMIT, AIO, CGROUPS = "address-space", "overcommit", "aio-requests", "cgroups"
CGROUP, HOST, OOMD, DISK = "cgroup-memory", "host-memory", "oomd", ("disk-full", "inodes")
BY_HAND, OWN_EXIT, OTHERS = "killed-by-hand", "own-exit", "another-died"


class Reason(NamedTuple):
    """One thing that a run can die of.

    ``item`` is the limit as check names it, empty where check judges none. ``text`` says what it
    is, ``tell`` how it is told from what says the same, ``way`` what to do where check has no line
    at fault.
    """

    code: str
    text: str
    tell: str
    way: str = ""
    item: str = ""
    is_limit: bool = True


def _limit(code: str, item: str, text: str, tell: str, way: str = "") -> Reason:
    return Reason(code, text, tell, way, item)


def _other(code: str, text: str, way: str, tell: str = "") -> Reason:
    return Reason(code, text, tell, way, is_limit=False)


_FILES = (
    _limit(
        NOFILE,
        "nofile",
        "the process had as many files open as its soft limit allows (nofile)",
        "its /proc/PID/fd is as long as its limit; other processes go on",
    ),
    _limit(
        FILE_MAX,
        "fs.file-max",
        "the host had as many files open as fs.file-max allows for all",
        'the kernel log says "file-max limit reached"; root is exempt',
    ),
    _limit(
        INSTANCES,
        "fs.inotify.max_user_instances",
        "the user had as many inotify instances as fs.inotify.max_user_instances allows",
        "few files are open, and other programs of the user cannot watch files either",
    ),
    _limit(
        WATCHES,
        "fs.inotify.max_user_watches",
        "the user watched as many files as fs.inotify.max_user_watches allows",
        "df shows space",
    ),
    _limit(
        EPOLL,
        "fs.epoll.max_user_watches",
        "the user had as many epoll watches as fs.epoll.max_user_watches allows",
        "df shows space",
    ),
    _limit(
        "msgqueue",
        "msgqueue",
        "the user's message queues would take more bytes than msgqueue allows",
        "few files are open; ulimit -q is small",
    ),
    _limit(
        AIO,
        "fs.aio-max-nr",
        "the host had as many asynchronous requests open as fs.aio-max-nr allows",
        "/proc/sys/fs/aio-nr is near it",
    ),
    _limit(
        "fsize",
        "fsize",
        "a file grew to the largest size that the process may write (fsize)",
        "ulimit -f is not unlimited",
    ),
    _other(
        "file-system",
        "the file would be larger than that file system can hold: 4 GiB on FAT",
        "write elsewhere, or in parts",
        "findmnt -T FILE shows vfat, or ulimit -f is unlimited",
    ),
    _limit(
        "disk-quota",
        "",
        "the user's quota on that file system is used up; no setting of the host's limits it",
        "quota -s shows it",
        "remove files, or have the quota of that file system raised: setquota, lfs setquota",
    ),
)
_SHARED = (
    _limit(
        SHM,
        "shm_size",
        "shared memory (/dev/shm) was full where the run lived",
        "df /dev/shm there; a container has its own, 64 MiB by default",
    ),
    _limit(
        SHM_QUOTA,
        "shm_size",
        "the user had taken the 80 % of /dev/shm that systemd 258 and later allow",
        "df shows space, and root can still write there",
    ),
    _limit(
        SHM_GONE,
        "remove_ipc",
        "shared memory in use was removed, as logind does at a user's last logout (RemoveIPC)",
        "the user logged out while the run went on",
    ),
    _limit(
        "sysv-shm",
        "kernel.shmmni",
        "the host has as many System V shared memory segments or bytes as kernel.shmmni, shmall"
        " and shmmax allow",
        "ipcs -m lists them",
    ),
    _limit(
        "sysv-semaphores",
        "kernel.sem",
        "the host has as many System V semaphores as kernel.sem allows",
        "ipcs -s lists them",
    ),
    _limit(
        MAPPINGS,
        "vm.max_map_count",
        "the process had as many mappings as vm.max_map_count allows",
        "wc -l /proc/PID/maps is near the limit; memory is left",
    ),
)
_TASKS = (
    _limit(
        NPROC,
        "nproc",
        "the user had as many processes and threads as the process's nproc allows",
        "ps -L -u USER | wc -l is near ulimit -u; root is exempt",
    ),
    _limit(
        PIDS,
        "tasks",
        "a cgroup above the run held as many tasks as its pids.max allows",
        'pids.events counts "max", and the kernel log says "fork rejected by pids controller"',
    ),
    _limit(
        THREADS,
        "kernel.threads-max",
        "the host had as many tasks as kernel.threads-max or kernel.pid_max allow",
        "the fourth word of /proc/loadavg is near kernel.threads-max; root fails as well",
    ),
)
_MEMORY = (
    _limit(
        MEMLOCK,
        "memlock",
        "the process may lock no more memory (memlock), and has no CAP_IPC_LOCK",
        "ulimit -l is not unlimited",
    ),
    _limit(
        SPACE,
        "as",
        "the process may map no more memory (as, or data)",
        "ulimit -v or ulimit -d is not unlimited; free shows memory",
    ),
    _limit(
        COMMIT,
        "vm.overcommit_memory",
        "the kernel promised no more memory: one request was larger than memory and swap, or"
        " vm.overcommit_memory is 2",
        "ulimit -v is unlimited; see CommitLimit and Committed_AS in /proc/meminfo",
        "ask for less at a time, or add memory or swap; vm.overcommit_memory 0 where it is 2",
    ),
    _limit(
        CGROUP,
        "memory.max",
        "the kernel killed it because a cgroup above it had used its memory limit",
        'memory.events counts "oom_kill"; the kernel log says "Memory cgroup out of memory"',
        "raise that limit, or use less memory: fewer workers, smaller batches",
    ),
    _limit(
        HOST,
        "",
        "the kernel killed it because the host had no memory left",
        'the kernel log says "Out of memory: Killed process", without "cgroup"',
        "use less memory, add memory or swap, or bound what else runs there",
    ),
    _limit(
        OOMD,
        "",
        "systemd-oomd killed its cgroup under memory pressure",
        "journalctl -u systemd-oomd names the cgroup",
        "run it under a unit with ManagedOOMMemoryPressure=auto, or use less memory",
    ),
    _limit(
        "job-memory",
        "",
        "the scheduler ended the job: it used more memory than it had asked for",
        "sacct -o ReqMem,MaxRSS shows it",
        "ask for more with --mem, or use less: fewer workers, smaller batches",
    ),
    _limit(
        "stack",
        "stack",
        "its stack grew beyond the process's limit (stack)",
        "it goes on under ulimit -s unlimited",
    ),
    _limit(
        "arguments",
        "stack",
        "the arguments and the environment of a program are too long: a quarter of the stack"
        " limit, and 128 KiB for one of them, whatever the limit",
        "one argument above 128 KiB fails under any limit",
        "pass names in a file or through xargs; a larger stack helps against the sum alone",
    ),
)
_REST = (
    _limit(
        "cpu-time",
        "cpu",
        "the process used as much processor time as it may (cpu)",
        "ulimit -t is not unlimited",
    ),
    _limit(
        "job-time",
        "",
        "the scheduler ended the job at its time limit; no setting of the host did",
        "sacct says TIMEOUT",
        "ask for more with --time, up to the MaxTime of the partition",
    ),
    _limit(
        "key-quota",
        "kernel.keys.maxkeys",
        "the user had as many keys as kernel.keys.maxkeys and maxbytes allow; no disk is full",
        "/proc/key-users shows it, with many containers of one user",
    ),
    _limit(
        "hard-limit",
        "",
        "a limit was to be set above the hard limit, or nofile above fs.nr_open",
        "ulimit -H shows the hard limits",
        "raise the hard limit where the process is started; nofile needs fs.nr_open as well",
    ),
    _limit(
        "maxlogins",
        "maxlogins",
        "the user may have no more sessions (maxlogins)",
        "loginctl lists them",
    ),
    _limit(
        CGROUPS,
        "",
        "the kernel (65535 with memory) or cgroup.max.descendants allows no more cgroups",
        "/proc/cgroups counts them",
        "end what makes them; those that were removed count until their memory is freed",
    ),
    _limit(
        "user-namespaces",
        "user.max_user_namespaces",
        "the user may make no more namespaces (user.max_user_namespaces and its like)",
        "sysctl user shows the limits",
    ),
)
_ENDED = (
    _other(
        BY_HAND,
        "somebody ended it by a signal: a person, a scheduler, an engine's stop or a timeout",
        "ask who sent it: the scheduler's log, docker events, or auditctl before the next time",
        "no oom_kill is counted and the kernel log names no process",
    ),
    _other(
        OWN_EXIT,
        "the program itself ended with that status",
        "look above for what it says of it",
        "no signal ended it",
    ),
    _other(
        OTHERS,
        "it ended because another process of the run had ended; that one's message tells why",
        "look for the first rank that failed: its exitcode and its own log",
    ),
    _other(
        "crash",
        "a bug ended it: it touched memory that is not its own",
        "run it with python -X faulthandler, and look at the library that crashed",
        "it happens under ulimit -s unlimited as well",
    ),
    _other(
        "file-shrank",
        "a file that was mapped became shorter, or a disk could not be read",
        "look who writes to that file meanwhile",
        "df /dev/shm shows space",
    ),
    _other("exception", "the program ended by an error of its own", "mend what it says"),
)
_SYSTEM = (
    _other(
        "seccomp",
        "an old container engine refuses a system call of a newer C library (seccomp)",
        "upgrade the engine: Docker 20.10.10, runc 1.0.2 and libseccomp 2.5 or later",
        "the errno is EPERM, and limits give EAGAIN",
    ),
    _other(
        "io-uring",
        "io_uring is forbidden here: by kernel.io_uring_disabled, or by the container's engine",
        "let the program do without it, or set kernel.io_uring_disabled=0; memlock is not at fault",
        "the errno is EPERM, and a limit gives ENOMEM",
    ),
    _other(
        "own-setting",
        "a setting of the program's own bounds it, and none of the host",
        "raise the setting that it names",
    ),
    _other(
        "bpf-permission",
        "it may not load BPF programs: it lacks CAP_BPF, or the kernel is locked down",
        "run it with CAP_BPF and CAP_PERFMON, or as root; memlock is not at fault",
        "the errno is EPERM; ulimit -l unlimited changes nothing since Linux 5.11",
    ),
    _other(
        "namespaces-forbidden",
        "users may make no user namespaces here: AppArmor, a sysctl or the engine forbids it",
        "give the program an AppArmor profile with userns, or set"
        " kernel.apparmor_restrict_unprivileged_userns=0",
        "the errno is EPERM or EACCES, and a limit gives ENOSPC",
    ),
    _other(
        "gpu-memory",
        "the GPU had no memory left; no limit of the host concerns it",
        "use a smaller batch or model there, or see who else uses the GPU: nvidia-smi",
    ),
    _other(
        "heap",
        "the program's own heap was full, or another bound that its options set and not the host",
        "give it more: -Xmx, -XX:MaxMetaspaceSize, -XX:MaxDirectMemorySize, --max-old-space-size",
    ),
    _other(
        "collective-timeout",
        "ranks waited for one that did not answer: it had ended, hung, or could not be reached",
        "look at the rank that is missing, and at the network between nodes",
    ),
    _other("network", "another program could not be reached", "see that it runs and listens there"),
    _other(
        DISK[0],
        "the file system that it wrote to was full",
        "df -h shows it: remove what nobody needs, or write elsewhere",
        "df shows no space",
    ),
    _other(
        DISK[1],
        "the file system that it wrote to had no inodes left: too many small files",
        "df -i shows it: remove files, or pack them",
        "df shows space, and df -i none",
    ),
    _other(
        "locked",
        "another process holds a lock on that file",
        "end what has it open, or give each run a file of its own",
        "ls and lsof show who has it open",
    ),
    _other(
        "no-locks",
        "the file system cannot lock files, or its lock server does not answer",
        "keep caches on a local disk, or mount it with locks",
    ),
    _other(
        "ray-monitor",
        "Ray's own memory monitor ended a worker before the host ran out of memory",
        "use less memory, or see RAY_memory_usage_threshold",
    ),
    _other("stale", "a file of a network file system is gone on its server", "mount it again"),
    _other(
        "not-empty",
        "a directory that was to be replaced still holds files, of another run or hidden ones",
        "give each run an output directory of its own, or clean it, hidden files too",
    ),
    _other(
        "permission",
        "it may not do that: the owner, the mode or a security module forbids it",
        "see whose it is: ls -ld, namei -l; and the audit log",
    ),
    _other(
        "unit-setup",
        "systemd could not start it: its unit asks for what is not there",
        "systemctl status and the journal say which step failed",
    ),
)
REASONS = {
    one.code: one for one in (*_FILES, *_SHARED, *_TASKS, *_MEMORY, *_REST, *_ENDED, *_SYSTEM)
}
