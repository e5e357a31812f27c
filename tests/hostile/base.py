# SPDX-License-Identifier: GPL-3.0-or-later
"""The host that every attack starts from: provisioned, a node of Slurm, with secrets of root's."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.host import guest, library, snapshot
from tests.host.cache import HostError
from tests.host.connection import Host

from .on_guest.beside import MARKS
from .verbs import FOLDER

RELEASE = "bookworm+hostile"
TOP = Path(__file__).parents[2]
HERE = Path(__file__).parent
PROGRAMS = HERE / "on_guest"
SWAP = HERE / "swap.c"
START_SLURM = TOP / "tests" / "host" / "start_slurm.sh"

_FEW = {"soft": 1024, "hard": 1024}
_NOFILE = {"soft": 65536, "hard": 1048576}
_SESSIONS = [
    {
        "users": ["*", "root", "alice", "mallory"],
        "limits": {"nofile": _NOFILE, "memlock": "unlimited"},
    }
]
_PODMAN = {"limits": {"nofile": _NOFILE}, "users": ["mallory"]}
_JOBS = {"slurm": {"limits": {"nofile": {"soft": 131072, "hard": 131072}, "memlock": "unlimited"}}}
_PROCESSES = [
    {"unit": "ssh.service", "limits": {"nofile": {"soft": 1024}}},
    {"unit": "trainer.service", "limits": {"nofile": {"soft": 65536}}},
    {"name": "cron", "limits": {"nofile": {"soft": 1024}}},
    {"user": "alice", "limits": {"nofile": {"soft": 1024}}},
]
POLICIES: Mapping[str, Mapping[str, Any]] = {
    "sessions": {"sessions": _SESSIONS},
    "podman": {"containers": {"podman": _PODMAN}},
    "containerd": {"containers": {"containerd": {"limits": {"nofile": _FEW}}}},
    "slurm": {"jobs": _JOBS},
    "processes": {"processes": _PROCESSES},
    "node": {"sessions": _SESSIONS, "processes": _PROCESSES, "jobs": _JOBS},
    "whole": {"sessions": _SESSIONS, "jobs": _JOBS},
}
"""What root asks of the host, by file; each is merged over the profile ``training``."""

INSTALL = """
import json, sys
sys.path.insert(0, "/opt")
from mlhost_limits.verbs import MONITOR_ARGUMENTS, run_monitor
given = {name: one.get("default") for name, one in MONITOR_ARGUMENTS.items()}
given.update(policy=json.load(open("/root/hostile/node.json")), interval="1h")
given.update(textfile_directory="")
print(run_monitor(given, False))
"""
PREPARE = f"""
useradd --create-home --uid 1001 --shell /bin/bash mallory
useradd --create-home --uid 1002 --shell /bin/bash bob
install -d -m 0700 -o mallory -g mallory /home/mallory/.ssh
install -m 0600 -o mallory -g mallory /root/.ssh/authorized_keys /home/mallory/.ssh
install -d -m 0755 -o mallory -g mallory /home/mallory/loot
grep -q '^mallory:' /etc/subuid ||
    usermod --add-subuids 400000-465535 --add-subgids 400000-465535 mallory
for name in alice mallory; do loginctl enable-linger $name; done
install -d -m 0700 /root/canary /srv/canary {FOLDER}
echo '{MARKS["file"]}' > /root/canary/secret
echo '{MARKS["file"]}' > /srv/canary/kept
for number in 1 2 3 4 5; do echo kept > /srv/canary/file-$number; done
install -d -m 0755 /srv/open; echo '{MARKS["file"]}' > /srv/open/secret; chmod 0600 /srv/open/secret
sed -i '1s/^[^:]*:[^:]*/&{MARKS["shadow"]}/' /etc/shadow
echo 'User_Alias {MARKS["sudoers"]} = root' > /etc/sudoers.d/canary; chmod 0440 /etc/sudoers.d/canary
echo 'tmpfs /dev/shm tmpfs size=512m 0 0' >> /etc/fstab
mkdir -p /etc/systemd/system
printf '[Service]\\nExecStart=/usr/bin/sleep infinity\\nLimitNOFILE=65536:1048576\\n' \\
    > /etc/systemd/system/trainer.service
