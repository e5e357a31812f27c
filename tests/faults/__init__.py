# SPDX-License-Identifier: GPL-3.0-or-later
"""Break a host in known ways, and see whether a check names what was broken and how to mend it."""
