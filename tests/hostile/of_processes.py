# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user can make of /proc, of cgroups, of buses, and of what a host has little of."""

from __future__ import annotations

from .attack import Attack

_STAY = "\nready()\nstay()\n"
_OUTPUT = "install -d -m 0755 -o alice -g alice /srv/output"


_ALL: tuple[Attack, ...] = (
    Attack(
        "500 processes with names of every byte",
        "deep /proc",
        "check processes",
        """
for number in range(500):
    name = bytes([1 + number % 255]) + b") R 1 (\\n\\x1b" + bytes([255, 254])
    fork(lambda name=name: set_name(name))"""
        + _STAY,
    ),
    Attack(
        "a unit of root's name whose process is called by the bytes of a terminal",
        "names",
        "monitor",
        r"""
code = r"import sys; sys.path.insert(0, '/opt/hostile'); from tricks import *; set_name(b'\x1b]0;x\x07\n'); stay()"
put(HOME + "/named.py", code)
unit("trainer.service", "/usr/bin/python3 /home/mallory/named.py", "LimitNOFILE=100")
time.sleep(2)"""
        + _STAY,
    ),
    Attack(
        "processes that come and go",
        "deep /proc",
        "check processes",
        """
def churn():
    while True:
        pid = os.fork()
        if not pid:
            set_name("dockerd")
            os._exit(0)
        os.waitpid(pid, 0)
for number in range(4):
    fork(churn)"""
        + _STAY,
    ),
    Attack(
        "a process that stands in the output of somebody else",
        "deep /proc",
        "preflight output of alice",
        """
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(9999)", "/srv/output"], cwd="/srv/output")
time.sleep(1)"""
        + _STAY,
        _OUTPUT,
    ),
    Attack(
        "a mapping whose file shrinks",
        "truncated files",
        "preflight deep",
        """
os.makedirs(HOME + "/cache", exist_ok=True)
path = put(HOME + "/cache/model.safetensors", (10**6).to_bytes(8, "little") + b"{")
for number in range(99):
    os.link(path, HOME + f"/cache/{number}.safetensors")
def shrink():
    while True:
        os.truncate(path, 10**6)
        time.sleep(0.01)
        os.truncate(path, 9)
fork(shrink)"""
        + _STAY,
    ),
    Attack(
        "cgroups with names of every byte, of containers and of units of root's",
        "names",
        "check processes",
        """
put(HOME + "/settle.py", '''
import sys; sys.path.insert(0, "/opt/hostile"); from tricks import *; import resource
with open("/proc/self/cgroup") as file:
    base = "/sys/fs/cgroup" + file.read().strip().partition("::")[2]
for name in ("docker-" + "a" * 64 + ".scope", "libpod-" + "b" * 64 + ".scope", "x" + chr(11) + "0::",
             chr(27) + "]0;x" + chr(7), "trainer.service", "ssh.service", "docker.service",
             "user@0.service", "kubepods-pod1.slice"):
    path = os.path.join(base, name)
    os.makedirs(path, exist_ok=True)
    def settle(path=path):
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        with open(path + "/cgroup.procs", "w") as file:
            file.write(str(os.getpid()))
    fork(settle)
stay()
''')
unit("settle.service", "/usr/bin/python3 /home/mallory/settle.py", "Delegate=yes")
time.sleep(3)"""
        + _STAY,
    ),
    Attack(
        "a file of the user's own by the name of somebody else's checkpoint",
        "user namespaces",
        "preflight output of alice",
        """
os.makedirs(HOME + "/own", exist_ok=True)
fake_root("mount --bind /home/mallory/own /srv/output; exec 7> /srv/output/model.safetensors; exec sleep 9999")
time.sleep(2)"""
        + _STAY,
        _OUTPUT,
    ),
    Attack(
        "the user's bus never answers",
        "D-Bus",
        "check podman",
        "listen(RUN + '/bus', lambda client, asked: time.sleep(9999))" + _STAY,
    ),
    Attack(
        "sockets of the user's manager never answer",
        "notify sockets",
        "check podman",
        """
for name in ("systemd/private", "systemd/notify", "bus", "podman/podman.sock"):
    listen(RUN + "/" + name, lambda client, asked: time.sleep(9999))"""
        + _STAY,
    ),
    Attack(
        "the user's keys are all used up",
        "quotas",
        "check",
        """
for number in range(1000):
    tricks._libc.syscall(248, b"user", f"k{number}".encode(), b"x" * 90, 90, ctypes.c_long(-4))
rc(TELL)"""
        + _STAY,
    ),
    Attack(
        "the user may start no more processes",
        "quotas",
        "check",
        """
rc(TELL)
for number in range(5000):
    try:
        fork(lambda: None)
    except OSError:
        break"""
        + _STAY,
        "systemctl set-property --runtime user-1001.slice TasksMax=60",
    ),
    Attack(
        "folders of our names in /tmp and /var/tmp",
        "clean-up",
        "provision",
        """
for top in ("/tmp", "/var/tmp", "/dev/shm"):
    for name in ("mlhost-limits-1-x", "mlhost-limits-9999999-x", "mlhost-canary-x", "mlhost-limits.lock", ".mlhost-x"):
        link("/srv/canary", f"{top}/{name}")"""
        + _STAY,
    ),
    Attack(
        "a folder of our name holds what never answers",
        "clean-up",
        "provision",
        """
import zlib
boot = open("/proc/sys/kernel/random/boot_id").read()[:8]
spaces = zlib.crc32(" ".join(os.readlink(f"/proc/self/ns/{one}") for one in ("pid", "time")).encode())
for number, inner in enumerate(("", "/point")):
    bait = f"/var/tmp/mlhost-canary-{9999990 + number}-1-{boot}-{spaces:08x}-0123456789abcdef"
    os.mkdir(bait, 0o700)
    fuse(bait + inner, options="allow_other")"""
        + _STAY,
        "echo user_allow_other >> /etc/fuse.conf",
    ),
)
ATTACKS: tuple[Attack, ...] = tuple(
    one._replace(program=f"import tricks\n{one.program}") for one in _ALL
)
