"""Start QEMU for a guest and talk to its monitor."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from . import emulator, process
from .cache import HostError
from .image import Image
from .tool import run_tool

PORT_TRIES = 10
_SOCKET_PATH_MAX = 107  # sun_path of unix(7), less its final null byte

# A larger translation buffer takes a fifth of the time away, and memory as it fills.
_MACHINE = (
    "-nodefaults -no-user-config -display none -machine pc -m 1024 -rtc base=utc "
    "-accel tcg,thread=multi,tb-size=1024"
)
# Emulated processors wait for each other: two guests with two each take more than twice as long
# beside each other on two cores, with one each hardly longer. Only attackers need two, to race,
# and jobs that ask for two.
_TWO_PROCESSORS = ("+hostile", "+slurm")
_KERNEL_LINE = (
    "root=/dev/vda rw console=ttyS0 quiet net.ifnames=0 fsck.mode=skip"
    # What guards against other guests' processes costs an emulated one a tenth of its time.
    " mitigations=off init_on_alloc=0"
)
_WITH_SELINUX = "security=selinux selinux=1"


def make_kernel_line(image: Image) -> str:
    """Return what the kernel of an image is told; where SELinux is there, it is in force."""
    return f"{_KERNEL_LINE} {_WITH_SELINUX if '+selinux' in image.folder.name else ''}".strip()


def list_machine(image: Image) -> list[str]:
    """Return the words for an image's hardware; a snapshot resumes only on the one it was taken on."""
    count = 2 if any(one in image.folder.name for one in _TWO_PROCESSORS) else 1
    return [*_MACHINE.split(), "-smp", str(count)]


def command_line(image: Image, folder: Path, port: int, incoming: Path | None) -> list[str]:
    """Return the QEMU command of a guest that lives in a folder.

    :param port: Where the guest's sshd is to be reached on this machine.
    :param incoming: A saved state to resume from; without one the guest boots.
    """
    words = [*emulator.find(), *list_machine(image)]
    words += ["-kernel", str(image.kernel), "-initrd", str(image.initrd)]
    words += ["-append", make_kernel_line(image)]
    # A full disk on this side must be an error in the guest, not a guest that halts.
    words += ["-drive", _drive(folder / "disk.qcow2")]
    words += ["-device", "virtio-blk-pci,drive=root"]
    words += ["-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{port}-:22"]
    words += ["-device", "virtio-net-pci,netdev=net,romfile="]
    words += ["-serial", f"file:{folder / 'console.log'}"]
    words += ["-qmp", f"unix:{folder / 'monitor'},server=on,wait=off"]
    words += ["-daemonize", "-pidfile", str(folder / "pid")]
    if incoming is not None:
        words += ["-incoming", f"exec:cat {incoming}"]
    return words


def _drive(path: Path) -> str:
    options = "if=none,id=root,format=qcow2,cache=unsafe,discard=unmap,werror=report"
    return f"{options},file={path}"


def launch(image: Image, folder: Path, incoming: Path | None = None) -> int:
    """Start a guest whose disk is in its folder; return the port of its sshd.

    :raises HostError: If QEMU does not start.
    """
    if len(str(folder / "monitor")) > _SOCKET_PATH_MAX:
        raise HostError(f"{folder} is too long a path for a socket: set MLHOST_CACHE")
    for _ in range(PORT_TRIES):
        port = _free_port()
        started = subprocess.run(
            command_line(image, folder, port, incoming),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if started.returncode == 0:
            return port
        # Somebody else took the port after we looked.
        if "host forwarding" not in started.stderr:
            break
    raise HostError(f"{emulator.NAME} did not start: {started.stderr.strip()}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def add_overlay(folder: Path, base: Path, base_format: str, log: Path) -> None:
    """Give a guest a disk of its own that keeps only what differs from a base."""
    create = [*emulator.find("qemu-img"), "create", "-q", "-f", "qcow2", "-F", base_format]
    run_tool([*create, "-b", base, folder / "disk.qcow2"], log, 60)


Ask = Callable[..., dict[str, object]]


@contextmanager
def monitor(folder: Path) -> Iterator[Ask]:
    """Open a guest's QMP monitor; yield a function that sends one command."""
    with socket.socket(socket.AF_UNIX) as channel:
        channel.settimeout(30)
        channel.connect(str(folder / "monitor"))
        lines = channel.makefile("rw")

        def ask(command: str, **arguments: object) -> dict[str, object]:
            message = {"execute": command, "arguments": arguments}
            lines.write(json.dumps(message) + "\n")
            lines.flush()
            return _answer(command, lines)

        lines.readline()  # The greeting.
        ask("qmp_capabilities")
        yield ask


def _answer(command: str, lines: Iterator[str]) -> dict[str, object]:
    for line in lines:
        reply = json.loads(line)
        if "error" in reply:
            raise HostError(f"QEMU refused {command}: {reply['error']['desc']}")
        if "return" in reply:
            return dict(reply["return"])
    raise HostError(f"QEMU closed its monitor during {command}")


def save_state(folder: Path, target: Path, seconds: float = 120) -> None:
    """Write a guest's memory and devices to a file, and end it.

    It is not stopped first: a guest saved while stopped is still stopped when resumed.

    :raises HostError: If the file could not be written whole.
    """
    with monitor(folder) as ask:
        ask("migrate-set-parameters", **{"max-bandwidth": 2**40})
        ask("migrate", uri=f"exec:cat > {target}")
        deadline = time.monotonic() + seconds
        while (status := ask("query-migrate")["status"]) != "completed":
            if status in ("failed", "cancelled") or time.monotonic() > deadline:
                raise HostError(f"saving the guest's memory ended as {status}")
            time.sleep(0.1)
        ask("quit")
    while process.find_workers(folder):
        time.sleep(0.05)
