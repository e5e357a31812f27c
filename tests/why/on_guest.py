# SPDX-License-Identifier: GPL-3.0-or-later
"""On a guest: run cases, and tell as JSON what each wrote there and what the host shows of it.

Standard input has a case a line, standard output an answer a line: one process and one login, for
both take an emulated host a while.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from mlhost_limits.why.facts import Facts
from mlhost_limits.why.host_read import read_facts
from mlhost_limits.why.log_text import Words, find_path, list_pids
from mlhost_limits.why.verdict import REQUEST, judge_words
from mlhost_limits.why.where_read import find_docker, find_unit

from tests.why.facts import dump_facts

HERE = Path(__file__).parent
WORK = Path("/var/tmp/work")
MOUNTS = "--network none" + "".join(
    f" -v {one}:{one}:ro" for one in ("/usr", "/lib", "/lib64", "/bin", "/etc")
)
LIMIT = 150.0
FINDERS = {"unit": find_unit, "container": find_docker}


def main() -> None:
    for line in sys.stdin:
        case = json.loads(line)
        text = run(case)
        try:
            answer = look(case, text)
        except (OSError, ValueError) as error:
            answer = {"text": text, "facts": {}, "problem": str(error)}
        print(json.dumps({"name": case["name"], **answer}), flush=True)


def run(case: dict[str, str]) -> str:
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir()
    WORK.chmod(0o777)
    settings = {
        "PATH": os.environ["PATH"],
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "PY": "/usr/bin/python3",
        "WORK": str(WORK),
        "NAME": case["name"],
        "HERE": str(HERE),
        "USER_ID": "64321",
        "MOUNTS": MOUNTS,
    }
    with (WORK / "words").open("wb") as file:
        words = ["timeout", str(LIMIT), "bash", "-c", f". {HERE}/prelude.sh\n{case['program']}"]
        subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=settings, cwd=WORK,
            check=False,
        )  # fmt: skip
    return (WORK / "words").read_bytes().decode("utf-8", "replace")


def look(case: dict[str, str], text: str) -> dict[str, Any]:
    """Return the words, and what the host shows to somebody who says where it ran."""
    kind, _colon, name = case["ask"].partition(":")
    where = FINDERS[kind](name) if kind else None
    text = where.words.text if where else text
    verdict = judge_words(Words(text))
    if verdict is None:
        return {"text": text, "facts": {}}
    needed = verdict.needed
    known = Facts(
        uid=where.uid if where else None,
        groups=where.groups if where else (),
        told=where.told if where else {},
        home=where.home if where else "",
        age=where.ended if where else 0.0,
        started=where.started if where else None,
        here=where.here if where else False,
        pids=list_pids(verdict.near),
        path=find_path(verdict.line),
        request=needed[1] if needed and needed[0] == REQUEST else 0,
    )
    codes = [one.code for one in (verdict.reason, *verdict.others)]
    return {"text": text, "facts": dump_facts(read_facts(codes, known))}


main()
