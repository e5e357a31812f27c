# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that run on the guest, as root or as the attacker; each is a script there."""
