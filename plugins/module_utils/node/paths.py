# SPDX-License-Identifier: BSD-2-Clause
"""Where a node keeps the policy that it checks itself against, and how often it does."""

from __future__ import annotations

INTERVAL = "5min"
POLICY = "/etc/mlhost-limits/monitor.json"
