# SPDX-License-Identifier: GPL-3.0-or-later
"""Real DataLoader loops near a limit, raised while they run."""
