# SPDX-License-Identifier: BSD-2-Clause
"""Plan what fstab(5) must say of /dev/shm; a size that suffices is left as it is."""

from __future__ import annotations

from itertools import takewhile

from ..core.edit import find_block_lines, neutralize, remove_block, restore, set_block
from ..core.plan import SectionPlan, Shortfall, plan_edits
from .model import FSTAB, find_default, find_lines, format_line


def plan_shm(
    size: int | None, text: str | None, memory: int, override: bool, absent: bool
) -> SectionPlan:
    """Return the edit of fstab after which a boot gives /dev/shm a size.

    :param size: What is wanted at least, in bytes; ``None`` for whatever there is.
    :param text: fstab's; ``None`` where there is none.
    :param memory: The host's memory in bytes.
    """
    before = {} if text is None else {FSTAB: text}
    try:
        plain = None if text is None else restore(text)
        if absent or size is None:
            after = None if plain is None else remove_block(plain, FSTAB)
            return SectionPlan(plan_edits(before, {FSTAB: after}))
        after, beaten = _state(size, plain, memory, override)
    except ValueError as exc:
        return SectionPlan(problems=(str(exc),))
    more = f"{FSTAB}: a /dev/shm of {size} bytes is larger than this host's memory, {memory}"
    notes = (more,) if size > memory else ()
    return SectionPlan(plan_edits(before, {FSTAB: after}), shortfalls=beaten, notes=notes)


def _state(
    size: int, text: str | None, memory: int, override: bool
) -> tuple[str | None, tuple[Shortfall, ...]]:
    """Return the text of fstab that gives a size, and the lines of others that are too low."""
    remove_block(text or "", FSTAB)  # Half a block is refused, by its file.
    own = find_block_lines(text or "")
    lines = [line for line in find_lines(text or "", memory) if line.line not in own]
    low = list(takewhile(lambda line: int(line.value) < size, lines))
    default = find_default(memory) if not lines else 0
    if (lines and not low) or default >= size:
        return (None if text is None else remove_block(text, FSTAB)), ()
    ours = format_line(size)
    beaten = tuple(Shortfall(line, ours, override) for line in low)
    if low and not override:  # The first line counts, and a second would say nothing.
        return (None if text is None else remove_block(text, FSTAB)), beaten
    text = None if text is None else neutralize(text, {line.line for line in low})
    needed = [ours] if len(low) == len(lines) else []
    return set_block(text, needed, FSTAB), beaten
