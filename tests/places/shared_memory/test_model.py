# SPDX-License-Identifier: GPL-3.0-or-later
"""What fstab makes of /dev/shm, as mount(8), systemd-remount-fs and tmpfs showed it on a host."""

from __future__ import annotations

import pytest
from mlhost_limits.core.cause import Link
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.kernel.boot_units import mark
from mlhost_limits.shared_memory.boot_mounts import find_mounts, is_about_shm
from mlhost_limits.shared_memory.causes import (
    ShmFacts,
    find_shm_causes,
    foresee_boot,
    foretell_shm,
    predict_shm,
    trace_shm,
)
from mlhost_limits.shared_memory.model import (
    FSTAB,
    find_lines,
    find_refused_option,
    format_line,
    parse_tmpfs_size,
)
from mlhost_limits.shared_memory.plan import plan_shm

MIB, GIB = 2**20, 2**30
MEMORY = 4 * GIB
LOW = "tmpfs /dev/shm tmpfs size=100m 0 0"
HIGH = "tmpfs /dev/shm tmpfs size=3g 0 0"
OURS = f"# BEGIN mlhost.limits\n{format_line(3 * GIB)}\n# END mlhost.limits\n"
CREATED = OURS.replace("limits\n", "limits (there was no such file)\n", 1)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("100m", 100 * MIB),
        ("1e", 2**60),
        ("0x1000000", 16 * MIB),
        ("2P", 2**51),
        ("0", UNLIMITED),
        ("25%", GIB),
        ("10k%", None),
        ("010m", 8 * MIB),
        ("00", UNLIMITED),
        ("020%", GIB * 16 // 25),
        ("08m", None),
        ("09", None),
        ("lots", None),
        ("", None),
    ],
)
def test_a_size_as_tmpfs_takes_it(text: str, size: int | None) -> None:
    assert parse_tmpfs_size(text, MEMORY) == size


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("", []),
        (f"# {LOW}\n/dev/vda / ext4 defaults 0 0\n", []),
        (f"{LOW}\n  {HIGH}\n", [100 * MIB, 3 * GIB]),
        ("none /dev/shm/ tmpfs nosuid\n", [MEMORY // 2]),
        ("none /dev/s\\150m tmpfs size=1m,size=2m\n", [2 * MIB]),
        ("none /dev/shm tmpfs size=100m,nr_blocks=1000\n", [1000 * 4096]),
        ("none /dev/shm tmpfs nr_blocks=0,size=x\n", [UNLIMITED]),
        ("tmpfs /dev/shm tmpfs\n", []),
    ],
)
def test_the_lines_for_it(text: str, sizes: list[int]) -> None:
    assert [line.value for line in find_lines(text, MEMORY)] == sizes


@pytest.mark.parametrize(
    ("before", "override", "after"),
    [
        (None, False, CREATED),
        ("x\n", False, f"x\n{OURS}"),
        (f"x\n{OURS}", False, f"x\n{OURS}"),
        (f"{HIGH}\n", False, f"{HIGH}\n"),
        (f"{HIGH}\n{OURS}", False, f"{HIGH}\n"),
        (f"{LOW}\n", False, f"{LOW}\n"),
        (f"{LOW}\n", True, f"#mlhost.limits# {LOW}\n{OURS}"),
        (f"{LOW}\n{HIGH}\n", True, f"#mlhost.limits# {LOW}\n{HIGH}\n"),
    ],
)
def test_what_fstab_must_say(before: str | None, override: bool, after: str) -> None:
    plan = plan_shm(3 * GIB, before, MEMORY, override, False)
    text = None if before is None else before.encode()
    expected = () if before == after else ((FSTAB, text, after.encode()),)
    assert tuple(edit[:3] for edit in plan.edits) == expected
    assert len(plan.shortfalls) == (before or "").startswith(LOW)
    back = plan_shm(3 * GIB, after, MEMORY, override, True)
    plain = None if before is None else before.replace(OURS, "").encode()
    assert [edit.after for edit in back.edits] in ([plain], [])


def test_nothing_is_written_where_half_of_the_memory_does() -> None:
    assert plan_shm(2 * GIB, "x\n", MEMORY, False, False).edits == ()
    assert plan_shm(2 * GIB, None, MEMORY, False, False).edits == ()
    assert plan_shm(None, None, MEMORY, False, False).edits == ()
    assert plan_shm(3 * GIB, None, MEMORY, False, True).edits == ()


