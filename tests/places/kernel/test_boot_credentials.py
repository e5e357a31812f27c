# SPDX-License-Identifier: GPL-3.0-or-later
"""A unit comes to a credential by the stores, by a file, or as a line says itself."""

from __future__ import annotations

import pytest
from mlhost_limits.core.values import Declaration
from mlhost_limits.kernel.boot_credentials import SYSCTL, find_asked
from mlhost_limits.kernel.boot_units import parse_unit
from mlhost_limits.kernel.causes import _when


@pytest.mark.parametrize(
    ("lines", "of_store", "paths", "stated"),
    [
        ("ImportCredential=sysctl.*", True, (), []),
        ("ImportCredential=*", True, (), []),
        ("ImportCredential=tmpfiles.*", False, (), []),
        ("LoadCredential=sysctl.extra", True, (), []),
        ("LoadCredential=sysctl.extra:other", True, (), []),
        ("LoadCredential=sysctl.extra:/etc/x", False, ("/etc/x",), []),
        ("LoadCredential=sysctl.other:/etc/x", False, (), []),
        ("ImportCredential=sysctl.*\nImportCredential=", False, (), []),
        ("SetCredential=sysctl.extra:vm.swappiness=1", False, (), [2]),
        ("SetCredentialEncrypted=sysctl.extra:abc", False, (), [2]),
        ("User=root", False, (), []),
        ("LoadCredential=a:/b\nLoadCredential=sysctl.extra:/c", False, ("/c",), []),
    ],
)
def test_how_a_unit_comes_to_it(
    lines: str, of_store: bool, paths: tuple[str, ...], stated: list[int]
) -> None:
    asked = find_asked(parse_unit("/x.service", f"[Service]\n{lines}\n"), SYSCTL)
    assert (asked.of_store, asked.paths) == (of_store, paths)
    assert [one.line for one in asked.stated] == stated


@pytest.mark.parametrize(
    ("path", "text", "when"),
    [
        (f"/run/credentials/@system/{SYSCTL}", "a.b=1", "is read after the files"),
        ("/etc/systemd/system/x.service", "SetCredential=a:b", "is read after the files"),
        ("/etc/rc.local", "sysctl -w a.b=1", "runs after the files are read"),
        ("/boot/grub/grub.cfg", "systemd.run=x", "may be given to the next kernel"),
    ],
)
def test_it_is_told_when_a_line_counts(path: str, text: str, when: str) -> None:
    assert _when(Declaration(path, 1, text, "1")) == when
