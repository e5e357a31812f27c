# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of dockerd(8), its daemon.json and its containers, and of containerd's unit."""

from __future__ import annotations

from tests.faults.fault import Culprit, Fault, Policy, sed, write

JSON = "/etc/docker/daemon.json"
RUNNING = "docker running"
LOADED = "units loaded"
RESTART = "systemctl restart docker"
NEW = "^new-container:docker "
SLEEP = "tiny /busybox sleep 9999"
EXEC = "ExecStart=/usr/sbin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock"
DROP_IN = "/etc/systemd/system/docker.service.d"
SHM_ALONE = write(JSON, "{", '  "default-shm-size": "8G"', "}")
NO_SHM = sed("6d; 5s/,$//", JSON)
NO_NOFILE = sed('/"nofile"/d', JSON)
LOWER = sed('s/"Soft": 65536/"Soft": 1024/', JSON)
RAISE = sed('s/"Soft": 1024/"Soft": 65536/', JSON)


def stated(name: str, old: str, new: str, line: str, *shows: str, words: str = "") -> Fault:
    """Return a daemon.json with something else in it, that the daemon started with."""
    return Fault(
        f"docker: {name}",
        f"{sed(f's/{old}/{new}/', JSON)}; {RESTART}",
        (Culprit(JSON, line, words),),
        shows,
        touches=(JSON,),
        uses=(RUNNING,),
    )


def pending(name: str, make: str, *culprits: Culprit, touches: tuple[str, ...] = (JSON,)) -> Fault:
    """Return what the running daemon has not read yet, and will not start with."""
    shows = ("^(new-container|container|service|daemon):docker",)
    return Fault(f"docker: {name}", make, culprits, shows, touches=touches, uses=(RUNNING, LOADED))


OF_DAEMON_JSON = [
    stated("a low soft limit", '"Soft": 65536', '"Soft": 1024', '"Soft": 1024', f"{NEW}nofile"),
    stated("a low hard limit too", '"Hard": 1048576, "Soft": 65536', '"Hard": 4096, "Soft": 1024',
           '"Hard": 4096', f"{NEW}nofile soft", f"{NEW}nofile hard"),
    stated("a name that is another item's", '"Name": "memlock"', '"Name": "locks"',
           '"Name": "locks"', f"{NEW}memlock", words="name|locks"),
    stated("a small shm", '"8G"', '"64M"', '"64M"', f"{NEW}shm_size"),
    stated("an entry without a name", '"Name": "memlock", ', "", '"memlock": {"Hard"',
           "^new-container:docker", words="name"),
    stated("soft above hard", '"Hard": 1048576, "Soft": 65536', '"Hard": 1024, "Soft": 65536',
           '"Hard": 1024', "^new-container:docker"),
    stated("no hard limit", '"Hard": 1048576, ', "", '"Soft": 65536', "^new-container:docker"),
    stated("more files than fs.nr_open", "1048576", "2000000", "2000000", "^new-container:docker",
           words="nr_open"),
    Fault(
        "docker: no default-ulimits",
        f"{SHM_ALONE}; {RESTART}",
        (Culprit(words="default-ulimits|state|nobody|nothing|no line"),),
        (f"{NEW}nofile soft|{NEW}memlock",),
        touches=(JSON,),
        uses=(RUNNING,),
    ),
    Fault(
        "docker: no default-shm-size",
        f"{NO_SHM}; {RESTART}",
        (Culprit(words="shm"),),
        (f"{NEW}shm_size",),
        touches=(JSON,),
        uses=(RUNNING,),
    ),
    Fault(
        "docker: daemon.json is newer than the daemon",
        f"{LOWER}; {RESTART}; {RAISE}",
        (Culprit(words="restart|older|newer|since|start"),),
        (f"{NEW}nofile",),
        touches=(JSON, RUNNING),
    ),
    pending("a later daemon.json that gives less", LOWER, Culprit(JSON, '"Soft": 1024')),
    pending("a comma too many", sed("s/8G\"/&,/", JSON), Culprit(JSON, '"8G",'),
            Culprit(JSON, "", r"JSON|comma|:\d+:")),
    pending("a key that is none", sed("s/default-ulimits/default-ulimit/", JSON),
            Culprit(JSON, "default-ulimit", "unknown|key|none|match")),
    pending("a key that no dockerd knows", sed('1s/{/{"max-open-files": 65536,/', JSON),
            Culprit(JSON, "max-open-files", "know|key|match")),
    pending("an option of logs as a number",
            sed('1s/{/{"log-opts": {"max-file": 3},/', JSON), Culprit(JSON, "log-opts"))._replace(
                person=f"sed -i 's/.log-opts.: {{[^}}]*}},//' {JSON}; systemctl restart docker"),
    pending("an empty file", f": > {JSON}", Culprit(JSON, "", "empty|EOF|JSON"),
            Culprit(words="(?:no file|nothing) states")),
    pending("a number as a text", sed('s/65536/"65536"/', JSON), Culprit(JSON, '"65536"')),
]  # fmt: skip

