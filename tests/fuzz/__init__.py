# SPDX-License-Identifier: GPL-3.0-or-later
"""Feed every parser with what nobody meant it to read."""
