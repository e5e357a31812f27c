# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that are watched and die of a known reason: is it told, and is no limit blamed wrongly?"""
