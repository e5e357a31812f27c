# SPDX-License-Identifier: GPL-3.0-or-later
"""Every verb, run here and now on a made-up host: no guest, no daemon, no trace."""
