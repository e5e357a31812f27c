# SPDX-License-Identifier: GPL-3.0-or-later
"""Distributions whose defaults tests take for granted."""

from mlhost_limits.core.distribution import find_distribution

DEBIAN = find_distribution({"ID": "debian", "VERSION_ID": "12"})
RED_HAT = find_distribution({"ID": "rhel", "VERSION_ID": "9.4"})
