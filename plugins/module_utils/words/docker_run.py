# SPDX-License-Identifier: BSD-2-Clause
"""Read the line of ``docker run``: the limits that it states, what is mounted, what it starts.

Source: the reference of ``docker run``; without ``--shm-size`` /dev/shm of a container is 64 MiB.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..core.values import UNLIMITED, NamedTuple
from .container_gpus import read_gpus
from .facts import VARIABLES, Fact, Stated, Ulimit, Wanted, Words, join_path
from .quantities import parse_size

ENGINES = ("docker", "podman", "nerdctl", "nvidia-docker")
SHM = 64 * 2**20
"""Bytes of /dev/shm in a container of which nobody says otherwise."""

_FLAGS = re.compile(
    r"--(rm|init|privileged|interactive|tty|detach|read-only|no-healthcheck|publish-all"
    r"|oom-kill-disable|sig-proxy|quiet|replace|disable-content-trust|no-hosts|rmi|read-only-tmpfs"
    r"|env-host|http-proxy|tls-verify|no-hostname|passwd)|-[itdPq]+"
)
_GLOBAL = re.compile(
    r"-[cHlna]|--(context|host|log-level|config|namespace|address|storage-driver|root|runroot|runtime"
    r"|connection|url|identity|tls\w*cert|tls\w*key|tlscacert|cgroup-manager|snapshotter|data-root)"
)
"""Options of an engine, in front of its verb, that have a value."""
_RUNS = ("run", "create")
_GLUED = re.compile("(-[vmewupahlc])=?(?!-)(.+)", re.DOTALL)
_PATHS = ("output_dir", "cache_dir")
_SHM_TMPFS = re.compile(
    r"/dev/shm/?(:|$)|(?=.*type=tmpfs)(?=.*(target|dst|destination)=/dev/shm/?(,|$))"  # noqa: S108
)
_SHM_PATH = "/dev/shm"  # noqa: S108 - a name


_SHM_VOLUME = re.compile(r"(?:^|,)(?:[^,=:]+:|target=|dst=|destination=)/dev/shm/?(?::|,|$)")


def find_run(words: Sequence[str]) -> int:
    """Return where in a command of an engine it says to run a container; 0 where it does not.

    >>> find_run(["docker", "--context", "far", "container", "run", "image"])
    4
    """
    at = 1
    while at < len(words) and (words[at].startswith("-") or words[at] == "container"):
        at += 2 if _GLOBAL.fullmatch(words[at]) else 1
    return at if at < len(words) and words[at] in _RUNS else 0


class Container(NamedTuple):
    """What starts in a container: the words behind the image, what is set and mounted.

    ``mounts`` are pairs of a path inside and the one on the host that it is.
    """

    stated: Stated
    words: tuple[str, ...] = ()
    variables: Mapping[str, str] = {}
    mounts: tuple[tuple[str, str], ...] = ()
    folder: str = ""
    problems: tuple[str, ...] = ()
    image: str = ""
    gpus: tuple[Fact, ...] = ()
    files: tuple[Wanted, ...] = ()
    """Those of the host that it takes variables from."""
    notes: tuple[str, ...] = ()

    def map(self, words: Words) -> Words:
        """Return words with their paths as the host has them; one that it has not is dropped."""
        facts, notes = [], []
        for fact in words.facts:
            if fact.key not in _PATHS or not isinstance(fact.value, str):
                facts.append(fact)
                continue
            inside = join_path(self.folder, fact.value) if self.folder else fact.value
            found = find_on_host(inside, self.mounts)
            if found:
                facts.append(fact._replace(value=found))
            else:
                name = fact.key.replace("_", " ")
                notes.append(f"the {name} {inside} ({fact.where}) is not mounted from this host")
        wanted = [one for one in map(self._find, words.wanted) if one.path]
        notes += [
            f"{one.where}: {one.path} is not mounted from this host, and not read"
            for one in words.wanted
            if not self._find(one).path
        ]
        notes += [
            f"ulimit -{one.letter} {one.value} ({one.where}) is set in a container: not followed"
            for one in words.ulimits
        ]
        return words._replace(
            facts=tuple(facts),
            wanted=tuple(wanted),
            stated=tuple(_lower(one, words.ulimits) for one in words.stated),
            notes=(*words.notes, *self.notes, *notes),
            problems=(*words.problems, *self.problems),
            ulimits=(),
        )

    def _find(self, wanted: Wanted) -> Wanted:
        """Return a file that is read as the host has it, without a path where it has not.

        Where the image has its own directory to begin in, a relative one is looked for beside what
        starts the container.
        """
        inside = join_path(self.folder, wanted.path) if self.folder else wanted.path
        there = join_path(wanted.folder, wanted.path)
        mounted = find_on_host(there, self.mounts) if wanted.folder.startswith("/") else ""
        if mounted or wanted.text or not inside.startswith("/"):
            return wanted._replace(path=mounted or wanted.path, folder="")
        return wanted._replace(path=find_on_host(inside, self.mounts))


def _lower(stated: Stated, ulimits: Iterable[Ulimit]) -> Stated:
    """Return the limits of a container whose own script lowers its descriptors."""
    for one in ulimits:
        if one.letter != "n" or not re.fullmatch("[0-9]{1,9}", one.value):
            continue
        if stated.nofile is not None and int(one.value) < stated.nofile:
            at = {**stated.at, "nofile": one.where}
            stated = stated._replace(nofile=int(one.value), at=at)
    return stated


def find_on_host(path: str, mounts: Sequence[tuple[str, str]]) -> str:
    """Return the path on the host of one in a container; nothing where it has none."""
    for inside, outside in sorted(mounts, key=lambda pair: -len(pair[0])):
        if path == inside or path.startswith(f"{inside.rstrip('/')}/"):
            return outside.rstrip("/") + path[len(inside.rstrip("/")) :]
    return ""


def split_docker_run(words: Sequence[str], where: str) -> Container:
    """Return the container that a line starts.

    :param where: ``file:line``, or nothing of the command line.
    """
    options, at = [], find_run(words) + 1
    while at < len(words) and words[at].startswith("-"):
        glued = _GLUED.fullmatch(words[at])
        name, sign, value = (glued[1], "=", glued[2]) if glued else words[at].partition("=")
        at += 1
        if not sign and not _FLAGS.fullmatch(name) and at < len(words):
            value, at = words[at], at + 1
        options.append((name, value))
    here = where or "docker run"
    limits = _Limits(here)
    for name, value in options:
        limits.read(name, value)
    entry = (limits.entry,) if limits.entry else ()
    return Container(
        limits.finish(),
        (*entry, *words[at + 1 :]),
        dict(limits.variables),
        tuple(limits.mounts),
        limits.folder,
        tuple(limits.problems),
        words[at] if at < len(words) else "",
        read_gpus(limits.gpus, here),
        tuple(limits.files),
        tuple(limits.notes),
    )


class _Limits:
    """Gathers what the options of one line say."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.stated: dict[str, float | None] = {}
        self.variables: list[tuple[str, str]] = []
        self.mounts: list[tuple[str, str]] = []
        self.problems: list[str] = []
        self.gpus: list[str] = []
        self.files: list[Wanted] = []
        self.notes: list[str] = []
        self.folder, self.ipc, self.entry = "", "", ""
        self.has_shm = True

    def read(self, name: str, value: str) -> None:
        try:
            self._read(name, value)
        except ValueError as exc:
            self.problems.append(f"{self.where}: {name}: {exc}")

    def _read(self, name: str, value: str) -> None:
        if name in _NUMBERS:
            limit, parse = _NUMBERS[name]
            self.stated[limit] = parse(value) or None
        elif name == "--ulimit":
            found = read_ulimit(value)
            self.stated.update(found)
            self.notes += [] if found else [f"{self.where}: not judged: --ulimit {value}"]
        elif name == "--ipc":
            self.ipc = value
        elif name in ("--tmpfs", "--mount") and _SHM_TMPFS.match(value):
            size = re.search(r"[:,](?:tmpfs-)?size=(\d+[kmgKMG]?)(,|$)", value)
            self.stated["shm"] = parse_size(size[1]) if size else None
            self.ipc = (
                self.ipc if size else _SHM_PATH
            )  # Half of the host's memory, as tmpfs has it.
        elif name in ("-v", "--volume", "--mount"):
            self.mounts += read_mount(value)
            self.has_shm = self.has_shm and not _SHM_VOLUME.search(value)
        else:
            self._read_given(name, value)

    def _read_given(self, name: str, value: str) -> None:
        if name in ("-e", "--env"):
            key, sign, text = value.partition("=")
            self.variables += [(key, text)] if sign else []
        elif name == "--env-file":
            self.files.append(Wanted(value, self.where, VARIABLES))
        elif name == "--gpus" or (name == "--device" and value.startswith("nvidia.com/gpu=")):
            self.gpus.append(value)
        elif name in ("-w", "--workdir"):
            self.folder = value
        elif name == "--entrypoint":
            self.entry = value

    def finish(self) -> Stated:
        shm = find_shm(self.ipc, self.stated.pop("shm", None))
        shm = shm if self.has_shm else None
        if shm is not None:
            self.stated["shm"] = shm
        return Stated("new-container:docker", dict.fromkeys(self.stated, self.where), **self.stated)  # type: ignore[arg-type]


