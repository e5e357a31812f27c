# SPDX-License-Identifier: BSD-2-Clause
"""What a run can die of: every limit, with what is mistaken for one from ``no_limits``."""

from __future__ import annotations

from .no_limits import NO_LIMITS
from .reason import limit

NOFILE, FILE_MAX, MAPPINGS, MEMLOCK = "nofile", "file-max", "mappings", "memlock"
NPROC, PIDS, THREADS = "nproc", "pids-max", "threads-max"
INSTANCES, WATCHES, EPOLL = "inotify-instances", "inotify-watches", "epoll-watches"
SHM, SHM_QUOTA, SHM_GONE = "shm-size", "shm-quota", "shm-removed"
SPACE, COMMIT, AIO, CGROUPS = "address-space", "overcommit", "aio-requests", "cgroups"
CGROUP, HOST, OOMD = "cgroup-memory", "host-memory", "oomd"
PORTS, BACKLOG, SOCKETS = "local-ports", "backlog", "socket-memory"
HUGE, TERMINALS = "huge-pages", "terminals"

_FILES = (
    limit(
        NOFILE,
        "nofile",
        "the process had as many files open as its soft limit allows (nofile)",
        "its /proc/PID/fd is as long as its limit; other processes go on",
    ),
    limit(
        FILE_MAX,
        "fs.file-max",
        "the host had as many files open as fs.file-max allows for all",
        'the kernel log says "file-max limit reached"; root is exempt',
    ),
    limit(
        INSTANCES,
        "fs.inotify.max_user_instances",
        "the user had as many inotify instances as fs.inotify.max_user_instances allows",
        "few files are open, and other programs of the user cannot watch files either",
    ),
    limit(
        WATCHES,
        "fs.inotify.max_user_watches",
        "the user watched as many files as fs.inotify.max_user_watches allows",
        "df shows space",
    ),
    limit(
        EPOLL,
        "fs.epoll.max_user_watches",
        "the user had as many epoll watches as fs.epoll.max_user_watches allows",
        "df shows space",
    ),
    limit(
        "msgqueue",
        "msgqueue",
        "the user's message queues would take more bytes than msgqueue allows",
        "few files are open; ulimit -q is small",
    ),
    limit(
        AIO,
        "fs.aio-max-nr",
        "the host had as many asynchronous requests open as fs.aio-max-nr allows",
        "/proc/sys/fs/aio-nr is near it",
    ),
    limit(
        "fsize",
        "fsize",
        "a file grew to the largest size that the process may write (fsize)",
        "ulimit -f is not unlimited",
    ),
    limit(
        "disk-quota",
        "",
        "the user's quota on that file system is used up; no setting of the host's limits it",
        "quota -s shows it",
        "remove files, or have the quota of that file system raised: setquota, lfs setquota",
    ),
)
_SHARED = (
    limit(
        SHM,
        "shm_size",
        "shared memory (/dev/shm) was full where the run lived",
        "df /dev/shm there; a container has its own, 64 MiB by default",
    ),
    limit(
        SHM_QUOTA,
        "shm_size",
        "the user had taken the 80 % of /dev/shm that systemd 258 and later allow",
        "df shows space, and root can still write there",
    ),
    limit(
        SHM_GONE,
        "remove_ipc",
        "shared memory in use was removed, as logind does at a user's last logout (RemoveIPC)",
        "the user logged out while the run went on",
    ),
    limit(
        "sysv-shm",
        "kernel.shmmni",
        "the host has as many System V shared memory segments or bytes as kernel.shmmni, shmall"
        " and shmmax allow",
        "ipcs -m lists them",
    ),
    limit(
        "sysv-semaphores",
        "kernel.sem",
        "the host has as many System V semaphores as kernel.sem allows",
        "ipcs -s lists them",
    ),
    limit(
        "sysv-queues",
        "kernel.msgmni",
        "the host has as many System V message queues as kernel.msgmni allows",
        "ipcs -q lists them",
    ),
    limit(
        MAPPINGS,
        "vm.max_map_count",
        "the process had as many mappings as vm.max_map_count allows",
        "wc -l /proc/PID/maps is near the limit; memory is left",
    ),
)
_TASKS = (
    limit(
        NPROC,
        "nproc",
        "the user had as many processes and threads as the process's nproc allows",
        "ps -L -u USER | wc -l is near ulimit -u; root is exempt",
    ),
    limit(
        PIDS,
        "tasks",
        "a cgroup above the run held as many tasks as its pids.max allows",
        'pids.events counts "max", and the kernel log says "fork rejected by pids controller"',
    ),
    limit(
        THREADS,
        "kernel.threads-max",
        "the host had as many tasks as kernel.threads-max or kernel.pid_max allow",
        "the fourth word of /proc/loadavg is near kernel.threads-max; root fails as well",
    ),
)
_MEMORY = (
    limit(
        MEMLOCK,
        "memlock",
        "the process may lock no more memory (memlock), and has no CAP_IPC_LOCK",
        "ulimit -l is not unlimited",
    ),
    limit(
        SPACE,
        "as",
        "the process may map no more memory (as, or data)",
        "ulimit -v or ulimit -d is not unlimited; free shows memory",
    ),
    limit(
        COMMIT,
        "vm.overcommit_memory",
        "the kernel promised no more memory: one request was larger than memory and swap, or"
        " vm.overcommit_memory is 2",
        "ulimit -v is unlimited; see CommitLimit and Committed_AS in /proc/meminfo",
        "ask for less at a time, or add memory or swap; vm.overcommit_memory 0 where it is 2",
    ),
    limit(
        CGROUP,
        "memory.max",
        "the kernel killed it because a cgroup above it had used its memory limit",
        'memory.events counts "oom_kill"; the kernel log says "Memory cgroup out of memory"',
        "raise that limit, or use less memory: fewer workers, smaller batches",
    ),
    limit(
        HOST,
        "",
        "the kernel killed it because the host had no memory left",
        'the kernel log says "Out of memory: Killed process", without "cgroup"',
        "use less memory, add memory or swap, or bound what else runs there",
    ),
    limit(
        OOMD,
        "",
        "systemd-oomd killed its cgroup under memory pressure",
        "journalctl -u systemd-oomd names the cgroup",
        "run it under a unit with ManagedOOMMemoryPressure=auto, or use less memory",
    ),
    limit(
        "early-oom",
        "",
        "earlyoom ended it, because the host's memory and swap were nearly used",
        "it writes what was free before; the kernel's log has no kill",
        "use less memory; earlyoom's -m and -s say how much must be free",
    ),
    limit(
        "evicted",
        "",
        "the kubelet evicted the pod: the node, or the pod's own limit, had too little left of what"
        " it names",
        "kubectl describe pod says Evicted",
        "raise that limit of the pod, or request as much as it uses, so that others go first",
    ),
    limit(
        "job-memory",
        "",
        "the scheduler ended the job: it used more memory than it had asked for",
        "sacct -o ReqMem,MaxRSS shows it",
        "ask the scheduler for more (Slurm: --mem), or use less: fewer workers, smaller batches",
    ),
    limit(
        HUGE,
        "vm.nr_hugepages",
        "the host had no huge pages left of those that vm.nr_hugepages sets aside",
        "HugePages_Free in /proc/meminfo is 0, or less than it asked for",
        "set more aside, best at boot: vm.nr_hugepages; or let the program use ordinary pages",
    ),
    limit(
        "stack",
        "stack",
        "its stack grew beyond the process's limit (stack)",
        "it goes on under ulimit -s unlimited",
    ),
    limit(
        "arguments",
        "stack",
        "the arguments and the environment of a program are too long: a quarter of the stack"
        " limit, and 128 KiB for one of them, whatever the limit",
        "one argument above 128 KiB fails under any limit",
        "pass names in a file or through xargs; a larger stack helps against the sum alone",
    ),
)
_REST = (
    limit(
        "cpu-time",
        "cpu",
        "the process used as much processor time as it may (cpu)",
        "ulimit -t is not unlimited",
    ),
    limit(
        "job-time",
        "",
        "the scheduler ended the job at its time limit; no setting of the host did",
        "sacct says TIMEOUT",
        "ask the scheduler for more (Slurm: --time, PBS: -l walltime, LSF: -W), as far as the queue"
        " allows",
    ),
    limit(
        "key-quota",
        "kernel.keys.maxkeys",
        "the user had as many keys as kernel.keys.maxkeys and maxbytes allow; no disk is full",
        "/proc/key-users shows it, with many containers of one user",
    ),
    limit(
        "hard-limit",
        "",
        "a limit was to be set above the hard limit, or nofile above fs.nr_open",
        "ulimit -H shows the hard limits",
        "raise the hard limit where the process is started; nofile needs fs.nr_open as well",
    ),
    limit(
        "maxlogins",
        "maxlogins",
        "the user may have no more sessions (maxlogins)",
        "loginctl lists them",
    ),
    limit(
        "sessions-max",
        "",
        "the host had as many sessions as SessionsMax of logind.conf allows",
        "loginctl list-sessions counts them",
        "end what is left over, or raise SessionsMax in logind.conf",
    ),
    limit(
        TERMINALS,
        "kernel.pty.max",
        "the host had as many terminals open as kernel.pty.max allows",
        "kernel.pty.nr is near kernel.pty.max",
        "end what holds them, such as old sessions, or raise kernel.pty.max",
    ),
    limit(
        CGROUPS,
        "",
        "the kernel (65535 with memory) or cgroup.max.descendants allows no more cgroups",
        "/proc/cgroups counts them",
        "end what makes them; those that were removed count until their memory is freed",
    ),
    limit(
        "user-namespaces",
        "user.max_user_namespaces",
        "the user may make no more namespaces (user.max_user_namespaces and its like)",
        "sysctl user shows the limits",
    ),
)
_SOCKETS = (
    limit(
        "conntrack",
        "net.netfilter.nf_conntrack_max",
        "the host tracked as many connections as net.netfilter.nf_conntrack_max allows, and"
        " dropped packets",
        "net.netfilter.nf_conntrack_count is near it",
    ),
    limit(
        PORTS,
        "net.ipv4.ip_local_port_range",
        "every local port that net.ipv4.ip_local_port_range allows was taken",
        "ss -s counts tens of thousands of sockets, most of them in TIME-WAIT",
        "let the program keep its connections and use them again, or widen the range",
    ),
    limit(
        BACKLOG,
        "net.core.somaxconn",
        "more connections came at once than net.core.somaxconn, net.ipv4.tcp_max_syn_backlog or"
        " the program's own listen() let wait",
        "nstat -az TcpExtListenOverflows grows",
        "raise both, and the number that the program gives to listen()",
    ),
    limit(
        SOCKETS,
        "",
        "the kernel had no memory left for sockets: net.ipv4.tcp_mem, udp_mem, net.core.optmem_max"
        ", tcp_max_orphans or, with many hosts near, net.ipv4.neigh.default.gc_thresh3",
        'the kernel log says "consider tuning tcp_mem" or "neighbor table overflow"',
        "raise what the kernel log names; a full queue of a network card says the same",
    ),
)
REASONS = {
    one.code: one for one in (*_FILES, *_SHARED, *_TASKS, *_MEMORY, *_REST, *_SOCKETS, *NO_LIMITS)
}
