# SPDX-License-Identifier: GPL-3.0-or-later
"""Pickles are read to their end, and nothing that they name is run."""

from __future__ import annotations

import base64
import collections
import datetime
import os
import pickle
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.training import cache_pickle_read
from mlhost_limits.training.cache_look_read import check_open_file
from mlhost_limits.training.cache_pickle_read import check_pickle
from mlhost_limits.training.file_verdict import PICKLE, PT, Verdict

LEGACY = zlib.decompress(
    base64.b85decode(
        r"c-n1}%Wl&^6o$u_5HM*8cgi)~T`s|PN?fm?fV#0L)NH(|tkfCRMy@Bv9;bj*DVs=?XJEmS$KX-e@(4&QIAha5k"
        r"jMT<nls1We~xD+@+U3%^?Chg=k3?mOWle5@`r-+J`mk+6GBEA<1A!JFs4}^vlJvu@E33=i8)VbK+|D7NJ0MSYZ"
        r"&D3M>NRe4>Sj5A5`6MU@(tZ#-ZWLzJjYb<#5DReN`}6x&uvDEs8@=38Q-;g`8z!)C~$AC%G16bi0U?VZdpcvn&"
        r"`}8pyitHw7Fs2Rjs$>Jx1}VFUiA3TmMGi<slAIHqaZPTyX2>^?NgI>J$bb+k4(G&f!1wx)2@m8Nj)AjEbP8glG"
        r"5*Is2qn$h8lIOG~=%N`u((DGoREPou+Jy?velt_tctxiOhMSIhgU1bU<g~h3ZNRUo*IOD<DvgK_!S7H8i@vLma"
        r"?9UoG|Ceq!y`H(c(zD<K(iNmHi3X5<QP3|{^vfKscyP6(@4~ftI%CO<+?gX=ecP}txQ=8Q$u|U9p2AH*zEzQLb"
        r"GYNd-I5%FK1Y7ec1H<)H-8Ar|2sUk47i655<1)$4hVlBriYb7m%}3ujM5<ma|<lpmCDrsdK*++mMw8vY6_R?yy"
        r"Uu{r_`O7O1m<th9pVka7><vS(&ZG(<1+lGUF+}s0r!|>Kp1iimVaRMs-le+Ha5X*jo"
    )
)
"""What torch 2.13 writes without a zip archive: tensors of five types, one a view of another."""

OBJECTS = {
    "array": np.arange(40),
    "mapping": {"a": np.ones(3), "b": "x" * 100, "c": {1, 2}, "d": collections.OrderedDict(e=1)},
    "time": datetime.datetime(2026, 1, 1),
    "path": Path("/a"),
    "number": 1.5,
    "nothing": None,
}


def look(content: bytes) -> Verdict:
    return check_pickle(lambda offset, size: content[offset : offset + size], len(content))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", OBJECTS)
def test_every_truncation_of_a_pickle_is_seen(name: str, protocol: int) -> None:
    content = pickle.dumps(OBJECTS[name], protocol)
    assert look(content) == look(content + b"more") == Verdict("sound")
    for size in range(len(content)):
        assert look(content[:size]).status == "corrupt", size


def test_every_truncation_of_what_torch_wrote_of_old_is_seen() -> None:
    assert look(LEGACY) == Verdict("sound")
    for size in range(len(LEGACY)):
        assert look(LEGACY[:size]).status == "corrupt", size
    assert look(LEGACY[:-1]) == Verdict("corrupt", "ends within a tensor")


def test_a_tail_of_zeros_is_seen_where_the_pickle_is() -> None:
    content = pickle.dumps(OBJECTS["mapping"], 4)
    for size in range(2, len(content) - 1, 9):
        assert look(content[:size] + b"\0" * (len(content) - size)).status != "sound", size
    assert look(b"\0" * 100) == Verdict("corrupt", "begins with zeros")
    assert look(b"") == Verdict("corrupt", "is empty")


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (os.environ["EVIL"],)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: int) -> None:
    monkeypatch.setenv("EVIL", str(tmp_path / "made"))
    content = pickle.dumps([Evil()], protocol)
    assert look(content) == Verdict("sound")
    assert not (tmp_path / "made").exists()
    pickle.loads(content)
    assert (tmp_path / "made").exists()


def test_what_cannot_be_read_without_its_classes_is_unknown() -> None:
    joblib = b"\x80\x04cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81.\x93raw bytes"
    assert look(joblib).status == "unknown"
    assert look(b"own format").status == "unknown"


def test_of_a_large_pickle_a_missing_end_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    content = pickle.dumps(b"x" * 5000, 4)
    monkeypatch.setattr(cache_pickle_read, "_LARGEST", 1000)
    assert look(content).status == "unknown"
    assert look(pickle.dumps(1)).status == "sound"


def test_a_number_that_says_too_much_takes_no_memory() -> None:
    for size in (2**20, 2**32, 2**43, 2**62, 2**64 - 1):
        assert look(b"\x96" + size.to_bytes(8, "little")).status in ("corrupt", "unknown")
    sound = pickle.dumps(bytearray(b"x" * 100_000), 5)
    assert look(sound).status == "sound"
    assert look(sound[:-9]).status == "corrupt"


@given(st.binary(max_size=300), st.integers(0, 900))
def test_nothing_that_is_in_a_file_ends_the_look(junk: bytes, at: int) -> None:
    for content in (LEGACY, pickle.dumps(OBJECTS["mapping"], 4)):
        damaged = content[:at] + junk + content[at + len(junk) :]
        assert look(damaged).status in ("sound", "corrupt", "unknown")
    assert look(junk).status in ("sound", "corrupt", "unknown")


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (LEGACY, PT, "sound"),
        (LEGACY[:-1], PT, "corrupt"),
        (pickle.dumps({"a": 1}, 0), PT, "sound"),
        (pickle.dumps({"a": 1}, 0)[:-1], PT, "corrupt"),
        (b"some text", PT, "corrupt"),
        (b"some text", PICKLE, "unknown"),
        (pickle.dumps({"a": 1}), PICKLE, "sound"),
        (b"", PT, "corrupt"),
        (b"", PICKLE, "corrupt"),
    ],
)
def test_what_torch_reads_is_told_from_what_others_do(
    tmp_path: Path, content: bytes, kind: str, status: str
) -> None:
    (tmp_path / "x").write_bytes(content)
    with open(tmp_path / "x", "rb") as file:
        assert check_open_file(file.fileno(), kind).status == status
