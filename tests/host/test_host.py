"""The test host itself: what its users rely on, on real guests."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oracle.record import EVERYTHING

from . import guest, process, recipe, tool, warm
from .cache import HostError, cache_root, produce
from .connection import Host

pytestmark = pytest.mark.host

REPOSITORY = Path(__file__).parents[2]
LIMITS = "ulimit -Sn; ulimit -Hn; ulimit -Sl; ulimit -Hl"


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with guest.running() as fresh:
        yield fresh


def test_systemd_started_everything(host: Host) -> None:
    assert host.ssh("systemctl is-system-running").stdout == "running\n"


def test_docker_runs_a_container(host: Host) -> None:
    host.ssh("tar -C /bin -c busybox | docker import - tiny")
    assert host.ssh("docker run --rm tiny /busybox echo inside").stdout == "inside\n"


def test_the_clock_is_not_that_of_the_snapshot(host: Host) -> None:
    """It is behind by what one ssh takes, which on a loaded machine is seconds."""
    before = time.time()
    seen = float(host.ssh("date +%s.%N").stdout)
    assert before - 30 < seen < time.time() + 2


@pytest.mark.parametrize("user", ["root", "alice"])
def test_a_session_has_the_stock_limits(host: Host, user: str) -> None:
    """facts: pam_limits of Debian 12 gives every session those of PID 1."""
    soft, hard, *memlock_kib = host.ssh(LIMITS, user=user).stdout.split()
    memory_kib = int(host.ssh("grep MemTotal: /proc/meminfo").stdout.split()[1])
    assert (soft, hard) == ("1024", "1048576")
    assert [int(kib) for kib in memlock_kib] == pytest.approx([memory_kib / 8] * 2, rel=0.02)


def test_root_can_raise_limits(host: Host) -> None:
    raised = f"ulimit -n 1048576; ulimit -l unlimited; {LIMITS}"
    assert host.ssh(raised).stdout.split() == ["1048576"] * 2 + ["unlimited"] * 2


@pytest.mark.skipif(not warm.LIBRARY.is_dir(), reason="no collection is built")
def test_root_has_run_the_collection_once(host: Host) -> None:
    assert len(host.ssh("ls /run/mlhost-limits/library").stdout.split()) == 1


def test_alice_becomes_root_without_a_password(host: Host) -> None:
    assert host.ssh("sudo -n id -u", user="alice").stdout == "0\n"


def test_a_failed_command_tells_what_it_said(host: Host) -> None:
    with pytest.raises(HostError, match="'ls /nowhere' as alice ended with 2: ls: cannot access"):
        host.ssh("ls /nowhere", user="alice")
    assert host.ssh("exit 7", check=False).returncode == 7


def test_two_guests_are_two_machines(host: Host) -> None:
    with guest.running() as other:
        other.ssh("touch /only-here")
        assert other.port != host.port
        assert host.ssh("test -e /only-here", check=False).returncode == 1


@pytest.mark.skipif(not EVERYTHING, reason="a long look, with MLHOST_ALL=1")
def test_a_guest_comes_back_from_a_reboot() -> None:
    with guest.running() as host:
        boot = "cat /proc/sys/kernel/random/boot_id"
        first = host.ssh(f"touch /stays; {boot}").stdout
        host.reboot()
        assert host.ssh(f"test -e /stays && {boot}").stdout != first
        assert host.ssh("systemctl is-system-running").stdout == "running\n"


def test_nothing_is_left_after_the_block() -> None:
    seen: list[Host] = []
    with pytest.raises(KeyboardInterrupt):
        interrupt(seen)
    assert not process.find_workers(seen[0].folder)
    assert not seen[0].folder.exists()


def interrupt(seen: list[Host]) -> None:
    with guest.running() as host:
        assert process.find_workers(host.folder)
        seen.append(host)
        raise KeyboardInterrupt


def test_a_guest_whose_qemu_died_is_cleaned_up() -> None:
    with guest.running() as host:
        pass
    guest.start(host.name)
    process.end_all(process.find_workers(host.folder))
    assert guest.find(host.name) is None
    assert not host.folder.exists()


def test_the_command_line_starts_enters_and_ends_a_host() -> None:
    name = "test-command-line"
    try:
        run_cli("up", name)
        assert run_cli("ssh", name, "-u", "alice", "--", "id -un").stdout == "alice\n"
        assert run_cli("ssh", name, "--", "exit 7").returncode == 7
        assert name in run_cli("list").stdout
    finally:
        assert run_cli("down", name).returncode == 0
    assert not (cache_root() / "instances" / name).exists()
    failed = run_cli("down", name)
    assert (failed.returncode, failed.stderr) == (1, f"error: there is no host {name!r}\n")


def run_cli(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.host", *words],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


OURS = b"/cache/instances/a/"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"qemu-system-x86_64 -pidfile /cache/instances/a/pid", True),
        (b"/ld.so --library-path /l /b/qemu-system-x86_64 -pidfile /cache/instances/a/pid", True),
        (b"/ld.so --library-path /l /b/qemu-system-x86_64 -pidfile /cache/instances/b/pid", False),
        (b"less x y z qemu-system-x86_64 -pidfile /cache/instances/a/pid", False),
        (b"qemu-system-x86_64 -pidfile /cache/instances/ab/pid", False),
        (b"qemu-system-x86_64 -kernel /cache/instances/a/vmlinuz -pidfile /b/pid", False),
        (b"qemu-system-x86_64 -m 1024", False),
        (b"/usr/bin/perl /usr/bin/mmdebstrap bookworm /cache/instances/a/root.tar", True),
        (b"less /cache/instances/a/console.log", False),
        (b"", False),
    ],
)
def test_only_our_own_processes_are_ended(line: bytes, expected: bool) -> None:
    assert process.is_worker(line.split(b" "), OURS) is expected


def test_what_fails_half_way_does_not_look_finished(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise HostError("no")

    with pytest.raises(HostError, match="no"):
        produce(tmp_path / "made", "making", fail)
    assert [path.name for path in tmp_path.iterdir()] == ["made.lock"]


def test_a_missing_program_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "_PATH", "/nowhere")
    with pytest.raises(HostError, match="mke2fs is missing: apt-get install e2fsprogs"):
        tool.require_program("mke2fs")


def test_an_unknown_release_is_refused() -> None:
    with pytest.raises(ValueError, match="no recipe for 'sarge', only for bullseye"):
        recipe.find_recipe("sarge")


@pytest.mark.parametrize("name", ["", "../x", "a b", "-x"])
def test_a_name_that_is_no_folder_is_refused(name: str) -> None:
    with pytest.raises(HostError, match="is not a host name"):
        guest.stop(name)
