# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that bear a daemon's name, and sockets that answer as a daemon would not."""

from __future__ import annotations

from .attack import Attack

KIND, SOCKETS = "fake daemons", "sockets"
_STAY = "\nready()\nstay()\n"
_LIST = """
import json
def answer(client, asked):
    path = asked.split()[1].decode()
    client.sendall(http(json.dumps(find(path)).encode()))
def one(number, **more):
    state = {"Id": f"{number:064x}", "Name": f"/c{number}", "Image": "x", "State": {"Pid": os.getpid()},
             "HostConfig": {"Ulimits": None}, "Config": {"Labels": {}}}
    state.update(more)
    return state
"""


_SECRET = "b'slurmd\\0-f\\0' + SECRET.encode()"


def _socket(name: str, program: str) -> Attack:
    """Return an attack by the socket of a process that calls itself dockerd."""
    return Attack(f"dockerd: {name}", SOCKETS, "check engines", program + _STAY)


def _containers(name: str, find: str) -> Attack:
    program = f"{_LIST}\ndef find(path):\n    {find}\ndockerd(answer)"
    return _socket(name, program)


def _slurmd(name: str, options: str, verb: str, before: str = "") -> Attack:
    program = f"{before}\nimpostor('slurmd', {options}){_STAY}"
    setup = "systemctl stop slurmd"
    return Attack(f"slurmd: {name}", KIND, verb, program, setup)


