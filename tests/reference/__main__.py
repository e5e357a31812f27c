# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the page of every key of a policy; with a folder, the pages of causes into a copy of docs."""

from __future__ import annotations

import sys

from tests.conftest import load_library

load_library()

from .policy_page import PAGE, format_page


def main() -> int:
    PAGE.write_text(format_page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
