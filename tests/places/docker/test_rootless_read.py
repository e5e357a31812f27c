# SPDX-License-Identifier: GPL-3.0-or-later
"""A user's own dockerd is read by its environment, and no link of the user is followed."""

from __future__ import annotations

import os
import pwd
import socket
from pathlib import Path

from mlhost_limits.docker.rootless_check import RootlessRead
from mlhost_limits.host.look import read_process

ME = os.getuid()
NAME = pwd.getpwuid(ME).pw_name


def look(proc: Path, command: str = "dockerd", **environment: str) -> RootlessRead:
    """Look at a dockerd of this process's user, which is this process."""
    folder = proc / str(os.getpid())
    folder.mkdir()
    (folder / "cmdline").write_text("\0".join(command.split()) + "\0")
    (folder / "environ").write_text("".join(f"{k}={v}\0" for k, v in environment.items()))
    for name in ("stat", "cgroup"):
        (folder / name).write_bytes(Path(f"/proc/self/{name}").read_bytes())
    return RootlessRead(read_process(os.getpid()), str(proc))


def test_files_and_socket_are_those_of_its_environment(tmp_path: Path) -> None:
    found = look(tmp_path, HOME="/home/x", XDG_RUNTIME_DIR="/run/user/7")
    assert found.user == NAME
    assert found.address == "/run/user/7/docker.sock"
    assert found.config_path == "/home/x/.config/docker/daemon.json"
    assert (found.unit, found.usual_config, found.config) == ("", None, None)
    assert (found.is_own, found.read_running_config()) == (False, b"")
    assert found.containerd == read_process(os.getpid())
    assert (found.read_own_ulimits({}), found.read_compose({})) == (None, None)


def test_flags_and_defaults(tmp_path: Path) -> None:
    given = look(tmp_path, "dockerd -H tcp://x -H unix:///s --config-file /c.json")
    assert (given.address, given.config_path) == ("/s", "/c.json")
    (tmp_path / "2").mkdir()
    bare = look(tmp_path / "2", XDG_CONFIG_HOME="/conf")
    assert bare.address == f"/run/user/{ME}/docker.sock"
    assert bare.config_path == "/conf/docker/daemon.json"


def test_the_user_must_be_who_answers(tmp_path: Path) -> None:
    address = str(tmp_path / "s")
    found = look(tmp_path, f"dockerd -H unix://{address} --containerd {address}")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(4)
        assert found.is_own
        assert found.containerd == read_process(os.getpid(), str(tmp_path))
        (tmp_path / str(os.getpid()) / "stat").unlink()
        assert not found.is_own
