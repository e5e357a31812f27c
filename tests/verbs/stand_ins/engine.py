# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand for the daemon that listens on a socket: Docker's and CRI-O's, which answer, or containerd's.

A container is a process that sleeps, with the limits that daemon.json states.
"""

from __future__ import annotations

import ctypes
import glob
import json
import os
import re
import resource
import signal
import socket
import sys

HERE = "/run/stand-ins"
CANARY: dict[str, dict[str, object]] = {}
IMAGES: dict[str, dict[str, object]] = {}
CRIO: list[bytes] = []
FILES = {
    0: ("/etc/docker/daemon.json", f"{HERE}/containers.json"),
    1000: ("/home/alice/.config/docker/daemon.json", f"{HERE}/containers-of-alice.json"),
}
"""The settings of each user's daemon, and its containers."""


def main(path: str, uid: int) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if uid:
        become(uid, os.path.dirname(path))
    CRIO.append(read_crio())
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{path}.new")
    listener.listen(8)
    os.rename(f"{path}.new", path)
    while True:
        connection = listener.accept()[0]
        with connection:
            request = read_request(connection)
            if request:
                connection.sendall(reply(*request))


def become(uid: int, folder: str) -> None:
    """Be a user, and let /proc be that user's: prctl(2), PR_SET_DUMPABLE."""
    libc = ctypes.CDLL(None)
    os.chown(folder, uid, uid)
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    libc.prctl(4, 1, 0, 0, 0)


def read_crio() -> bytes:
    """Return what crio goes on with, whatever is written later: the list and the bound that count."""
    paths = ["/etc/crio/crio.conf", *sorted(glob.glob("/etc/crio/crio.conf.d/*"))]
    text = "".join(open(path).read() for path in paths if os.path.exists(path))  # noqa: SIM115
    lists = re.findall(r"^default_ulimits = \[[^]]*\]$", text, re.MULTILINE)
    bounds = re.findall(r"^pids_limit = .*$", text, re.MULTILINE)
    return "\n".join(["[crio.runtime]", *lists[-1:], *bounds[-1:], ""]).encode()


def read_request(connection: socket.socket) -> tuple[str, str, bytes] | None:
    content = b""
    while b"\r\n\r\n" not in content:
        part = connection.recv(65536)
        if not part:
            return None
        content += part
    head, body = content.split(b"\r\n\r\n", 1)
    found = re.search(rb"Content-Length: ([0-9]+)", head)
    while len(body) < int(found[1] if found else 0):
        body += connection.recv(65536)
    method, path = head.decode().split()[:2]
    return method, path, body


def reply(method: str, path: str, body: bytes) -> bytes:
    if path == "/config":
        return b"HTTP/1.0 200 x\r\n\r\n" + CRIO[0]
    status, told = answer(method, path.partition("?")[0], path, body)
    return f"HTTP/1.0 {status} x\r\n\r\n".encode() + json.dumps(told).encode()


def answer(method: str, path: str, whole: str, body: bytes) -> tuple[int, object]:
    """Return the status and what is told."""
    if path == "/version":
        return 200, {"Version": "24.0.7"}
    if path == "/info":
        return 200, {"LiveRestoreEnabled": True}
    if path == "/images/json":
        return 200, list(IMAGES.values())
    if path == "/images/create":
        label = re.search("changes=LABEL%20([^=]*)(?:=|%3D)(.*)", whole)
        assert label
        IMAGES["i"] = {"Id": "sha256:feed", "Labels": {label[1]: label[2]}}
        return 200, {"status": "sha256:feed"}
    if method == "DELETE" and path.startswith("/images/"):
        IMAGES.clear()
        return 200, {}
    return answer_containers(method, path, whole, body)


def answer_containers(method: str, path: str, whole: str, body: bytes) -> tuple[int, object]:
    if path == "/containers/json":
        return 200, [*CANARY.values()] if "all=1" in whole else read_running("list")
    if path == "/containers/create":
        if os.path.exists(f"{HERE}/docker-refuses"):
            return 500, {"message": "no space left on device"}
        labels = json.loads(body)["Labels"]
        CANARY["c"] = {"Id": "cafe", "Names": ["/c"], "Labels": labels, "State": "created"}
        return 201, {"Id": "cafe"}
    if path == "/containers/cafe/start":
        return start_canary()
    if path == "/containers/cafe/json":
        return 200, {"State": {"Pid": CANARY["c"]["pid"]}, "Name": "/c"}
    if path in ("/containers/cafe/kill", "/containers/cafe"):
        end_canary()
        return 200, {}
    name = path.split("/")[2]
    found = [one for one in read_running("details") if one["Id"] == name]
    return (200, found[0]) if found else (404, {"message": "no such container"})


def start_canary() -> tuple[int, object]:
    """Start it with what is stated, unless that is more than this daemon may give."""
    stated = read_stated()
    for number, (_soft, hard) in stated.items():
        if hard > resource.getrlimit(number)[1]:
            return 400, {"message": f"error setting rlimit type {number}: operation not permitted"}
    CANARY["c"]["State"], CANARY["c"]["pid"] = "running", start(stated)
    return 204, None


def end_canary() -> None:
    pid = CANARY.pop("c").get("pid")
    if pid:
        os.kill(int(str(pid)), signal.SIGKILL)


def read_running(key: str) -> list[dict[str, object]]:
    try:
        with open(FILES[os.getuid()][1], encoding="utf-8") as file:
            return list(json.load(file)[key])
    except FileNotFoundError:
        return []


def read_stated() -> dict[int, tuple[int, int]]:
    """Return the limits that daemon.json states, by the numbers of setrlimit(2)."""
    try:
        with open(FILES[os.getuid()][0], encoding="utf-8") as file:
            stated = json.load(file).get("default-ulimits", {})
    except (FileNotFoundError, ValueError):
        stated = {}
    return {
        getattr(resource, f"RLIMIT_{name.upper()}"): (int(limit["Soft"]), int(limit["Hard"]))
        for name, limit in stated.items()
    }


def start(stated: dict[int, tuple[int, int]]) -> int:
    """Start a process with these limits."""
    pid = os.fork()
    if pid == 0:
        for number, pair in stated.items():
            resource.setrlimit(number, pair)
        os.execv("/usr/bin/sleep", ["sleep", "30"])
    return pid


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
