# SPDX-License-Identifier: BSD-2-Clause
"""What libraries, shells and service managers write when a run dies, and what each may mean.

Of several patterns that a line fits, the first counts: those that say more stand before others.
"""

from __future__ import annotations

from .library_messages import KILL as _KILL
from .library_messages import LIBRARIES
from .library_messages import TASKS as _TASKS
from .message import AFTER, PLAIN, WRAPPER
from .message import say as _say
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
    _say(
        "system limit for number of file watchers|inotify watch limit|limit on inotify watches"
        "|max_user_watches'",
        (WATCHES,),
    ),
    _say("inotify instance limit", (INSTANCES, NOFILE)),
    _say("inotify resources exhausted", (WATCHES,)),
    _say(_ENOSPC, (WATCHES,), r"inotify|, watch '|directory watch|watch for file changes"),
    _say(_ENOSPC + "|" + _ENOMEM, (CGROUPS,), r"mkdir\W+\S*cgroup|create (the )?cgroup"),
    _say(_ENOSPC, (CGROUPS, "exception"), r"/sys/fs/cgroup"),
    _say(_ENOSPC, (WATCHES, "disk-full"), near=r"inotify|fsnotify|watchdog[./]observers"),
    _say(_ENOSPC, (WATCHES, "disk-full"), _NO_PATH, near=_WATCHING),
    _say("too many open files in system|errno 23]|enfile|file-max limit", (FILE_MAX,)),
    _say("failed to allocate directory watch", (INSTANCES,), "too many open files"),
    _say(_EMFILE, (INSTANCES, NOFILE), near=_WATCHING),
    _say(_EMFILE, ("msgqueue", NOFILE), near=r"mq_open|posix_ipc|message queue"),
    _say(
        "unexpected pos|iostream error|file write failed|wrote only",
        ("disk-full", "fsize", "disk-quota"),
        r"inline_container|iostream error|file write failed|Wrote only",
    ),
    _say(
        "error while creating shared memory segment",
        ("exception", SHM),
        near=r"Cuda failure (\d+ )?'(?!out of memory)",
    ),
    _say("error while creating shared memory segment", (SHM, SHM_QUOTA)),
    _say(_ENOSPC, (SHM, SHM_QUOTA), r"NCCL.*posix_fallocate|joblib will operate in serial mode"),
    _say("failed to extend /dev/shm/nccl-", (SHM, SHM_QUOTA)),
    _say("items of ancdata", (NOFILE,), r"received 0 items"),
    _say("max file descriptors [", (NOFILE,), r"too low"),
    _say("shared object file: error 23", (FILE_MAX,)),
    _say(_EMFILE + "|shared object file: error 24", (NOFILE,)),
    _say(
        "file too large", ("fsize", "file-system"), r"(?<!Errno 27\] )File too large\W*(\(27\))?$"
    ),
    _say("unable to open database file", ("permission", NOFILE, "exception")),
    _say("errno 27]", ("fsize", "file-system"), r"/mnt/"),
    _say(
        "file size limit exceeded|errno 27]|file too large|sigxfsz|efbig|25/xfsz|by signal 25",
        ("fsize",),
        r"Errno 27\]|file size limit exceeded|: File too large\W*$|SIGXFSZ|EFBIG|25/XFSZ|error 27"
        r"|terminated by signal 25",
    ),
)
_SHARED = (
    _say("mdb_map_full|mapsize limit reached", ("own-setting",)),
    _say("out of shared memory", ("own-setting",), r"\b(ERROR|FATAL|OutOfMemory|psycopg\S*)\W+out"),
    _say("could not resize shared memory segment", (SHM, SHM_QUOTA), r"space left"),
    _say(_ENOSPC, ("sysv-shm",), r"shmget"),
    _say(_ENOSPC, ("sysv-semaphores",), r"couldn't create the .*mutex|AH00023|semget|create sem"),
    _say(_ENOSPC, ("sysv-queues",), r"msgget"),
    _say("(28)no space left", ("sysv-semaphores",), near=r"mutex|_lock\b|AH00023"),
    _say("unable to mmap|failed to mmap", (MAPPINGS,), r"</?torch_\d+_\d+_[56]\d{4}>.*\(12\)"),
    _say("unable to mmap", (COMMIT, SPACE, MAPPINGS), r"mmap \d{10,} bytes.*\(12\)"),
    _say("unable to mmap|failed to mmap", (MAPPINGS, SPACE), r"allocate memory|\(12\)"),
    _say("max virtual memory areas", (MAPPINGS,), r"too low"),
    _say("map failed", (MAPPINGS, SPACE, COMMIT), r"OutOfMemoryError"),
    _say(
        "outofresources|out of resource: shared memory", ("gpu-memory",), r"hardware limit|shared"
    ),
    _say("instead of /dev/shm because /dev/shm has only", (SHM, "own-setting"), rank=WRAPPER),
    _say("insufficient shared memory|out of shared memory|shared memory limit", (SHM, SHM_QUOTA)),
    _say("unable to write to file </torch_", (SHM, SHM_QUOTA)),
    _say("unable to open shared memory object", (NOFILE, SHM_GONE), r">[^:]*$"),
    _say("disk quota exceeded|errno 122]|edquot", (SHM_QUOTA,), _NO_PATH, near=_SHM_PATH),
    _say(_ENOSPC, ("user-namespaces",), near=r"unshare|CLONE_NEW|user.?namespace|userns"),
    _say(_ENOSPC, ("sysv-shm",), near=r"shmget|shmat|SHMMNI|SHMALL"),
    _say(_ENOSPC, ("sysv-semaphores",), near=r"semget|SEMMNI"),
    _say(_ENOSPC, (EPOLL,), near=r"epoll_ctl|epoll.*register"),
    _say(_ENOSPC, (SHM, SHM_QUOTA), _NO_PATH, near=_SHM_PATH + "|SemLock|sem_open"),
    _say(
        "bus error|sigbus|signal 7|exitcode: -7|7/bus",
        (SHM, "file-shrank"),
        r"^(?!.*possible reasons)"
        rf"(?=.*(?:bus error|SIGBUS|{_SIGNAL}7\b|{_STATUS}-7\b|status=7/BUS))",
    ),
    _say(
        "no such file or directory|errno 2]|filenotfounderror",
        (SHM_GONE, OTHERS),
        r"</?torch_\d+_|/dev/shm/|psm_[0-9a-f]{8}|/wnsm_",
        rank=AFTER,
    ),
)
_CONNECTS = (
    _say(_EADDRNOTAVAIL, ("no-address",), r"\bbind(ing)?\b|\blisten"),
    _say(_EADDRNOTAVAIL, ("no-address",), near=r"server_bind|\.bind\(|in bind_sockets"),
    _say(_EADDRNOTAVAIL, (PORTS, "no-address")),
    _say("address already in use|eaddrinuse", (PORTS, "network"),
         r"\bconnect:? (EADDRINUSE|address already)|\bdial (tcp|udp)\b.*address already"),
    _say("possible syn flooding", (BACKLOG, "own-setting"), rank=WRAPPER),
    _say("no buffer space available|errno 105]|enobufs|os error 105", (SOCKETS, "network")),
    _say("filedescriptor out of range in select|too many file descriptors in select|fd_setsize",
         ("select",), r"out of range|too many|exceed|larger|greater|>="),
    _say("pty allocation request failed|out of pty devices|openpty failed|failed to allocate pty"
         "|failed to open pty|forkpty failed", (TERMINALS, "no-devpts")),
)  # fmt: skip
_STARTS = (
    _say("io_setup|io_queue_init|aio-max-nr", (AIO,), r"EAGAIN|temporarily unavailable|: -11\b"),
    _say("pthread_create", (*_TASKS, SPACE),
         r"pthread_create(?!.*unavailable).{0,20}\b(error|code|returned|is)\W{1,4}11\b"),
    _say("failed to spawn thread", (*_TASKS, SPACE), r"WouldBlock"),
    _say("error=11, ", _TASKS, r"temporarily"),
    _say(_EPERM, ("io-uring",), r"io_uring"),
    _say(_EPERM, ("seccomp",), r"pthread_create|thread\b.*creat|blas_thread"),
    _say(_EPERM, ("seccomp",), near=r"can't start new thread|std::system_error|clone3"),
    _say("failed to create new os thread", ("seccomp",), r"errno=1\)"),
    _say("uv_thread_create|omp: error #34|omp: system error #11", (*_TASKS, "seccomp")),
    _say(_EAGAIN, ("exception",), near=r", in _(send|recv)\w*\n", rank=PLAIN),
    _say(_EAGAIN, ("locked",), near=r"lock file|file lock|flock|lockf|LOCK_NB"),
    _say("no locks available|errno 37]", ("no-locks",)),
    _say("fork rejected by pids controller", (PIDS,)),
    _say(_EAGAIN, (PIDS, THREADS), near=r"RLIMIT_NPROC -1 current"),
    _say("can't start new thread|unable to create new native thread|unable to create native thread"
         "|failed to create new os thread|failed to create thread"
         "|thread creation failed|could not create thread", (*_TASKS, SPACE, "seccomp")),
    _say(_EAGAIN, _TASKS, r"^(make|[\w-]*sh)\b.*: Resource temporarily unavailable"),
    _say(_EAGAIN + "|cannot fork|can't fork|fork: retry", _TASKS, _NO_SOCKET,
         near=_STARTING + "|std::system_error"),
    _say(_EAGAIN, ("exception", *_TASKS), r"^BlockingIOError: \[Errno 11\] Resource temp\w+ un\w+$",
         rank=PLAIN),
    _say(_ENOMEM, (COMMIT, SPACE), near=r"\bfork\b|fork_exec|os\.fork|forkpty"),
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
        _say(f"rlimit_{name}", (code, "exception"), rf"RLIMIT_{name}\b.{{0,20}}\bmay be {_LOW}"),
        _say(f"rlimit_{name}", (code,), rf"RLIMIT_{name}\b.{{0,40}}\b{_LOW}\b"),
        _say(f"rlimit_{name}", (code,), rf"\b{_LOW}\b.{{0,20}}RLIMIT_{name}\b"),
    )
)
_PERMITS = (
    _say("memlock may be too low|rlimit_memlock", ("bpf-permission",), near=r"not permitted|EPERM"),
    _say("error setting rlimit|cannot modify limit|not allowed to raise maximum limit"
         "|exceeds hard limit|could not set limit|status=205/limits|setrlimit"
         "|resource limit higher than hard|resource limit: ", ("hard-limit",),
         r"not permitted|cannot modify|not allowed|error setting|exceeds|could not|205/|hard"),
    _say(_EPERM, ("bpf-permission",), near=r"libbpf|\be?bpf"),
    _say("rlimit_memlock is |memlock limits are|increase memlock|max locked memory"
         "|increase rlimit_memlock|increasing rlimit_memlock|memory is not locked"
         "|memory locking requested", (MEMLOCK,)),
    _say(_ENOMEM, (MEMLOCK, MAPPINGS),
         near=r"ibv_|reg_mr|mr_reg|register memory|memory registration|completion queue"),
    _say("ibv_create_qp failed|ibv_create_cq failed|cannot create cq|ibv_reg_mr failed"
         "|ibv_reg_mr_iova2 failed", (MEMLOCK, "exception")),
    _say(_ENOMEM + "|operation not permitted", (MEMLOCK,),
         near=r"mlock|memlock|lock(ed|ing)? (\w+ )?(memory|pages|tensor)|io_uring|vfio_map"),
    _say(_EPERM + "|no usable sandbox", ("namespaces-forbidden",),
         near=r"unshare|CLONE_NEWUSER|user namespace|uid.?map|bwrap|newuidmap|sandbox"),
    _say("disk quota exceeded|errno 122]|edquot", ("key-quota",),
         near=r"keyring|keyctl|add_key|session key|request_key"),
    _say("disk quota exceeded|errno 122]|edquot", ("disk-quota",)),
    _say("too many logins for", ("maxlogins",)),
    _say("cannot open session|pam_open_session|session initialization failed|pam session",
         ("hard-limit", "maxlogins", "permission"), r"denied|failed|error"),
    _say("argument list too long|errno 7]|e2big", ("arguments",)),
)  # fmt: skip
_MEMORY = (
    _say("was sent sigkill", _KILL),
    _say("potential root causes|possible reasons include", (*_KILL, "crash"), r"SIGKILL|OOM"),
    _say("exceeded memory limit|exceeded virtual memory limit|term_memlimit", ("job-memory",),
         r"\b(job|step)\b|slurm|TERM_"),
    _say("job killed: mem|job killed: vmem", ("job-memory",), r"exceeded"),
    _say("cudamallochost|cudahostalloc|cudahostregister|cumemhostalloc|hiphostmalloc"
         "|bytes on host|pinned host memory", (COMMIT, SPACE, MAPPINGS, "gpu-memory"),
         r"fail|could not|unable|out.of.memory"),
    _say("cuda out of memory|cuda error: out of memory|hip out of memory|cuda_error_out_of_memory"
         "|torch.outofmemoryerror|cublas_status_alloc_failed|cudaerrormemoryallocation",
         ("gpu-memory",)),
    _say("cuda failure 'out of memory'|cuda failure 2|resource_exhausted: out of memory"
         "|outofmemoryerror: cuda|out of memory trying to allocate", ("gpu-memory",)),
    _say("oom when allocating", ("gpu-memory",), near=r"gpu|cuda"),
    _say("node running low on memory|ray.exceptions.outofmemory", ("ray-monitor",)),
    _say("static tls block", ("exception",)),
    _say("failed to map segment", ("permission",), _EPERM),
    _say("failed to map segment", (SPACE, COMMIT, MAPPINGS, "permission"),
         r"object(: error 12)?\W*$"),
    _say("hugetlb|huge pages|hugepages", (HUGE, SPACE, COMMIT),
         r"^(?!.*(fall|instead|ordinary|regular|normal))(?:.*hugetlb.*(fail|allocate)"
         r"|.*(fail\w* to|unable to|could not|cannot) (allocate|reserve|get|m?map)\b.*huge ?pages?"
         r"|.*(no free|not enough) huge ?pages?|.*huge ?pages?\b.*cannot allocate)"),
    _say("heap out of memory|java heap space|gc overhead limit|outofmemoryerror: "
         "|outofdirectmemory", ("heap",),
         r"heap|overhead|Metaspace|Direct buffer|array size|class space|direct (buffer )?memory"),
    _say("memory cgroup out of memory|constraint_memcg", (CGROUP,)),
    _say("out of memory: kill|constraint_none", (HOST,)),
    _say("systemd-oomd|due to memory pressure|due to memory used|result 'oomd'", (OOMD,),
         r"kill|memory pressure|memory used"),
    _say("oom_kill event|oom-kill event|out_of_memory|oomkilled|exceeded job memory limit"
         "|exceeded step memory limit|out-of-memory handler|oom killed|: out of memory", (CGROUP,),
         r"^(?!.*OOMKilled\"?: ?false)(?!.*(: out of memory|_OUT_OF_MEM))"
         r"|tasks? [\d,-]+: Out Of M"),
    _say("oom killer|oom-kill|oom killed", (CGROUP, HOST)),
    _say("out of memory|outofmemory|alloc_failed|alloc failed", ("gpu-memory",), _GPU),
    _say("could not reserve enough|insufficient memory for the java|memoryerror|bad_alloc"
         "|unable to allocate|defaultcpuallocator|out of memory|memory exhaust|alloc failed"
         "|memory allocation of", (SPACE, COMMIT),
         r"^(?!.*(resources|nodes?\b|allocate (port|pty|\d+ GPU)))"),
    _say(_ENOMEM, (SPACE, COMMIT, MAPPINGS)),
)  # fmt: skip
_ENDED = (
    _say("due to time limit", ("job-time",), r"slurm|\*\*\*"),
    _say("jobstate=timeout", ("job-time",)),
    _say("term_runlimit|job killed: walltime", ("job-time",)),
    _say("state 'stop-sigterm' timed out|state 'final-sigterm' timed out", (BY_HAND,)),
    _say("forcefully exiting via|unable to shutdown process", (OTHERS,), rank=WRAPPER),
    _say("cpu time limit|sigxcpu|cputime limit|24/xcpu|terminated by signal 24", ("cpu-time",)),
    _say("result 'timeout'", (BY_HAND,), rank=AFTER),
    _say("on client request", (BY_HAND,), r"sent signal sig\w+ to"),
    _say("due to preemption|jobstate=preempted", ("preempted",)),
    _say("due to node failure|jobstate=node_fail", ("node-failed",)),
    _say("cancelled at", (BY_HAND, OTHERS), rank=AFTER),
    _say("fatal error: killed signal", _KILL),
    _say("137|sigkill|killed|signal 9|signal: 9|9/kill|: -9|status -9|= -9|=-9|code -9|d -9", _KILL,
         r"(?-i:^Killed$|: Killed\b|\d Killed\b|[]%\d|/\\-] ?Killed$|^zsh: killed )"
         r"|\bSIGKILL\b|9/KILL"
         rf"|{_SIGNAL}(9\b|kill)(?! of)|{_STATUS}-9\b|was killed"),
    _say("137", (*_KILL, OWN_EXIT), r"^make.*: \*\*\* .* Error 137"
         rf"|{_EXITED}.*{_STATUS}137\b(?! ok)"),
    _say("received 15 death signal|failed (exitcode: -15)|signalexception", (BY_HAND, OTHERS),
         rank=AFTER),
    _say("153", ("fsize", OWN_EXIT), rf"{_EXITED}.*{_STATUS}153\b"),
    _say("152", ("cpu-time", OWN_EXIT), rf"{_EXITED}.*{_STATUS}152\b"),
    _say("135", (SHM, "file-shrank", OWN_EXIT), rf"{_EXITED}.*{_STATUS}135\b"),
    _say("139", ("crash", "stack", OWN_EXIT), rf"{_EXITED}.*{_STATUS}139\b"),
    _say("143", (BY_HAND, OTHERS), rf"{_EXITED}.*{_STATUS}143\b", rank=AFTER),
    _say("keyboardinterrupt", (BY_HAND,), rank=AFTER),
    _say("closing signal", (OTHERS,), rank=WRAPPER),
    _say("status=1/failure", ("exception",), rank=WRAPPER),
    _say("signal 15|: -15|code -15|= -15", (OTHERS, BY_HAND), rf"{_SIGNAL}15\b|{_STATUS}-15\b",
         rank=WRAPPER),
    _say("segmentation fault|sigsegv|signal 11|signal: 11|11/segv|segfault at"
         "|: -11|= -11|=-11|code -11|(-11",
         ("crash", "stack"), r"segmentation fault|\bSIGSEGV\b|11/SEGV|segfault at"
         rf"|{_SIGNAL}11\b|{_STATUS}-11\b"),
    _say("sigterm|terminated|15/term|sighup|hangup|1/hup", (BY_HAND, OTHERS),
         r"(?-i:SIGTERM|15/TERM|^Terminated|: Terminated|\d Terminated|\]Terminated$|SIGHUP|Hangup"
         r"|1/HUP)",
         rank=AFTER),
    _say("stack overflow|infinite recursion", ("stack", "exception")),
    _say("by signal: abort", ("crash",)),
    _say("sigabrt|signal 6|aborted|: -6|= -6|=-6|code -6|dumped core|core dumped"
         "|illegal instruction|sigill", ("crash",),
         r"(?-i:^Aborted|: Aborted|\d Aborted)|SIGABRT|\(core dumped\)|dumped core|illegal i|SIGILL"
         rf"|{_SIGNAL}6\b|{_STATUS}-6\b", rank=AFTER),
    _say("stale file handle|errno 116]|estale|stale nfs", ("stale",)),
    _say("directory not empty|errno 39]|enotempty", ("not-empty",)),
    _say("no inodes|free inodes", ("inodes",)),
    _say(_ENOSPC, ("disk-full", "inodes")),
    _say("status=2", ("unit-setup",), r"status=2\d\d/(?!LIMITS)[A-Z_]+"),
)  # fmt: skip
_PLAIN = (
    _say("ncclsystemerror|unhandled system error", ("network", SHM, NOFILE, MEMLOCK), rank=AFTER),
    _say("watchdog caught collective|nccl communicator was aborted|nccl timeout|timed out waiting"
         "|wait timeout|diststoreerror|timed out after", ("collective-timeout", OTHERS),
         rank=AFTER),
    _say("terminatedworkererror|actor died unexpectedly"
         "|workercrashederror|worker died unexpectedly", (OTHERS, CGROUP, HOST, "crash"),
         rank=AFTER),
    _say("it was running on is dead|has been marked dead", ("node-failed", CGROUP, HOST),
         rank=AFTER),
    _say("exited unexpectedly", (OTHERS, CGROUP, HOST, SHM), r"DataLoader worker", rank=WRAPPER),
    _say("errno 2]", (OTHERS, SHM_GONE), near=r"SemLock\._rebuild|SharedMemory\(", rank=AFTER),
    _say("newosproc|childfailederror|exited unexpectedly|returned non-zero exit status 1."
         "|srun: error"
         "|exited with exit code|a child process terminated", (OTHERS,), rank=WRAPPER),
    _say("brokenpipeerror|broken pipe|eoferror|failed to bind to address"
         "|connection reset by peer|connection closed by peer|errno 104]|errno 32]"
         "|connectionreseterror|socket closed", (OTHERS,), rank=AFTER),
    _say("terminated abruptly|brokenprocesspool", (OTHERS, CGROUP, HOST), rank=AFTER),
    _say("connection refused|connect to server|failed to connect|name resolution"
         "|name or service not known|address already in use|no route to host"
         "|connection closed by remote"
         "|network is unreachable"
         "|connection timed out|errno 111]|errno 98]", ("network",), rank=PLAIN),
    _say("permission denied|errno 13]|operation not permitted|errno 1]", ("permission",),
         rank=PLAIN),
    _say("executable file not found|: no such file or directory", ("exception",), rank=PLAIN),
    _say("error|exception|interrupt|exit|not found", ("exception",),
         r"^(?:.*[\s|\]])??((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Iteration))"
         r"(?:: |$)|^(?:fatal )?error: |command not found", rank=PLAIN),
)  # fmt: skip
_OF_PROGRAMS = (*_FILES, *_SHARED, *_CONNECTS, *_STARTS, *_PERMITS, *_NAMED, *_MEMORY, *_ENDED)
MESSAGES = (*SYSTEM, *LIBRARIES, *_OF_PROGRAMS, *_PLAIN)
