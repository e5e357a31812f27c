# SPDX-License-Identifier: GPL-3.0-or-later
"""Let runs that are watched die as root, here; write ``build/blackbox.json``, end with figures."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.conftest import load_library

load_library()

from mlhost_limits.node.zipapp_read import build_zipapp, read_library
from mlhost_limits.why.verdict import SHOWN

from .deaths import LIMITS, NONE, Death, list_deaths
from .of_host import NOT_ASKED, black_box, find_reports, own_group
from .overhead import measure_host, measure_overhead

TOP = Path(__file__).parents[2]
FILE = TOP / "build" / "blackbox.json"
PYTHON = "/usr/bin/python3"
FIRST_USER = 20500
AT_ONCE, LIMIT = 3, 120.0
RIGHT, NOT_NAMED, WRONG = "named_right", "not_named", "wrong_blame"


class Told(NamedTuple):
    """What was told of one death, and what the watcher wrote beside it."""

    death: Death
    outcome: str
    told: str
    is_early: bool


def main() -> int:
    """Inject what is asked for, all by default."""
    parser = argparse.ArgumentParser(prog="python -m tests.blackbox", description=__doc__)
    parser.add_argument("--only", action="append", help="a kind of death; repeat it")
    parser.add_argument(
        "--host", action="store_true", help="only the black box of the host watches"
    )
    parser.add_argument("--slower", type=float, default=1.0, help="climb so many times slower")
    parser.add_argument("--seconds", type=float, default=60.0, help="to measure the overhead for")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="blackbox-") as folder:
        work = Path(folder)
        work.chmod(0o755)
        program, stack = work / "mlhost-limits.pyz", work / "stack"
        program.write_bytes(build_zipapp(read_library(), PYTHON))
        program.chmod(0o755)
        words = ["gcc", "-O0", "-o", str(stack), str(Path(__file__).with_name("stack.c"))]
        subprocess.run(words, check=True)
        shutil.copy(Path(__file__).with_name("climb.py"), work)
        numbered = [
            (number, one)
            for number, one in enumerate(list_deaths())
            if not asked.only or one.kind in asked.only
        ]
        os.environ["SLOWER"] = str(asked.slower)
        kill = inject
        with ExitStack() as watching:
            if asked.host:
                numbered = [pair for pair in numbered if pair[1].kind not in NOT_ASKED]
                kill = inject_unwatched
                watching.enter_context(black_box(program))
            with ThreadPoolExecutor(AT_ONCE) as pool:
                told = list(pool.map(lambda pair: kill(pair[1], pair[0], work), numbered))
        measure = measure_host if asked.host else measure_overhead
        overhead = measure(program, asked.seconds) if asked.seconds else {}
    figures = count(told)
    _keep("host" if asked.host else "runs", figures, overhead, told)
    print("black box:", ", ".join(f"{key} {value}" for key, value in figures.items()))
    print("overhead:", ", ".join(f"{key} {value}" for key, value in overhead.items()))
    return 1 if figures[WRONG] or figures[NOT_NAMED] else 0


def _keep(what: str, figures: dict[str, int], overhead: dict[str, float], told: list[Told]) -> None:
    """Write the figures beside those of the other way to watch."""
    cases = [{"name": one.death.name, **_describe(one)} for one in told]
    FILE.parent.mkdir(exist_ok=True)
    kept = json.loads(FILE.read_text()) if FILE.exists() else {}
    kept = {name: kept[name] for name in ("runs", "host") if name in kept}
    kept[what] = {**figures, "overhead": overhead, "deaths": cases}
    FILE.write_text(json.dumps(kept, indent=1) + "\n")


def _describe(told: Told) -> dict[str, object]:
    return {"reason": told.death.reason, "outcome": told.outcome, "told": told.told}


def inject(death: Death, number: int, work: Path) -> Told:
    """Let one run die, and return what its watcher told."""
    own = _make_folder(work, death)
    watch = f"{work}/mlhost-limits.pyz watch --report {own}/report.json --"
    _let_die(death, number, work, watch)
    return judge(death, own)


def inject_unwatched(death: Death, number: int, work: Path) -> Told:
    """Let one run die that only the black box of the host sees, and return what that kept."""
    _make_folder(work, death)
    with own_group(death.name) as enter:
        _let_die(death, number, work, "", enter)
    reports = find_reports(death.name, death.reason != NONE)
    blames = [one for one in reports if one["sure"] == SHOWN and one["is_limit"]]
    told = "; ".join(f"{one['sure']}: {one['reason']} {one['host']}" for one in reports)
    if any(one["reason"] != death.reason for one in blames):
        return Told(death, WRONG, told, is_early=False)
    is_right = bool(blames) == (death.reason != NONE)
    return Told(death, RIGHT if is_right else NOT_NAMED, told, is_early=False)


def _make_folder(work: Path, death: Death) -> Path:
    own = work / death.name
    own.mkdir()
    own.chmod(0o777)
    return own


def _let_die(death: Death, number: int, work: Path, watch: str, first: str = ":") -> None:
    """Run the program of a death to its end.

    :param first: What its shell does first.
    """
    own = work / death.name
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "LANG": "C.UTF-8",
        "PY": PYTHON,
        "WORK": str(own),
        "NAME": f"blackbox-{death.name}",
        "HERE": str(work),
        "STACK": str(work / "stack"),
        "USER_ID": str(FIRST_USER + number),
        "WATCH": watch,
        "SLOWER": os.environ["SLOWER"],
    }
    prelude = TOP / "tests" / "why" / "prelude.sh"
    with (own / "words").open("wb") as file:
        child = subprocess.Popen(
            ["bash", "-c", f"{first}\n. {prelude}\n{death.program}"],
            stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment, cwd=own,
            start_new_session=True,
        )  # fmt: skip
        with suppress(subprocess.TimeoutExpired):
            child.wait(LIMIT * float(os.environ["SLOWER"]))
        end_all(child.pid, environment["NAME"])


def end_all(group: int, name: str) -> None:
    """End what a death left behind, and remove its cgroups."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    for folder in Path("/sys/fs/cgroup").glob(f"**/mlhost-why-{name}"):
        for _attempt in range(30):
            for pid in (folder / "cgroup.procs").read_text().split():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    continue
            try:
                folder.rmdir()
                break
            except OSError:
                signal.sigtimedwait([], 0.1)


