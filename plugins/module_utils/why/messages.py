# SPDX-License-Identifier: BSD-2-Clause
"""What libraries, shells and service managers write when a run dies, and what each may mean.

Of several patterns that a line fits, the first counts: those that say more stand before others.
"""

from __future__ import annotations

from .message import AFTER, PLAIN, WRAPPER, say
from .no_limits import BY_HAND, OTHERS, OWN_EXIT
from .reasons import (
    AIO,
    BACKLOG,
    CGROUP,
    CGROUPS,
    COMMIT,
    EPOLL,
    FILE_MAX,
    HOST,
    HUGE,
    INSTANCES,
    MAPPINGS,
    MEMLOCK,
    NOFILE,
    NPROC,
    OOMD,
    PIDS,
    PORTS,
    SHM,
    SHM_GONE,
    SHM_QUOTA,
    SOCKETS,
    SPACE,
    TERMINALS,
    THREADS,
    WATCHES,
)
from .system_messages import SYSTEM

_EMFILE = "too many open files|errno 24]|emfile|os error 24"
_ENOSPC = "no space left on device|errno 28]|enospc|os error 28"
_EAGAIN = "resource temporarily unavailable|errno 11]|eagain|os error 11"
_EPERM = "operation not permitted|errno 1]|permission denied|(eperm)"
_ENOMEM = "cannot allocate memory|errno 12]|enomem|os error 12"
_EADDRNOTAVAIL = "assign requested address|errno 99]|eaddrnotavail|os error 99"
_WATCHING = (
    r"inotify|fsnotify|watchdog[./]observers|chokidar|fs\.watch|watcher|, watch '|tail -[fF]"
)
_SHM_PATH = r"/dev/shm|</?torch_|shared.memory|shm_open|shm_unlink|psm_|nccl-\w{6}"  # noqa: S108
_STARTING = (
    r"fork|clone|thread|spawn|child process|newosproc|subprocess|Popen|multiprocessing"
    r"|set ?(res)?u(ser )?id|ThreadPoolBuild|Cannot run program"
)
_NO_PATH = r"^(?!.*(?:^|[\s'\":(<])/(?!dev/shm|torch_|psm_|nccl)\w)"
"""A line that names no file but one of shared memory."""

_NO_SOCKET = r"^(?!.*(recv|send|\bread\b|socket|accept|connect|zmq))"
_GPU = r"cuda|gpu|\bhip|\bmps\b|\bxla|\bnpu|\btpu|\bhbm|cublas|cudnn|device memory"
_TASKS = (NPROC, PIDS, THREADS)
_KILL = (CGROUP, HOST, OOMD, BY_HAND)
_SIGNAL = (
    r"(?:(?:\b(?:by|to|of|on|with|got|from|caught|received|exit|fatal|deadly)(?: \w+)? |[(:,] ?)"
    r"signal\W{1,3})"
)
"""What stands before a signal that ended a process, and not before a number of something else."""

_STATUS = (
    r"(?<![-\w])(?:exit\w*|return(?:[ _]?code|ed)|status|\w*code)\w*\W{1,12}"
    r"(?:with )?(?:(?:code|status)\W{1,4})?"
)
"""What stands before a status, and not in an option or a metric."""

_EXITED = (
    r"^(?!.*\breturned \d+ [a-z]+s\b)"
    r"(?=.*(?:exit|return(?:ed|.?code)|fail|terminated|died|error|non-?zero|complet))"
)