OF_FLAGS = [
    Fault(
        "docker: a flag of the unit",
        f"{SHM_ALONE}; "
        + write(f"{DROP_IN}/10-flags.conf", "[Service]", "ExecStart=",
                f"{EXEC} --default-ulimit nofile=1024:4096 --default-ulimit memlock=-1:-1")
        + f"; systemctl daemon-reload; {RESTART}",
        (Culprit(f"{DROP_IN}/10-flags.conf", "--default-ulimit"),),
        (f"{NEW}nofile soft", f"{NEW}nofile hard"),
        touches=(JSON, f"{DROP_IN}/10-flags.conf"),
        uses=(RUNNING, LOADED),
    ),
    Fault(
        "docker: a flag in /etc/default/docker",
        f"{NO_SHM}; "
        + write("/etc/default/docker", "# of the site", 'DOCKER_OPTS="--default-shm-size=64m"')
        + f"; {RESTART}",
        (Culprit("/etc/default/docker", "DOCKER_OPTS"),),
        (f"{NEW}shm_size",),
        touches=(JSON, "/etc/default/docker"),
        uses=(RUNNING,),
    ),
    Fault(
        "docker: another configuration file",
        write("/etc/docker/site.json", "{}")
        + "; "
        + write(f"{DROP_IN}/20-file.conf", "[Service]", "ExecStart=",
                f"{EXEC} --config-file /etc/docker/site.json")
        + f"; systemctl daemon-reload; {RESTART}",
        (Culprit(f"{DROP_IN}/20-file.conf", "--config-file"),
         Culprit("/etc/docker/site.json"), Culprit(words="/etc/docker/site.json")),
        (f"{NEW}memlock", f"{NEW}shm_size"),
        touches=("/etc/docker/site.json", f"{DROP_IN}/20-file.conf", JSON),
        uses=(RUNNING, LOADED),
    ),
    pending("a flag and a key of the same name",
            write(f"{DROP_IN}/30-both.conf", "[Service]", "ExecStart=",
                  f"{EXEC} --default-ulimit nofile=65536:1048576") + "; systemctl daemon-reload",
            Culprit(f"{DROP_IN}/30-both.conf", "--default-ulimit"),
            Culprit(JSON, "default-ulimits", "flag"),
            touches=(f"{DROP_IN}/30-both.conf", JSON)),
    Fault(
        "docker: containerd's own limit, where daemon.json is silent",
        f"{NO_NOFILE}; "
        + write("/etc/systemd/system/containerd.service.d/10-low.conf", "[Service]",
                "LimitNOFILE=1024:4096")
        + f"; systemctl daemon-reload; systemctl restart containerd; {RESTART}",
        (Culprit("/etc/systemd/system/containerd.service.d/10-low.conf", "LimitNOFILE=1024:4096"),
         Culprit(words="daemon.json|default-ulimits")),
        (f"{NEW}nofile hard",),
        touches=(JSON, "/etc/systemd/system/containerd.service.d/10-low.conf"),
        uses=(RUNNING, LOADED),
    ),
]  # fmt: skip

BOX = r"^(container|process):.*"
LIVE = sed('1s/{/{"live-restore": true,/', JSON)

OF_CONTAINERS = [
    Fault(
        "container: older than the change",
        f"{LIVE}; {LOWER}; {RESTART}; docker run -d --name old {SLEEP}; {RAISE}; {RESTART}",
        (Culprit(words="older|before|start|created|since"),),
        (f"{BOX}nofile soft",),
        touches=(JSON, RUNNING),
        person="docker restart -t 0 old",
    ),
    Fault(
        "container: an --ulimit of its own",
        f"docker run -d --name own --ulimit nofile=1024:2048 {SLEEP}",
        (Culprit(words="ulimit|its own|created with"),),
        (f"{BOX}nofile soft", f"{BOX}nofile hard"),
        touches=(RUNNING,),
        person=f"docker rm -f own; docker run -d --name own {SLEEP}",
    ),
    Fault(
        "container: lowered while it runs",
        f"docker run -d --name lowered {SLEEP};"
        " prlimit --pid $(docker inspect -f '{{.State.Pid}}' lowered) --nofile=1024:4096",
        (Culprit(words="prlimit|while it|running|itself|start|since"),),
        (f"{BOX}nofile soft", f"{BOX}nofile hard"),
        touches=(RUNNING,),
        person="docker restart -t 0 lowered",
    ),
]

