# SPDX-License-Identifier: BSD-2-Clause
"""The version of the collection and of the package, which are the same."""

from __future__ import annotations

VERSION = "0.1.0"
