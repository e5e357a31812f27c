# SPDX-License-Identifier: BSD-2-Clause
"""Read what cloud-init(1) carries out of a tree's own files: seeds, and what is packed in them."""

from __future__ import annotations

import binascii
import os
import re
import zlib
from collections.abc import Callable, Iterator

from ..host.files import list_folder, under
from .boot_units import mark

FOLDERS = ("/etc/cloud/", "/var/lib/cloud/")
SCRIPT_FOLDERS = tuple(
    f"/var/lib/cloud/scripts/{often}"
    for often in ("per-boot", "per-instance", "per-once", "vendor")
)
_SEEDS, _DEEPEST = "/var/lib/cloud/seed", 4
_IS_SEED = re.compile(r"(?:user|vendor)[-_]data(?:2|\.raw|\.yaml|\.txt)?")
_OFF = "/etc/cloud/cloud-init.disabled"
_PACKED = re.compile(r"\s*(?:-\s+)?(?:content:\s*)?[\"']?([A-Za-z0-9+/]{16,}={0,2})[\"']?\s*")
_SETTING = re.compile(r"(?m)^[ \t-]*[a-z][\w-]*[./][\w./*-]+[ \t]*=")
_SYSCTLS = re.compile(r"/sysctl\.(?:d/|conf)")
_GZIP, _LARGEST = b"\x1f\x8b", 2**20


def is_off(root: str) -> bool:
    """Tell whether a file keeps cloud-init from running at all."""
    return os.path.lexists(under(_OFF, root))


def list_seeds(root: str) -> Iterator[str]:
    """Yield the files of user and vendor data that a tree brings with it."""
    level = [_SEEDS]
    for _depth in range(_DEEPEST):
        level = [f"{folder}/{name}" for folder in level for name in list_folder(folder, root)]
        yield from (one for one in level if _IS_SEED.fullmatch(one.rpartition("/")[2]))


def unpack(path: str, text: str, is_wanted: Callable[[str], bool]) -> str:
    """Return a text of cloud-init's; lines with what counts and is packed run what is not read."""
    if not path.startswith(FOLDERS):
        return text
    if text.startswith(_GZIP.decode("latin-1")):
        whole = _inflate(text.encode("latin-1", "replace"))
        text = mark("", "", unread={1}) if whole is None else whole.decode("latin-1")
    about = _SYSCTLS.search(text) is not None
    unread = {
        number
        for number, packed in _list_packed(text)
        if is_wanted(packed) or (about and _SETTING.search(packed))
    }
    return mark(text, text, unread=unread) if unread else text


def _list_packed(text: str) -> Iterator[tuple[int, str]]:
    """Yield what lines of base64 hold, with the number of the first of each block."""
    block, first = "", 0
    for number, line in enumerate(f"{text}\n".split("\n"), 1):
        found = _PACKED.fullmatch(line)
        if found and len(block) < 2 * _LARGEST:
            first = first if block else number
            block += found[1]
            continue
        if block:
            yield first, _decode(block)
        block = ""


def _decode(block: str) -> str:
    """Return what a block of base64 holds; nothing where it is damaged."""
    try:
        content = binascii.a2b_base64(block)
    except binascii.Error:
        return ""
    plain = _inflate(content) if content.startswith(_GZIP) else content
    return "" if plain is None else plain.decode("latin-1")


def _inflate(content: bytes) -> bytes | None:
    """Return what gzip(1) packed, its start if that is much; ``None`` where it is damaged."""
    try:
        return zlib.decompressobj(wbits=31).decompress(content, _LARGEST)
    except zlib.error:
        return None
