# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom sshd lets in, and where it looks for keys, as sshd_config(5) says."""

from __future__ import annotations

import pytest
from mlhost_limits.core.values import User
from mlhost_limits.sessions import sshd_config
from mlhost_limits.sessions.sshd_config import (
    MAIN_FILE,
    find_given_environments,
    find_key_file,
    find_shut_out,
    find_use_pam,
    list_key_files,
)

ALICE = User("alice", 1000, 1000, frozenset({"ml", "users"}), frozenset({1000}))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 0),
        ("DenyUsers bob\nDenyUsers al*\n", 2),
        ("DenyUsers alice@10.0.0.1\n", 0),
        ("DenyUsers * !alice\n", 0),
        ("DenyUsers ml\n", 0),
        ("DenyGroups alice\n", 0),
        ("DenyGroups wheel ml\n", 1),
        ("AllowUsers bob\n", 1),
        ("AllowUsers bob\nAllowUsers alice\n", 0),
        ("AllowUsers alice@10.0.0.1\n", 0),
        ("AllowUsers bob@10.0.0.1\n", 1),
        ("AllowUsers ml\n", 1),
        ("AllowGroups wheel\n", 1),
        ("AllowGroups alice\n", 1),
        ("AllowGroups ml\n", 0),
        ("DenyUsers bob !x\nAllowGroups wheel\n", 2),
        ("DenyUsers bob\nAllowUsers alice\nAllowGroups wheel\n", 3),
        ("DenyUsers alice\nMatch User alice\nDenyUsers bob\n", 0),
    ],
)
def test_the_line_that_keeps_a_user_out(text: str, line: int) -> None:
    found = find_shut_out({MAIN_FILE: text}, MAIN_FILE, ALICE)
    assert (found.line if found else 0) == line


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", [".ssh/authorized_keys", ".ssh/authorized_keys2"]),
        ("AuthorizedKeysFile /etc/keys/%u .k\n", ["/etc/keys/%u", ".k"]),
        ("AuthorizedKeysFile a\nAuthorizedKeysFile b\n", ["a"]),
        ("AuthorizedKeysFile \"a b\" 'c' # d\n", ["a b", "c"]),
        ("AuthorizedKeysFile a\nMatch Group ml\nAuthorizedKeysFile b\n", ["b"]),
        ("AuthorizedKeysFile a\nMatch Address 10.0.0.1\nAuthorizedKeysFile b\n", ["b", "a"]),
    ],
)
def test_the_files_of_keys(text: str, names: list[str]) -> None:
    assert list_key_files({MAIN_FILE: text}, MAIN_FILE, ALICE) == names


@pytest.mark.parametrize(
    ("name", "path"),
    [
        (".ssh/keys", "/home/alice/.ssh/keys"),
        ("%h/keys", "/home/alice/keys"),
        ("/etc/%u/%U/%%u", "/etc/alice/1000/%u"),
    ],
)
@pytest.mark.parametrize("home", ["/home/alice", "/home/alice/"])
def test_the_path_of_a_file_of_keys(name: str, path: str, home: str) -> None:
    assert find_key_file(name, "alice", 1000, home).replace("//", "/") == path


def test_as_many_lines_are_read_as_may_be_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sshd_config, "_MOST_LINES", 3)
    text = "Include a\nDenyUsers bob\nUsePAM yes\n"
    assert find_use_pam({MAIN_FILE: text}) is not None
    assert find_shut_out({MAIN_FILE: text}, MAIN_FILE, ALICE) is None
    assert list_key_files({MAIN_FILE: text}, MAIN_FILE, ALICE)
    assert not list(find_given_environments({MAIN_FILE: text}, MAIN_FILE, ALICE))
    files = {MAIN_FILE: text, "/etc/ssh/a": "SetEnv A=b\n"}
    for look in (find_shut_out, list_key_files):
        with pytest.raises(ValueError, match="too much is included to be read"):
            look(files, MAIN_FILE, ALICE)
    with pytest.raises(ValueError, match="too much is included to be read"):
        list(find_given_environments(files, MAIN_FILE, ALICE))
    with pytest.raises(ValueError, match="too much is included to be read"):
        find_use_pam(files)
