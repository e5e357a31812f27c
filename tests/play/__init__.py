# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays that are run here, on the machine itself, without a guest."""
