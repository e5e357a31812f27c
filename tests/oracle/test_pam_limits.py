# SPDX-License-Identifier: GPL-3.0-or-later
"""What we predict of generated limits files is what this machine's pam_limits does with them.

The real module runs in namespaces of its own, where /etc/security, the users and fs.nr_open are
ours to choose and PID 1 is the test.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import subprocess
import time
import traceback
from functools import partial
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest
from mlhost_limits.policy.pam_limits import (
    LIMITS_CONF,
    LIMITS_D,
    Resolution,
    find_dialect,
    read_lines,
    resolve_limits,
)
from mlhost_limits.policy.proc_limits import parse_proc_limits
from mlhost_limits.policy.rlimit import Rlimit
from mlhost_limits.probe.children import Report, run_in_children
from mlhost_limits.probe.files import read_limits_files, read_os_release
from mlhost_limits.probe.libpam import (
    Libpam,
    PamCall,
    load_modules,
    read_own_limits,
    set_own_limits,
)
from mlhost_limits.probe.users import read_user

CASES = int(os.environ.get("MLHOST_ORACLE_CASES", "1500"))
SEED = int(os.environ.get("MLHOST_ORACLE_SEED", "1"))
NR_OPEN = 700  # Lower than any hard limit here, so that what becomes of "unlimited" shows.
OF_PID_1 = {"nofile": Rlimit(1500, 2000), "locks": Rlimit(100, 2**40)}
INHERITED = {"nofile": Rlimit(900, 2000), "locks": Rlimit(300, 2**40), "core": Rlimit(0, 2**30)}

PASSWD = """\
root:x:0:0:root:/root:/bin/sh
alice:x:1001:2001::/nonexistent:/bin/sh
bob:x:1002:2002::/nonexistent:/bin/sh
carol:x:70000:5555::/nonexistent:/bin/sh
zo\xc3\xab:x:1003:2001::/nonexistent:/bin/sh
"""
GROUP = "root:x:0:\nml:x:2001:bob,carol\nhpc:x:2002:alice\nwheel:x:10:root,alice\n"
USERS = ("root", "alice", "bob", "carol", "zo\xeb")
SERVICE = "account required pam_permit.so\nsession required pam_limits.so\n"

DOMAINS = (
    *("*", "*", "*", "alice", "alice", "bob", "carol", "root", "zo\xc3\xab", "Alice", "1001"),
    *("@ml", "@ml", "@hpc", "@wheel", "@root", "@2001", "@:2001", "@:5555", "@:0", "@0:", "@0:99"),
    *("@2001:2002", "@2002:", "@:1001", "@1001:", "@", "@:", "@*", "%", "%ml", "%:2001", "%:1001"),
    *(
        "%1000:",
        "%0:5",
        "1000:1002",
        "1000:",
        ":1001",
        ":0",
        "0:",
        "0:0",
        "0:500",
        ":",
        "::",
        "1:2:3",
    ),
    *("+1000:", "-1:", ":-1", "4294968297:", ":4294968298", "18446744073709551616:", "1002:1001"),
    *("00:0", "x:1", "1:x", "al*", "-", "#", "1001: "),
)
TYPES = ("soft", "soft", "hard", "hard", "-", "-", "HARD", "Soft", "both", "-x", "", "--")
COUNTS = (
    *(
        "0",
        "1",
        "7",
        "64",
        "100",
        "256",
        "500",
        "650",
        "64k",
        "0x10000",
        "1e6",
        "1,000",
        "65;",
        "+80",
    ),
    *(
        "007",
        "-5",
        "-",
        "-1",
        "unlimited",
        "INFINITY",
        "Unlimited",
        "unlimitedx",
        "abc",
        '"64"',
        "\\",
    ),
    *(
        "18446744073709551615",
        "-18446744073709551615",
        "18446744073709551616",
        "9" * 40,
        "-" + "9" * 40,
    ),
    *(
        "-600000000000000000000",
        "18446744073709551000",
        "+",
        "--5",
        "5.9",
        "\xb2",
        "64 more words",
        "",
    ),
)
DESCRIPTORS = tuple(
    word
    for word in COUNTS
    if word not in ("0", "1", "7", "0x10000", "1e6", "1,000", "007", "5.9", "-18446744073709551615")
)  # With fewer than this, libpam itself cannot open the session.
SIZES = (
    "4194304",
    "8388608",
    "16777216",
    "unlimited",
    "-",
    "-1",
    "4194304k",
    "18014398509481983",
    "x",
)
ROOMY = ("as", "data", "stack", "rss")  # With less than this, the test itself could not go on.
MINUTES = ("5", "60", "unlimited", "-1", "307445734561825860", "307445734561825861", "1h")
ITEMS_USED = (
    *("nofile",) * 8,
    *(
        "nproc",
        "memlock",
        "core",
        "fsize",
        "cpu",
        "locks",
        "sigpending",
        "msgqueue",
        "nice",
        "rtprio",
    ),
    *("NoFile", "rttime", "nofiles", "priority", *ROOMY),
)
NOISE = (
    *(
        "",
        "#",
        "# * - nofile 75",
        "   ",
        "\t",
        "* - nofile",
        "alice soft",
        "alice",
        "alice -",
        "bob -",
    ),
    *(
        "* -",
        "@ml -",
        "@:2002 -",
        "%:1001 -",
        "%1002: -",
        "% -",
        "%ml -",
        ":1001 -",
        "@wheel -",
        "@0: -",
    ),
    *(
        "0:99 -",
        "root -x",
        "alice - # gone",
        "\xef\xbb\xbf* - nofile 75",
        "* - nofile 75#glued",
        "\0",
    ),
    *(
        "alice\0bob - nofile 75",
        "* - nofile 76\0",
        "%ml - maxlogins 1000",
        "alice both maxlogins 1000",
        " \v\f * \r - nofile 79",
        "x" * 1100,
        "# " + "y" * 1020,
    ),
)


Files = dict[str, str]
Limits = dict[str, Rlimit]


def make_files(rng: random.Random) -> Files:
    """Return limits.conf and, for some, drop-ins whose names try the order."""
    names = rng.sample(["10-a", "9-z", "B", "a", "_", "a.b", "\xe4"], rng.choice((0, 0, 1, 3)))
    odd = rng.sample([".hidden.conf", "a.CONF", "b.conf.bak", "noend"], rng.choice((0, 0, 1)))
    drop_ins = [*(f"{name}.conf" for name in names), *odd]
    paths = [LIMITS_CONF, *(f"{LIMITS_D}/{name}" for name in drop_ins)]
    return {path: make_text(rng) for path in paths}


def make_text(rng: random.Random) -> str:
    end = rng.choice(("\n", "\n", "\n", "\r\n"))
    text = end.join(make_line(rng) for _ in range(rng.randint(1, 6)))
    return text + rng.choice((end, end, ""))


def make_line(rng: random.Random) -> str:
    if rng.random() < 0.12:
        return rng.choice(NOISE)
    item = rng.choice(ITEMS_USED)
    values = {"nofile": DESCRIPTORS, "cpu": MINUTES, **dict.fromkeys(ROOMY, SIZES)}.get(
        item.lower(), COUNTS
    )
    words = [rng.choice(DOMAINS), rng.choice(TYPES), item, rng.choice(values)]
    line = rng.choice(("", "", "", "", " ", "\t ")) + rng.choice((" ", " ", "\t", "  \t")).join(
        words
    )
    if rng.random() < 0.04:  # What follows byte 1023 is a line of its own to older builds.
        line = "#".ljust(1023 - rng.choice((0, 0, 1, 20)), rng.choice("z ")) + line
    return line + rng.choice(("", "", "", " ", " # said", "#said"))


class Kernel(NamedTuple):
    """What a session starts from, and whether it may raise a hard limit."""

    inherited: Limits
    of_pid_1: Limits
    privileged: bool


def predict(files: Files, name: str, kernel: Kernel) -> Limits:
    """Return the limits inside the session: our resolution, then the kernel's word on it."""
    dialect = find_dialect(read_os_release())
    user = read_user(name)
    assert user
    resolution = resolve_limits(read_lines(files, dialect), user, dialect, NR_OPEN)
    if resolution.stopped_by:
        return kernel.inherited
    # The patch of Debian 12, Ubuntu 24.04 and older starts from the limits of PID 1.
    resets = dialect.line_length > 0 and not dialect.wildcard_root
    limits = {}
    for item, inherited in kernel.inherited.items():
        base = kernel.of_pid_1[item] if resets else inherited
        wanted = find_wanted(item, base, resolution, resets)
        # setrlimit(2): a pair that is refused leaves the old one as it was.
        limits[item] = wanted if wanted.hard <= inherited.hard or kernel.privileged else inherited
    return limits


