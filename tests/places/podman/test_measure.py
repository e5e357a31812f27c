# SPDX-License-Identifier: GPL-3.0-or-later
"""A Podman that lacks an option is asked in another way; what it never understood is unknown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mlhost_limits.host.look import read_limits
from mlhost_limits.podman import measure as podman_canary
from mlhost_limits.podman.measure import run_podman_canary

OLD = """#!/bin/sh
echo "$*" >> {top}/said
case "$*" in
*--network-config-dir* | *--pidfile* | *--time*) echo "Error: unknown flag: --x" >&2; exit 125 ;;
*" inspect "*) echo 'level=warning msg="x"'; echo {pid} ;;
*" run "*) test -x "${{2%/*}}/fs/pause" || exit 126; mkdir "$2/libpod" ;;
esac
"""


@pytest.fixture
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a program in Podman's place, and a folder of the test in that of /var/tmp."""
    program = tmp_path / "podman"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(podman_canary, "find_podman", lambda: str(program))
    monkeypatch.setattr(podman_canary, "_FOLDER", str(tmp_path))
    return program


@pytest.mark.skipif(os.geteuid() != 0, reason="a canary is started by root")
def test_podman_before_4_is_asked_with_the_options_that_it_has(podman: Path) -> None:
    podman.write_text(OLD.format(top=podman.parent, pid=os.getpid()))
    found = run_podman_canary().found
    assert found
    assert found.limits == read_limits(os.getpid())
    first, second, *rest = (podman.parent / "said").read_text().splitlines()
    assert "--network-config-dir" in first
    assert "--cni-config-dir" in second
    assert [line.split(" none ")[1] for line in rest] == [
        "inspect --format {{.State.Pid}} mlhost-limits-canary",
        "kill --signal KILL mlhost-limits-canary",
        "rm --force mlhost-limits-canary",
    ]
    assert sorted(path.name for path in podman.parent.iterdir()) == ["podman", "said"]


@pytest.mark.skipif(os.geteuid() != 0, reason="a canary is started by root")
@pytest.mark.parametrize(
    ("says", "reason", "refusal"),
    [
        ("Error: unknown flag: --rootfs", "Error: unknown flag: --rootfs", None),
        ("Error: nofile: permission denied", "", "Error: nofile: permission denied"),
    ],
)
def test_what_podman_does_not_understand_is_no_refusal(
    podman: Path, says: str, reason: str, refusal: str | None
) -> None:
    podman.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit 125\n")
    seen = run_podman_canary()
    assert (seen.found, seen.reason, seen.refusal or None) == (None, reason, refusal)


@pytest.mark.skipif(os.geteuid() != 0, reason="a canary is started by root")
def test_a_container_that_has_ended_is_told(podman: Path) -> None:
    podman.write_text(OLD.format(top=podman.parent, pid=0))
    assert run_podman_canary().refusal == "the container ended at once"
