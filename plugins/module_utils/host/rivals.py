# SPDX-License-Identifier: BSD-2-Clause
"""Name who else writes the files at fault, and those that we change: what they wrote comes back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..core.file_origin import find_header
from ..core.quote import one_line
from .file_origin import CONFFILE, find_packages
from .files import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.declaration import Declaration
    from ..core.finding import Finding
    from ..core.plan import SectionPlan

_VENDOR = ("/usr/", "/lib/")


def name_writers(findings: Iterable[Finding], root: str = "/") -> list[Finding]:
    """Return the findings, their causes with the writer of each file at fault.

    :param root: The tree that the files are of.
    """
    findings = list(findings)
    at = {cause.at for finding in findings for cause in finding.causes if cause.at}
    writers = find_writers(at, root)
    return [
        finding._replace(
            causes=tuple(
                cause._replace(writer=writers.get(cause.at, "")) if cause.at else cause
                for cause in finding.causes
            )
        )
        for finding in findings
    ]


def find_writers(lines: Iterable[Declaration], root: str = "/") -> dict[Declaration, str]:
    """Return who else writes the file of each line, by its header or by its package."""
    lines = [line for line in lines if line.path.startswith("/")]
    packages = find_packages({line.path for line in lines}, root)
    found = {}
    for line in lines:
        said = [_read_header(line, root), packages.get(line.path, "")]
        writer = "; ".join(text for text in said if text)
        if writer:
            found[line] = writer
    return found


def _read_header(line: Declaration, root: str) -> str:
    try:
        text = read_text(line.path, root) or ""
    except OSError:
        return ""
    return one_line(find_header(text, line.line))


def describe_rivals(plans: Iterable[SectionPlan]) -> Iterator[str]:
    """Yield a note for every foreign file that a plan changes or loses to, and its other writer.

    What a package's update leaves alone once it was changed, or is known to replace, is left out.
    """
    from ..core.declaration import Declaration

    lines = {}
    for plan in plans:
        for shortfall in plan.shortfalls:
            lines[shortfall.foreign.path] = shortfall.foreign
        for edit in plan.edits:
            if edit.of_others:
                lines.setdefault(edit.path, Declaration(edit.path, 0, "", ""))
    for line, writer in find_writers(lines.values()).items():
        if not line.path.startswith(_VENDOR) and not writer.startswith(CONFFILE):
            yield f"{line.path}: {writer}; what is changed there may be undone"