def test_more_than_the_memory_is_noted_and_a_broken_block_refused() -> None:
    assert plan_shm(5 * GIB, "", MEMORY, False, False).notes
    assert not plan_shm(MEMORY, "", MEMORY, False, False).notes
    assert plan_shm(5 * GIB, "# END mlhost.limits\n", MEMORY, False, False).problems


@pytest.mark.parametrize(
    ("facts", "codes", "boot"),
    [
        (ShmFacts(3 * GIB, HIGH, MEMORY), [], 3 * GIB),
        (ShmFacts(GIB, HIGH, MEMORY), ["shm-remounted"], 3 * GIB),
        (ShmFacts(3 * GIB, "", MEMORY), ["shm-not-stated"], 2 * GIB),
        (ShmFacts(100 * MIB, LOW, MEMORY), ["shm-stated-too-small"], 100 * MIB),
        (ShmFacts(3 * GIB, f"{LOW}\n{HIGH}", MEMORY), ["shm-stated-too-small"], 100 * MIB),
    ],
)
def test_why_it_is_too_small(facts: ShmFacts, codes: list[str], boot: int) -> None:
    causes = find_shm_causes(3 * GIB, facts)
    assert [cause.code for cause in causes] == codes
    assert predict_shm(facts) == boot
    for cause in causes:
        assert cause.remedy.commands[-1] == ("mount", "-o", f"remount,size={3 * GIB}", "/dev/shm")
        assert bool(cause.at) == (cause.code == "shm-stated-too-small")
    beats = f'{FSTAB}:1 "{LOW}" comes first and beats {FSTAB}:2 "{HIGH}"'
    assert (HIGH in facts.fstab and LOW in facts.fstab) == (beats in [one.text for one in causes])


def test_one_line_that_would_be_enough_is_shown() -> None:
    (cause,) = find_shm_causes(3 * GIB, ShmFacts(GIB, f"{LOW}\n{HIGH}\n{HIGH}", MEMORY))
    assert [line.line for line in cause.shadows] == [2]


UNIT = "/etc/systemd/system/shm.service"


def runs(command: str, path: str = UNIT) -> dict[str, str]:
    start = "[Service]\nExecStart=" if path == UNIT else "#!/bin/sh\n"
    return {path: f"{start}{command}\n"}


@pytest.mark.parametrize(
    ("command", "sizes"),
    [
        ("/bin/mount -o remount,size=100m /dev/shm", [100 * MIB]),
        ("mount /dev/shm -o 'remount,noexec,size=25%'", [GIB]),
        ("mount -t tmpfs -o size=1g,size=2g tmpfs /dev/shm/", [2 * GIB]),
        ("mount -t tmpfs tmpfs /dev/shm", [2 * GIB]),
        ("mount -o remount,noexec /dev/shm", []),
        ('mount -o "remount,size=$SIZE" /dev/shm', [""]),
        ("mount -o remount,nr_blocks=1000 /dev/shm", [""]),
        ("mount --bind /scratch /dev/shm", [""]),
        ("umount -l /dev/shm", [""]),
        ("mount -o remount,size=64m /run/shm", [64 * MIB]),
        ("mount -o remount,size=64m \\\n  /dev/shm", [64 * MIB]),
        ("sh -c 'mount -o remount,size=64m /dev/shm'", [64 * MIB]),
        ("mount -t tmpfs -o size=64M tmpfs /srv/chroot/dev/shm", []),
        ("docker run --mount type=tmpfs,destination=/dev/shm,tmpfs-size=64 img", []),
        ("docker run --mount type=bind,src=/dev/shm,dst=/x img", []),
        ("mount --bind /dev/shm /srv/chroot/dev/shm", []),
        ("unshare --mount ls /dev/shm", []),
        ("echo cannot mount /dev/shm", []),
        ("true # mount -o remount,size=1m /dev/shm", []),
        ("echo smaller; mount -o remount,size=1m /dev/shm", [MIB]),
        ("mount -osize=1m,remount /dev/shm", [MIB]),
        ("mount --options=size=1m,remount /dev/shm", [MIB]),
        ("mount --options remount,size=1m /dev/shm", [MIB]),
        ("mount -ttmpfs tmpfs /dev/shm", [2 * GIB]),
        ("mount -t tmpfs -o size=1m tmpfs /dev/shm/mine", []),
        ("mount -o remount,size=1m /tmp; ls /dev/shm", []),
        ("# mount -o remount,size=1m /dev/shm", []),
        ("subprocess.run(['mount', '-o', 'remount,size=64m', '/dev/shm'])", [64 * MIB]),
        ("for d in shm mqueue; do mount -o remount,size=64m /dev/$d; done", [""]),
        ("cd /dev; mount -o remount,size=64m shm", [64 * MIB]),
        ("mount -o remount,size=64m /dev/$d # not shm", []),
        ("[ -d /dev/shm ] && mountpoint /dev/shm; mount /data", []),
        ("mount -t nfs server:/x-shm.img $HOME", []),
        (
            "true; mount -o remount,size=1m /dev/shm && mount -o remount,size=3m /dev/shm",
            [MIB, 3 * MIB],
        ),
    ],
)
def test_what_mounts_it_anew_at_boot(command: str, sizes: list[object]) -> None:
    found = find_mounts(runs(command, "/etc/rc.local"), MEMORY)
    assert [one.at.value for one in found] == sizes
    assert {one.at.place for one in found} <= {"/etc/rc.local:2"}


