# SPDX-License-Identifier: GPL-3.0-or-later
"""What root does after a report: remedies that are traps, and nodes that one user drains."""

from __future__ import annotations

from .attack import Attack

_STAY = "\nready()\nstay()\n"
PASTE = """
import json, pathlib, subprocess, time
pathlib.Path("/tmp/root-has-read").touch()
time.sleep(3)
def find(node):
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "commands" and isinstance(value, list):
                yield from value
            else:
                yield from find(value)
    elif isinstance(node, list):
        for one in node:
            yield from find(one)
done = set()
for words in find(json.loads(report).get("findings")):
    text = repr(words)
    if text in done or "/etc/fstab" in text or not ("mallory" in text or "/dev/shm" in text):
        continue
    done.add(text)
    print("pasted", words)
    subprocess.run(words, shell=isinstance(words, str), timeout=40)
"""
"""Root pastes each remedy that names what is the user's; no remedy fails the host."""
_THEN = """
def trap():
    while not os.path.exists("/tmp/root-has-read"):
        time.sleep(0.05)
    {0}
fork(trap)
"""


def _trap(name: str, before: str, then: str, verb: str = "check") -> Attack:
    program = before + _THEN.format(then) + _STAY
    return Attack(name, "remedies", verb, program, after=PASTE)


ATTACKS = (
    _trap(
        "a start file becomes a link to /etc/passwd",
        "rc('')",
        "link('/etc/passwd', HOME + '/.bashrc')",
    ),
    _trap(
        "a start file's folder becomes a link to a folder of root's",
        "put(HOME + '/own/limits', 'ulimit -n 1000')\nput(HOME + '/.bashrc', '. ~/own/limits')",
        "os.rename(HOME + '/own', HOME + '/gone'); link('/srv/open', HOME + '/own')",
    )._replace(setup="printf 'first line\\nsecond\\n' > /srv/open/limits"),
    _trap(
        "a start file becomes a link while the line is changed",
        "rc('')",
        """
    while True:
        for target in ("/etc/passwd", "/srv/open/limits"):
            link(target, HOME + "/.new"); os.rename(HOME + "/.new", HOME + "/.bashrc")
            put(HOME + "/.new", "ulimit -n 1000"); os.rename(HOME + "/.new", HOME + "/.bashrc")""",
    )._replace(setup="printf 'ulimit -n 1000\\nsecond\\n' > /srv/open/limits"),
    _trap(
        "containers.conf becomes a link to a file of root's",
        """put(HOME + "/.config/containers/containers.conf",
    '[containers]' + chr(10) + 'default_ulimits = ["nofile=100:100"]' + chr(10))""",
        "link('/srv/open/limits', HOME + '/.config/containers/containers.conf')",
        "check podman",
    )._replace(setup="printf 'a\\ndefault_ulimits = [\"nofile=100:100\"]\\n' > /srv/open/limits"),
    _trap(
        "a file that a run left becomes a link",
        """
for number in range(3):
    put(f"/dev/shm/torch_{number + 1}_x", b"x" * (50 << 20))""",
        "[link('/srv/canary/kept', f'/dev/shm/torch_{n}_x') for n in (1, 2, 3)]",
        "preflight shm",
    )._replace(setup="sysctl -q fs.protected_symlinks=0"),
    _trap(
        "names of files that a run left are commands",
        """
for text in ("; cd; touch own-$(id -u)", "$(cd; touch own)", "`cd; touch x`", "' ; cd; touch x; '", "x y"):
    put(f"/dev/shm/torch_1_{text}", b"x" * (30 << 20))""",
        "pass",
        "preflight shm",
    ),
    Attack("one line of a start file drains the node", "drains", "node-health", "rc('')" + _STAY),
    Attack(
        "a start file that sleeps drains the node",
        "drains",
        "node-health",
        "rc('sleep 1000')" + _STAY,
    ),
    Attack(
        "a dockerd of the user's drains the node",
        "drains",
        "node-health",
        "dockerd(always(nested(MANY)))" + _STAY,
    ),
)