def find_wanted(item: str, base: Rlimit, resolution: Resolution, resets: bool) -> Rlimit:
    won = {
        kind: bound.winner.value
        for (name, kind), bound in resolution.bounds.items()
        if name == item
    }
    soft = min(base.soft, 1024) if item == "nofile" and resets else base.soft
    hard = int(won.get("hard", base.hard))
    return Rlimit(min(int(won.get("soft", soft)), hard), hard)


def open_session(pam: Libpam, user: str, kernel: Kernel, folder: Path) -> Limits | str:
    """Return the limits that the real module gives, or why there is no session."""
    set_own_limits(kernel.inherited)
    outcome = pam.open_session(PamCall("oracle", user, user, {}, str(folder / "pam")))
    return outcome.limits or outcome.reason


def write_files(files: Files, folder: Path) -> None:
    for old in folder.joinpath("limits.d").iterdir():
        old.unlink()
    for path, text in files.items():
        target = folder / path[len("/etc/security/") :]
        target.write_bytes(text.encode("latin-1"))
    assert read_limits_files() == {
        path: text for path, text in files.items() if path.endswith(".conf")
    }


class Rig:
    """This process's own /etc/security and users; see :func:`enter_namespaces`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        set_own_limits({**read_own_limits(), **OF_PID_1})
        of_pid_1 = parse_proc_limits(Path("/proc/1/limits").read_text())
        status = Path("/proc/self/status").read_text()
        capabilities = int(status.partition("CapEff:")[2].split()[0], 16)
        self.kernel = Kernel({**of_pid_1, **INHERITED}, of_pid_1, bool(capabilities >> 24 & 1))
        self.pam = Libpam()
        load_modules(("pam_limits.so", "pam_permit.so"))

    def compare(self, files: Files, users: tuple[str, ...]) -> dict[str, list[str]]:
        """Return for each user what differs between prediction and session."""
        write_files(files, self.folder)
        tasks = [partial(open_session, self.pam, user, self.kernel, self.folder) for user in users]
        reports = run_in_children(tasks, 20.0)
        return {
            user: find_differences(predict(files, user, self.kernel), report)
            for user, report in zip(users, reports)
        }

    def shrink(self, files: Files, user: str) -> Files:
        """Return the files with every line left out that the mismatch does not need."""
        for path in list(files):
            lines = files[path].split("\n")
            for index in reversed(range(len(lines))):
                fewer = [*lines[:index], *lines[index + 1 :]]
                tried = {**files, path: "\n".join(fewer)}
                if self.compare(tried, (user,))[user]:
                    files, lines = tried, fewer
        return {path: text for path, text in files.items() if text or path == LIMITS_CONF}


def find_differences(expected: Limits, report: Report) -> list[str]:
    if not isinstance(report.value, dict):
        return [f"no session: {report.value or report.problem}"]
    return [
        f"{item}: predicted {limit.soft}:{limit.hard}, got {report.value[item]}"
        for item, limit in expected.items()
        if list(limit) != report.value[item]
    ]


def run_cases(folder: Path) -> dict[str, object]:
    """Try every generated set of files for every user; return the count and what differed."""
    rig = Rig(folder)
    rng = random.Random(SEED)
    mismatches = []
    rounds = -(-CASES // len(USERS))
    for _ in range(rounds):
        files = make_files(rng)
        for user, differences in rig.compare(files, USERS).items():
            if differences and len(mismatches) < 20:
                least = rig.shrink(files, user)
                mismatches.append([user, least, rig.compare(least, (user,))[user]])
    return {"cases": rounds * len(USERS), "mismatches": mismatches}


def enter_namespaces(folder: Path) -> None:
    """Become PID 1 of a world where /etc/security, the users and fs.nr_open are ours."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x00020000 | 0x20000000):  # CLONE_NEWNS, CLONE_NEWPID
        raise PermissionError(ctypes.get_errno(), "no namespaces here")
    child = os.fork()
    if child:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 255)
    (folder / "security" / "limits.d").mkdir(parents=True)
    (folder / "security" / "pam").mkdir()
    for name, content in (
        ("passwd", PASSWD),
        ("group", GROUP),
        ("nr_open", f"{NR_OPEN}\n"),
        ("security/pam/oracle", SERVICE),
        ("security/pam/other", ""),
    ):
        (folder / name).write_bytes(content.encode("latin-1"))
    run("mount", "--make-rprivate", "/")
    run("mount", "-t", "proc", "proc", "/proc")
    for name, target in (
        ("passwd", "/etc/passwd"),
        ("group", "/etc/group"),
        ("nr_open", "/proc/sys/fs/nr_open"),
        ("security", "/etc/security"),
    ):
        run("mount", "--bind", str(folder / name), target)


