# SPDX-License-Identifier: BSD-2-Clause
"""Watch one run while it lives: what it takes of each limit, and what it ended of."""