@pytest.mark.parametrize(
    ("text", "is_about"),
    [
        ("mount -o remount /dev/shm", True),
        ("cd /dev; mount shm", True),
        ("ls /dev/shm", False),
        ("mount /data", False),
        ("mount /x-shm.img", False),
    ],
)
def test_the_scripts_that_are_looked_at(text: str, is_about: bool) -> None:
    assert is_about_shm(text) is is_about


def test_in_a_very_long_line_no_option_is_looked_for() -> None:
    mount = "mount -o remount,size=1g /dev/shm"
    lines = [f"{mount}; {'true; ' * count}" for count in (500, 1000)]
    found = find_mounts({"/etc/rc.local": "\n".join(lines)}, MEMORY)
    assert [(one.at.value, one.option) for one in found] == [(GIB, "size=1g"), (GIB, "")]


def test_a_mount_of_what_a_variable_says_may_be_one_of_it() -> None:
    script = {"/etc/rc.local": "#!/bin/sh\nD=/dev/shm\nmount -o remount,size=64m $D\n"}
    assert [one.at.place for one in find_mounts(script, MEMORY)] == ["/etc/rc.local:3"]
    assert foresee_boot(GIB, ShmFacts(GIB, HIGH, MEMORY, script)) == "unknown"
    assert find_mounts({"/etc/rc.local": "#!/bin/sh\nmount $D # /dev/shm\n"}, MEMORY) == []


@pytest.mark.parametrize(
    ("line", "edited"),
    [
        ("mount -o remount,size=1g /dev/shm", True),
        ("mount -t tmpfs -o size=1g tmpfs /scratch; mount -o remount,size=1g /dev/shm", False),
        ("mount -o remount,size=9g /dev/shm; mount -o remount,size=1g /dev/shm", True),
        ("mount -o remount,size=1g \\\n /dev/shm", False),
        ("mount -o remount \\\n -o size=1g /dev/shm", False),
    ],
)
def test_no_other_mount_is_edited(line: str, edited: bool) -> None:
    facts = ShmFacts(4 * GIB, HIGH, MEMORY, {"/etc/rc.local": f"#!/bin/sh\n{line}\n"})
    (cause,) = find_shm_causes(3 * GIB, facts)
    assert cause.code == "shm-script-wins"
    scripts = [words[2] for words in cause.remedy.commands]
    assert [f"s|size=1g|size={3 * GIB}|" in script for script in scripts] == [True] * edited


def test_what_cannot_be_read_leaves_the_size_now_judged() -> None:
    facts = ShmFacts(4 * GIB, HIGH, MEMORY, None)
    assert (foresee_boot(GIB, facts), find_shm_causes(GIB, facts)) == ("unknown", [])


