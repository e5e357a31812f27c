# SPDX-License-Identifier: GPL-3.0-or-later
"""Run pods as a kubelet does: through the CRI of a guest's containerd, which needs no kubelet.

The few messages of runtime.v1 (api.proto of cri-api) are put together field by field: a number is
sent as a varint, everything else by its length.
"""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from tests.host.connection import Host

IMAGE = "localhost/pause:1"
PREPARE = f"""
set -e
mkdir -p /srv/pause/bin /srv/pause/tmp && cp /bin/busybox /srv/pause/bin/
tar -C /srv/pause -c . | docker import -c 'CMD ["/bin/busybox", "sleep", "99999"]' - {IMAGE}
docker save {IMAGE} | ctr -n k8s.io images import - > /dev/null
cat > /etc/containerd/config.toml << 'END'
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{IMAGE}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
END
systemctl restart containerd
"""
_OF_THE_NODE = 2  # NamespaceMode NODE: a pod of the host's network, which needs no CNI.
_SOCKET = "/run/containerd/containerd.sock"


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number: int, value: int | str | bytes) -> bytes:
    """Return one field of a message."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


class Cri:
    """The runtime service of a containerd."""

    def __init__(self, path: Path) -> None:
        self._channel = grpc.insecure_channel(f"unix:{path}")

    def call(self, method: str, message: bytes) -> bytes:
        """Return the answer to a message; both are bytes."""
        ask = self._channel.unary_unary(f"/runtime.v1.RuntimeService/{method}")
        answer: bytes = ask(message, timeout=120, wait_for_ready=True)
        return answer

    def run_pod(self, name: str, uid: str) -> str:
        """Run a pod of one container that sleeps, below ``kubepods.slice``; return the container's id."""
        self._wait()
        namespaces = field(1, _OF_THE_NODE)
        folder = f"kubepods-burstable-pod{uid.replace('-', '_')}.slice"
        linux = field(1, folder) + field(2, field(1, namespaces))
        metadata = field(1, name) + field(2, uid) + field(3, "default")
        pod = field(1, metadata) + field(3, f"/var/log/pods/{name}") + field(8, linux)
        sandbox = _read_id(self.call("RunPodSandbox", field(1, pod)))
        container = (
            field(1, field(1, "main"))
            + field(2, field(1, IMAGE))
            + b"".join(field(3, word) for word in ("/bin/busybox", "sleep", "99999"))
            + field(11, "main.log")
            + field(15, field(2, field(3, namespaces)))
        )
        wanted = field(1, sandbox) + field(2, container) + field(3, pod)
        made = _read_id(self.call("CreateContainer", wanted))
        self.call("StartContainer", field(1, made))
        return made

    def _wait(self, seconds: float = 60) -> None:
        """Wait until the service answers; after a start of containerd it takes a while."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.call("Status", b"")
                return
            except grpc.RpcError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)


def _read_id(message: bytes) -> str:
    """Return the first field, which is the id of what was made."""
    return message[2 : 2 + message[1]].decode()


@contextmanager
def reach(host: Host) -> Iterator[Cri]:
    """Bring the socket of the guest's containerd here, for the length of a ``with`` block."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cri.sock"
        words = host.ssh_command()
        forward = [*words[:-1], "-N", "-L", f"{path}:{_SOCKET}", words[-1]]
        with subprocess.Popen(forward, stdin=subprocess.DEVNULL) as process:
            try:
                _wait_for(path)
                yield Cri(path)
            finally:
                process.terminate()


def _wait_for(path: Path, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(path)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"{path} was not forwarded in {seconds:.0f} s")
