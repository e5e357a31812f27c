# SPDX-License-Identifier: GPL-3.0-or-later
"""Write limits files and measure sessions under them: on a guest, one request per line of JSON."""

from __future__ import annotations

import json
import sys

from mlhost_limits.sessions.measure import measure_sessions

from tests.places.sessions.pam_rig import write_files

TIME_LIMIT = 300.0
AT_ONCE = 8


def main() -> None:
    """Answer until there are no more requests."""
    for line in sys.stdin:
        request = json.loads(line)
        write_files(request["files"])
        wanted = [(service, user) for service, user in request["wanted"]]
        answer = []
        for start in range(0, len(wanted), AT_ONCE):
            some = wanted[start : start + AT_ONCE]
            opened = measure_sessions(some, "quiet", time_limit=TIME_LIMIT)
            answer += [one[:6] for one in opened]  # What they inherit is not asked.
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
