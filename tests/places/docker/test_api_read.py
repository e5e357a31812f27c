# SPDX-License-Identifier: GPL-3.0-or-later
"""A daemon is asked over its socket, its unit is read as files, and a canary leaves nothing."""

from __future__ import annotations

import io
import json
import os
import re
import socket
import subprocess
import tarfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from mlhost_limits.containers.findings import Canary, build_program
from mlhost_limits.containers.limits_read import read_container_limits
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.docker import measure as canary
from mlhost_limits.docker.api_read import (
    Container,
    Daemon,
    EngineError,
    UntoldError,
    ask,
    exchange,
    find_daemon,
    find_listener,
    read_canary_key,
    read_containers,
)
from mlhost_limits.docker.dockerd_flags import Flag
from mlhost_limits.docker.measure import LABEL, build_tar, run_canary
from mlhost_limits.docker.read import DockerRead
from mlhost_limits.docker.unit_read import read_dockerd_flags
from mlhost_limits.host.look import read_limits, read_process
from mlhost_limits.systemd.unit_read import read_unit

if TYPE_CHECKING:
    from collections.abc import Iterator

Reply = tuple[int, object]


class Engine:
    """A daemon with just enough behind its socket; *broken* maps a path's end to an answer."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.broken: dict[str, Reply | bytes] = {}
        self.containers: dict[str, dict[str, Any]] = {}
        self.images: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.created: dict[str, Any] = {}
        self.imported = b""
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(address)
        self.listener.listen(8)
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def stop(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()

    def serve(self) -> None:
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            with connection, suppress(OSError), connection.makefile("rb") as stream:
                connection.sendall(self.answer(stream))

    def answer(self, stream: io.BufferedReader) -> bytes:
        first = stream.readline()
        if not first:
            return b""
        method, target, version = first.decode().split()
        assert version == "HTTP/1.0"
        lines = iter(stream.readline, b"\r\n")
        head = dict(line.decode().strip().split(": ") for line in lines)
        body = stream.read(int(head["Content-Length"]))
        url = urlsplit(target)
        self.asked.append(f"{method} {url.path}")
        for end, reply in self.broken.items():
            if f"{method} {url.path}".endswith(end):
                return reply if isinstance(reply, bytes) else self.format(*reply)
        return self.format(*self.act(method, url.path.strip("/").split("/"), url.query, body))

    @staticmethod
    def format(status: int, content: object) -> bytes:
        return b"HTTP/1.0 %d X\r\nServer: x\r\n\r\n%s" % (status, json.dumps(content).encode())

    def act(self, method: str, path: list[str], query: str, body: bytes) -> Reply:
        if path == ["version"]:
            return 200, {"Version": "20.10.24"}
        if path[1] == "create":
            return self.create(path[0], query, body)
        kind = {"containers": self.containers, "images": self.images}[path[0]]
        if method == "GET" and path[1] == "json":
            return 200, list(kind.values())
        if path[1] not in kind:
            return 404, {"message": f"No such {path[0]}: {path[1]}"}
        if path[-1] == "json":
            return 200, {"Name": "/name", "State": {"Pid": os.getpid(), "ExitCode": 0}}
        if path[-1] == "start":
            kind[path[1]]["State"] = "running"
        else:
            del kind[path[1]]
        return 200, None

    def create(self, kind: str, query: str, body: bytes) -> Reply:
        if kind == "images":
            self.imported = body
            label = parse_qs(query)["changes"][0].partition("=")[2]
            self.images["sha256:1"] = {"Id": "sha256:1", "Labels": {LABEL: label}}
            return 200, {"status": "sha256:1"}
        self.created = json.loads(body)
        self.add("c1", self.created["Labels"], "created")
        return 201, {"Id": "c1"}

    def add(self, name: str, labels: dict[str, str], state: str) -> None:
        self.containers[name] = {
            "Id": name, "Names": [f"/{name}"], "Image": "img", "Labels": labels, "State": state,
        }  # fmt: skip


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = Engine(str(tmp_path / "docker.sock"))
    yield engine
    engine.stop()


def test_an_answer_is_read_whole(engine: Engine) -> None:
    """A JSON answer comes back as data, an empty one as None."""
    assert ask("GET", "/version", address=engine.address)["Version"] == "20.10.24"
    engine.broken["/empty"] = b"HTTP/1.0 204 No Content\r\n\r\n"
    assert ask("POST", "/empty", {"a": 1}, address=engine.address) is None
    engine.broken["/big"] = (200, "x" * 300_000)
    assert len(ask("GET", "/big", address=engine.address)) == 300_000


def make_read(engine: Engine) -> DockerRead:
    found = DockerRead()
    found.address, found.daemon = engine.address, Daemon(read_process(os.getpid()), [])
    return found


@pytest.mark.parametrize(
    ("answer", "version"),
    [({"Version": "26.1.5+dfsg1"}, "26.1.5+dfsg1"), ({}, ""), ([], ""), (None, "")],
)
def test_a_version_may_be_unknown(engine: Engine, answer: object, version: str) -> None:
    """Who does not say which version it is has none."""
    engine.broken["/version"] = (200, answer)
    assert make_read(engine).version == version


@pytest.mark.parametrize(
    ("answer", "lives"),
    [({"LiveRestoreEnabled": True}, True), ({"LiveRestoreEnabled": False}, False), ({}, False),
     ([], False)],
)  # fmt: skip
def test_whether_containers_live_on(engine: Engine, answer: object, lives: bool) -> None:
    """The daemon says it; who does not say it stops them."""
    engine.broken["/info"] = (200, answer)
    assert make_read(engine).live_restore is lives


@pytest.mark.parametrize("answer", [None, [{}], ["x"], 7, [{"Id": "c1"}]])
def test_who_is_no_engine_is_said(engine: Engine, answer: object) -> None:
    """An answer of another form is an error with a sentence, for the containers and the canary."""
    engine.add("c1", {}, "running")
    engine.broken["GET /containers/json"] = (200, answer)
    engine.broken["GET /containers/c1/json"] = (200, {"State": None})
    engine.broken["POST /images/create"] = (200, [answer])
    with pytest.raises(ValueError, match=r" does not answer as Docker does: "):
        read_containers(engine.address)
    assert run_canary(engine.address).reason


REFUSALS = {
    "a message": ((500, {"message": "no \n"}), EngineError, "no"),
    "no message": ((500, {}), EngineError, "{}"),
    "text": (b"HTTP/1.0 400 X\r\n\r\nBad Request\n", EngineError, "Bad Request"),
    "nothing": (b"HTTP/1.0 503 X\r\n\r\n", EngineError, "HTTP status 503"),
    "no HTTP": (b"hello\n", ValueError, "ADDRESS does not speak HTTP: it answered b'hello\\n'"),
    "hung up": (b"", ConnectionError, "ADDRESS: the daemon hung up on GET /x"),
}


@pytest.mark.parametrize(("reply", "error", "message"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refusal_is_an_error(
    engine: Engine, reply: Reply | bytes, error: type[Exception], message: str
) -> None:
    """What the daemon refuses is an error with its own words."""
    engine.broken["/x"] = reply
    message = message.replace("ADDRESS", engine.address)
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        exchange("GET", "/x?secret=1", address=engine.address)


def test_a_missing_daemon_is_said(tmp_path: Path) -> None:
    """A socket that is missing, dead, closed to us, or silent gives a sentence each."""
    address = str(tmp_path / "s")
    with pytest.raises(
        FileNotFoundError, match=f"^{address} does not exist: Docker is not running here$"
    ):
        exchange("GET", "/", address=address)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        with pytest.raises(ConnectionRefusedError, match=r"nobody listens, Docker is not running$"):
            exchange("GET", "/", address=address)
        assert find_listener(address) is None
        listener.listen(1)
        with pytest.raises(TimeoutError, match=f"^{address}: no answer to GET /x in 0.1 s$"):
            exchange("GET", "/x?a=b", address=address, timeout=0.1)


@pytest.mark.parametrize("error", [ConnectionResetError, BrokenPipeError])
def test_a_lost_connection_is_said(monkeypatch: pytest.MonkeyPatch, error: type[OSError]) -> None:
    """A connection that breaks reads like one that ends: the daemon hung up."""

    def talk(*_: object) -> bytes:
        raise error(104, "x")

    monkeypatch.setattr("mlhost_limits.docker.api_read._talk", talk)
    with pytest.raises(ConnectionError, match=r"^/s: the daemon hung up on GET /$"):
        exchange("GET", "/", address="/s")


def test_a_forbidden_socket_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may not open the socket is told so."""

    def talk(*_: object) -> bytes:
        raise PermissionError(13, "x")

    monkeypatch.setattr("mlhost_limits.docker.api_read._talk", talk)
    with pytest.raises(PermissionError, match=r"^/s: permission denied, Docker answers root only$"):
        exchange("GET", "/", address="/s")


