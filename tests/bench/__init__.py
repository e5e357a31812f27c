# SPDX-License-Identifier: GPL-3.0-or-later
"""Time this collection against the stock modules and against Ansible's own ping."""