def mounts_shm(mounts: Iterable[tuple[str, str]]) -> bool:
    """Tell whether a path of the host is /dev/shm in the container."""
    return any(is_shm(inside) for inside, _outside in mounts)


def is_shm(path: str) -> bool:
    return path.rstrip("/") == _SHM_PATH


def find_shm(ipc: str, stated: float | None) -> int | None:
    """Return the bytes of /dev/shm; ``None`` where it is the host's, or another container's.

    :param ipc: The mode; of those the container has its own in these alone.
    """
    if ipc == "none":
        return 0
    if ipc not in ("", "private", "shareable"):
        return None
    return SHM if stated is None else int(stated)


def read_ulimit(text: str) -> dict[str, int]:
    """Return the soft limit of ``nofile=65536:65536``, or of memlock; nothing of the others.

    :raises ValueError: If it is not one.
    """
    name, _sign, pair = text.partition("=")
    soft = pair.partition(":")[0]
    if name not in ("nofile", "memlock"):
        return {}
    if not re.fullmatch(r"-1|[0-9]{1,18}|unlimited", soft):
        raise ValueError(f"{text!r} is not a limit, such as nofile=65536:65536")
    return {name: int(soft) if soft.isdecimal() else UNLIMITED}


def read_pids(text: str) -> int | None:
    """Return the number of tasks, ``None`` where there is no limit."""
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text) if int(text) > 0 else None


def read_cpus(text: str) -> float | None:
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text):
        raise ValueError(f"{text!r} is not a number of CPUs")
    return float(text) or None


def read_mount(text: str) -> list[tuple[str, str]]:
    """Return where a path of the host is seen inside: of ``-v``, or of ``--mount type=bind``."""
    if "=" in text and "," in text:
        pairs = dict(one.partition("=")[::2] for one in text.split(","))
        target = pairs.get("target") or pairs.get("dst") or pairs.get("destination", "")
        source = pairs.get("source") or pairs.get("src", "")
    else:
        source, _sign, target = text.partition(":")
        target = target.partition(":")[0]
    return [(target, source)] if target.startswith("/") and source.startswith(("/", ".")) else []


_NUMBERS: Mapping[str, tuple[str, Callable[[str], float | None]]] = {
    "--memory": ("memory", parse_size),
    "-m": ("memory", parse_size),
    "--shm-size": ("shm", parse_size),
    "--pids-limit": ("pids", read_pids),
    "--cpus": ("cpus", read_cpus),
}
