# SPDX-License-Identifier: GPL-3.0-or-later
"""Break provisioning runs at every point and look at what they leave behind."""
