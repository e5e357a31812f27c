# SPDX-License-Identifier: GPL-3.0-or-later
"""The library broken in one place at a time: does a test see it?"""
