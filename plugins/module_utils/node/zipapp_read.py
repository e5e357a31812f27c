# SPDX-License-Identifier: BSD-2-Clause
"""Make one file of the library that Python runs by itself; the same bytes of the same sources.

It holds each source, and beside it what one version of Python compiles it to. Python takes that
where it is of its own version, and else compiles the source anew each time: slower, and right.
Sources are compressed; bytecode is not, because it is what every start reads.
"""

from __future__ import annotations

import importlib.util
import io
import marshal
import os
import zipfile
import zlib
from collections.abc import Mapping

PACKAGE = "mlhost_limits"
_UNCHECKED = (1).to_bytes(4, "little")
_MAIN = f"""\
import gc
import os
import sys

gc.disable()  # It lives for a moment, and ends without taking itself apart.
from {PACKAGE}.cli import main

code = main()
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)
""".encode()


def read_library() -> dict[str, bytes]:
    """Return the sources of this library, by their paths in it.

    :raises OSError: If it is not a directory of files.
    """
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = {}
    for folder in (top, *(f"{top}/{name}" for name in sorted(os.listdir(top)))):
        if os.path.isdir(folder):
            for name in sorted(os.listdir(folder)):
                if name.endswith(".py"):
                    path = f"{folder}/{name}"
                    with open(path, "rb") as file:
                        found[path[len(top) + 1 :]] = file.read()
    return found


def build_zipapp(files: Mapping[str, bytes], interpreter: str, compiles: bool = True) -> bytes:
    """Return an archive that starts *interpreter* on itself.

    :param files: Sources by their paths in the library.
    :param compiles: Whether what this Python makes of them goes along.
    """
    target = io.BytesIO()
    # -I: neither the folder it is started in nor the user's settings have a say in what runs.
    target.write(f"#!{interpreter} -I\n".encode())
    inside = {f"{PACKAGE}/{name}": content for name, content in files.items()}
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in sorted({**inside, "__main__.py": _MAIN}.items()):
            _add(archive, name, content, zipfile.ZIP_DEFLATED)
            if compiles and name != "__main__.py":
                _add(archive, f"{name}c", _compile(name, content), zipfile.ZIP_STORED)
    return target.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes, how: int) -> None:
    entry = zipfile.ZipInfo(name)  # Of the first day that the format knows.
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content, how)


def _compile(name: str, source: bytes) -> bytes:
    """Return bytecode that is never compared with its source (PEP 552): both come together."""
    code = compile(source, name, "exec", dont_inherit=True, optimize=0)
    head = importlib.util.MAGIC_NUMBER + _UNCHECKED + importlib.util.source_hash(source)
    return head + marshal.dumps(code)


def is_of(content: bytes, built: bytes) -> bool:
    """Tell whether an archive holds what another does, and is whole.

    Bytecode of one source may differ by a byte between two runs of Python, and still be the same.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(io.BytesIO(built)) as new:
            return _describe(old, content) == _describe(new, built)
    except (zipfile.BadZipFile, OSError, zlib.error):  # What is damaged cannot be read.
        return False


def _describe(archive: zipfile.ZipFile, content: bytes) -> tuple[bytes, dict[str, bytes]]:
    """Return the first line, and of each file what it holds; of bytecode, for which Python."""
    names = archive.namelist()
    parts = {name: archive.read(name) for name in names}
    told = {name: part[:16] if name.endswith(".pyc") else part for name, part in parts.items()}
    return content.partition(b"\n")[0], told
