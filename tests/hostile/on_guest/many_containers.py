# SPDX-License-Identifier: GPL-3.0-or-later
"""Answer as a dockerd with 1,000 containers, each with a real process in a control group of its own.

Starting as many takes an emulated host an hour; to the check they look the same. Run as root by
docker.service in dockerd's place: the first container is real and lends its description.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import Any

COUNT = 1000
_SLICE = Path("/sys/fs/cgroup/system.slice")


def start(count: int) -> dict[str, int]:
    """Start the processes; return their numbers by the id of the container."""
    pids = {}
    for number in range(count):
        name = f"{number:064x}"
        cgroup = _SLICE / f"docker-{name}.scope"
        cgroup.mkdir(exist_ok=True)
        child = subprocess.Popen(["/bin/sleep", "9999"])
        (cgroup / "cgroup.procs").write_text(str(child.pid))
        pids[name] = child.pid
    return pids


def make_answers(kept: dict[str, Any], pids: dict[str, int]) -> dict[str, object]:
    """Return what is answered to each path."""
    row, details = kept["row"], kept["details"]
    rows = [{**row, "Id": name, "Names": [f"/many-{name[-4:]}"]} for name in pids]
    answers = {"/version": kept["version"], "/info": kept["info"], "/containers/json": rows}
    for name, pid in pids.items():
        state = {**details["State"], "Pid": pid}
        one = {**details, "Id": name, "Name": f"/many-{name[-4:]}", "State": state}
        answers[f"/containers/{name}/json"] = one
    return answers


def main() -> None:
    """Serve on the socket that systemd holds, or beside it."""
    answers = make_answers(json.loads(Path(sys.argv[1]).read_text()), start(COUNT))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(self.path.partition("?")[0])
            self.send_response(404 if found is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(found or {"message": "no such page"}).encode())

        def address_string(self) -> str:
            return "local"

        def log_message(self, *_words: object) -> None:
            pass

    server = ThreadingUnixStreamServer("/run/docker.sock", Handler, bind_and_activate=False)
    server.socket = socket.socket(fileno=3)
    Path("/run/docker.pid").write_text(str(Path("/proc/self").resolve().name))
    server.serve_forever()


if __name__ == "__main__":
    main()