def judge(death: Death, own: Path) -> Told:
    """Compare what was told with what it died of."""
    words = (own / "words").read_text(errors="replace")
    is_early = "mlhost-limits: " in words and " at this rate; " in words
    try:
        report: dict[str, Any] = json.loads((own / "report.json").read_text())
    except (OSError, ValueError):
        outcome = RIGHT if death.reason == NONE and "KILL" in death.program else NOT_NAMED
        return Told(death, outcome, f"no report: {words[-300:]}", is_early)
    told = f"{report['sure']}: {report['reason']} {report['host']}"
    blames = report["sure"] == SHOWN and report["is_limit"]
    if blames and report["reason"] != death.reason:
        return Told(death, WRONG, told, is_early)
    is_right = blames if death.reason != NONE else not report["is_limit"]
    return Told(death, RIGHT if is_right else NOT_NAMED, told, is_early)


def count(told: list[Told]) -> dict[str, int]:
    """Return the figures, and print what is not right."""
    for one in told:
        if one.outcome != RIGHT:
            print(f"{one.outcome:11} {one.death.name} ({one.death.reason or 'none'}): {one.told}")
    deaths = [one for one in told if one.death.reason != NONE]
    calm = [one for one in told if one.death.reason == NONE]
    return {
        "kinds": len({one.death.kind for one in deaths} & set(LIMITS)),
        "deaths": len(deaths),
        RIGHT: sum(one.outcome == RIGHT for one in deaths),
        NOT_NAMED: sum(one.outcome == NOT_NAMED for one in deaths),
        WRONG: sum(one.outcome == WRONG for one in told),
        "told_before": sum(one.is_early for one in deaths),
        "no_limit": len(calm),
        "no_limit_right": sum(one.outcome == RIGHT for one in calm),
    }


if __name__ == "__main__":
    raise SystemExit(main())
