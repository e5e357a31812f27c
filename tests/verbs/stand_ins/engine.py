# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand for the daemon that listens on a socket: Docker's, which answers, or containerd's.

A container is a process that sleeps, with the limits that daemon.json states.
"""

from __future__ import annotations

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


def main(path: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.makedirs(os.path.dirname(path), exist_ok=True)
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
        CANARY["c"]["State"], CANARY["c"]["pid"] = "running", start()
        return 204, None
    if path == "/containers/cafe/json":
        return 200, {"State": {"Pid": CANARY["c"]["pid"]}, "Name": "/c"}
    if path in ("/containers/cafe/kill", "/containers/cafe"):
        os.kill(int(str(CANARY.pop("c")["pid"])), signal.SIGKILL)
        return 200, {}
    name = path.split("/")[2]
    found = [one for one in read_running("details") if one["Id"] == name]
    return (200, found[0]) if found else (404, {"message": "no such container"})


def read_running(key: str) -> list[dict[str, object]]:
    try:
        with open(f"{HERE}/containers.json", encoding="utf-8") as file:
            return list(json.load(file)[key])
    except FileNotFoundError:
        return []


def start() -> int:
    """Start a process with what daemon.json states."""
    try:
        with open("/etc/docker/daemon.json", encoding="utf-8") as file:
            stated = json.load(file).get("default-ulimits", {})
    except (FileNotFoundError, ValueError):
        stated = {}
    pid = os.fork()
    if pid == 0:
        for name, limit in stated.items():
            number = getattr(resource, f"RLIMIT_{name.upper()}")
            resource.setrlimit(number, (int(limit["Soft"]), int(limit["Hard"])))
        os.execv("/usr/bin/sleep", ["sleep", "30"])
    return pid


if __name__ == "__main__":
    main(sys.argv[1])
