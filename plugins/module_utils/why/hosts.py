# SPDX-License-Identifier: BSD-2-Clause
"""Find whose log it is: the hosts that its lines name, one by one or as Slurm lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .log_text import Words

_AROUND, _MOST_HOSTS = 120, 1024
_NODES = re.compile(
    r"^srun: error: ([\w.-]{1,64}\[[\d,-]{1,200}\])|\*\*\* (?:STEP|JOB) [\d.+_]+ ON "
    r"([\w.-]{1,64}\[[\d,-]{1,200}\])",
    re.MULTILINE,
)
"""Lists of hosts, as Slurm writes them."""


def find_hosts(words: Words, number: int) -> set[str]:
    """Return the hosts that a log names around a line as those that wrote it, without domains."""
    text = "\n".join(words.pick(number - _AROUND, number + _AROUND))
    listed = [match[1] or match[2] for match in _NODES.finditer(text)]
    prefixes = {one.partition("[")[0] for one in listed}
    named = {host for host in words.find_hosts(number) if host not in prefixes}
    named |= {host for one in listed for host in _expand(one)}
    return {host.partition(".")[0] for host in named} - {"localhost", ""}


def _expand(listed: str) -> Iterator[str]:
    """Yield the hosts of a list as Slurm writes it, such as ``node[01-03,07]``."""
    head, _bracket, rest = listed.partition("[")
    for part in rest.rstrip("]").split(","):
        first, _dash, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            for number in range(int(first), min(int(last or first), int(first) + _MOST_HOSTS) + 1):
                yield f"{head}{number:0{len(first)}}"