# A restart ends containers, so that a remedy may leave it to a person.
FAULTS = [
    *(one._replace(person=one.person or RESTART) for one in (*OF_DAEMON_JSON, *OF_FLAGS)),
    *OF_CONTAINERS,
]

PARENT = "/etc/systemd/system/containerd.service.d/10-low.conf"
RESTART_BOTH = f"systemctl daemon-reload; systemctl restart containerd; {RESTART}"
FLAGS = f"{DROP_IN}/10-flags.conf"
COMPOSE = "/srv/train/compose.yml"
SLICE = "/etc/systemd/system/train.slice"
SCOPES = "/etc/systemd/system/docker-.scope.d"
TASKS: Policy = {"containers": {"docker": {"tasks": 500}}}
_LABEL = "--label com.docker.compose"
LABELS = (
    f"{_LABEL}.service=train {_LABEL}.project=train {_LABEL}.project.config_files={COMPOSE}"
    f" {_LABEL}.project.working_dir=/srv/train"
)
"""As Compose labels the containers that it makes, which is not in the guest."""


def box(name: str, options: str, words: str, shows: tuple[str, ...], make: str = "true",
        culprit: Culprit | None = None, anew: str = "") -> Fault:  # fmt: skip
    """Return a container that runs with other options than it should."""
    start = f"docker run -d --name box {{}} {SLEEP}"
    return Fault(
        f"container: {name}",
        f"{make}; {start.format(options)}",
        (culprit or Culprit(words=words),),
        shows,
        touches=(RUNNING,),
        person=f"docker rm -f box; {start.format(anew)}",
    )


def few_tasks(
    name: str, options: str, culprit: Culprit, after: str = "", make: str = "true"
) -> Fault:
    """Return a container that may hold few tasks; commands alone mend it."""
    one = box(f"few tasks {name}", options, "", (f"{BOX}tasks",), make, culprit)
    return one._replace(make=one.make + after, policy=TASKS, person="")


def compose(*lines: str) -> str:
    return write(COMPOSE, "services:", "  train:", "    image: tiny", *lines)


ALL = "--default-ulimit nofile=65536:1048576 --default-ulimit memlock=-1:-1 --default-shm-size 8G"


def flags(name: str, words: str, shows: str, culprit: Culprit | None = None) -> Fault:
    """Return a dockerd that flags alone give its defaults."""
    unit = write(FLAGS, "[Service]", "ExecStart=", f"{EXEC} {words}")
    return Fault(
        f"docker: flags {name}",
        f"rm {JSON}; {unit}; systemctl daemon-reload; {RESTART}",
        (culprit or Culprit(FLAGS, "--default-ulimit"),),
        (shows,),
        touches=(JSON, FLAGS),
        uses=(RUNNING, LOADED),
    )


