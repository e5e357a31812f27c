# SPDX-License-Identifier: BSD-2-Clause
"""See the map of folders in CONTRIBUTING.md."""
