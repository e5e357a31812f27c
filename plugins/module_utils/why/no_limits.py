# SPDX-License-Identifier: BSD-2-Clause
"""What a run can die of although no limit of the host was at fault."""

from __future__ import annotations

from .reason import no_limit

BY_HAND, OWN_EXIT, OTHERS = "killed-by-hand", "own-exit", "another-died"
DISK = ("disk-full", "inodes")

_ENDED = (
    no_limit(
        BY_HAND,
        "somebody ended it by a signal: a person, a scheduler, an engine's stop or a timeout",
        "ask who sent it: the scheduler's log, docker events, or auditctl before the next time",
        "no oom_kill is counted and the kernel log names no process",
    ),
    no_limit(
        "preempted",
        "the scheduler ended the job for one of higher priority",
        "submit it again, with --requeue and checkpoints, or in a partition without preemption",
        "sacct says PREEMPTED",
    ),
    no_limit(
        "node-failed",
        "a node of the job failed, or the scheduler lost touch with it",
        "sinfo -R and the log of slurmctld tell why; submit the job again, without that node",
        "sacct says NODE_FAIL",
    ),
    no_limit(
        OWN_EXIT,
        "the program itself ended with that status",
        "look above for what it says of it",
        "no signal ended it",
    ),
    no_limit(
        OTHERS,
        "it ended because another process of the run had ended; that one's message tells why",
        "look for the first rank that failed: its exitcode and its own log",
    ),
    no_limit(
        "crash",
        "a bug ended it: it touched memory that is not its own",
        "run it with python -X faulthandler, and look at the library that crashed",
        "it happens under ulimit -s unlimited as well",
    ),
    no_limit(
        "file-shrank",
        "a file that was mapped became shorter, or a disk could not be read",
        "look who writes to that file meanwhile",
        "df /dev/shm shows space",
    ),
    no_limit("exception", "the program ended by an error of its own", "mend what it says"),
)
_SYSTEM = (
    no_limit(
        "seccomp",
        "an old container engine refuses a system call of a newer C library (seccomp)",
        "upgrade the engine: Docker 20.10.10, runc 1.0.2 and libseccomp 2.5 or later",
        "the errno is EPERM, and limits give EAGAIN",
    ),
    no_limit(
        "io-uring",
        "io_uring is forbidden here: by kernel.io_uring_disabled, or by the container's engine",
        "let the program do without it, or set kernel.io_uring_disabled=0; memlock is not at fault",
        "the errno is EPERM, and a limit gives ENOMEM",
    ),
    no_limit(
        "own-setting",
        "a setting of the program's own bounds it, and none of the host",
        "raise the setting that it names",
    ),
    no_limit(
        "bpf-permission",
        "it may not load BPF programs: it lacks CAP_BPF, or the kernel is locked down",
        "run it with CAP_BPF and CAP_PERFMON, or as root; memlock is not at fault",
        "the errno is EPERM; ulimit -l unlimited changes nothing since Linux 5.11",
    ),
    no_limit(
        "namespaces-forbidden",
        "users may make no user namespaces here: AppArmor, a sysctl or the engine forbids it",
        "give the program an AppArmor profile with userns, or set"
        " kernel.apparmor_restrict_unprivileged_userns=0",
        "the errno is EPERM or EACCES, and a limit gives ENOSPC",
    ),
    no_limit(
        "gpu-memory",
        "the GPU had no memory left; no limit of the host concerns it",
        "use a smaller batch or model there, or see who else uses the GPU: nvidia-smi",
    ),
    no_limit(
        "heap",
        "the program's own heap was full, or another bound that its options set and not the host",
        "give it more: -Xmx, -XX:MaxMetaspaceSize, -XX:MaxDirectMemorySize, --max-old-space-size",
    ),
    no_limit(
        "collective-timeout",
        "ranks waited for one that did not answer: it had ended, hung, or could not be reached",
        "look at the rank that is missing, and at the network between nodes",
    ),
    no_limit(
        "no-address",
        "the address is not one of this host's",
        "let it use an address that ip addr shows, or 0.0.0.0 to listen; see what the name means",
        "ip addr does not show the address, and it fails at once and always",
    ),
    no_limit(
        "select",
        "the program uses select(2), which knows no descriptor from 1024 on (FD_SETSIZE)",
        "have it use poll or epoll, or open fewer files; nofile is not at fault, and a higher one"
        " does not help",
    ),
    no_limit(
        "no-devpts",
        "no terminal could be made: /dev/pts is not mounted there, or the server forbids one",
        "mount -t devpts devpts /dev/pts -o newinstance,ptmxmode=0666,mode=620,gid=5; for ssh see"
        " PermitTTY",
        "findmnt /dev/pts shows no devpts, or kernel.pty.nr is small",
    ),
    no_limit(
        "network", "another program could not be reached", "see that it runs and listens there"
    ),
    no_limit(
        "file-system",
        "the file would be larger than that file system can hold: 4 GiB on FAT",
        "write elsewhere, or in parts",
        "findmnt -T FILE shows vfat, or ulimit -f is unlimited",
    ),
    no_limit(
        DISK[0],
        "the file system that it wrote to was full",
        "df -h shows it: remove what nobody needs, or write elsewhere",
        "df shows no space",
    ),
    no_limit(
        DISK[1],
        "the file system that it wrote to had no inodes left: too many small files",
        "df -i shows it: remove files, or pack them",
        "df shows space, and df -i none",
    ),
    no_limit(
        "locked",
        "another process holds a lock on that file",
        "end what has it open, or give each run a file of its own",
        "ls and lsof show who has it open",
    ),
    no_limit(
        "no-locks",
        "the file system cannot lock files, or its lock server does not answer",
        "keep caches on a local disk, or mount it with locks",
    ),
    no_limit(
        "ray-monitor",
        "Ray's own memory monitor ended a worker before the host ran out of memory",
        "use less memory, or see RAY_memory_usage_threshold",
    ),
    no_limit("stale", "a file of a network file system is gone on its server", "mount it again"),
    no_limit(
        "not-empty",
        "a directory that was to be replaced still holds files, of another run or hidden ones",
        "give each run an output directory of its own, or clean it, hidden files too",
    ),
    no_limit(
        "permission",
        "it may not do that: the owner, the mode, the mount or a security module forbids it",
        "see whose it is: ls -ld, namei -l; findmnt -T for noexec and ro; and the audit log",
    ),
    no_limit(
        "unit-setup",
        "systemd could not start it: its unit asks for what is not there",
        "systemctl status and the journal say which step failed",
    ),
)
NO_LIMITS = (*_ENDED, *_SYSTEM)
