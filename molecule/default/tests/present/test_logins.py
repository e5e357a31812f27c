# SPDX-License-Identifier: GPL-3.0-or-later
"""Whoever comes in, whichever way, gets what the policy promises, and can use it."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.look(
    "tail -n +1 /etc/security/limits.conf /etc/security/limits.d/*",
    "grep pam_limits /etc/pam.d/*",
    "sysctl fs.nr_open; grep -E 'files|locked' /proc/1/limits",
    "journalctl -b --no-pager -n 20 -t sshd -t su -t sudo -t CRON",
)

OPEN = "python3 -c 'import os; print(len([os.open(\"/dev/null\", 0) for _ in range(60000)]))'"
LOCK = """python3 - <<'END'
import ctypes, mmap, os
memory = mmap.mmap(-1, 256 << 20)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
library = ctypes.CDLL(None, use_errno=True)
failed = library.mlock(ctypes.c_void_p(address), ctypes.c_size_t(256 << 20))
print(os.strerror(ctypes.get_errno()) if failed else "locked")
END"""


@pytest.mark.parametrize("user", ["root", "bob"])
def test_ulimit_in_a_login_shows_the_same(user, log_in):
    shown = log_in(user).check_output("ulimit -Sn; ulimit -Hn; ulimit -Sl; ulimit -Hl")
    assert shown.split() == ["65536", "1048576", "unlimited", "unlimited"]


@pytest.mark.parametrize("user", ["root", "bob"])
def test_a_login_holds_60000_files_open(user, log_in):
    done = log_in(user).run(OPEN)
    assert (done.stdout, done.stderr) == ("60000\n", "")


def test_a_plain_user_locks_256_mib_of_memory(log_in):
    assert log_in("bob").check_output(LOCK) == "locked"


@pytest.mark.parametrize(
    "way",
    [f"{user}@{service}" for service in ("sshd", "su", "sudo", "cron") for user in ("root", "bob")],
)
def test_a_session_has_what_the_policy_promises(way, measure):
    seen = measure(way)
    assert (seen.nofile, seen.memlock) == (("65536", "1048576"), ("unlimited", "unlimited"))
