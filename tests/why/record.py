# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the programs of the corpus as root, and keep what they write: ``python -m tests.why.record``.

It needs torch, numpy, grpcio, watchdog and joblib for the system's Python, in a folder that
``--libraries`` names; Node, Java, gcc; and root.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from tests.conftest import load_library

load_library()

from mlhost_limits.why.host_read import read_facts, read_group
from mlhost_limits.why.log_text import Words, list_pids
from mlhost_limits.why.signs import Facts
from mlhost_limits.why.verdict import REQUEST, judge_words

from .corpus import HERE, Case, list_cases, read_recorded, write_recorded
from .facts import dump_facts

FIRST_USER = 20100
LIMIT = 300.0
CALM = ("killed-by-hand", "own-exit")
"""What is recorded first, while the kernel has killed nobody for a while."""

SKIPPED = 77
MOST = 20000
"""Characters of words that are kept, from their end."""


def main() -> int:
    """Record the cases that are asked for; those that were not recorded yet, by default."""
    parser = argparse.ArgumentParser(prog="python -m tests.why.record", description=__doc__)
    parser.add_argument("--libraries", required=True, metavar="DIR")
    parser.add_argument("--anew", action="store_true", help="those too that were")
    parser.add_argument("--only", action="append", help="the name of a case; repeat it")
    wanted = parser.parse_args()
    first = sorted(enumerate(list_cases()), key=lambda pair: pair[1].expected not in CALM)
    for number, case in first:
        recorded = read_recorded(case.group)
        known = recorded.get(case.name, {})
        if wanted.only and case.name not in wanted.only:
            continue
        if not (wanted.only or wanted.anew) and known.get("program") == case.program:
            continue
        made = run(case, wanted.libraries, FIRST_USER + number)
        recorded.pop(case.name, None)
        if made:
            recorded[case.name] = made
        write_recorded(case.group, recorded)
        last = str(made["text"]).strip().splitlines()[-1:] if made else ["skipped"]
        print(f"{case.name}: {''.join(last)[:150]}", flush=True)
    return 0


def run(case: Case, libraries: str, user: int) -> dict[str, object] | None:
    """Return the words of a case and its status; nothing where it cannot be made here."""
    work = Path(tempfile.mkdtemp(prefix="why-"))
    work.chmod(0o777)
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "PY": "/usr/bin/python3",
        "PYTHONPATH": libraries,
        "WORK": str(work),
        "NAME": case.name,
        "HERE": str(HERE),
        "USER_ID": str(user),
    }
    words = ["bash", "-c", f". {HERE}/prelude.sh\n{case.program}"]
    with (work / "words").open("wb") as file:
        child = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment,
            cwd=work, start_new_session=True,
        )  # fmt: skip
        try:
            status = child.wait(LIMIT)
        except subprocess.TimeoutExpired:
            status = None
        facts = _look(case, work / "words", user)
        _end(child.pid)
    text = (work / "words").read_bytes().decode("utf-8", "replace")[-MOST:]
    shutil.rmtree(work, ignore_errors=True)
    _remove_groups(case.name)
    if status == SKIPPED:
        return None
    for machine, neutral in (
        (libraries, "/opt/libraries"),
        (str(work), "/work"),
        (str(HERE), "/tests"),
    ):
        text = text.replace(machine, neutral)
    return {"expected": case.expected, "program": case.program, "status": status, "text": text,
            "facts": facts}  # fmt: skip


def _look(case: Case, path: Path, user: int) -> dict[str, object]:
    """Return what the host shows of a case that has just ended, as somebody sees who knows where
    it ran."""
    words = Words(path.read_bytes().decode("utf-8", "replace"))
    verdict = judge_words(words)
    if verdict is None:
        return {}
    folders = Path("/sys/fs/cgroup").glob(f"*/mlhost-why-{case.name}")
    known = Facts(
        uid=user if "$AS_USER" in case.program or "as_user" in case.program else 0,
        groups=[group for folder in folders for group in read_group(str(folder))],
        age=0.0,
        pids=list_pids(verdict.near),
        request=verdict.needed[1] if verdict.needed and verdict.needed[0] == REQUEST else 0,
    )
    codes = [one.code for one in (verdict.reason, *verdict.others)]
    return dump_facts(read_facts(codes, known))


def _end(group: int) -> None:
    """End what a case left in its session."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
    time.sleep(0.2)


def _remove_groups(name: str) -> None:
    for folder in Path("/sys/fs/cgroup").glob(f"*/mlhost-why-{name}"):
        for _attempt in range(20):
            try:
                folder.rmdir()
                break
            except OSError:
                time.sleep(0.2)


if __name__ == "__main__":
    raise SystemExit(main())
