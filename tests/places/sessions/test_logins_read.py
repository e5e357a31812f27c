# SPDX-License-Identifier: GPL-3.0-or-later
"""What decides whether logins open is read as the kernel and libpam see it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from mlhost_limits.sessions import provision as logins
from mlhost_limits.sessions.provision import count_tasks, find_missing_conf, read_logins


def add(proc: Path, pid: int, uid: int, threads: int) -> None:
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "status").write_text(
        f"Name:\tpython3\nUid:\t{uid}\t0\t0\t0\nThreads:\t{threads}\n"
    )


def test_threads_count_for_the_real_user(tmp_path: Path) -> None:
    """The owner of the folder would be wrong: it is root's where nobody may trace."""
    add(tmp_path, 7, 1000, 3)
    add(tmp_path, 8, 1000, 1)
    add(tmp_path, 9, 0, 5)
    (tmp_path / "10").mkdir()
    (tmp_path / "self").mkdir()
    assert count_tasks(str(tmp_path)) == {1000: 4, 0: 5}


def test_a_thread_of_ours_is_counted() -> None:
    before = count_tasks()[os.getuid()]
    done = threading.Event()
    threads = [threading.Thread(target=done.wait) for _ in range(400)]
    for thread in threads:
        thread.start()
    after = count_tasks()[os.getuid()]
    done.set()
    assert after - before > 200  # Others come and go meanwhile.


def test_a_folder_for_chroot_needs_a_shell(tmp_path: Path) -> None:
    (tmp_path / "good/bin").mkdir(parents=True)
    (tmp_path / "good/bin/sh").touch(mode=0o755)
    (tmp_path / "empty").mkdir()
    asked = [str(tmp_path / name) for name in ("good", "empty", "gone")]
    assert read_logins(asked).bare == asked[1:]


def test_users_without_a_shell_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logins, "count_tasks", lambda: {0: 5, 1: 3, 4242424242: 9})
    assert {user.name: count for user, count in read_logins([]).tasks.items()} == {"root": 5}


def test_a_missing_conf_is_found_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = tmp_path / "own.conf"
    own.touch()
    files = {
        "/etc/pam.d/sshd": f"session required pam_limits.so conf={own}\n",
        "/etc/pam.d/su": "session required pam_limits.so debug conf=/gone\n",
        "/etc/pam.d/su-l": "session include su\n",
        "/etc/pam.d/cron": "session required pam_limits.so\n",
        "/etc/pam.d/login": "@include nothing\n",
        "/etc/pam.d/sshd.old": "session required pam_limits.so conf=/gone\n",
    }
    monkeypatch.setattr(logins, "read_pam_files", lambda: files)
    assert list(find_missing_conf()) == [("/etc/pam.d/su:1", "/gone", "su")]
