# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of the docs that are made out of the code."""
