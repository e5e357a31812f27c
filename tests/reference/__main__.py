# SPDX-License-Identifier: GPL-3.0-or-later
"""Write what is made of the code: the pages of keys and of the command, its manual, the house.

Or write the codes of causes into a copy of the docs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.conftest import load_library

load_library()

from . import command_page, counts, house, manual
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
        command_page.PAGE.write_text(command_page.format_command_page(), encoding="utf-8")
        manual.PAGE.write_text(manual.format_manual(), encoding="utf-8")
        house.PICTURE.write_text(house.draw(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
