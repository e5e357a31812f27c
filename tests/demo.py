# SPDX-License-Identifier: GPL-3.0-or-later
"""Show the product on a fresh host: red, provision, green, and nothing to do the second time."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

from .host import guest
from .host.cache import HostError

BUILD = Path("build")
INVENTORY = BUILD / "hosts"
RESULT = BUILD / "demo.json"
LOG = BUILD / "demo.log"
WIDTH = 80


class DemoError(RuntimeError):
    """A step did not end as it must; the message says which and where to look."""


def main() -> int:
    """Run the demo and return its exit status; the path of the result is its last line."""
    BUILD.mkdir(exist_ok=True)
    LOG.write_text("")
    start = time.monotonic()
    print("A fresh Debian host starts. Nothing of ours is on it.", flush=True)
    try:
        with guest.running(new=True) as host:
            shutil.copy(host.inventory, INVENTORY)
            results = show(str(INVENTORY))
    except (DemoError, HostError, OSError) as exc:
        print(f"demo: {exc}", file=sys.stderr)
        return 1
    RESULT.write_text(json.dumps(results, indent=2) + "\n")
    print(f"\nRed to green in {time.monotonic() - start:.0f} s. The results as JSON:\n{RESULT}")
    return 0


def show(inventory: str) -> dict[str, Any]:
    """Take the host from red to green and return the results of the two checks."""
    title("1. Check: what do jobs on this host really get?")
    red = check(inventory)
    expect(red["summary"]["fail"] > 0, "a fresh host should be red")
    title("2. Provision: one run makes the policy true, and proves it")
    expect(changes(provision(inventory)) == 1, "the first run should change the host")
    title("3. Check again: what do they get now?")
    green = check(inventory)
    counts = green["summary"]
    expect(counts["fail"] == counts["unknown"] == 0, "the host should be green now")
    title("4. Provision again: nothing is left to do")
    expect(changes(provision(inventory)) == 0, "the second run should change nothing")
    return {"red": red, "green": green}


def check(inventory: str) -> dict[str, Any]:
    """Run the ad hoc check and print what it displays, without what Ansible itself says then."""
    text = run(["ansible", "all", "-i", inventory, "-m", "mlhost.limits.check"], accepted=(0, 2))
    start = text.index(" => {")
    print(re.split(r"\n(?=\[ERROR\])", text[: text.rindex("\n", 0, start)])[0])
    result: dict[str, Any] = json.loads(text[start + 4 : text.rindex("}") + 1])
    return result


def provision(inventory: str) -> str:
    """Run the playbook and print what it prints, without stars and empty lines, to fit."""
    words = ["ansible-playbook", "-i", inventory, "mlhost.limits.provision", "--diff"]
    text = run([*words, "-e", "mlhost_limits_docker_restart=true"])
    for line in text.splitlines():
        if line.startswith(("PLAY", "TASK")):
            line = line.rstrip("* ")
        if " : ok=" in line:
            line = " ".join(line.split())
        if line:
            print(fit(line))
    return text


def changes(output: str) -> int:
    """Return how many tasks changed something, from the recap."""
    counts = re.findall(r"changed=(\d+)", output)
    if not counts:
        raise DemoError(f"ansible-playbook printed no recap; see {LOG}")
    return int(counts[-1])


def run(words: list[str], accepted: tuple[int, ...] = (0,)) -> str:
    """Print a command, run it, and return its output."""
    print(fit(f"$ {' '.join(words)}"), flush=True)
    done = subprocess.run(
        words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    with LOG.open("a") as log:
        log.write(f"$ {' '.join(words)}\n{done.stdout}{done.stderr}\n")
    if done.returncode not in accepted:
        raise DemoError(f"{words[0]} ended with status {done.returncode}; see {LOG}")
    return done.stdout


def fit(line: str) -> str:
    """Break a line that is wider than a terminal."""
    return "\n".join(textwrap.wrap(line, WIDTH, subsequent_indent="    ")) or line


def title(text: str) -> None:
    print(f"\n{text}\n{'=' * len(text)}", flush=True)


def expect(met: bool, what: str) -> None:
    if not met:
        raise DemoError(f"{what}, and that is not so; see {LOG}")


if __name__ == "__main__":
    sys.exit(main())
