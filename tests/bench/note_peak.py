# SPDX-License-Identifier: GPL-3.0-or-later
"""Let a target's Python note, as it ends, the most memory it held; installed as sitecustomize.

What it started is left out: ``dockerd --validate`` holds more than any module. The children
that open sessions are copies of the module, and share its memory.
"""

import atexit
import resource

NOTES = "/run/bench-peaks"  # A number of KiB for each run.


@atexit.register
def _note() -> None:
    with open(NOTES, "a", encoding="ascii") as notes:
        notes.write(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}\n")
