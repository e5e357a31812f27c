# SPDX-License-Identifier: GPL-3.0-or-later
"""Our named tuples are those of typing in all that the library asks of them."""

from __future__ import annotations

import pickle
import typing

import pytest
from mlhost_limits.core.values import NamedTuple


class Ours(NamedTuple):  # type: ignore[misc]
    """Two of something."""

    first: int
    second: str = "none"

    @property
    def told(self) -> str:
        return f"{self.second} {self.first}"


class Theirs(typing.NamedTuple):
    """Two of something."""

    first: int
    second: str = "none"

    @property
    def told(self) -> str:
        return f"{self.second} {self.first}"


OURS: typing.Any = Ours
THEIRS: typing.Any = Theirs


def test_as_values() -> None:
    for given in ((1,), (1, "two")):
        ours, theirs = OURS(*given), THEIRS(*given)
        assert ours == theirs
        assert hash(ours) == hash(theirs)
        assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
        assert ours._asdict() == theirs._asdict()
        assert ours._replace(second="three") == theirs._replace(second="three")
        assert (ours.first, ours.second, ours.told) == (theirs.first, theirs.second, theirs.told)
        assert pickle.loads(pickle.dumps(ours)) == ours


@pytest.mark.parametrize("name", ["_fields", "_field_defaults", "__match_args__", "__doc__"])
def test_as_classes(name: str) -> None:
    assert getattr(OURS, name) == getattr(THEIRS, name)


def test_refusals() -> None:
    for given in ((), (1, "two", 3)):
        with pytest.raises(TypeError, match=r"__new__\(\)"):
            OURS(*given)
    with pytest.raises(TypeError, match="'third'"):
        OURS(1, third=3)
    with pytest.raises(ValueError, match="third"):
        OURS(1)._replace(third=3)
    with pytest.raises(TypeError):
        OURS._make([])
    with pytest.raises(AttributeError):
        OURS(1).first = 2


def test_as_many_fields_share_code_and_nothing_else() -> None:
    class Other(NamedTuple):  # type: ignore[misc]
        left: int
        right: int = 7

    other: typing.Any = Other(3)
    assert (other.left, other.right, OURS(1).second) == (3, 7, "none")
    assert not hasattr(other, "first")
    assert not hasattr(OURS(1), "left")
