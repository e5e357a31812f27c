"""Reach a guest by ssh: the options every client needs, commands, and waiting."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from . import process
from .cache import HostError
from .image import Image
from .tool import require_program, tail

ADDRESS = "127.0.0.1"
_SSH_FAILED = 255  # ssh(1): the client's own errors, not the command's
_BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
_SETTLED = "systemctl is-system-running --wait; docker info --format ready"


class Host(NamedTuple):
    """A running guest."""

    name: str
    port: int
    folder: Path
    address: str = ADDRESS
    user: str = "root"

    @property
    def identity_file(self) -> Path:
        """Return the private key that opens root and alice."""
        return self.folder / "identity"

    @property
    def ssh_config(self) -> Path:
        """Return the ssh configuration under which ``ssh -F`` knows this guest."""
        return self.folder / "ssh_config"

    @property
    def inventory(self) -> Path:
        """Return the Ansible inventory that holds this guest alone."""
        return self.folder / "inventory.ini"

    @property
    def console_log(self) -> Path:
        """Return what the guest wrote to its serial console."""
        return self.folder / "console.log"

    @property
    def ansible_vars(self) -> dict[str, str | int]:
        """Return the connection variables of this guest."""
        return {
            "ansible_host": self.address,
            "ansible_port": self.port,
            "ansible_user": self.user,
            "ansible_ssh_private_key_file": str(self.identity_file),
            "ansible_ssh_common_args": f"-F {self.ssh_config}",
            "ansible_python_interpreter": "/usr/bin/python3",
        }

    def inventory_line(self) -> str:
        """Return this guest as a line of an INI inventory."""
        words = (f'{key}="{value}"' for key, value in self.ansible_vars.items())
        return f"{self.name} {' '.join(words)}"

    def ssh_command(self, user: str = "root") -> list[str]:
        """Return the ssh command to which a remote command may be appended."""
        return ["ssh", "-F", str(self.ssh_config), f"{user}@{self.name}"]

    def ssh(
        self,
        command: str,
        user: str = "root",
        check: bool = True,
        timeout: float = 120,
        input: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a new login session of the guest.

        Each call is a connection of its own: a shared one would hold one PAM session
        open, and later calls would keep the limits of the first.

        :raises HostError: If ``check`` is set and the status is not 0.
        :raises subprocess.TimeoutExpired: After ``timeout`` seconds.
        """
        return self._run(self.ssh_command(user), command, check, timeout, input)

    def run(
        self, command: str, check: bool = True, timeout: float = 120, input: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as root in a session that is kept for the next one.

        A login takes an emulated host two seconds; where nothing is asked of a new one, it needs
        none.
        """
        return self._run(self.shared_command(), command, check, timeout, input)

    def end_shared(self) -> None:
        """End that session, for what looks at sessions or ends them all."""
        subprocess.run(self.shared_command("-Oexit"), capture_output=True, check=False)

    def shared_command(self, *options: str) -> list[str]:
        """Return the ssh command of that session."""
        shared = ["-oControlMaster=auto", "-oControlPersist=60"]
        ssh, *words = self.ssh_command()
        return [ssh, *shared, f"-oControlPath={self.folder / 'shared'}", *options, *words]

    def _run(
        self, ssh: list[str], command: str, check: bool, timeout: float, input: str | None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*ssh, command],
            stdin=subprocess.DEVNULL if input is None else None,
            input=input,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode:
            raise HostError(
                f"{self.name}: {command!r} as {ssh[-1].partition('@')[0]} ended with {done.returncode}: "
                f"{(done.stderr or done.stdout).strip()}"
            )
        return done

    def reboot(self, seconds: float = 600) -> None:
        """Reboot the guest and wait until it has settled again."""
        self.end_shared()
        before = self.ssh(_BOOT_ID).stdout
        # The session may be cut before it can report a status.
        self.ssh("systemctl reboot", check=False)
        deadline = time.monotonic() + seconds
        while wait_for_ssh(self, _BOOT_ID, deadline - time.monotonic()) == before:
            time.sleep(0.5)
        wait_until_settled(self, deadline - time.monotonic())


def write_files(host: Host, image: Image) -> None:
    """Put what a client needs into the guest's folder."""
    require_program("ssh")
    host.identity_file.touch(mode=0o600)
    host.identity_file.write_bytes(image.identity.read_bytes())
    host.ssh_config.write_text(format_ssh_config(host))
    (host.folder / "known_hosts").write_text(f"{host.name} {image.host_key}\n")
    (host.folder / "port").write_text(f"{host.port}\n")
    host.inventory.write_text(host.inventory_line() + "\n")


def format_ssh_config(host: Host) -> str:
    """Return an ssh_config(5) that knows this guest, whatever name is asked for."""
    options = {
        "HostName": host.address,
        "Port": host.port,
        "User": host.user,
        "IdentityFile": host.identity_file,
        # Neither the person's agent nor their known hosts have a say.
        "IdentitiesOnly": "yes",
        "BatchMode": "yes",
        "HostKeyAlias": host.name,
        "UserKnownHostsFile": host.folder / "known_hosts",
        "StrictHostKeyChecking": "yes",
        # The client's first choice costs an emulated processor half a second for each login.
        "KexAlgorithms": "curve25519-sha256",
        "ServerAliveInterval": 15,
        "ServerAliveCountMax": 8,
        "LogLevel": "ERROR",
    }
    return "".join(f"{key} {value}\n" for key, value in options.items())


def wait_for_ssh(host: Host, command: str, seconds: float) -> str:
    """Repeat a command until ssh gets through; return its output.

    :raises HostError: If QEMU ends or the time is over; the text ends with the console.
    """
    deadline = time.monotonic() + seconds
    words = host.ssh_command()
    words[1:1] = ["-o", "ConnectTimeout=5"]
    while time.monotonic() < deadline:
        left = max(deadline - time.monotonic(), 1)
        try:
            done = subprocess.run(
                [*words, command],
                capture_output=True,
                text=True,
                timeout=left,
                check=False,
            )
        except subprocess.TimeoutExpired:
            break
        if done.returncode != _SSH_FAILED:
            return done.stdout
        if not process.find_workers(host.folder):
            raise HostError(f"{host.name}: QEMU ended:{tail(host.console_log)}")
        time.sleep(0.2)
    console = tail(host.console_log)
    raise HostError(f"{host.name} did not answer in {seconds:.0f} s:{console}")


def wait_until_settled(host: Host, seconds: float = 600) -> None:
    """Wait until a booting guest has started everything it starts.

    :raises HostError: If a unit failed or Docker does not answer.
    """
    state = wait_for_ssh(host, _SETTLED, seconds).split()
    if state != ["running", "ready"]:
        failed = host.ssh("systemctl --failed --plain --no-legend", check=False).stdout
        raise HostError(f"{host.name} booted to {state}: {failed.strip()}")


def set_clock(host: Host, seconds: float = 120) -> None:
    """Set a resumed guest's clock, which still shows when the snapshot was taken.

    It will be behind by what the login takes: less than a second, more on a loaded machine.
    """
    wait_for_ssh(host, f"date --utc --set=@{time.time() + 0.5:.1f}", seconds)
