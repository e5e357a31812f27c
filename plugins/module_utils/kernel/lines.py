# SPDX-License-Identifier: BSD-2-Clause
"""Name the lines that state a sysctl, and say which of two beats the other, and why."""

from __future__ import annotations

from ..core.cause import cite
from ..core.declaration import Declaration
from ..core.finding import PASS, Requirement
from ..core.quote import one_line
from .model import KernelFacts, is_effective, judge_value, list_boot_files
from .remedies import locate_file
from .sysctl_conf import SYSCTL_CONF, order_files, parse_sysctl_conf
from .sysctl_writes import SYSTEMD, resolve_sysctl

_OF_PACKAGES = ("/usr/lib/", "/lib/")


def find_value(wanted: Requirement) -> str:
    """Return the value that meets a requirement with least change."""
    if wanted.exact is not None:
        return wanted.exact
    return str(wanted.maximum if wanted.minimum is None else wanted.minimum)


def list_lines(facts: KernelFacts) -> tuple[Declaration, ...]:
    """Return the lines that concern the key in what a boot reads, the strongest last."""
    files = list_boot_files(facts)
    found = resolve_sysctl(files, [facts.key], SYSTEMD, facts.is_taken).get(facts.key)
    return () if found is None else (*found.shadowed, found.winner)


def list_read_lines(facts: KernelFacts) -> list[Declaration]:
    """Return the lines that concern the key, in the order in which a boot reads them."""
    found = set(list_lines(facts))
    every = (line.declaration for line in SYSTEMD.read(list_boot_files(facts)))
    return [line for line in every if line in found]


def list_unread_lines(facts: KernelFacts) -> list[Declaration]:
    """Return the lines about the key of files that a boot does not read."""
    read = order_files(list_boot_files(facts))
    links = {facts.real.get(path, path) for path in read}
    return [
        line.declaration
        for path, text in facts.files.items()
        if path not in read and facts.real.get(path, path) not in links
        for line in parse_sysctl_conf(text, path)
        if line.key == facts.key
    ]


def find_rivals(
    wanted: Requirement, line: Declaration, facts: KernelFacts
) -> tuple[Declaration, ...]:
    """Return the other lines that would do, the strongest last."""
    return tuple(
        locate_file(one, facts)
        for one in list_lines(facts)
        if one != line
        and is_effective(facts, one)
        and judge_value(wanted, facts.normalise(one.value)) == PASS
    )


def cite_line(line: Declaration, facts: KernelFacts) -> str:
    """Name a line by the file that holds it, and by the link through which it is read."""
    real = locate_file(line, facts)
    return cite(real) + (f", read as {one_line(line.path)}," if real != line else "")


def compare_lines(line: Declaration, rival: Declaration) -> str:
    """Return the code of why one line beats another."""
    if line.path == rival.path:
        after = line.line > rival.line
        return "sysctl-later-line-wins" if after else "sysctl-name-beats-pattern"
    if line.path == SYSCTL_CONF:
        return "sysctl-conf-wins"
    names = [one.path.rpartition("/")[2] for one in (line, rival)]
    if names[0] < names[1] and rival.path != SYSCTL_CONF:
        return "sysctl-name-beats-pattern"
    if line.path.startswith("/run/"):
        return "sysctl-run-file-wins"
    if line.path.startswith(_OF_PACKAGES):
        return "sysctl-vendor-file-wins"
    return "sysctl-later-file-wins"
