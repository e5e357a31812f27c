# SPDX-License-Identifier: GPL-3.0-or-later
"""Guards of the library that can be taken out, to show that an attack works without them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import Any

try:
    from replacing import find_module, replace  # type: ignore[import-not-found]
except ImportError:  # On the controller.
    from .replacing import find_module, replace

try:
    import guards_of_files as files  # type: ignore[import-not-found]
    import guards_of_users as users  # type: ignore[import-not-found]
except ImportError:
    from . import guards_of_files as files
    from . import guards_of_users as users


def print_every_byte() -> None:
    """Print what a user wrote as it is."""
    replace("core.quote", "_DOUBTFUL", re.compile("(?!)"))
    replace("core.report", "_clean", lambda text: text)


def believe_slurmd() -> None:
    """Take the oldest process of that name for slurmd, whoever started it."""
    processes = find_module("host.look").find_processes

    def find() -> Any:
        named = [one for one in processes() if one.comm == "slurmd"]
        return min(named, key=lambda one: one.start, default=None)

    replace("slurm.read", "find_slurmd", find)


def believe_containerd() -> None:
    """Take any process of that name for containerd."""

    def find(processes: Any) -> Any:
        return next((one for one in processes if one.comm == "containerd"), None)

    replace("containerd.measure", "find_containerd", find)


def blame_root() -> None:
    """Take what a user did, or hid, for root's doing."""
    replace("core.finding", "is_short_by_root", lambda finding: finding.status != "pass")


def own_nothing() -> None:
    """Say of every process that root decides what it has."""
    replace("host.users", "find_owner", lambda *_arguments: "")


def ask_the_files() -> None:
    """Take the owner of what /proc tells of a process for whose the process is."""

    def find(process: Any, _proc: str = "/proc") -> str:
        uid = os.stat(f"/proc/{process.pid}/limits").st_uid
        return str(find_module("host.users").name_user(uid)) if uid else ""

    replace("host.users", "find_owner", find)


def expect_text() -> None:
    """Expect that what the kernel tells is UTF-8."""
    read = find_module("host.door").read_kernel_file
    replace("host.door", "read_kernel_text", lambda path: read(path).decode())


def expect_processes() -> None:
    """Expect that a process which is listed is there when it is read."""
    look = find_module("host.look")

    def find(proc: str = "/proc") -> Any:
        for pid in look.list_pids(proc):
            yield look.read_process(pid, proc)

    replace("host.look", "find_processes", find)


def edit_as_root() -> None:
    """Let remedies run as root, in users' files too, on whatever is there by then."""

    def edit(at: Any, script: str, _user: str = "") -> tuple[tuple[str, ...], ...]:
        return (("sed", "-i", "--follow-symlinks", f"{at.line}{script}", at.path),)

    remedy = find_module("core.cause").Remedy
    replace("core.line_edit", "edit_line", edit)
    replace("podman.causes", "edit_at", lambda at, script, text: remedy(text, edit(at, script)))


def write_for_shells() -> None:
    """Write remedies as lines for a shell, and quote no word."""
    remedy = find_module("core.cause").Remedy
    old = remedy.as_dict
    remedy.as_dict = lambda self: {
        **old(self),
        "commands": [" ".join(one) for one in self.commands],
    }


def expect_forms() -> None:
    """Expect the form of Docker's answers in what a socket says."""
    api = find_module("docker.api_read")

    def read(address: str = "", timeout: float = 30.0) -> Any:
        return list(api._read_containers(address, time.monotonic() + timeout))

    replace("docker.api_read", "read_containers", read)
    replace("docker.api_read", "_parse_answer", lambda said, _at: said.split(b"\r\n\r\n")[1])


def drop_makers() -> None:
    """Name a user's container of Podman as one of root's."""
    replace("podman.check", "name_owner", lambda _uid: "")


def empty_leftovers() -> None:
    """Advise to empty what a run left, wherever its name leads by then."""
    cause = find_module("core.cause")

    def blame(paths: Any, _size: int) -> Any:
        remedy = cause.Remedy("empty it", (("truncate", "-s", "0", "--", *paths),))
        return cause.Cause("run-shared-memory-leftovers", "it is left", remedy)

    replace("training.causes", "blame_leftovers", blame)


def read_their_compose() -> None:
    """Read the Compose files that a user's dockerd names."""
    rootless, read = (
        find_module("docker.rootless_check").RootlessRead,
        find_module("docker.read").DockerRead,
    )
    rootless.read_compose = read.read_compose


def let_all_work_there() -> None:
    """Take whoever trains for somebody who may write to a directory."""
    replace("training.folder_rules", "may_work_there", lambda *_arguments: True)


def believe_paths() -> None:
    """Take what a process has open by the path that its own mounts give it."""
    replace("training.open_files_read", "_is_here", lambda *_arguments: True)


GUARDS: dict[str, Callable[[], None]] = {
    "open_directory": files.follow_every_link,
    "clean": print_every_byte,
    "find_target": files.write_anywhere,
    "leave_root": users.stay_root,
    "keyrings": users.keep_keyrings,
    "find_slurmd": believe_slurmd,
    "find_containerd": believe_containerd,
    "owner": blame_root,
    "find_owner": own_nothing,
    "uids": ask_the_files,
    "deadline": users.wait_for_ever,
    "sizes": files.read_whatever_size,
    "apart": users.stay_here,
    "door": files.open_what_is_there,
    "cage": users.cage_nobody,
    "terminal": users.keep_terminal,
    "utf-8": expect_text,
    "gone": expect_processes,
    "as_user": edit_as_root,
    "quoting": write_for_shells,
    "sweep": files.sweep_everything,
    "mounts": files.cross_mounts,
    "trial_folder": files.remove_trials,
    "headers": files.trust_headers,
    "depth": files.walk_by_calls,
    "pread": files.map_files,
    "forms": expect_forms,
    "keyrings_first": users.become_user_first,
    "answers": users.expect_answers,
    "pipes": users.share_a_pipe,
    "hear": users.hear_at_the_end,
    "name_owner": drop_makers,
    "leftovers": empty_leftovers,
    "moves": files.move_by_path,
    "compose": read_their_compose,
    "own_canary": users.share_a_canary,
    "may_work": let_all_work_there,
    "is_here": believe_paths,
}
