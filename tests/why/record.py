# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the programs of the corpus as root, and keep what they write: ``python -m tests.why.record``.

It needs torch, numpy, grpcio, watchdog and joblib for the system's Python, in a folder that
``--libraries`` names; Node, Java, gcc; and root.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.conftest import load_library
from tests.host import guest
from tests.host.library import carry

load_library()

from mlhost_limits.why.facts import Facts
from mlhost_limits.why.host_read import read_facts, read_group
from mlhost_limits.why.log_text import Words, find_path, list_pids
from mlhost_limits.why.verdict import REQUEST, judge_words

from .corpus import HERE, OF_GUEST, Case, list_cases, read_recorded, write_recorded
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
    parser.add_argument("--libraries", default="", metavar="DIR")
    parser.add_argument("--guest", help="a test host that is up, for the cases that need one")
    parser.add_argument("--anew", action="store_true", help="those too that were")
    parser.add_argument("--only", action="append", help="the name of a case; repeat it")
    wanted = parser.parse_args()
    numbered = [
        (number, case)
        for number, case in enumerate(list_cases())
        if bool(wanted.guest) == (case.group == OF_GUEST)
        and (case.name in wanted.only if wanted.only else wanted.anew or _is_new(case))
    ]
    numbered.sort(key=lambda pair: pair[1].expected not in CALM)
    if wanted.guest:
        record_on_guest(wanted.guest, [case for _number, case in numbered])
        return 0
    for number, case in numbered:
        _keep(case, run(case, wanted.libraries, FIRST_USER + number))
    return 0


def _is_new(case: Case) -> bool:
    return bool(read_recorded(case.group).get(case.name, {}).get("program") != case.program)


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


def record_on_guest(name: str, cases: Sequence[Case]) -> None:
    """Run cases on a guest, one after the other in one login, and keep what it tells of each."""
    host = guest.find(name)
    if host is None:
        raise LookupError(f"no guest {name} is up")
    files = ("__init__.py", "why/__init__.py", "why/prelude.sh", "why/facts.py", "why/on_guest.py")
    carry(host, {f"tests/{one}": HERE.parent / one for one in files}, seconds=600)
    image = "tar cf - --files-from /dev/null | docker import - empty:1 > /dev/null"
    command = f"{image}; PYTHONPATH=/opt exec python3 /opt/tests/why/on_guest.py"
    asked = "".join(json.dumps(case._asdict()) + "\n" for case in cases)
    by_name = {case.name: case for case in cases}
    with subprocess.Popen(
        [*host.ssh_command(), command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin
        assert child.stdout
        child.stdin.write(asked)
        child.stdin.close()
        for line in child.stdout:
            made = json.loads(line)
            case = by_name[made.pop("name")]
            if "problem" in made:
                print(f"{case.name}: {made['problem']}", flush=True)
                continue
            _keep(
                case, {"expected": case.expected, "program": case.program, "status": None, **made}
            )


def _keep(case: Case, made: dict[str, object] | None) -> None:
    recorded = read_recorded(case.group)
    recorded.pop(case.name, None)
    if made:
        recorded[case.name] = made
    write_recorded(case.group, recorded)
    last = str(made["text"]).strip().splitlines()[-1:] if made else ["skipped"]
    print(f"{case.name}: {''.join(last)[:150]}", flush=True)


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
        path=find_path(verdict.line),
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
