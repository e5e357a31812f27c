# SPDX-License-Identifier: BSD-2-Clause
"""Leave out of long files the limits that many later lines of the same key beat.

Causes are found by changing files in thought, and each change has them read anew: without those
lines a file that states a limit 100,000 times is read as fast as one that states it 50 times.
"""

from __future__ import annotations

from functools import lru_cache

from ..core.systemd_text import split_lines
from .unit_file import Setting, Source, scan_unit
from .values import parse_limit_setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .model import Files

_MOST = 50  # Lines of one key that are kept: they are shown as what the last one beats.


def leave_out_beaten(files: Files) -> Files:
    """Return the files without what at least 50 later lines beat, line numbers unchanged."""
    return files._replace(
        main=files.main and _thin(files.main),
        dropins=tuple(map(_thin, files.dropins)),
        manager=files.manager and _thin(files.manager),
        manager_dropins=tuple(map(_thin, files.manager_dropins)),
    )


@lru_cache(maxsize=16)
def _thin(source: Source) -> Source:
    """Return a file with empty lines for limits that many valid ones of their section follow."""
    settings = scan_unit(source.text, source.path).settings
    if len(settings) <= _MOST:
        return source
    later: dict[tuple[str, str], int] = {}
    gone: set[int] = set()
    for one in reversed(settings):
        count = later.get((one.section, one.key), 0)
        if count == _MOST:
            gone.add(one.line)
        elif _is_limit(one):
            later[one.section, one.key] = count + 1
    if not gone:
        return source
    rows = [
        "" if number in gone and not row.endswith("\\") else row
        for number, row in enumerate(split_lines(source.text), 1)
    ]
    return Source(source.path, "\n".join(rows))


def _is_limit(setting: Setting) -> bool:
    try:
        parse_limit_setting(setting.key, setting.value)
    except ValueError:
        return False
    return True
