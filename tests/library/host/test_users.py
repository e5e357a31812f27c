# SPDX-License-Identifier: GPL-3.0-or-later
"""Users and groups are those that pam_limits would find."""

from __future__ import annotations

import grp
import os
import pwd

import pytest
from mlhost_limits.core.values import User
from mlhost_limits.host import users
from mlhost_limits.host.users import find_connecting_user, find_member, read_user

PASSWD = {
    name: pwd.struct_passwd((name, "x", uid, gid, "", "/", "/bin/sh"))
    for name, uid, gid in (("alice", 1001, 2001), ("bob", 1002, 5555), ("root", 0, 0))
}
GROUPS = {
    name: grp.struct_group((name, "x", gid, members))
    for name, gid, members in (
        ("ml", 2001, ["bob"]),
        ("hpc", 2002, ["alice"]),
        ("empty", 2003, []),
        ("root", 0, []),
    )
}


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the C library a few users and groups, one of them without a name."""
    by_uid = {user.pw_uid: user for user in PASSWD.values()}
    by_gid = {group.gr_gid: group for group in GROUPS.values()}
    listed = {"alice": [2001, 2002], "bob": [5555, 2001], "root": [0]}
    for module, name, answer in (
        (pwd, "getpwnam", PASSWD.__getitem__),
        (pwd, "getpwuid", by_uid.__getitem__),
        (pwd, "getpwall", lambda: list(PASSWD.values())),
        (grp, "getgrnam", GROUPS.__getitem__),
        (grp, "getgrgid", by_gid.__getitem__),
        (os, "getgrouplist", lambda name, _gid: listed[name]),
    ):
        monkeypatch.setattr(module, name, answer)
    monkeypatch.delenv("SUDO_USER", raising=False)


@pytest.mark.parametrize(
    ("name", "user"),
    [
        ("alice", User("alice", 1001, 2001, frozenset({"ml", "hpc"}), frozenset({2001, 2002}))),
        # pam_limits asks for the group by number, and one without a name has no members.
        ("bob", User("bob", 1002, 5555, frozenset({"ml"}), frozenset({2001}))),
        ("nobody", None),
    ],
)
def test_a_user_with_all_groups(name: str, user: User | None) -> None:
    assert read_user(name) == user


@pytest.mark.parametrize(
    ("group", "member"), [("ml", "bob"), ("root", "root"), ("empty", None), ("no", None)]
)
def test_one_member_of_a_group(group: str, member: str | None) -> None:
    assert find_member(group) == member


@pytest.mark.parametrize(
    ("sudo", "loginuid", "name"),
    [
        ("alice", "0", "alice"),
        ("root", "1001", None),
        (None, "1001", "alice"),
        (None, "0", None),
        (None, "4294967295", None),
        (None, "", None),
        (None, None, None),
    ],
)
def test_the_user_behind_this_process(
    monkeypatch: pytest.MonkeyPatch, sudo: str | None, loginuid: str | None, name: str | None
) -> None:
    def read_loginuid(path: str) -> str:
        assert path == "/proc/self/loginuid"
        if loginuid is None:
            raise FileNotFoundError(path)
        return loginuid

    if sudo:
        monkeypatch.setenv("SUDO_USER", sudo)
    monkeypatch.setattr(users, "read_kernel_text", read_loginuid)
    assert find_connecting_user() == name
    assert users.read_user("no") is None
