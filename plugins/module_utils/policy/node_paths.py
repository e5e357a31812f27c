# SPDX-License-Identifier: BSD-2-Clause
"""Where a node keeps the policy that it checks itself against."""

from __future__ import annotations

POLICY = "/etc/mlhost-limits/monitor.json"
