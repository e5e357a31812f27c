# SPDX-License-Identifier: GPL-3.0-or-later
"""Every command of the documents is run, every policy is read, every playbook is checked."""