@pytest.mark.parametrize(
    ("commands", "size", "codes", "later"),
    [
        ([("size=1g", UNIT)], 4 * GIB, ["shm-script-wins"], "fail"),
        ([("size=1g", UNIT)], GIB, ["shm-script-wins"], "fail"),
        ([("size=1g", UNIT)], 3 * GIB, ["shm-script-wins"], "fail"),
        ([("size=3g", UNIT)], 3 * GIB, [], "pass"),
        ([("size=3g", UNIT)], GIB, ["shm-remounted"], "pass"),
        ([("size=$S", UNIT)], 4 * GIB, ["shm-script-unclear"], "unknown"),
        (
            [("size=$S", UNIT), ("size=1g", "/etc/rc.local")],
            4 * GIB,
            ["shm-script-unclear", "shm-script-wins"],
            "fail",
        ),
    ],
)
def test_a_script_that_mounts_it_anew_decides_what_a_boot_gives(
    commands: list[tuple[str, str]], size: int, codes: list[str], later: str
) -> None:
    scripts = {}
    for option, path in commands:
        scripts.update(runs(f"/bin/mount -o remount,{option} /dev/shm", path))
    facts = ShmFacts(size, HIGH, MEMORY, scripts)
    causes = find_shm_causes(3 * GIB, facts)
    assert [cause.code for cause in causes] == codes
    assert foresee_boot(3 * GIB, facts) == later
    remount = ("mount", "-o", f"remount,size={3 * GIB}", "/dev/shm")
    assert all((remount in cause.remedy.commands) == (size < 3 * GIB) for cause in causes)
    wins = [cause for cause in causes if cause.code == "shm-script-wins"]
    assert all(f"s|size=1g|size={3 * GIB}|" in cause.remedy.commands[0][2] for cause in wins)
    assert trace_shm(facts)[-2].source.startswith(commands[-1][1])


def test_what_a_unit_mounts_that_may_not_run_is_unknown() -> None:
    (text,) = runs("mount -o remount,size=2g /dev/shm").values()
    scripts = {UNIT: mark(text, text, doubts={2})}
    assert foresee_boot(GIB, ShmFacts(GIB, HIGH, MEMORY, scripts)) == "unknown"


def test_an_image_whose_scripts_mount_it_is_unknown() -> None:
    found = foretell_shm(GIB, HIGH, runs("mount -o remount,size=2g /dev/shm"))
    assert (found.status, found.reason) == ("unknown", f"{UNIT}:2 mounts it anew")
    assert foretell_shm(GIB, HIGH, {}).status == "pass"


def test_the_chain() -> None:
    links = trace_shm(ShmFacts(GIB, f"{LOW}\n{HIGH}", MEMORY))
    assert [link.value for link in links] == ["4GiB", "2GiB", "100MiB", "3GiB", "1GiB"]
    assert isinstance(links[3], Link)
    assert "not read" in links[3].source


def test_half_a_block_of_ours_is_refused_by_its_file() -> None:
    text = "# BEGIN mlhost.limits\ntmpfs /dev/shm tmpfs rw 0 0\n"
    plan = plan_shm(2**30, text, 2**30, override=False, absent=False)
    assert not plan.edits
    assert plan.problems == (
        "/etc/fstab: '# BEGIN mlhost.limits' and '# END mlhost.limits' must stand there once"
        " each, in order",
    )


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ("defaults", ""),
        ("rw,nosuid,nodev,noexec,size=8g,mode=1777,uid=0,nofail,x-systemd.automount", ""),
        ("size=50%,nr_inodes=1k,huge=within_size,mpol=bind=static:0-3,inode64,noswap", ""),
        ("size=8g,foo=1", "foo=1"),
        ("size=8g,mpol=foo", "mpol=foo"),
        ("size=8g,size=9GB", "size=9GB"),
        ("size=8g,noatme", "noatme"),
        ("size=8g,mode=0999", "mode=0999"),
        ("size=8g,size", "size"),
    ],
)
def test_an_option_that_tmpfs_may_refuse_is_named(options: str, refused: str) -> None:
    line = f"tmpfs /dev/shm tmpfs {options} 0 0"
    (found,) = find_lines(line, MEMORY)
    assert find_refused_option(found) == refused
    if refused:
        told = foretell_shm(GIB, line, {})
        assert told.status == "unknown"
        assert told.reason == f'{FSTAB}:1 "{line}": tmpfs may refuse {refused}'
        assert foresee_boot(GIB, ShmFacts(GIB, line, MEMORY)) in ("unknown", "fail")