ATTACKS = (
    _socket("an answer nested 100,000 deep", "dockerd(always(nested(MANY)))"),
    _socket("never answers", "dockerd(lambda client, asked: time.sleep(9999))"),
    _socket(
        "one byte a second",
        """
def drip(client, asked):
    for letter in http(b"[" + b" " * 10**6):
        client.sendall(bytes([letter]))
        time.sleep(1)
dockerd(drip)""",
    ),
    _socket(
        "an answer that never ends",
        """
def flood(client, asked):
    client.sendall(http(b"["))
    while True:
        client.sendall(b" " * 65536)
dockerd(flood)""",
    ),
    _socket(
        "an answer in chunks that never ends",
        """
def chunks(client, asked):
    client.sendall(b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n")
    while True:
        client.sendall(b"1\\r\\n[\\r\\n")
        time.sleep(0.01)
dockerd(chunks)""",
    ),
    _socket(
        "speaks no HTTP", "dockerd(lambda client, asked: client.sendall(b'SSH-2.0-' + b'x' * 9999))"
    ),
    _socket("an answer that is not a list", "dockerd(always(b'{\"a\": 7}'))"),
    _socket(
        "an error with the bytes of a terminal",
        r"""dockerd(lambda client, asked: client.sendall(
    b'HTTP/1.0 500 X\r\n\r\n{"message": "\\u001b]0;evil\\u0007\\u0000"}'))""",
    ),
    _containers(
        "5,000 containers, each slow",
        "time.sleep(0 if path.endswith('/json') and path.count('/') == 2 else 2)\n"
        "    return [one(n) for n in range(5000)] if path.count('/') == 2 else one(1)",
    ),
    _containers(
        "5,000 containers at once",
        "return [one(n) for n in range(5000)] if path.count('/') == 2 else one(1)",
    ),
    _containers(
        "containers whose process is not theirs",
        "return [one(1)] if path.count('/') == 2 else one(1, State={'Pid': 1})",
    ),
    _containers(
        "names with every byte, and Compose files of root's",
        "return [one(1)] if path.count('/') == 2 else one(1, Name='/' + ''.join(map(chr, range(1, 256))),"
        " Config={'Labels': {'com.docker.compose.service': 'x',"
        " 'com.docker.compose.project.config_files': SECRET}})",
    ),
    Attack(
        "dockerd: its daemon.json is a link to a secret of root's",
        "links",
        "check engines",
        "link(SECRET, HOME + '/.config/docker/daemon.json')\ndockerd(always(b'[]'))" + _STAY,
    ),
    Attack(
        "dockerd: --config-file names a secret of root's",
        KIND,
        "check engines",
        "dockerd(always(b'[]'), '--config-file', SECRET)" + _STAY,
    ),
    Attack(
        "dockerd: its daemon.json is a device of the user's",
        "devices",
        "check",
        """
import pty
master, slave = pty.openpty()
link(os.ttyname(slave), HOME + '/.config/docker/daemon.json')
dockerd(always(b'[]'))"""
        + _STAY,
    ),
    Attack(
        "cron: a process that cannot be looked at passes for root's",
        KIND,
        "node-health",
        """
import resource
def hide():
    resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10))
    set_name("cron")
    tricks._libc.prctl(4, 0, 0, 0, 0)
import tricks
fork(hide)"""
        + _STAY,
    ),
    _slurmd("-f names a secret of root's", _SECRET, "check slurm"),
    _slurmd("-f names a secret of root's (explain)", _SECRET, "explain slurm"),
    _slurmd(
        "-f names a file of sudoers.d, and root provisions",
        "b'slurmd\\0-f\\0' + SUDOERS.encode()",
        "provision",
    ),
    _slurmd(
        "-f names /etc/shadow, and root provisions",
        "b'slurmd\\0-f\\0/etc/shadow'",
        "provision",
    ),
    _slurmd(
        "-f names a link to a file of root's, and root provisions",
        "b'slurmd\\0-f\\0/home/mallory/slurm.conf'",
        "provision",
        "link(SUDOERS, HOME + '/slurm.conf')",
    ),
    _slurmd(
        "-f names a terminal of the user's",
        "b'slurmd\\0-f\\0' + name.encode()",
        "check slurm",
        """
import pty
master, slave = pty.openpty()
name = os.ttyname(slave)
os.close(slave)
def type_into():
    while True:
        try:
            os.write(master, b"\\x03\\x1c")
        except OSError:
            pass
        time.sleep(0.02)
fork(type_into)""",
    ),
    _slurmd(
        "SLURM_CONF names a secret of root's", "b'slurmd', {'SLURM_CONF': SECRET}", "check slurm"
    ),
    Attack(
        "slurmd: an older one than root's",
        KIND,
        "node-health",
        "impostor('slurmd', b'slurmd\\0-f\\0' + SECRET.encode())\ntime.sleep(12)" + _STAY,
        "systemctl stop slurmd; systemd-run --quiet --on-active=6 systemctl start slurmd",
    ),
    Attack(
        "slurmstepd: a step of somebody else's job",
        KIND,
        "check slurm",
        """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
impostor("slurmstepd", b"slurmstepd: [7.0]")"""
        + _STAY,
    ),
    Attack(
        "slurmstepd: a step that drains the node",
        KIND,
        "node-health",
        """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
impostor("slurmstepd", b"slurmstepd: [7.0]")"""
        + _STAY,
    ),
    Attack(
        "cron: a process of that name drains the node",
        KIND,
        "node-health",
        """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
be("cron")"""
        + _STAY,
    ),
    Attack(
        "agetty: the only one there is",
        KIND,
        "check",
        """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
be("agetty")"""
        + _STAY,
        "systemctl stop 'getty@*' 'serial-getty@*' getty.target; pkill agetty || true",
    ),
    Attack(
        "containerd: a unit of the user's own manager",
        KIND,
        "check containerd",
        """
put(HOME + "/bin/containerd", open("/bin/sleep", "rb").read(), 0o755)
unit("containerd.service", HOME + "/bin/containerd 9999", "LimitNOFILE=100")"""
        + _STAY,
        "systemctl stop containerd",
    ),
    Attack(
        "trainer: a unit of that name in the user's own manager drains the node",
        KIND,
        "node-health",
        "unit('trainer.service', '/bin/sleep 9999', 'LimitNOFILE=100')" + _STAY,
    ),
    Attack(
        "trainer: a unit of that name in the user's own manager",
        KIND,
        "check processes",
        "unit('trainer.service', '/bin/sleep 9999', 'LimitNOFILE=100')" + _STAY,
    ),
)
