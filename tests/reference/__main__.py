# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the page of every key, the house, what the tests hold; or the codes into a copy of the docs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.conftest import load_library

load_library()

from . import counts, house
from .cause_pages import write_pages
from .policy_page import PAGE, format_page


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reference", description=__doc__)
    parser.add_argument("copy", nargs="?", type=Path, help="a copy of the docs")
    copy = parser.parse_args().copy
    if copy:
        write_pages(copy)
    else:
        PAGE.write_text(format_page(), encoding="utf-8")
        counts.PAGE.write_text(
            counts.format_counts(counts.PAGE.read_text(encoding="utf-8")), encoding="utf-8"
        )
        house.PICTURE.write_text(house.draw(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