LOW_PARENT = write(PARENT, "[Service]", "LimitNOFILE=1024:2048")
SIZE = (f"{BOX}shm_size",)
LOCKED = (f"{BOX}memlock soft",)
OF_STATEMENTS = [
    stated("a name twice", '^    "nofile".*', '&\\n    "nofile": {"Name": "nofile", "Hard": 8192, "Soft": 4096},',
           '"Soft": 4096', f"{NEW}nofile soft"),
    stated("two entries of one limit", '^    "nofile".*',
           '    "nofile": {"Name": "nofile", "Hard": 8192, "Soft": 4096},'
           '\\n    "files": {"Name": "nofile", "Hard": 4096, "Soft": 1024},',
           '"files"', f"{NEW}nofile soft")._replace(
               culprits=(Culprit(JSON, '"files"'), Culprit(JSON, '"Soft": 4096'))),
    Fault(
        "docker: a flag that is right by now",
        f"{SHM_ALONE}; "
        + write(FLAGS, "[Service]", "ExecStart=",
                f"{EXEC} --default-ulimit nofile=1024:4096 --default-ulimit memlock=-1:-1")
        + f"; systemctl daemon-reload; {RESTART}; sed -i s/1024:4096/65536:1048576/ {FLAGS}",
        (Culprit(FLAGS, "--default-ulimit", "has run since"),),
        (f"{NEW}nofile soft", f"{NEW}nofile hard"),
        touches=(JSON, FLAGS, LOADED),
        uses=(RUNNING,),
    ),
    Fault(
        "docker: containerd is older than its unit's limit",
        f"{NO_NOFILE}; {LOW_PARENT}; {RESTART_BOTH}; sleep 1; sed -i s/1024:2048/infinity/ {PARENT}",
        (Culprit(PARENT, "LimitNOFILE=infinity", "since|restart"),),
        (f"{NEW}nofile hard",),
        touches=(JSON, PARENT, LOADED),
        uses=(RUNNING,),
    ),
    Fault(
        "docker: a limit of docker.service, which helps no container",
        f"{NO_NOFILE}; {LOW_PARENT}; "
        + write(f"{DROP_IN}/40-own.conf", "[Service]", "LimitNOFILE=65536:1048576")
        + f"; {RESTART_BOTH}",
        (Culprit(f"{DROP_IN}/40-own.conf", "LimitNOFILE=65536:1048576"),),
        (f"{NEW}nofile hard",),
        touches=(JSON, PARENT, f"{DROP_IN}/40-own.conf"),
        uses=(RUNNING, LOADED),
    ),
    stated("as many files as there may be", '"Hard": 1048576', '"Hard": -1',
           '"Hard": -1, "Soft": 65536', "^new-container:docker", words="nr_open"),
    Fault(
        "docker: too little, which the daemon has not read",
        f"{sed('s/65536/512/', JSON)}; {RESTART}; sleep 1; {sed('s/512/1024/', JSON)}",
        (Culprit(JSON, '"Soft": 1024'),),
        (f"{NEW}nofile soft",),
        touches=(JSON, RUNNING),
    ),
    flags("for other limits alone", "--default-ulimit nofile=65536:1048576 --default-shm-size 8G",
          f"{NEW}memlock", Culprit(words="default-ulimits|state|nobody|nothing|no line")),
    flags("that are given twice", f"{ALL} --default-ulimit nofile=99:100", f"{NEW}nofile soft"),
    pending("a size that is not a text", sed('s/"8G"/8589934592/', JSON), Culprit(JSON, "8589934592")),
    pending("containerd's limit from the next boot on",
            f"{NO_NOFILE}; {RESTART}; {LOW_PARENT}; systemctl daemon-reload",
            Culprit(PARENT, "LimitNOFILE=1024:2048"), Culprit(words="daemon.json|default-ulimits"),
            touches=(JSON, PARENT)),
]  # fmt: skip
OF_BOXES = [
    box("a Compose file states it", f"--ulimit nofile=700:800 {LABELS}", "", (f"{BOX}nofile soft",),
        compose("    ulimits:", "      nofile: {soft: 700, hard: 800}"),
        Culprit(COMPOSE, "nofile: {soft: 700"), LABELS),
    box("a Compose file that was changed since", f"--ulimit nofile=700 {LABELS}", "",
        (f"{BOX}nofile soft",), compose("    ulimits:", "      nofile: 65536"),
        Culprit(COMPOSE, "nofile: 65536"), f"--ulimit nofile=65536:1048576 {LABELS}"),
    box("a Compose file states a small /dev/shm", f"--shm-size 1g {LABELS}", "", SIZE,
        compose("    shm_size: 1gb"), Culprit(COMPOSE, "shm_size: 1gb"), LABELS),
    box("its program lowers a limit", "", "inside|itself|since",
        (f"{BOX}nofile soft",))._replace(
            make="docker run -d --name box tiny /busybox sh -c 'ulimit -n 1000; /busybox sleep 9999'"),
    few_tasks("by an option", "--pids-limit 100", Culprit(words="pids-limit")),
    few_tasks("by hand", "--pids-limit 1000", Culprit(words="changed"),
              "; echo 100 > /sys/fs/cgroup/system.slice/docker-$(docker inspect -f '{{.Id}}' box)"
              ".scope/pids.max"),
    few_tasks("for its slice", "--cgroup-parent train.slice", Culprit(SLICE, "TasksMax=100"),
              make=f"{write(SLICE, '[Slice]', 'TasksMax=100')}; systemctl daemon-reload"),
    Fault(
        "docker: few tasks for the scopes of containers",
        write(f"{SCOPES}/50-few.conf", "[Scope]", "TasksMax=100") + "; systemctl daemon-reload",
        (Culprit(f"{SCOPES}/50-few.conf", "TasksMax=100"),),
        (f"{NEW}tasks",),
        TASKS,
        touches=(f"{SCOPES}/50-few.conf", LOADED),
    ),
    box("a Compose file states few tasks", f"--pids-limit 100 {LABELS}", "", (f"{BOX}tasks",),
        compose("    pids_limit: 100"), Culprit(COMPOSE, "pids_limit: 100"),
        LABELS)._replace(policy=TASKS),
    box("a small /dev/shm of its own", "--shm-size 1g", "created", SIZE),
    box("the host's /dev/shm", "--ipc host", "host", SIZE),
    box("another file system over /dev/shm", "--tmpfs /dev/shm:size=1g", "mount|file system", SIZE),
    box("less memlock, which binds", "--ulimit memlock=65536:65536", "lacks CAP_IPC_LOCK", LOCKED),
    box("less memlock, which does not bind", "--ulimit memlock=65536:65536 --cap-add IPC_LOCK",
        "has CAP_IPC_LOCK", LOCKED),
]  # fmt: skip
MORE = [*(fault._replace(person=RESTART) for fault in OF_STATEMENTS), *OF_BOXES]
