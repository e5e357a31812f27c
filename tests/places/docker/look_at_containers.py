"""Runs on a guest: print what a check says of its containers, as JSON."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import sys
import time

from mlhost_limits.check_host import check_host
from mlhost_limits.core.policy import CheckOptions
from mlhost_limits.schema import load_policy

started = time.perf_counter()
result = check_host(load_policy(None, "training"), CheckOptions(sections=("docker",)))
seconds = time.perf_counter() - started
json.dump({"seconds": seconds, "lines": result.lines, **result.as_result()}, sys.stdout)