systemctl daemon-reload; systemctl start trainer.service
tar -C /bin -c busybox | docker import - tiny
tar -C /bin -c busybox | podman import - tiny
sh /opt/start_slurm.sh
"""
FINISH = f"""
set -e
python3 {FOLDER}/provision_once.py
systemctl reset-failed docker.service
python3 /opt/install.py
systemctl stop "*.timer"
systemctl stop man-db.service 2>/dev/null || true
env -i SLURMD_NODENAME=host /usr/local/lib/mlhost-limits/node-health || true
scontrol update nodename=host state=resume 2>/dev/null || true
"""


@contextmanager
def saved_host(revision: str = "") -> Iterator[snapshot.Snapshot]:
    """Prepare a guest once and keep it for the length of a ``with`` block.

    :param revision: Whose library root runs; by default this tree's.
    """
    with TemporaryDirectory(prefix="mlhost-hostile-", dir="/var/tmp") as folder:
        yield make_base(Path(folder), revision)


def make_base(folder: Path, revision: str = "") -> snapshot.Snapshot:
    """Prepare a guest and keep it in a folder; one that is there already is taken as it is."""
    saved = snapshot.Snapshot(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if not saved.memory.exists():
        with guest.running(RELEASE, new=True) as host:
            prepare(host, revision)
            snapshot.keep(host, folder)
    return saved


def prepare(host: Host, revision: str = "") -> None:
    """Make the base host of a fresh one."""
    files = {"start_slurm.sh": START_SLURM}
    library.carry(host, files)
    with TemporaryDirectory(prefix="mlhost-plugins-") as folder:
        plugins = TOP / "plugins" if not revision else _unpack(revision, Path(folder))
        send(host, plugins, "/opt/ansible_collections/mlhost/limits/plugins")
    send(host, TOP / "playbooks", "/opt/ansible_collections/mlhost/limits/playbooks")
    host.ssh(
        "rm -rf /opt/mlhost_limits && ln -s ansible_collections/mlhost/limits/plugins/module_utils"
        f" /opt/mlhost_limits && mkdir -p {FOLDER} /opt/hostile && chmod 0700 {FOLDER}"
    )
    send(host, PROGRAMS, FOLDER)
    with TemporaryDirectory(prefix="mlhost-swap-") as name:
        subprocess.run(["gcc", "-O2", "-static", "-o", f"{name}/swap", SWAP], check=True)
        send(host, Path(name), "/opt/hostile/bin")
    host.ssh(f"cp {FOLDER}/tricks.py /opt/hostile; chmod -R a+rX /opt/hostile")
    for name, policy in POLICIES.items():
        host.ssh(f"cat > {FOLDER}/{name}.json", input=json.dumps(policy))
    host.ssh("cat > /opt/install.py", input=INSTALL)
    host.ssh(f"set -e\n{PREPARE}", timeout=900)
    host.ssh(FINISH, timeout=900)


def _unpack(revision: str, folder: Path) -> Path:
    """Return the plugins of a revision, laid out in a folder."""
    words = ["git", "-C", str(TOP), "archive", revision, "plugins"]
    packed = subprocess.run(words, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "plugins"


def send(host: Host, folder: Path, target: str) -> None:
    """Copy the files of a folder into one of the guest."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(folder, ".", filter=_without_caches)
    words = [*host.ssh_command(), f"mkdir -p {target} && tar -xz -C {target}"]
    done = subprocess.run(words, input=packed.getvalue(), check=False, timeout=300)
    if done.returncode:
        raise HostError(f"{folder.name} was not copied to {host.name} (exit {done.returncode})")


def _without_caches(file: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in file.name else file
