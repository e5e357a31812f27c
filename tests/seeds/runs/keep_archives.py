"""A cache of embeddings without torch: what is there is read, what is not is made.

``keep_archives.py FOLDER [--rename] [--size BYTES]``. The archives are those of torch.save in kind.
"""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import argparse
import os
import zipfile
from pathlib import Path


def write(path: Path, size: int) -> None:
    """Write an archive part by part, as a large tensor goes to a disk."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"pickled")
        with archive.open("archive/data/0", "w") as file:
            for _number in range(size // 2**16):
                file.write(bytes(2**16))


def main() -> None:
    """Make or read two samples."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rename", action="store_true")
    parser.add_argument("--size", type=int, default=2**20)
    given = parser.parse_args()
    for number in range(2):
        path: Path = given.folder / f"sample-{number}.pt"
        if not path.exists():
            own = path.with_name(f".{path.name}.{os.getpid()}") if given.rename else path
            write(own, given.size)
            own.rename(path)
        with zipfile.ZipFile(path) as archive:
            print(path.name, len(archive.read("archive/data/0")))


if __name__ == "__main__":
    main()
