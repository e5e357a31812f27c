# SPDX-License-Identifier: GPL-3.0-or-later
"""Files in the shape that torch.save, safetensors, Arrow and Parquet have, made without them."""

from __future__ import annotations

import base64
import io
import json
import zipfile
import zlib


def make_pt(
    tensors: tuple[bytes, ...] = (b"\1" * 64, b"\2" * 300),
    large: bool = False,
    comment: bytes = b"",
) -> bytes:
    """Return an archive as torch.save writes it: stored, data.pkl first, a file for each tensor.

    :param large: Whether the numbers stand in fields of 64 bits, as torch does for each file.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        files = {"data.pkl": b"\x80\2}q\0.", "byteorder": b"little"}
        files.update({f"data/{number}": data for number, data in enumerate(tensors)})
        for name, data in {**files, "version": b"3\n", ".data/serialization_id": b"1" * 40}.items():
            with archive.open(zipfile.ZipInfo(f"archive/{name}"), "w", force_zip64=large) as file:
                file.write(data)
        archive.comment = comment
    return widen(content.getvalue()) if large else content.getvalue()


def widen(archive: bytes) -> bytes:
    """Return an archive with its numbers in the records of 64 bits, as one above 4 GiB has them."""
    end = archive.rfind(b"PK\5\6")
    count = int.from_bytes(archive[end + 10 : end + 12], "little")
    start = int.from_bytes(archive[end + 16 : end + 20], "little")
    directory, at = b"", start
    while at < end:
        name, extra = (int.from_bytes(archive[at + i : at + i + 2], "little") for i in (28, 30))
        fixed = bytearray(archive[at : at + 46])
        wide = bytes(fixed[24:28] + b"\0" * 4 + fixed[20:24] + b"\0" * 4 + fixed[42:46] + b"\0" * 4)
        fixed[42:46] = b"\xff" * 4
        if len(directory) % 2:
            wide = wide[16:]
        else:
            fixed[20:28] = b"\xff" * 8
        more = b"\x99\x99\2\0ab" + b"\1\0" + len(wide).to_bytes(2, "little") + wide
        fixed[30:32] = len(more).to_bytes(2, "little")
        directory += bytes(fixed) + archive[at + 46 : at + 46 + name] + more
        at += 46 + name + extra
    sizes = b"".join(
        number.to_bytes(8, "little") for number in (count, count, len(directory), start)
    )
    record = b"PK\6\6" + (44).to_bytes(8, "little") + b"\x2d\0\x2d\0" + b"\0" * 8 + sizes
    place = (start + len(directory)).to_bytes(8, "little")
    locator = b"PK\6\7" + b"\0" * 4 + place + (1).to_bytes(4, "little")
    tail = b"PK\5\6" + b"\0" * 4 + b"\xff" * 12 + b"\0\0"
    return archive[:start] + directory + record + locator + tail


def make_safetensors(tensors: tuple[bytes, ...] = (b"\1" * 64, b"\2" * 300)) -> bytes:
    """Return a file as safetensors writes it: the length of the header, the header, the data."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for number, data in enumerate(tensors):
        where = [end, end + len(data)]
        header[f"layer.{number}"] = {"dtype": "U8", "shape": [len(data)], "data_offsets": where}
        end = where[1]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(tensors)


# What pyarrow 22 made of a column of three numbers, twice: a file, and a stream as datasets has it.
_ARROW = {
    True: (
        "c-qZUF%H5o47{`<ttt;0D#Xx%FR-(8M?&htFPM2kN1ns);Ow{pAsCT3$#HzL&nG40G#yVn;7(isWGFfa5>{w=BSK"
        "^iRxQuyCuv4+Gd;P4#=5d=gi7<^z3~3C=?J4S9i=tv{@L{ug0(vkQ$-!IvDpP3YcV(Kaqr%1JW=60Ui-pZUECMup"
        "MAl#h3=9$%Ec46AAEQ8eY4MBJuiN@;WLjPzxRzX+TVKs^b{Tf"
    ),
    False: (
        "c-qZQNeX~K49n=aAU${x@!(T@lV_jcuWMQ>is0Qq+et|?QB~al^e}V~)Tq$%MWjp)vX(tZ=bAP6&A?ra##McIq{8"
        "MLT7-UeA7M4_V{4oIUia`b2*yYt?us&F^4kj?xp*4OxJ336Hwt{?sY@?@raw1-&SmoeK(G~&"
    ),
}


def make_arrow(as_file: bool) -> bytes:
    """Return a table in one of the two formats of Arrow."""
    return zlib.decompress(base64.b85decode(_ARROW[as_file]))


def make_parquet(magic: bytes = b"PAR1", footer: bytes = b"\x15\4" + b"\7" * 40) -> bytes:
    """Return a file in the shape of Parquet: its data, its footer, and the length of that."""
    return magic + b"\1" * 100 + footer + len(footer).to_bytes(4, "little") + magic
