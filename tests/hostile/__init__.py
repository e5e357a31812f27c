# SPDX-License-Identifier: GPL-3.0-or-later
"""Attacks by an ordinary user of the host against root's commands, and the judge of them."""
