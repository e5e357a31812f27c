# SPDX-License-Identifier: GPL-3.0-or-later
"""Prepare a cache in a place that a user can write, and move damaged files aside."""

from __future__ import annotations

import json
import sys

sys.path.insert(0, "/root/hostile")

from command import take_out  # type: ignore[import-not-found]

take_out()

from mlhost_limits.workspace.plan import Workspace
from mlhost_limits.workspace.provision import prepare_workspace

wanted = Workspace(sys.argv[1], "mallory", "mallory", "0755")
try:
    done = prepare_workspace(wanted, True, check_mode=False)
except (OSError, ValueError) as exc:
    print(f"refused: {exc}")
    raise SystemExit(1) from None
json.dump(done.as_result(), sys.stdout, default=str)
