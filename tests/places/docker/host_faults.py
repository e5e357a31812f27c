"""What goes wrong with the limits of containers, as people make it, and what must be said of it."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import NamedTuple

NEW = "new-container:docker"
CONFIG = "/etc/docker/daemon.json"
UNIT = "/etc/systemd/system/docker.service.d/site.conf"
PARENT = "/etc/systemd/system/containerd.service.d/site.conf"
RESTART = "systemctl reset-failed docker; systemctl restart docker"

HEALTHY = """\
{
  "default-ulimits": {
    "nofile": {"Name": "nofile", "Hard": 1048576, "Soft": 65536},
    "memlock": {"Name": "memlock", "Hard": -1, "Soft": -1}
  },
  "default-shm-size": "8G"
}
"""
"""What the library itself writes on a host without daemon.json."""


class Fault(NamedTuple):
    """One thing gone wrong: how, and what must be named.

    ``causes`` are pairs of a code and the place of the line at fault, for the place in which.
    ``late`` tells that all is well until a restart or a boot. ``manual`` tells that a person
    must act, with what ``act`` does.
    """

    name: str
    make: str
    causes: tuple[tuple[str, str], ...]
    place: str = NEW
    late: bool = False
    act: str = ""


def edit(script: str, file: str = CONFIG) -> str:
    return f"sed -i '{script}' {file}\n"


def write(path: str, *lines: str) -> str:
    text = "\n".join(lines)
    return f"mkdir -p $(dirname {path}) && cat > {path} <<'END'\n{text}\nEND\nsystemctl daemon-reload\n"


def drop_in(path: str, *lines: str) -> str:
    return write(path, "[Service]", *lines)


def give_flags(words: str) -> str:
    start = "ExecStart=/usr/sbin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock"
    return drop_in(UNIT, "ExecStart=", f"{start} {words}")


def run(options: str = "", command: str = "/busybox sleep 100000") -> str:
    return f"docker run -d --name job {options} tiny {command} >/dev/null\n"


COMPOSE = "/srv/train/compose.yml"
LABEL = "--label com.docker.compose"
LABELS = (
    f"{LABEL}.service=train {LABEL}.project.config_files={COMPOSE}"
    f" {LABEL}.project.working_dir=/srv/train"
)
"""As Compose labels the containers that it makes."""


def compose(*lines: str) -> str:
    return write(COMPOSE, "services:", "  train:", "    image: tiny", *lines)


LOW = "3s/65536/1024/"
NO_NOFILE = "3d"
JOB = "container:docker/job"
ALL = "--default-ulimit nofile=65536:1048576 --default-ulimit memlock=-1:-1 --default-shm-size 8G"

FAULTS = [
    Fault(
        "too little in daemon.json",
        edit(LOW) + RESTART,
        (("docker-stated-too-low", f"{CONFIG}:3"),),
    ),
    Fault(
        "a limit taken out of daemon.json",
        edit("3s/,$//; 4d") + RESTART,
        (("docker-not-stated", ""),),
    ),
    Fault(
        "a good daemon.json that dockerd has not read",
        f"{edit(LOW)}{RESTART}; sleep 1\n{edit('3s/1024/65536/')}",
        (("docker-config-not-read", f"{CONFIG}:3"),),
    ),
    Fault(
        "too little in daemon.json, which dockerd has not read",
        f"{edit('3s/65536/512/')}{RESTART}; sleep 1\n{edit('3s/512/1024/')}",
        (("docker-config-not-read", f"{CONFIG}:3"), ("docker-stated-too-low", f"{CONFIG}:3")),
    ),
    Fault(
        "a bad daemon.json that dockerd has not read",
        edit(LOW),
        (("docker-stated-too-low", f"{CONFIG}:3"),),
        late=True,
    ),
    Fault(
        "a flag that states too little",
        f"rm {CONFIG}\n{give_flags(ALL.replace('65536', '4096'))}{RESTART}",
        (("docker-stated-too-low", f"{UNIT}:3"),),
    ),
    Fault(
        "a flag that is said twice",
        f"rm {CONFIG}\n{give_flags(ALL + ' --default-ulimit nofile=99:100')}{RESTART}",
        (("docker-later-wins", f"{UNIT}:3"),),
    ),
    Fault(
        "flags for other limits alone",
        f"rm {CONFIG}\n{give_flags('--default-ulimit nofile=65536:1048576 --default-shm-size 8G')}"
        + RESTART,
        (("docker-not-stated", ""),),
    ),
    Fault(
        "a flag that is right by now",
        f"rm {CONFIG}\n{give_flags(ALL.replace('65536', '4096'))}{RESTART}\n"
        + edit("s/4096/65536/", UNIT),
        (("docker-unit-not-read", f"{UNIT}:3"),),
    ),
    Fault(
        "a flag in the environment file",
        f"rm {CONFIG}\necho 'DOCKER_OPTS=\"{ALL.replace('8G', '1G')}\"' >> /etc/default/docker\n{RESTART}",
        (("docker-stated-too-low", "/etc/default/docker:13"),),
    ),
    Fault(
        "a flag and daemon.json",
        give_flags("--default-ulimit core=0"),
        (("docker-flag-conflict", f"{UNIT}:3"),),
        late=True,
    ),
    Fault(
        "a flag and daemon.json, and dockerd restarted",
        f"{give_flags('--default-shm-size 8G')}{RESTART}",
        (("docker-flag-conflict", f"{UNIT}:3"),),
    ),
    Fault(
        "a Name that is not the key",
        edit('3s/"Name": "nofile"/"Name": "nproc"/')
        + drop_in(PARENT, "LimitNOFILE=4096")
        + f"systemctl restart containerd; {RESTART}",
        (("docker-name-differs", f"{CONFIG}:3"),),
    ),
    Fault(
        "soft above hard",
        edit("3s/65536/2000000/; 3s/1048576/1000/") + RESTART,
        (("docker-no-container-starts", f"{CONFIG}:3"),),
    ),
    Fault(
        "a Name that is missing, at the next restart",
        edit('4s/"Name": "memlock", //'),
        (("docker-no-container-starts", f"{CONFIG}:4"),),
        late=True,
    ),
    Fault(
        "nofile unlimited",
        edit("3s/1048576/-1/") + RESTART,
        (("docker-above-nr-open", f"{CONFIG}:3"),),
    ),
    Fault(
        "fs.nr_open lowered",
        "sysctl -qw fs.nr_open=500000",
        (("docker-above-nr-open", f"{CONFIG}:3"),),
    ),
    Fault(
        "fs.nr_open lowered at the next boot",
        "echo fs.nr_open=500000 > /etc/sysctl.d/99-zz.conf",
        (("docker-above-nr-open", f"{CONFIG}:3"),),
        late=True,
    ),
    Fault(
        "a comma too much",
        edit("4s/$/,/"),
        (("docker-dockerd-refuses", f"{CONFIG}:5"),),
        late=True,
    ),
    Fault(
        "a comma too few, and dockerd restarted",
        f"{edit('5s/,//')}{RESTART}",
        (("docker-dockerd-refuses", f"{CONFIG}:6"),),
    ),
    Fault(
        "a number for a text",
        edit('6s/"8G"/8589934592/'),
        (("docker-dockerd-refuses", f"{CONFIG}:6"),),
        late=True,
    ),
    Fault(
        "a key that dockerd does not know",
        edit("2s/ulimits/ulimit/") + RESTART,
        (("docker-dockerd-refuses", f"{CONFIG}:2"),),
    ),
    Fault(
        "an empty daemon.json",
        f": > {CONFIG}\n{RESTART}",
        (("docker-dockerd-refuses", CONFIG),),
    ),
    Fault(
        "one key twice",
        edit('3a\\    "nofile": {"Name": "nofile", "Hard": 4096, "Soft": 4096},') + RESTART,
        (("docker-later-wins", f"{CONFIG}:4"),),
    ),
    Fault(
        "a small default-shm-size",
        edit("6s/8G/64M/") + RESTART,
        (("docker-stated-too-low", f"{CONFIG}:6"),),
    ),
    Fault(
        "no default-shm-size",
        edit("5s/,//; 6d") + RESTART,
        (("docker-shm-not-stated", ""),),
    ),
    Fault(
        "a containerd with less, and nothing in daemon.json",
        edit(NO_NOFILE)
        + drop_in(PARENT, "LimitNOFILE=1024:2048")
        + f"systemctl restart containerd; {RESTART}",
        (("docker-containerd-too-low", f"{PARENT}:2"),),
    ),
    Fault(
        "a limit of docker.service that helps nobody",
        edit(NO_NOFILE)
        + drop_in(PARENT, "LimitNOFILE=1024:2048")
        + drop_in(UNIT, "LimitNOFILE=65536:1048576")
        + f"systemctl restart containerd; {RESTART}",
        (("docker-unit-limit-ignored", f"{UNIT}:2"),),
    ),
    Fault(
        "a containerd that was not restarted",
        edit(NO_NOFILE)
        + drop_in(PARENT, "LimitNOFILE=2048")
        + f"systemctl restart containerd; {RESTART}; sleep 1\n"
        + drop_in(PARENT, "LimitNOFILE=infinity"),
        (("docker-containerd-not-restarted", f"{PARENT}:2"),),
    ),
    Fault(
        "a containerd with less after the next boot",
        edit(NO_NOFILE) + f"{RESTART}\n" + drop_in(PARENT, "LimitNOFILE=1024:2048"),
        (("docker-containerd-too-low", f"{PARENT}:2"),),
        late=True,
    ),
    Fault(
        "a container of its own limit",
        run("--ulimit nofile=700:800"),
        (("docker-own-ulimit", ""),),
        JOB,
        act="docker rm -f job; " + run(),
    ),
    Fault(
        "a container that Compose gives its own limit",
        compose("    ulimits:", "      nofile: {soft: 700, hard: 800}")
        + run(f"--ulimit nofile=700:800 {LABELS}"),
        (("docker-compose-states", f"{COMPOSE}:5"),),
        JOB,
        act="docker rm -f job; " + run(LABELS),
    ),
    Fault(
        "a container that Compose gives a small shm",
        compose("    shm_size: 1gb") + run(f"--shm-size 1g {LABELS}"),
        (("docker-compose-states", f"{COMPOSE}:4"),),
        JOB,
        act="docker rm -f job; " + run(LABELS),
    ),
    Fault(
        "a Compose file that was changed, and a container that was not",
        compose("    ulimits:", "      nofile: 65536") + run(f"--ulimit nofile=700 {LABELS}"),
        (("docker-compose-not-applied", f"{COMPOSE}:5"),),
        JOB,
        act="docker rm -f job; " + run(f"--ulimit nofile=65536:1048576 {LABELS}"),
    ),
    Fault(
        "a container older than its defaults",
        edit('2i\\  "live-restore": true,')
        + edit("4s/65536/1024/")
        + f"{RESTART}\n{run()}"
        + edit("4s/1024/65536/")
        + RESTART,
        (("docker-container-older", ""),),
        JOB,
    ),
    Fault(
        "a container and its defaults too low",
        edit(LOW) + f"{RESTART}\n{run()}",
        (("docker-stated-too-low", f"{CONFIG}:3"),),
        JOB,
    ),
    Fault(
        "a container that lowers its limit",
        run(command="/busybox sh -c 'ulimit -n 1000; /busybox sleep 100000'"),
        (("docker-changed-inside", ""),),
        JOB,
        act="docker rm -f job; " + run(),
    ),
    Fault(
        "a container of its own shm_size",
        run("--shm-size 1g"),
        (("docker-shm-fixed", ""),),
        JOB,
        act="docker rm -f job; " + run(),
    ),
    Fault(
        "a container with the host's shm",
        run("--ipc host"),
        (("docker-shm-shared", ""),),
        JOB,
    ),
    Fault(
        "a container with another shm",
        run("--tmpfs /dev/shm:size=1g"),
        (("docker-shm-mounted", ""),),
        JOB,
        act="docker rm -f job; " + run(),
    ),
]