def run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, check=False)
    if done.returncode:
        raise PermissionError(done.stderr.decode())


def run_in_namespaces(folder: Path) -> NoReturn:
    """Leave the result, or why there is none, in a file: the test is in another world."""
    status = 1
    try:
        enter_namespaces(folder)
        result = run_cases(folder / "security")
        (folder / "result.json").write_text(json.dumps(result))
        status = 0
    except PermissionError as exc:
        (folder / "refused").write_text(str(exc))
    except BaseException:
        (folder / "failed").write_text(traceback.format_exc())
    finally:
        os._exit(status)


@pytest.mark.skipif(os.geteuid() != 0, reason="opening sessions of others needs root")
def test_prediction_is_what_pam_limits_gives(tmp_path: Path) -> None:
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        run_in_namespaces(tmp_path)
    os.waitpid(child, 0)
    if (tmp_path / "refused").exists():
        pytest.skip((tmp_path / "refused").read_text())
    assert not (tmp_path / "failed").exists(), (tmp_path / "failed").read_text()
    result = json.loads((tmp_path / "result.json").read_text())
    mismatches = "".join(
        f"\n{user}: {'; '.join(differences)}\n"
        + "".join(f"  {path}\n    {text!r}\n" for path, text in files.items())
        for user, files, differences in result["mismatches"]
    )
    print(
        f"\npam_limits: {result['cases']} cases (seed {SEED}) in {time.monotonic() - started:.0f} s,"
        f" {len(result['mismatches'])} mismatches{mismatches}"
    )
    assert result["cases"] >= CASES
    assert not mismatches
