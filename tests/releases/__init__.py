# SPDX-License-Identifier: GPL-3.0-or-later
"""Which releases and controllers this runs on, found out by running it there."""
