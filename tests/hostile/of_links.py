# SPDX-License-Identifier: GPL-3.0-or-later
"""Links, devices and other things that are not what their names say, where root may read."""

from __future__ import annotations

from .attack import Attack

_STAY = "\nready()\nstay()\n"
_CONF = "HOME + '/.config/containers/containers.conf'"
_TERMINAL = """
import pty
master, slave = pty.openpty()
name = os.ttyname(slave)
os.close(slave)
def type_into():
    while True:
        try:
            os.write(master, b"\\x03\\x1c")
            put(LOOT + "/opened", "somebody opened the terminal")
        except OSError:
            pass
        time.sleep(0.02)
fork(type_into)
"""
_CONMON = (
    "import sys; sys.path.insert(0, '/opt/hostile'); from tricks import *; import resource;"
    " resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100));"
    " own_argv('conmon', %s); fork(lambda: set_name('inside')); time.sleep(9999)"
)


def _conmon(
    name: str,
    words: str,
    before: str = "",
    kind: str = "fake daemons",
    verb: str = "check podman",
) -> Attack:
    """Return an attack by a process that passes for the monitor of a container."""
    program = f"""{before}
code = {_CONMON % words!r}
subprocess.Popen(["python3", "-c", code, "x" * 3000], start_new_session=True)
time.sleep(2)"""
    return Attack(name, kind, verb, program + _STAY)


_WORDS = "b'\\0'.join([b'conmon', b'-c', b'f' * 64, b'-n', %s, b'-b', b'/home/mallory/bundle'])"

ATTACKS = (
    Attack(
        "containers.conf is a link to /etc/shadow",
        "links",
        "check podman",
        f"link(SHADOW, {_CONF}){_STAY}",
    ),
    Attack(
        "containers.conf is a link to a secret of root's (explain)",
        "links",
        "explain podman",
        f"link(SECRET, {_CONF}){_STAY}",
    ),
    Attack(
        "a drop-in of containers.conf is a link to a file of sudoers.d",
        "links",
        "check podman",
        f"link(SUDOERS, {_CONF} + '.d/1.conf'){_STAY}",
    ),
    Attack(
        "containers.conf is a terminal of the user's",
        "devices",
        "check podman",
        f"{_TERMINAL}link(name, {_CONF}){_STAY}",
    ),
    Attack(
        "containers.conf is a FIFO",
        "links",
        "check podman",
        f"os.makedirs(os.path.dirname({_CONF}))\nos.mkfifo({_CONF}){_STAY}",
    ),
    Attack(
        "containers.conf is a file of 1 TB",
        "sparse files",
        "check podman",
        f"sparse({_CONF}, 2**40){_STAY}",
    ),
    Attack(
        "containers.conf leads through /proc to the root of a user's namespace",
        "user namespaces",
        "check podman",
        f"""fake_root("mount -t tmpfs x /mnt; cp /etc/hostname /mnt/x; sleep 9999")
link("/proc/self/root/etc/shadow", {_CONF})"""
        + _STAY,
    ),
    Attack(
        ".bashrc is a link to a secret of root's",
        "links",
        "check",
        "link(SECRET, HOME + '/.bashrc')" + _STAY,
    ),
    Attack(
        ".bashrc reads a link to a file of sudoers.d",
        "links",
        "check",
        "link(SUDOERS, HOME + '/more')\nrc('. ~/more')" + _STAY,
    ),
    Attack(
        "a terminal of the user's in the place of .bashrc",
        "devices",
        "check",
        f"{_TERMINAL}link(name, HOME + '/.bashrc')\nput(HOME + '/.profile', 'ulimit -n 9'){_STAY}",
    ),
    Attack(
        "a quadlet of the user's that is a link to a secret of root's",
        "links",
        "check podman",
        f"""
put(HOME + "/conmon.py", {_CONMON % (_WORDS % "b'x'")!r})
unit("x.service", "/usr/bin/python3 /home/mallory/conmon.py " + "x" * 3000)
source = HOME + "/.config/containers/systemd/x.container"
link(SECRET, source)
put(RUN + "/systemd/generator/x.service", "[Unit]" + chr(10) + "SourcePath=" + source + chr(10))
time.sleep(2)"""
        + _STAY,
    ),
    _conmon(
        "conmon: a bundle that is a link to a secret of root's",
        _WORDS % "b'x'",
        "link(SECRET, HOME + '/bundle/config.json')",
        "links",
    ),
    _conmon(
        "conmon: a bundle nested 100,000 deep",
        _WORDS % "b'x'",
        "put(HOME + '/bundle/config.json', nested(MANY))",
    ),
    _conmon(
        "conmon: a bundle that is a terminal of the user's",
        _WORDS % "b'x'",
        _TERMINAL + "link(name, HOME + '/bundle/config.json')",
        "devices",
    ),
    _conmon(
        "conmon: a name with every byte",
        _WORDS % "bytes(range(1, 256))",
        kind="names",
        verb="check podman as text",
    ),
    _conmon("conmon: a name that is a path", _WORDS % "b'../../docker/honest'", kind="names"),
    Attack(
        "containerd-shim: a container of Docker's",
        "fake daemons",
        "check containerd",
        """
code = ("import sys; sys.path.insert(0, '/opt/hostile'); from tricks import *; import resource;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100));"
        "own_argv('containerd-shim', b'containerd-shim\\\\0-namespace\\\\0k8s.io\\\\0-id\\\\0' + b'e' * 64);"
        "fork(lambda: set_name('inside')); time.sleep(9999)")
subprocess.Popen(["python3", "-c", code, "x" * 3000], start_new_session=True)
time.sleep(2)"""
        + _STAY,
    ),
)
