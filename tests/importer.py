# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the built tarball as the place where collections are shared does; a complaint is an error."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

BUILD = Path(__file__).parents[1] / "build"
CONFIG = "[galaxy-importer]\nrun_ansible_test = False\ncheck_required_tags = True\n"


class Complaints(logging.Handler):
    """What was said at the level of a warning, or above."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())


def main() -> int:
    """Import the tarball; ansible-test is left out, because it has a step of its own."""
    (BUILD / "importer.cfg").write_text(CONFIG)
    os.environ["GALAXY_IMPORTER_CONFIG"] = str(BUILD / "importer.cfg")
    from galaxy_importer import collection, config  # Reads its configuration when imported.

    (tarball,) = BUILD.glob("mlhost-limits-*.tar.gz")
    complaints = Complaints()
    logging.basicConfig(
        level=logging.INFO, handlers=[complaints, logging.StreamHandler(sys.stdout)]
    )
    with tarball.open("rb") as file:
        settings = config.Config(config_data=config.ConfigFile.load())
        collection.import_collection(file=file, logger=logging.getLogger(), cfg=settings)
    print("\n".join(complaints.told) or "nothing to complain about")
    return 1 if complaints.told else 0


if __name__ == "__main__":
    sys.exit(main())
