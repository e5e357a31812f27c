# SPDX-License-Identifier: GPL-3.0-or-later
"""What is written has the label that the policy has for its place, or the run says why not."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.core.edit import Edit
from mlhost_limits.write import label
from mlhost_limits.write.replace import apply_edits, commit_edits

ETC, NET = b"system_u:object_r:etc_t:s0", b"system_u:object_r:net_conf_t:s0"
CUSTOM = b"system_u:object_r:httpd_sys_content_t:s0"
NAME = "security.selinux"
CANNOT = "SELinux is on, and libselinux.so.1, which knows its label, is missing"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="labels are root's to give")


class Policy:
    """Stands in for libselinux: a policy that has a label by the end of a name."""

    def __init__(self, labels: dict[str, bytes], error: int = 2, enabled: int = 1) -> None:
        self.labels, self.error, self.enabled, self.freed = labels, error, enabled, 0

    def is_selinux_enabled(self) -> int:
        return self.enabled

    def is_context_customizable(self, text: bytes) -> int:
        return int(text.rstrip(b"\0") == CUSTOM)

    def matchpathcon(self, path: bytes, _mode: ctypes.c_uint, found: Any) -> int:
        for end, text in self.labels.items():
            if path.endswith(end.encode()):
                found._obj.value = text
                return 0
        ctypes.set_errno(self.error)
        return -1

    def freecon(self, _text: object) -> None:
        self.freed += 1


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "enforce").write_text("1")
    (tmp_path / "etc").mkdir()
    monkeypatch.setattr(label, "LOADED", str(tmp_path / "enforce"))
    return tmp_path / "etc"


def load(monkeypatch: pytest.MonkeyPatch, policy: Policy | None) -> None:
    monkeypatch.setattr(label, "load_library", lambda: policy)


def write(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write as on a host of its own: the tests may not write to this one's /etc."""
    monkeypatch.setattr("mlhost_limits.write.replace.find_target", lambda path, _root: path)
    before = path.read_bytes() if path.exists() else None
    commit_edits(apply_edits([Edit(str(path), before, b"new")]))


def read(path: Path) -> bytes:
    return os.getxattr(path, NAME).rstrip(b"\0")


def test_a_new_file_and_a_new_folder_have_the_label_of_their_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Policy({"/x.d": ETC, "/x.d/a.conf": NET})
    load(monkeypatch, policy)
    write(folder / "x.d/a.conf", monkeypatch)
    assert (read(folder / "x.d"), read(folder / "x.d/a.conf")) == (ETC, NET)
    assert os.getxattr(folder / "x.d/a.conf", NAME).endswith(b"\0")  # As libselinux stores it.
    assert policy.freed == 2


@pytest.mark.parametrize(("old", "new"), [(ETC, NET), (CUSTOM, CUSTOM), (b"", NET)])
def test_a_file_that_is_replaced_is_labelled_anew_unless_its_label_is_customizable(
    folder: Path, monkeypatch: pytest.MonkeyPatch, old: bytes, new: bytes
) -> None:
    (folder / "a.conf").write_text("old")
    if old:
        os.setxattr(folder / "a.conf", NAME, old + b"\0")
    load(monkeypatch, Policy({"/a.conf": NET}))
    write(folder / "a.conf", monkeypatch)
    assert (folder / "a.conf").read_text() == "new"
    assert read(folder / "a.conf") == new


@pytest.mark.parametrize(
    ("policy", "told"), [(None, CANNOT), (Policy({}, error=5), "is not known: Input/output error")]
)
def test_a_label_that_cannot_be_found_out_stops_the_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, policy: Policy | None, told: str
) -> None:
    (folder / "a.conf").write_text("old")
    load(monkeypatch, policy)
    with pytest.raises(OSError, match=told):
        write(folder / "a.conf", monkeypatch)
    assert os.listdir(folder) == ["a.conf"]
    assert (folder / "a.conf").read_text() == "old"


def test_a_label_that_cannot_be_set_stops_the_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object) -> None:
        raise PermissionError(13, "Permission denied")

    load(monkeypatch, Policy({"/a.conf": NET}))
    monkeypatch.setattr(os, "setxattr", refuse)
    with pytest.raises(
        OSError, match=r"a\.conf: cannot be labeled system_u:object_r:net_conf_t:s0"
    ):
        write(folder / "a.conf", monkeypatch)
    assert os.listdir(folder) == []


@pytest.mark.parametrize("policy", [Policy({}), Policy({"/a.conf": NET}, enabled=0)])
def test_without_a_label_or_without_selinux_nothing_is_labelled(
    folder: Path, monkeypatch: pytest.MonkeyPatch, policy: Policy
) -> None:
    load(monkeypatch, policy)
    write(folder / "a.conf", monkeypatch)
    assert NAME not in os.listxattr(folder / "a.conf")


def test_a_tree_that_will_be_another_host_labels_itself(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(monkeypatch, Policy({"/a.conf": NET}))
    edit = Edit("/etc/a.conf", None, b"new")
    commit_edits(apply_edits([edit], str(folder.parent)))
    assert NAME not in os.listxattr(folder / "a.conf")
