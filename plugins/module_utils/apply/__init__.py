# SPDX-License-Identifier: BSD-2-Clause
"""Change a host: crash-safe replacement of files, and nothing else writes."""