_FILES = (
    say(
        "system limit for number of file watchers|inotify watch limit|limit on inotify watches"
        "|max_user_watches'",
        (WATCHES,),
    ),
    say("inotify instance limit", (INSTANCES, NOFILE)),
    say("inotify resources exhausted", (WATCHES,)),
    say(_ENOSPC, (WATCHES,), r"inotify|, watch '|directory watch|watch for file changes"),
    say(_ENOSPC + "|" + _ENOMEM, (CGROUPS,), r"mkdir\W+\S*cgroup|create (the )?cgroup"),
    say(_ENOSPC, (CGROUPS, "exception"), r"/sys/fs/cgroup"),
    say(_ENOSPC, (WATCHES, "disk-full"), near=r"inotify|fsnotify|watchdog[./]observers"),
    say(_ENOSPC, (WATCHES, "disk-full"), _NO_PATH, near=_WATCHING),
    say("too many open files in system|errno 23]|enfile|file-max limit", (FILE_MAX,)),
    say("failed to allocate directory watch", (INSTANCES,), "too many open files"),
    say(_EMFILE, (INSTANCES, NOFILE), near=_WATCHING),
    say(_EMFILE, ("msgqueue", NOFILE), near=r"mq_open|posix_ipc|message queue"),
    say(
        "unexpected pos|iostream error|file write failed|wrote only",
        ("disk-full", "fsize", "disk-quota"),
        r"inline_container|iostream error|file write failed|Wrote only",
    ),
    say(
        "error while creating shared memory segment",
        ("exception", SHM),
        near=r"Cuda failure (\d+ )?'(?!out of memory)",
    ),
    say("error while creating shared memory segment", (SHM, SHM_QUOTA)),
    say(_ENOSPC, (SHM, SHM_QUOTA), r"NCCL.*posix_fallocate|joblib will operate in serial mode"),
    say("failed to extend /dev/shm/nccl-", (SHM, SHM_QUOTA)),
    say("items of ancdata", (NOFILE,), r"received 0 items"),
    say("max file descriptors [", (NOFILE,), r"too low"),
    say("shared object file: error 23", (FILE_MAX,)),
    say(_EMFILE + "|shared object file: error 24", (NOFILE,)),
    say("file too large", ("fsize", "file-system"), r"(?<!Errno 27\] )File too large\W*(\(27\))?$"),
    say("unable to open database file", ("permission", NOFILE, "exception")),
    say("errno 27]", ("fsize", "file-system"), r"/mnt/"),
    say(
        "file size limit exceeded|errno 27]|file too large|sigxfsz|efbig|25/xfsz|by signal 25",
        ("fsize",),
        r"Errno 27\]|file size limit exceeded|: File too large\W*$|SIGXFSZ|EFBIG|25/XFSZ|error 27"
        r"|terminated by signal 25",
    ),
)
_SHARED = (
    say("mdb_map_full|mapsize limit reached", ("own-setting",)),
    say("out of shared memory", ("own-setting",), r"\b(ERROR|FATAL|OutOfMemory|psycopg\S*)\W+out"),
    say("could not resize shared memory segment", (SHM, SHM_QUOTA), r"space left"),
    say(_ENOSPC, ("sysv-shm",), r"shmget"),
    say(_ENOSPC, ("sysv-semaphores",), r"couldn't create the .*mutex|AH00023|semget|create sem"),
    say(_ENOSPC, ("sysv-queues",), r"msgget"),
    say("(28)no space left", ("sysv-semaphores",), near=r"mutex|_lock\b|AH00023"),
    say("unable to mmap|failed to mmap", (MAPPINGS,), r"</?torch_\d+_\d+_[56]\d{4}>.*\(12\)"),
    say("unable to mmap", (COMMIT, SPACE, MAPPINGS), r"mmap \d{10,} bytes.*\(12\)"),
    say("unable to mmap|failed to mmap", (MAPPINGS, SPACE), r"allocate memory|\(12\)"),
    say("max virtual memory areas", (MAPPINGS,), r"too low"),
    say("map failed", (MAPPINGS, SPACE, COMMIT), r"OutOfMemoryError"),
    say("outofresources|out of resource: shared memory", ("gpu-memory",), r"hardware limit|shared"),
    say("instead of /dev/shm because /dev/shm has only", (SHM, "own-setting"), rank=WRAPPER),
    say("insufficient shared memory|out of shared memory|shared memory limit", (SHM, SHM_QUOTA)),
    say("unable to write to file </torch_", (SHM, SHM_QUOTA)),
    say("unable to open shared memory object", (NOFILE, SHM_GONE), r">[^:]*$"),
    say("disk quota exceeded|errno 122]|edquot", (SHM_QUOTA,), _NO_PATH, near=_SHM_PATH),
    say(_ENOSPC, ("user-namespaces",), near=r"unshare|CLONE_NEW|user.?namespace|userns"),
    say(_ENOSPC, ("sysv-shm",), near=r"shmget|shmat|SHMMNI|SHMALL"),
    say(_ENOSPC, ("sysv-semaphores",), near=r"semget|SEMMNI"),
    say(_ENOSPC, (EPOLL,), near=r"epoll_ctl|epoll.*register"),
    say(_ENOSPC, (SHM, SHM_QUOTA), _NO_PATH, near=_SHM_PATH + "|SemLock|sem_open"),
    say(
        "bus error|sigbus|signal 7|exitcode: -7|7/bus",
        (SHM, "file-shrank"),
        r"^(?!.*possible reasons)"
        rf"(?=.*(?:bus error|SIGBUS|{_SIGNAL}7\b|{_STATUS}-7\b|status=7/BUS))",
    ),
    say(
        "no such file or directory|errno 2]|filenotfounderror",
        (SHM_GONE, OTHERS),
        r"</?torch_\d+_|/dev/shm/|psm_[0-9a-f]{8}|/wnsm_",
        rank=AFTER,
    ),
)
_CONNECTS = (
    say(_EADDRNOTAVAIL, ("no-address",), r"\bbind(ing)?\b|\blisten"),
    say(_EADDRNOTAVAIL, ("no-address",), near=r"server_bind|\.bind\(|in bind_sockets"),
    say(_EADDRNOTAVAIL, (PORTS, "no-address")),
    say("address already in use|eaddrinuse", (PORTS, "network"),
         r"\bconnect:? (EADDRINUSE|address already)|\bdial (tcp|udp)\b.*address already"),
    say("possible syn flooding", (BACKLOG, "own-setting"), rank=WRAPPER),
    say("no buffer space available|errno 105]|enobufs|os error 105", (SOCKETS, "network")),
    say("filedescriptor out of range in select|too many file descriptors in select|fd_setsize",
         ("select",), r"out of range|too many|exceed|larger|greater|>="),
    say("pty allocation request failed|out of pty devices|openpty failed|failed to allocate pty"
         "|failed to open pty|forkpty failed", (TERMINALS, "no-devpts")),
)  # fmt: skip
_STARTS = (
    say("io_setup|io_queue_init|aio-max-nr", (AIO,), r"EAGAIN|temporarily unavailable|: -11\b"),
    say("pthread_create", (*_TASKS, SPACE),
         r"pthread_create(?!.*unavailable).{0,20}\b(error|code|returned|is)\W{1,4}11\b"),
    say("failed to spawn thread", (*_TASKS, SPACE), r"WouldBlock"),
    say("error=11, ", _TASKS, r"temporarily"),
    say(_EPERM, ("io-uring",), r"io_uring"),
    say(_EPERM, ("seccomp",), r"pthread_create|thread\b.*creat|blas_thread"),
    say(_EPERM, ("seccomp",), near=r"can't start new thread|std::system_error|clone3"),
    say("failed to create new os thread", ("seccomp",), r"errno=1\)"),
    say("uv_thread_create|omp: error #34|omp: system error #11", (*_TASKS, "seccomp")),
    say(_EAGAIN, ("exception",), near=r", in _(send|recv)\w*\n", rank=PLAIN),
    say(_EAGAIN, ("locked",), near=r"lock file|file lock|flock|lockf|LOCK_NB"),
    say("no locks available|errno 37]", ("no-locks",)),
    say("fork rejected by pids controller", (PIDS,)),
    say(_EAGAIN, (PIDS, THREADS), near=r"RLIMIT_NPROC -1 current"),
    say("can't start new thread|unable to create new native thread|unable to create native thread"
         "|failed to create new os thread|failed to create thread"
         "|thread creation failed|could not create thread", (*_TASKS, SPACE, "seccomp")),
    say(_EAGAIN, _TASKS, r"^(make|[\w-]*sh)\b.*: Resource temporarily unavailable"),
    say(_EAGAIN + "|cannot fork|can't fork|fork: retry", _TASKS, _NO_SOCKET,
         near=_STARTING + "|std::system_error"),
    say(_EAGAIN, ("exception", *_TASKS), r"^BlockingIOError: \[Errno 11\] Resource temp\w+ un\w+$",
         rank=PLAIN),
    say(_ENOMEM, (COMMIT, SPACE), near=r"\bfork\b|fork_exec|os\.fork|forkpty"),
)  # fmt: skip
_RLIMITS = (
    ("nofile", NOFILE), ("nproc", NPROC), ("memlock", MEMLOCK), ("as", SPACE), ("data", SPACE),
    ("stack", "stack"), ("fsize", "fsize"), ("cpu", "cpu-time"), ("msgqueue", "msgqueue"),
)  # fmt: skip
_LOW = r"(too (small|low)|insufficient|not (high|large|big) enough|not (enough|sufficient))"
_NAMED = tuple(
    row
    for name, code in _RLIMITS
    for row in (
        say(f"rlimit_{name}", (code, "exception"), rf"RLIMIT_{name}\b.{{0,20}}\bmay be {_LOW}"),
        say(f"rlimit_{name}", (code,), rf"RLIMIT_{name}\b.{{0,40}}\b{_LOW}\b"),
        say(f"rlimit_{name}", (code,), rf"\b{_LOW}\b.{{0,20}}RLIMIT_{name}\b"),
    )
)
_PERMITS = (
    say("memlock may be too low|rlimit_memlock", ("bpf-permission",), near=r"not permitted|EPERM"),
    say("error setting rlimit|cannot modify limit|not allowed to raise maximum limit"
         "|exceeds hard limit|could not set limit|status=205/limits|setrlimit"
         "|resource limit higher than hard|resource limit: ", ("hard-limit",),
         r"not permitted|cannot modify|not allowed|error setting|exceeds|could not|205/|hard"),
    say(_EPERM, ("bpf-permission",), near=r"libbpf|\be?bpf"),
    say("rlimit_memlock is |memlock limits are|increase memlock|max locked memory"
         "|increase rlimit_memlock|increasing rlimit_memlock|memory is not locked"
         "|memory locking requested", (MEMLOCK,)),
    say(_ENOMEM, (MEMLOCK, MAPPINGS),
         near=r"ibv_|reg_mr|mr_reg|register memory|memory registration|completion queue"),
    say("ibv_create_qp failed|ibv_create_cq failed|cannot create cq|ibv_reg_mr failed"
         "|ibv_reg_mr_iova2 failed", (MEMLOCK, "exception")),
    say(_ENOMEM + "|operation not permitted", (MEMLOCK,),
         near=r"mlock|memlock|lock(ed|ing)? (\w+ )?(memory|pages|tensor)|io_uring|vfio_map"),
    say(_EPERM + "|no usable sandbox", ("namespaces-forbidden",),
         near=r"unshare|CLONE_NEWUSER|user namespace|uid.?map|bwrap|newuidmap|sandbox"),
    say("disk quota exceeded|errno 122]|edquot", ("key-quota",),
         near=r"keyring|keyctl|add_key|session key|request_key"),
    say("disk quota exceeded|errno 122]|edquot", ("disk-quota",)),
    say("too many logins for", ("maxlogins",)),
    say("cannot open session|pam_open_session|session initialization failed|pam session",
         ("hard-limit", "maxlogins", "permission"), r"denied|failed|error"),
    say("argument list too long|errno 7]|e2big", ("arguments",)),
)  # fmt: skip
_MEMORY = (
    say("was sent sigkill", _KILL),
    say("potential root causes|possible reasons include", (*_KILL, "crash"), r"SIGKILL|OOM"),
    say("exceeded memory limit|exceeded virtual memory limit|term_memlimit", ("job-memory",),
         r"\b(job|step)\b|slurm|TERM_"),
    say("job killed: mem|job killed: vmem", ("job-memory",), r"exceeded"),
    say("cudamallochost|cudahostalloc|cudahostregister|cumemhostalloc|hiphostmalloc"
         "|bytes on host|pinned host memory", (COMMIT, SPACE, MAPPINGS, "gpu-memory"),
         r"fail|could not|unable|out.of.memory"),
    say("cuda out of memory|cuda error: out of memory|hip out of memory|cuda_error_out_of_memory"
         "|torch.outofmemoryerror|cublas_status_alloc_failed|cudaerrormemoryallocation",
         ("gpu-memory",)),
    say("cuda failure 'out of memory'|cuda failure 2|resource_exhausted: out of memory"
         "|outofmemoryerror: cuda|out of memory trying to allocate", ("gpu-memory",)),
    say("oom when allocating", ("gpu-memory",), near=r"gpu|cuda"),
    say("node running low on memory|ray.exceptions.outofmemory", ("ray-monitor",)),
    say("static tls block", ("exception",)),
    say("failed to map segment", ("permission",), _EPERM),
    say("failed to map segment", (SPACE, COMMIT, MAPPINGS, "permission"),
         r"object(: error 12)?\W*$"),
    say("hugetlb|huge pages|hugepages", (HUGE, SPACE, COMMIT),
         r"^(?!.*(fall|instead|ordinary|regular|normal))(?:.*hugetlb.*(fail|allocate)"
         r"|.*(fail\w* to|unable to|could not|cannot) (allocate|reserve|get|m?map)\b.*huge ?pages?"
         r"|.*(no free|not enough) huge ?pages?|.*huge ?pages?\b.*cannot allocate)"),
    say("heap out of memory|java heap space|gc overhead limit|outofmemoryerror: "
         "|outofdirectmemory", ("heap",),
         r"heap|overhead|Metaspace|Direct buffer|array size|class space|direct (buffer )?memory"),
    say("memory cgroup out of memory|constraint_memcg", (CGROUP,)),
    say("out of memory: kill|constraint_none", (HOST,)),
    say("systemd-oomd|due to memory pressure|due to memory used|result 'oomd'", (OOMD,),
         r"kill|memory pressure|memory used"),
    say("oom_kill event|oom-kill event|out_of_memory|oomkilled|exceeded job memory limit"
         "|exceeded step memory limit|out-of-memory handler|oom killed|: out of memory", (CGROUP,),
         r"^(?!.*OOMKilled\"?: ?false)(?!.*(: out of memory|_OUT_OF_MEM))"
         r"|tasks? [\d,-]+: Out Of M"),
    say("oom killer|oom-kill|oom killed", (CGROUP, HOST)),
    say("out of memory|outofmemory|alloc_failed|alloc failed", ("gpu-memory",), _GPU),
    say("could not reserve enough|insufficient memory for the java|memoryerror|bad_alloc"
         "|unable to allocate|defaultcpuallocator|out of memory|memory exhaust|alloc failed"
         "|memory allocation of", (SPACE, COMMIT), r"^(?!.*(resources|nodes?\b))"),
    say(_ENOMEM, (SPACE, COMMIT, MAPPINGS)),
)  # fmt: skip
_ENDED = (
    say("due to time limit", ("job-time",), r"slurm|\*\*\*"),
    say("jobstate=timeout", ("job-time",)),
    say("term_runlimit|job killed: walltime", ("job-time",)),
    say("state 'stop-sigterm' timed out|state 'final-sigterm' timed out", (BY_HAND,)),
    say("forcefully exiting via|unable to shutdown process", (OTHERS,), rank=WRAPPER),
    say("cpu time limit|sigxcpu|cputime limit|24/xcpu|terminated by signal 24", ("cpu-time",)),
    say("result 'timeout'", (BY_HAND,), rank=AFTER),
    say("on client request", (BY_HAND,), r"sent signal sig\w+ to"),
    say("due to preemption|jobstate=preempted", ("preempted",)),
    say("due to node failure|jobstate=node_fail", ("node-failed",)),
    say("cancelled at", (BY_HAND, OTHERS), rank=AFTER),
    say("fatal error: killed signal", _KILL),
    say("137|sigkill|killed|signal 9|signal: 9|9/kill|: -9|status -9|= -9|=-9|code -9|d -9", _KILL,
         r"(?-i:^Killed$|: Killed\b|\d Killed\b|\] Killed$|^zsh: killed )|\bSIGKILL\b|9/KILL"
         rf"|{_SIGNAL}(9\b|kill)(?! of)|{_STATUS}-9\b|was killed"),
    say("137", (*_KILL, OWN_EXIT), r"^make.*: \*\*\* .* Error 137"
         rf"|{_EXITED}.*{_STATUS}137\b(?! ok)"),
    say("received 15 death signal|failed (exitcode: -15)|signalexception", (BY_HAND, OTHERS),
         rank=AFTER),
    say("153", ("fsize", OWN_EXIT), rf"{_EXITED}.*{_STATUS}153\b"),
    say("152", ("cpu-time", OWN_EXIT), rf"{_EXITED}.*{_STATUS}152\b"),
    say("135", (SHM, "file-shrank", OWN_EXIT), rf"{_EXITED}.*{_STATUS}135\b"),
    say("139", ("crash", "stack", OWN_EXIT), rf"{_EXITED}.*{_STATUS}139\b"),
    say("143", (BY_HAND, OTHERS), rf"{_EXITED}.*{_STATUS}143\b", rank=AFTER),
    say("keyboardinterrupt", (BY_HAND,), rank=AFTER),
    say("closing signal", (OTHERS,), rank=WRAPPER),
    say("status=1/failure", ("exception",), rank=WRAPPER),
    say("signal 15|: -15|code -15|= -15", (OTHERS, BY_HAND), rf"{_SIGNAL}15\b|{_STATUS}-15\b",
         rank=WRAPPER),
    say("segmentation fault|sigsegv|signal 11|signal: 11|11/segv|segfault at"
         "|: -11|= -11|=-11|code -11|(-11",
         ("crash", "stack"), r"segmentation fault|\bSIGSEGV\b|11/SEGV|segfault at"
         rf"|{_SIGNAL}11\b|{_STATUS}-11\b"),
    say("sigterm|terminated|15/term|sighup|hangup|1/hup", (BY_HAND, OTHERS),
         r"(?-i:SIGTERM|15/TERM|^Terminated|: Terminated|\d Terminated|SIGHUP|Hangup|1/HUP)",
         rank=AFTER),
    say("stack overflow|infinite recursion", ("stack", "exception")),
    say("by signal: abort", ("crash",)),
    say("sigabrt|signal 6|aborted|: -6|= -6|=-6|code -6|dumped core|core dumped"
         "|illegal instruction|sigill", ("crash",),
         r"(?-i:^Aborted|: Aborted|\d Aborted)|SIGABRT|\(core dumped\)|dumped core|illegal i|SIGILL"
         rf"|{_SIGNAL}6\b|{_STATUS}-6\b", rank=AFTER),
    say("stale file handle|errno 116]|estale|stale nfs", ("stale",)),
    say("directory not empty|errno 39]|enotempty", ("not-empty",)),
    say("no inodes|free inodes", ("inodes",)),
    say(_ENOSPC, ("disk-full", "inodes")),
    say("status=2", ("unit-setup",), r"status=2\d\d/(?!LIMITS)[A-Z_]+"),
)  # fmt: skip
_PLAIN = (
    say("ncclsystemerror|unhandled system error", ("network", SHM, NOFILE, MEMLOCK), rank=AFTER),
    say("watchdog caught collective|nccl communicator was aborted|nccl timeout|timed out waiting"
         "|wait timeout|diststoreerror|timed out after", ("collective-timeout", OTHERS),
         rank=AFTER),
    say("terminatedworkererror|actor died unexpectedly"
         "|workercrashederror|worker died unexpectedly", (OTHERS, CGROUP, HOST, "crash"),
         rank=AFTER),
    say("it was running on is dead|has been marked dead", ("node-failed", CGROUP, HOST),
         rank=AFTER),
    say("exited unexpectedly", (OTHERS, CGROUP, HOST, SHM), r"DataLoader worker", rank=WRAPPER),
    say("errno 2]", (OTHERS, SHM_GONE), near=r"SemLock\._rebuild|SharedMemory\(", rank=AFTER),
    say("newosproc|childfailederror|exited unexpectedly|returned non-zero exit status 1."
         "|srun: error"
         "|exited with exit code|a child process terminated", (OTHERS,), rank=WRAPPER),
    say("brokenpipeerror|broken pipe|eoferror|failed to bind to address"
         "|connection reset by peer|connection closed by peer|errno 104]|errno 32]"
         "|connectionreseterror|socket closed", (OTHERS,), rank=AFTER),
    say("terminated abruptly|brokenprocesspool", (OTHERS, CGROUP, HOST), rank=AFTER),
    say("connection refused|connect to server|failed to connect|name resolution"
         "|name or service not known|address already in use|no route to host"
         "|connection closed by remote"
         "|network is unreachable"
         "|connection timed out|errno 111]|errno 98]", ("network",), rank=PLAIN),
    say("permission denied|errno 13]|operation not permitted|errno 1]", ("permission",),
         rank=PLAIN),
    say("executable file not found|: no such file or directory", ("exception",), rank=PLAIN),
    say("error|exception|interrupt|exit|not found", ("exception",),
         r"^(?:.*[\s|\]])??((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Iteration))"
         r"(?:: |$)|^(?:fatal )?error: |command not found", rank=PLAIN),
)  # fmt: skip
MESSAGES = (
    *SYSTEM,
    *_FILES,
    *_SHARED,
    *_CONNECTS,
    *_STARTS,
    *_PERMITS,
    *_NAMED,
    *_MEMORY,
    *_ENDED,
    *_PLAIN,
)
