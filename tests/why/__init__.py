# SPDX-License-Identifier: GPL-3.0-or-later
"""Last words of runs, each made by the real thing, and whether they are understood."""