def test_peer_is_the_listening_process(engine: Engine) -> None:
    """The process behind a socket is the one that listens on it."""
    assert find_listener(engine.address) == os.getpid()


def test_running_containers(engine: Engine) -> None:
    """Containers have name, pid and image; one that is gone or has no process is left out."""
    for name in ("gone", "done", "here"):
        engine.add(name, {}, "running")
    engine.broken["/gone/json"] = (404, {"message": "No such container: gone"})
    engine.broken["/done/json"] = (200, {"Name": "/done", "State": {"Pid": 0}})
    details = {"Name": "/name", "State": {"Pid": os.getpid(), "ExitCode": 0}}
    expected = [Container("here", "name", os.getpid(), "img", details)]
    assert read_containers(engine.address) == expected
    engine.broken["/gone/json"] = (500, {"message": "broken"})
    with pytest.raises(EngineError, match=r"^broken$"):
        read_containers(engine.address)


def test_containers_that_were_told_of_in_time_are_kept(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two", "late"):
        engine.add(name, {}, "running")
    details = {"Name": "/name", "State": {"Pid": os.getpid()}}
    engine.broken["one/json"] = engine.broken["two/json"] = (200, details)
    left = iter([5.0, 5.0, 5.0])

    def count_down(_deadline: float, _address: str) -> float:
        try:
            return next(left)
        except StopIteration:
            raise TimeoutError("late") from None

    monkeypatch.setattr("mlhost_limits.docker.api_read._left", count_down)
    with pytest.raises(UntoldError, match=r"told of 2 containers in 30 s, and not of the others"):
        read_containers(engine.address)
    left = iter([5.0, 5.0, 5.0])
    with pytest.raises(UntoldError) as caught:
        read_containers(engine.address)
    assert [one.id for one in caught.value.told] == ["one", "two"]


def test_container_limits(tmp_path: Path) -> None:
    """Limits are those of the process; /dev/shm counts only where it is a mount of its own."""
    own = read_container_limits(os.getpid())
    assert own.limits == read_limits("self")
    size = os.statvfs("/dev/shm")
    assert own.shm_size == size.f_blocks * size.f_frsize
    (tmp_path / "7" / "root" / "dev").mkdir(parents=True)
    (tmp_path / "7" / "limits").write_text(Path("/proc/self/limits").read_text())
    assert read_container_limits(7, str(tmp_path)).shm_size is None
    (tmp_path / "7" / "root" / "dev" / "shm").mkdir()
    assert read_container_limits(7, str(tmp_path)).shm_size is None


def test_a_tmpfs_without_a_size_is_unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    """statfs(2) says 0 blocks of it; it is not full but has no end."""
    size = os.statvfs("/dev/shm")
    unlimited = os.statvfs_result((*size[:2], 0, *size[3:]))
    monkeypatch.setattr(os, "statvfs", lambda _path: unlimited)
    assert read_container_limits(os.getpid()).shm_size == UNLIMITED


UNIT = (
    "[Service]\nEnvironment=A=--label=a B=--icc\nEnvironmentFile=-/etc/default/dock*\n"
    "EnvironmentFile=/etc/none/x\nExecStart=/usr/sbin/dockerd -H fd:// $OPTS $A\n"
)


def write(root: Path, path: str, text: str) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_flags_are_read_under_a_root(tmp_path: Path) -> None:
    """Unit, drop-ins and environment files give the flags, with the places inside the tree."""
    write(tmp_path, "/usr/lib/systemd/system/docker.service", UNIT)
    write(
        tmp_path, "/etc/systemd/system/docker.service.d/a.conf", "[Service]\nEnvironment=A=--ip=1\n"
    )
    write(tmp_path, "/etc/systemd/system/docker.service.d/z.bak", "[Service]\nEnvironment=A=\n")
    write(tmp_path, "/run/systemd/system/service.d/b.conf", "[Unit]\nEnvironment=A=--mtu=1\n")
    write(tmp_path, "/etc/default/docker", "# x\nOPTS='--default-ulimit nofile=1:2'\n")
    assert read_dockerd_flags(str(tmp_path)) == [
        Flag("host", "fd://", "/usr/lib/systemd/system/docker.service", 5),
        Flag("default-ulimit", "nofile=1:2", "/etc/default/docker", 2),
        Flag("ip", "1", "/etc/systemd/system/docker.service.d/a.conf", 2),
    ]


def test_masks_and_links_under_a_root(tmp_path: Path) -> None:
    """A unit linked to /dev/null states nothing; one linked elsewhere in the tree is read there."""
    assert read_unit("docker.service", str(tmp_path)) == []
    write(tmp_path, "/opt/docker.service", UNIT)
    write(tmp_path, "/usr/lib/systemd/system/docker.service", UNIT)
    link = tmp_path / "etc/systemd/system/docker.service"
    link.parent.mkdir(parents=True)
    link.symlink_to("/opt/docker.service")
    settings = read_unit("docker.service", str(tmp_path))
    assert settings[0].place == "/etc/systemd/system/docker.service:2"
    link.unlink()
    link.symlink_to("/dev/null")
    assert read_unit("docker.service", str(tmp_path)) == []


@pytest.fixture
def fake_dockerd(tmp_path: Path) -> Iterator[int]:
    """Start a process that is called dockerd."""
    program = tmp_path / "dockerd"
    program.write_bytes(build_program(os.uname().machine))
    program.chmod(0o700)
    with subprocess.Popen([program, "-H", "fd://", "--debug"]) as process:
        yield process.pid
        process.kill()


@pytest.mark.root
def test_daemon_is_found_by_cgroup_or_pid_file(tmp_path: Path, fake_dockerd: int) -> None:
    """The daemon is the process of that name in its unit, or the one of the pid file."""
    place = f"/proc/{fake_dockerd}/cmdline"
    flags = [Flag("host", "fd://", place, 0), Flag("debug", "", place, 0)]
    expected = Daemon(read_process(fake_dockerd), flags)
    group = tmp_path / "cg/system.slice/docker.service"
    group.mkdir(parents=True)
    (group / "cgroup.procs").write_text(f"{os.getpid()}\n{fake_dockerd}\n{2**22 + 1}\n")
    nowhere, pid_file = str(tmp_path / "none"), tmp_path / "pid"
    assert find_daemon(cgroups=str(tmp_path / "cg"), pid_file=nowhere) == expected
    assert find_daemon(cgroups=nowhere, pid_file=nowhere) is None
    for text, found in ((f"{fake_dockerd}", expected), (f"{2**22 + 1}", None), ("x", None)):
        pid_file.write_text(text)
        assert find_daemon(cgroups=nowhere, pid_file=str(pid_file)) == found


def test_canary_measures_and_leaves_nothing(engine: Engine) -> None:
    """A canary is locked in, measured from outside, and gone afterwards with its image."""
    found = run_canary(engine.address)
    assert found == Canary(read_container_limits(os.getpid()))
    assert engine.containers == engine.images == {}
    listing = ["GET /containers/json", "GET /images/json"]
    start = ["POST /images/create", "POST /containers/create", "POST /containers/c1/start"]
    end = ["POST /containers/c1/kill", "DELETE /images/sha256:1"]
    look = "GET /containers/c1/json"
    assert engine.asked == [*listing, *start, look, look, *listing, *end, *listing]
    assert engine.imported == build_tar(build_program(os.uname().machine))
    host = engine.created["HostConfig"]
    assert engine.created["Image"] == "sha256:1"
    assert (host["NetworkMode"], host["ReadonlyRootfs"], host["CapDrop"]) == ("none", True, ["ALL"])
    assert (host["SecurityOpt"], host["AutoRemove"]) == (["no-new-privileges"], True)
    assert "Ulimits" not in host
    assert "ShmSize" not in host


def test_canary_removes_what_a_dead_run_left(engine: Engine) -> None:
    """Leftovers of dead runs go, those of a living run and of strangers stay."""
    alive = canary._owner(os.getpid(), "/proc")
    dead = ["1-0-boot", alive.replace("-", "-9", 1), "garbage", f"{2**22 + 1}-1-x"]
    for number, owner in enumerate(dead):
        engine.add(f"old{number}", {LABEL: owner}, "created" if number else "running")
    engine.images["sha256:old"] = {"Id": "sha256:old", "Labels": {LABEL: dead[0]}}
    client = canary._Client(engine.address, canary.time.monotonic() + 5)
    engine.add("busy", {LABEL: alive}, "running")
    canary._remove_abandoned(client, "/proc")
    assert list(engine.containers) == ["busy"]
    assert engine.images == {}


def test_what_is_gone_already_is_removed(engine: Engine) -> None:
    """A container that vanished by itself is not a failure; any other refusal is."""
    client = canary._Client(engine.address, canary.time.monotonic() + 5)
    entry = {"Id": "gone", "Names": [], "State": "created"}
    canary._remove(client, entry)
    engine.broken["/gone"] = (500, {"message": "broken"})
    with pytest.raises(EngineError, match=r"^broken$"):
        canary._remove(client, entry)


RUNC = "OCI runtime create failed: error setting rlimit type 7: operation not permitted"
FAILURES = {
    "start refused": ("/c1/start", (500, {"message": RUNC}), Canary(None, refusal=RUNC)),
    "create refused": (
        "/containers/create",
        (400, {"message": "SHM size can not be less than 0"}),
        Canary(None, refusal="SHM size can not be less than 0"),
    ),
    "ended at once": (
        "GET /containers/c1/json",
        (200, {"State": {"Pid": 0, "ExitCode": 127}}),
        Canary(None, refusal="the container ended at once"),
    ),
    "gone while it is looked at": (
        "GET /containers/c1/json",
        (200, {"State": {"Pid": 2**22 + 1}}),  # Above every pid_max.
        Canary(None, refusal="the container ended at once"),
    ),
    "removed when it is looked at": (
        "GET /containers/c1/json",
        (404, {"message": "No such container: c1"}),
        Canary(None, refusal="the container ended at once"),
    ),
    "not to be looked at": (
        "GET /containers/c1/json",
        (500, {"message": "broken"}),
        Canary(None, reason="broken"),
    ),
    "another API": (
        "/containers/create",
        (201, {"id": "c1"}),
        Canary(None, reason="the engine's answer has no 'Id'"),
    ),
    "import refused": (
        "/images/create",
        (200, {"error": "no space left"}),
        Canary(None, reason="the canary's image is refused: no space left"),
    ),
    "import without a name": (
        "/images/create",
        (200, {"status": "Importing"}),
        Canary(
            None,
            reason="the canary's image has no name: the engine answered "
            """b'{"status": "Importing"}'""",
        ),
    ),
    "listing refused": (
        "GET /images/json",
        (500, {"message": "broken"}),
        Canary(None, reason="broken"),
    ),
    "kill refused": (
        "/c1/kill",
        (500, {"message": "cannot kill"}),
        Canary(read_container_limits(os.getpid()), leftovers="cannot kill"),
    ),
}


@pytest.mark.parametrize(("path", "reply", "expected"), FAILURES.values(), ids=FAILURES.keys())
def test_canary_failures(engine: Engine, path: str, reply: Reply, expected: Canary) -> None:
    """A refused start is a finding in the engine's words, anything else unknown with its reason."""
    engine.broken[path] = reply
    assert run_canary(engine.address) == expected
    if not expected.leftovers:
        assert engine.containers == engine.images == {}


def test_an_engine_that_stumbles_over_a_default_starts_no_container(engine: Engine) -> None:
    """It hangs up on the start and goes on: a refusal; if it does not go on, nothing is known."""
    engine.broken["/c1/start"] = b""
    hung_up = f"{engine.address}: the daemon hung up on POST /containers/c1/start"
    refusal = f"{hung_up} and goes on: a default it cannot read"
    assert run_canary(engine.address) == Canary(None, refusal=refusal)
    engine.broken["GET /version"] = b""
    gone = f"{engine.address}: the daemon hung up on GET /version"
    assert run_canary(engine.address) == Canary(None, reason=gone)


def test_canary_says_what_it_cannot_remove(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stays in the way until patience ends is named."""
    monkeypatch.setattr(canary, "_CLEANING_LIMIT", 1.0)
    engine.broken["DELETE /images/sha256:1"] = (409, {"message": "in use"})
    assert (
        run_canary(engine.address).leftovers == "the canary's sha256:1 could not be removed in time"
    )


def test_canary_without_a_daemon_or_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No daemon, or a machine without a program: unknown, and nothing was started."""
    address = str(tmp_path / "none")
    reason = f"{address} does not exist: Docker is not running here"
    assert run_canary(address) == Canary(None, reason=reason)
    uname = os.uname_result(("Linux", "h", "6", "v", "riscv64"))
    monkeypatch.setattr(os, "uname", lambda: uname)
    assert run_canary(address) == Canary(None, reason="there is no canary program for riscv64")


def test_the_program_runs_until_it_is_ended(fake_dockerd: int) -> None:
    """The hand-made program runs on this machine, and sleeps."""
    assert Path(f"/proc/{fake_dockerd}/stat").read_text().rpartition(")")[2].split()[0] in "SR"


@pytest.mark.parametrize(("machine", "size"), [("x86_64", 157), ("aarch64", 168)])
def test_the_archive_is_an_archive(machine: str, size: int) -> None:
    """The hand-made archive is what tarfile reads: one program that everyone may run."""
    program = build_program(machine)
    assert len(program) == size
    with tarfile.open(fileobj=io.BytesIO(build_tar(program))) as archive:
        (member,) = archive.getmembers()
        assert (member.name, member.mode, member.uid, member.size) == ("pause", 0o555, 0, size)
        content = archive.extractfile(member)
        assert content is not None
        assert content.read() == program


def test_the_key_changes_with_what_decides(engine: Engine) -> None:
    """The same facts give the same key; another config, flag or containerd gives another."""
    process = read_process(os.getpid())
    flags = [Flag("containerd", engine.address, "p", 0), Flag("exec-root", "/none", "p", 0)]
    daemon = Daemon(process, flags)
    key = read_canary_key(daemon, b"{}")
    assert re.fullmatch("[0-9a-f]{64}", key)
    assert read_canary_key(daemon, b"{}") == key
    others = {
        read_canary_key(daemon, b"{ }"),
        read_canary_key(Daemon(process, [flags[0]._replace(value="/none"), flags[1]]), b"{}"),
        read_canary_key(Daemon(process, flags[:1]), b"{}"),
        read_canary_key(Daemon(process, flags[1:]), b"{}"),
        read_canary_key(Daemon(process._replace(start=1), flags), b"{}"),
    }
    assert len(others | {key}) == 6
