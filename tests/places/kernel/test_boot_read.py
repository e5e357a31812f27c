# SPDX-License-Identifier: GPL-3.0-or-later
"""What sets sysctls at boot is found wherever a host keeps it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mlhost_limits.host.files import list_folder, read_text
from mlhost_limits.kernel import tuned_read
from mlhost_limits.kernel.boot_called_read import Called
from mlhost_limits.kernel.boot_read import BootRead
from mlhost_limits.kernel.boot_scripts import find_loader_words, find_script_writes
from mlhost_limits.kernel.diagnose import gather_key
from mlhost_limits.kernel.host_read import read_sysctl_files

UNITS = "etc/systemd/system"
KEY = "vm.max_map_count"
UNITS_PATH = f"/{UNITS}"


class Tree:
    """A host's files below a folder; each gets a time of its own where one is given."""

    def __init__(self, top: Path) -> None:
        self.top = top

    def write(self, path: str, text: str = "", mode: int = 0o644) -> Path:
        file = self.top / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="latin-1")
        file.chmod(mode)
        return file

    def link(self, path: str, target: str) -> Path:
        file = self.top / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(target)
        return file

    def look(self) -> BootRead:
        return BootRead(read_sysctl_files(str(self.top)), str(self.top))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_a_bare_tree_says_nothing(tree: Tree) -> None:
    boot = tree.look()
    assert (boot.files, boot.others, boot.real, boot.command_line) == ({}, {}, {}, "")
    assert (boot.stop, boot.tuned, boot.scripts, boot.all_scripts) == (None, None, {}, {})
    assert (boot.modules.loaded, boot.os_release, boot.raises_nr_open) == (frozenset(), {}, None)
    assert not boot.raises_file_max
    assert not boot.applies_files
    assert not boot.is_read_only("no.such_key")


def test_files_that_boots_read_and_the_others(tree: Tree) -> None:
    tree.write("etc/sysctl.conf", "a")
    tree.write("etc/sysctl.d/10-a.conf", "b")
    tree.write("etc/sysctl.d/10-a.cnf", "c")
    tree.link("etc/sysctl.d/99-sysctl.conf", "../sysctl.conf")
    (tree.top / "etc/sysctl.d/folder").mkdir()
    boot = tree.look()
    assert boot.files == {
        "/etc/sysctl.d/10-a.conf": "b",
        "/etc/sysctl.d/99-sysctl.conf": "a",
        "/etc/sysctl.conf": "a",
    }
    assert boot.others == {"/etc/sysctl.d/10-a.cnf": "c"}
    assert boot.real == {"/etc/sysctl.d/99-sysctl.conf": "/etc/sysctl.conf"}


def test_files_are_told_apart_by_the_time_of_the_boot(tree: Tree) -> None:
    tree.write("run/sysctl.d/a.conf")
    tree.link("etc/sysctl.d/gone.conf", "nowhere")
    now = tree.write("etc/sysctl.d/b.conf").stat().st_ctime
    both = {"/run/sysctl.d/a.conf", "/etc/sysctl.d/b.conf"}
    tree.write("proc/stat", f"cpu 1\nbtime {int(now) - 1000}\n")
    assert tree.look().passing == {"/run/sysctl.d/a.conf"}
    assert tree.look().fresh == both
    # systemd has read the files since.
    link = tree.link("run/systemd/units/invocation:systemd-sysctl.service", "0")
    os.utime(link, (now + 50, now + 50), follow_symlinks=False)
    assert tree.look().fresh == set()
    tree.write("proc/stat", f"btime {int(now) - 10}\n")
    assert tree.look().passing == set()
    early = tree.link("run/systemd/units/invocation:systemd-tmpfiles-setup.service", "0")
    for seconds, passing in ((-5, {"/run/sysctl.d/a.conf"}), (5, set())):
        os.utime(early, (now + seconds, now + seconds), follow_symlinks=False)
        assert tree.look().passing == passing


@pytest.mark.parametrize(
    ("release", "raises"),
    [
        ("ID=debian\nVERSION_ID=12\n", False),
        ("ID=debian\nVERSION_ID=13\n", True),
        ('ID=ubuntu\nVERSION_ID="24.04"\n', False),
        ("ID=ubuntu\nVERSION_ID=25.10\n", True),
        ("ID=debian\n", None),
        ("ID=rocky\nVERSION_ID=9.4\n", True),
        ("ID=rhel\nVERSION_ID=8.10\n", False),
        ("ID=arch\n", None),
    ],
)
def test_who_raises_nr_open(tree: Tree, release: str, raises: bool | None) -> None:
    tree.write("etc/os-release", release)
    assert tree.look().raises_nr_open is raises


@pytest.mark.parametrize(
    "folder", ["usr/lib/systemd", f"usr/lib/{os.uname().machine}-linux-gnu/systemd"]
)
def test_systemd_tells_its_version_by_a_library(tree: Tree, folder: str) -> None:
    tree.write(f"{folder}/libsystemd-core-252.so")
    tree.write(f"{folder}/libsystemd-shared-252.so")
    tree.write("usr/lib/systemd/systemd-sysctl")
    assert tree.look().raises_file_max
    assert tree.look().applies_files


def test_a_mask_stops_the_reader_and_an_own_unit_does_not(tree: Tree) -> None:
    path = f"{UNITS}/systemd-sysctl.service"
    link = tree.link(path, "/dev/null")
    stop = tree.look().stop
    assert stop is not None
    assert (stop.place, stop.text) == (f"/{path}", "a link to /dev/null")
    link.unlink()
    tree.write(path)
    assert tree.look().stop
    tree.write(path, "[Service]\n")
    assert tree.look().stop is None
    tree.write("proc/cmdline", "quiet systemd.mask=x systemd.mask=systemd-sysctl ro\n")
    stop = tree.look().stop
    assert stop is not None
    assert (stop.place, stop.text) == ("/proc/cmdline", "systemd.mask=systemd-sysctl")


def test_modules_that_are_loaded_early(tree: Tree) -> None:
    tree.write("etc/modules-load.d/a.conf", "# one\nnf_conntrack\n")
    tree.write("usr/lib/modules-load.d/b.conf", "br-netfilter")
    tree.write("etc/modules-load.d/c", "x")
    assert {"nf_conntrack", "br_netfilter"} == tree.look().modules.loaded


def test_of_a_profile_that_is_nowhere_no_file_is_read(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def read(path: str, root: str = "/") -> str | None:
        asked.append(path)
        text: str | None = read_text(path, root)
        return text

    monkeypatch.setattr(tuned_read, "read_text", read)
    tree.write("etc/tuned/active_profile", "gone\nsite\nlost/gone\n")
    tree.write("usr/lib/tuned/site/tuned.conf", f"[sysctl]\n{KEY}=2\n")
    tree.write("run/tuned/tuned.pid", "1")
    tuned = tree.look().tuned
    assert tuned is not None
    assert list(tuned.lines) == [KEY]
    read_profiles = [path for path in asked if path.endswith("/tuned.conf")]
    assert read_profiles == ["/usr/lib/tuned/site/tuned.conf"]


def test_tuned_counts_where_it_runs_or_will(tree: Tree) -> None:
    tree.write("etc/tuned/active_profile", "site\n")
    tree.write("etc/tuned/post_loaded_profile", "last gone\n")
    tree.write("usr/lib/tuned/base/tuned.conf", f"[sysctl]\n{KEY}=1\nvm.swappiness=5\n")
    tree.write("usr/lib/tuned/site/tuned.conf", "[sysctl]\nnot.read=1\n")
    tree.write("etc/tuned/site/tuned.conf", f"[main]\ninclude=base,site\n[sysctl]\n{KEY}=2\n")
    tree.write("usr/lib/tuned/last/tuned.conf", "[main]\ninclude=base\n")
    assert tree.look().tuned is None
    tree.write("run/tuned/tuned.pid", "1")
    tuned = tree.look().tuned
    assert tuned is not None
    assert {key: at.place for key, at in tuned.lines.items()} == {
        KEY: "/etc/tuned/site/tuned.conf:4",
        "vm.swappiness": "/usr/lib/tuned/base/tuned.conf:3",
    }
    assert (tuned.enabled, tuned.reapplies, tuned.switch) == (False, True, None)
    tree.write("etc/tuned/tuned-main.conf", "daemon = 1\nreapply_sysctl=0\n")
    tree.link(f"{UNITS}/multi-user.target.wants/tuned.service", "x")
    tuned = tree.look().tuned
    assert tuned is not None
    assert tuned.switch is not None
    assert (tuned.enabled, tuned.reapplies, tuned.switch.line) == (True, False, 2)
    assert tree.look().scripts == {}
    tree.write("etc/tuned/site/low.sh", f"#!/bin/sh\nsysctl -w {KEY}=3\n")
    tree.write("usr/lib/tuned/base/low.sh", f"#!/bin/sh\nsysctl -w {KEY}=3\n")
    text = "[main]\ninclude=base\n[script]\nscript=${i:PROFILE_DIR}/low.sh\n"
    tree.write("etc/tuned/site/tuned.conf", text)
    assert set(tree.look().scripts) == {"/etc/tuned/site/low.sh"}


def test_words_that_boot_loaders_have_for_the_next_kernel(tree: Tree) -> None:
    word = f"sysctl.{KEY}=7"
    tree.write("etc/default/grub", f'# {word}\nGRUB_CMDLINE_LINUX="quiet {word}"\n')
    tree.write("boot/loader/entries/a.conf", "options ro sysctl.vm/max_map_count=8 x\n")
    tree.write("etc/default/grub.d/x.dpkg-old", word)
    tree.write("boot/grub/grub.cfg", f"linux /x {word}0.sysctl.{KEY}.x=9 xsysctl.{KEY}=5\n")
    assert [(at.place, at.value) for at in find_loader_words(KEY, tree.look().loader)] == [
        ("/boot/grub/grub.cfg:1", f"70.sysctl.{KEY}.x=9"),
        ("/etc/default/grub:2", "7"),
        ("/boot/loader/entries/a.conf:1", "8"),
    ]


def test_a_crontab_that_only_root_may_read_is_left_out(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_words: object) -> str:
        raise PermissionError("no")

    tree.write("etc/crontab", f"@reboot root sysctl -w {KEY}=1\n")
    boot = tree.look()
    monkeypatch.setattr("mlhost_limits.kernel.boot_units_read.read_text", refuse)
    monkeypatch.setattr("mlhost_limits.host.files._read_together", lambda *_words: {})
    assert boot.scripts == {}


def test_scripts_that_run_at_boot(tree: Tree) -> None:
    line = f"sysctl -w {KEY}=1\n"
    exec_line = f"[Service]\nExecStart=/bin/{line}"
    tree.write("etc/rc.local", line, 0o755)
    tree.write("etc/rc.d/rc.local", line)
    tree.write("etc/crontab", "@reboot root /usr/local/bin/tune\n")
    tree.write("etc/cron.d/x", f"@reboot root {line}")
    tree.write("usr/local/bin/tune", f"#!/bin/sh\n{line}", 0o755)
    tree.write("usr/local/bin/other", line)
    tree.write("usr/local/bin/large", f"\0{line}{'#' * 2000000}")
    called = "ExecStart=/usr/local/bin/other\nExecStart=/usr/local/bin/large\n"
    tree.write(f"{UNITS}/a.service", f"[Service]\n{called}ExecStart=/usr/local/bin/gone\n")
    tree.write(f"{UNITS}/b.service", exec_line)
    tree.write(f"{UNITS}/not-wanted.service", exec_line)
    tree.write(f"{UNITS}/timed.service", exec_line)
    tree.link(f"{UNITS}/timers.target.wants/timed.timer", "../timed.timer")
    tree.write("etc/cron.daily/tune", line, 0o755)
    tree.write("etc/cron.daily/asleep", line)
    tree.write(f"{UNITS}/c.service.d/x.conf", exec_line)
    tree.write(f"{UNITS}/c.service.d/x.bak", exec_line)
    tree.write("usr/lib/systemd/system/v.service", exec_line)
    tree.link(f"{UNITS}/v.service", "/usr/lib/systemd/system/v.service")
    for unit in ("a", "b", "v"):
        tree.link(f"{UNITS}/multi-user.target.wants/{unit}.service", f"../{unit}.service")
    expected = {
        f"/{UNITS}/b.service", f"/{UNITS}/c.service.d/x.conf", "/etc/cron.d/x",
        "/usr/local/bin/tune", "/etc/rc.local", f"/{UNITS}/timed.service",
        "/etc/cron.daily/tune",
    }  # fmt: skip
    assert set(tree.look().scripts) == expected
    assert set(tree.look().all_scripts) == expected | {"/usr/lib/systemd/system/v.service"}


@pytest.mark.parametrize(
    ("release", "runs"),
    [
        ("ID=debian\nVERSION_ID=12\n", ["/etc/rc.local"]),
        ("ID=ubuntu\nVERSION_ID=24.04\n", ["/etc/rc.local"]),
        ("ID=rocky\nVERSION_ID=9.4\nID_LIKE=rhel\n", ["/etc/rc.d/rc.local"]),
        ("ID=sles\nVERSION_ID=15.6\n", ["/etc/init.d/boot.local"]),
        ("ID=opensuse-tumbleweed\nVERSION_ID=20261101\nID_LIKE=suse\n", None),
        ("ID=azurelinux\nVERSION_ID=3.0\n", None),
    ],
)
def test_each_distribution_runs_a_local_script_of_its_own(
    tree: Tree, release: str, runs: list[str] | None
) -> None:
    names = ["/etc/init.d/boot.local", "/etc/rc.d/rc.local", "/etc/rc.local"]
    for name in names:
        tree.write(name[1:], f"sysctl -w {KEY}=1\n", 0o755)
    tree.write("etc/os-release", release)
    assert sorted(tree.look().scripts) == (runs or names)


def test_units_below_usr_local_are_the_administrator_s(tree: Tree) -> None:
    unit = "usr/local/lib/systemd/system/t.service"
    tree.write(unit, f"[Service]\nExecStart=/sbin/sysctl -w {KEY}=5\n")
    assert tree.look().scripts == {}
    tree.link(f"{UNITS}/multi-user.target.wants/t.service", f"/{unit}")
    assert set(tree.look().scripts) == {f"/{unit}"}


def test_scripts_that_are_reached_in_other_ways(tree: Tree) -> None:
    """Every way that starts something at boot counts, and what nothing starts does not."""
    line = f"sysctl -w {KEY}=1\n"
    unit = f"[Service]\nExecStart=/bin/{line}"
    for name in ("by-unit", "by-timer", "at@", "sleeping@", "sleeping"):
        tree.write(f"{UNITS}/{name}.service", unit)
    tree.write(f"{UNITS}/first.service", "[Unit]\nWants=by-unit.service other.timer\n")
    tree.write(f"{UNITS}/other.timer", "[Timer]\nUnit=by-timer.service\n")
    for name in ("first.service", "at@one.service"):
        tree.link(f"{UNITS}/multi-user.target.wants/{name}", "x")
    tree.write("etc/tmpfiles.d/a.conf", f"w /proc/sys/vm/max_map_count - - - - 1\n# {line}")
    tree.write("etc/modprobe.d/a.conf", f"install x {line}")
    tree.write("etc/network/interfaces.d/a", f" up {line}")
    tree.write("etc/NetworkManager/dispatcher.d/a", line, 0o755)
    tree.write("etc/NetworkManager/dispatcher.d/b", line)
    tree.write("etc/dhcp/dhclient-exit-hooks.d/a", line)
    for name in ("started", "stopped", "replaced"):
        tree.write(f"etc/init.d/{name}", line, 0o755)
    for name in ("S01started", "K01stopped", "S01replaced"):
        tree.link(f"etc/rc3.d/{name}", f"../init.d/{name[3:]}")
    tree.write("usr/lib/systemd/system/replaced.service", "[Service]\n")
    tree.write(
        "etc/rc.local", "/usr/sbin/one\nsysctl -p /srv/low.conf /etc/sysctl.d/a.conf\n", 0o755
    )
    tree.write("usr/sbin/one", "#!/bin/sh\n/opt/two\n")
    tree.write("opt/two", f"#!/bin/sh\n{line}")
    tree.write("srv/low.conf", f"{KEY} = 1\n")
    tree.write("etc/initramfs-tools/scripts/init-bottom/a", line, 0o755)
    expected = {
        *(f"/{UNITS}/{name}.service" for name in ("by-unit", "by-timer", "at@")),
        *(f"/etc/{path}" for path in (
            "tmpfiles.d/a.conf", "modprobe.d/a.conf", "network/interfaces.d/a",
            "NetworkManager/dispatcher.d/a", "dhcp/dhclient-exit-hooks.d/a", "init.d/started",
            "rc.local",
        )),
        "/opt/two", "/srv/low.conf",
    }  # fmt: skip
    assert set(tree.look().scripts) == expected
    assert set(tree.look().early) == {"/etc/initramfs-tools/scripts/init-bottom/a"}
    (early,) = gather_key(KEY, tree.look(), "65530").loader
    assert (early.path, early.value) == ("/etc/initramfs-tools/scripts/init-bottom/a", "1")


LOW = f"sysctl -w {KEY}=65530\n"
SETS_LOW = f"#!/bin/sh\n{LOW}"
BRINGS = "ExecStart=/bin/cp /opt/x /etc/sysctl.d/x.conf\n"
RUNS_LOW = f"[Service]\nExecStart=/sbin/{LOW}"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        # A path, a socket or a target's drop-in starts a service as a timer does.
        ({f"{UNITS}/x.service": RUNS_LOW, f"{UNITS}/p.wants/x.path": ""}, [f"{UNITS}/x.service"]),
        ({f"{UNITS}/x.service": RUNS_LOW, f"{UNITS}/p.wants/x.socket": ""}, [f"{UNITS}/x.service"]),
        ({f"{UNITS}/x@.service": RUNS_LOW, f"{UNITS}/p.wants/x@1.path": ""}, [f"{UNITS}/x@.service"]),
        (
            {f"{UNITS}/x.service": RUNS_LOW, f"{UNITS}/a.target.d/x.conf": "[Unit]\nWants=x.service\n"},
            [f"{UNITS}/x.service"],
        ),
        ({f"{UNITS}/x.service": RUNS_LOW, f"{UNITS}/a.target.d/x.old": "Wants=x.service\n"}, []),
        ({f"{UNITS}/x.service": RUNS_LOW}, []),
        # What an interpreter is given needs no first line.
        ({"etc/rc.local": "#!/bin/sh\nbash -e /opt/x\n", "opt/x": LOW}, ["opt/x"]),
        ({"etc/rc.local": "#!/bin/sh\n. '/opt/x'\n", "opt/x": LOW}, ["opt/x"]),
        ({"etc/rc.local": "#!/bin/sh\npython3.11 -u /opt/x.py\n", "opt/x.py": LOW}, ["opt/x.py"]),
        ({"etc/rc.local": "#!/bin/sh\ncat /opt/x\nsh /opt/xy\n", "opt/x": LOW}, []),
        ({"etc/rc.local": "#!/bin/sh\nsh /opt/x\n", "opt/x": f"\0{LOW}"}, []),
        (
            {"etc/rc.local": "#!/bin/sh\ncat /opt/x\n/opt/y\n", "opt/y": "#!/bin/sh\nsh /opt/x\n",
             "opt/x": LOW, "etc/cron.d/z": "@reboot root sh /opt/x\n"},
            ["opt/x"],
        ),
        ({"etc/cron.d/z": "@reboot root /opt/y\n", "opt/y": LOW}, ["opt/y"]),
        # Only root may set one, and cron leaves some names out.
        ({"etc/cron.d/z": f"@reboot alice {LOW}"}, []),
        ({"etc/cron.d/z": "1-5/2 * * * 0 alice /opt/y\n", "opt/y": LOW}, []),
        ({"etc/crontab": f"SHELL=/bin/sh\n*/5 * * * * root {LOW}"}, ["etc/crontab"]),
        ({"etc/cron.d/z.dpkg-old": f"@reboot root {LOW}", "etc/cron.daily/y~": f"#!/bin/sh\n{LOW}"}, []),
        ({f"{UNITS}/x.service": f"{RUNS_LOW}User=alice\n", f"{UNITS}/p.wants/x.service": ""}, []),
        (
            {f"{UNITS}/x.service": f"[Service]\nUser=alice\nExecStart=+/sbin/{LOW}", f"{UNITS}/p.wants/x.service": ""},
            [f"{UNITS}/x.service"],
        ),
        ({f"{UNITS}/x.service": f"{RUNS_LOW}User=root\n", f"{UNITS}/p.wants/x.service": ""}, [f"{UNITS}/x.service"]),
        ({f"{UNITS}/x.service": f"[Service]\nUser=nobody\nExecStart=!/sbin/{LOW}", f"{UNITS}/p.wants/x.service": ""}, [f"{UNITS}/x.service"]),
        ({f"{UNITS}/x.service": f"[Service]\nUser=nobody\nExecStart=-+/sbin/{LOW}", f"{UNITS}/p.wants/x.service": ""}, [f"{UNITS}/x.service"]),
        ({f"{UNITS}/x.service": f"[Service]\nUser=nobody\nExecStart=/sbin/{LOW}User=\n", f"{UNITS}/p.wants/x.service": ""}, [f"{UNITS}/x.service"]),
        ({f"{UNITS}/x.service": f"[Service]\nUser=nobody\nPermissionsStartOnly=yes\nExecStartPre=/sbin/{LOW}", f"{UNITS}/p.wants/x.service": ""}, [f"{UNITS}/x.service"]),
        ({f"{UNITS}/x.service": f"[Service]\nUser=nobody\nExecStart=/sbin/{LOW}", f"{UNITS}/p.wants/x.service": "", f"{UNITS}/x.service.d/a.conf": "[Service]\nUser=root\n"}, [f"{UNITS}/x.service"]),
        ({f"{UNITS}/x.service": f"[Service]\nUser=deploy\nExecStart=/bin/sudo {LOW}", f"{UNITS}/p.wants/x.service": ""}, [f"{UNITS}/x.service"]),
        # A target that no boot reaches starts nothing, a mask keeps a unit away, and a service
        # wants others.
        ({f"{UNITS}/x.service": RUNS_LOW, f"{UNITS}/rescue.target.wants/x.service": ""}, []),
        (
            {f"{UNITS}/x.service": RUNS_LOW, f"{UNITS}/p.wants/x.timer": "",
             f"{UNITS}/x.timer": "-> /dev/null"},
            [],
        ),
        (
            {f"{UNITS}/x.service": RUNS_LOW, f"{UNITS}/cron.service.d/a.conf": "[Unit]\nWants=\\\n x.service\n"},
            [f"{UNITS}/x.service"],
        ),
        # An instance's name, and a folder that is stated elsewhere, are part of what is called.
        (
            {f"{UNITS}/x@.service": "[Service]\nExecStart=/opt/%i.sh\n", f"{UNITS}/p.wants/x@low.service": "",
             "opt/low.sh": f"#!/bin/sh\n{LOW}"},
            ["opt/low.sh"],
        ),
        (
            {f"{UNITS}/x.service": "[Service]\nEnvironment=S=/opt/y\nExecStart=/bin/sh $S\n",
             f"{UNITS}/p.wants/x.service": "", "opt/y": LOW},
            ["opt/y"],
        ),
        *(
            ({"etc/rc.local": f"#!/bin/sh\n{call}\n", "opt/s/d/y": SETS_LOW}, found)
            for call, found in (
                ("find /opt/s -type f -exec sh {} \\;", ["opt/s/d/y"]),
                ("find /opt/s/ -type f -exec {} \\;", ["opt/s/d/y"]),
                ("find /opt -name y | xargs -n 1 sh", ["opt/s/d/y"]),
                ("find /opt/s -type f -exec grep -l x {} \\;", []),
                ("find /opt/s -type f -delete", []),
            )
        ),
        *(
            (
                {f"{UNITS}/x.service": f"[Service]\nExecStart=/bin/sh -c 'a=1; \\\n {call}'\n",
                 f"{UNITS}/p.wants/x.service": "", "opt/y": LOW},
                [found],
            )
            for call, found in ((LOW, f"{UNITS}/x.service"), ("sh /opt/y", "opt/y"))
        ),
        (
            {f"{UNITS}/x.service": "[Service]\nWorkingDirectory=/opt\nExecStart=/bin/sh y\n",
             f"{UNITS}/p.wants/x.service": "", "opt/y": LOW},
            ["opt/y"],
        ),
        ({"etc/cron.d/z": "@reboot root cd /opt && ./y\n", "opt/y": LOW}, ["opt/y"]),
        ({"etc/cron.d/z": "@reboot root cd /srv && ./y\n", "opt/y": LOW}, []),
        ({"etc/cron.d/z": "@reboot root tune\n", "usr/local/sbin/tune": f"#!/bin/sh\n{LOW}"}, ["usr/local/sbin/tune"]),
        ({"etc/cron.d/z": "@reboot root stune\n", "usr/local/sbin/tune": f"#!/bin/sh\n{LOW}"}, []),
        ({"etc/crontab": "* * * * * root run-parts --report /etc/own\n", "etc/own/y": f"#!/bin/sh\n{LOW}"}, ["etc/own/y"]),
        ({"etc/crontab": "* * * * * root ls /etc/own\n", "etc/own/y": f"#!/bin/sh\n{LOW}"}, []),
        # Files that others than sysctl.d's reader apply.
        ({"etc/rc.local": "#!/bin/sh\n/usr/lib/systemd/systemd-sysctl /opt/a.conf\n", "opt/a.conf": f"{KEY}=5"}, ["opt/a.conf"]),
        ({"etc/rc.local": "#!/bin/sh\nsysctl -q -f /opt/a.conf\n", "opt/a.conf": f"{KEY}=5"}, ["opt/a.conf"]),
        (
            {"etc/default/ufw": "IPT_SYSCTL=/etc/ufw/sysctl.conf\n", "etc/ufw/ufw.conf": "ENABLED=yes\n",
             "etc/ufw/sysctl.conf": "vm/max_map_count=5\n"},
            ["etc/ufw/sysctl.conf"],
        ),
        (
            {"etc/default/ufw": "IPT_SYSCTL=/etc/ufw/sysctl.conf\n", "etc/ufw/ufw.conf": "ENABLED=no\n",
             "etc/ufw/sysctl.conf": "vm/max_map_count=5\n"},
            [],
        ),
        # Sockets have commands, and a drop-in may be for all services.
        ({f"{UNITS}/x.socket": f"[Socket]\nExecStartPost=/sbin/{LOW}", f"{UNITS}/p.wants/x.socket": ""}, [f"{UNITS}/x.socket"]),
        ({f"{UNITS}/service.d/x.conf": f"[Service]\nExecStartPost=/sbin/{LOW}"}, [f"{UNITS}/service.d/x.conf"]),
        # What is taken back, masked, not reached, or after the end of a script does not run.
        (
            {f"{UNITS}/x.service": RUNS_LOW, f"{UNITS}/p.wants/x.service": "",
             f"{UNITS}/x.service.d/a.conf": "[Service]\nExecStart=\nExecStart=/bin/true\n"},
            [],
        ),
        (
            {f"{UNITS}/x.service": "[Service]\nExecStart=/bin/true\n", f"{UNITS}/p.wants/x.service": "",
             f"{UNITS}/x.service.d/a.conf": f"[Service]\nExecStart=\nExecStart=/sbin/{LOW}"},
            [f"{UNITS}/x.service.d/a.conf"],
        ),
        ({f"{UNITS}/x.service.d/a.conf": RUNS_LOW, f"{UNITS}/x.service": "-> /dev/null"}, []),
        ({"etc/cron.d/z": f"@reboot root {LOW}", f"{UNITS}/cron.service": "-> /dev/null"}, []),
        ({"etc/rc.local": f"#!/bin/sh\n{LOW}", f"{UNITS}/rc-local.service": "-> /dev/null"}, []),
        ({"etc/rc.local": f"#!/bin/sh\nif true; then\n  exit 1\nfi\nexit 0\n{LOW}"}, []),
        ({"etc/rc.local": f"#!/bin/sh\nif false; then\nexit 0\nfi\n{LOW}exit 0\n"}, ["etc/rc.local"]),
        *(
            ({"etc/rc.local": f"#!/bin/sh\n{end}\n{LOW}"}, found)
            for end, found in (
                ("exit 0;", []),
                ("exit 0 # done", []),
                ("exec /opt/agent", []),
                ("exec > /var/log/x 2>&1", ["etc/rc.local"]),
                ("exec 3< /etc/x", ["etc/rc.local"]),
                ("exec /opt/agent || true", ["etc/rc.local"]),
            )
        ),
        ({"etc/rc.local": "#!/bin/sh\nexec /opt/s\n", "opt/s": SETS_LOW}, ["opt/s"]),
        ({"etc/rc.local": f"#!/bin/sh\ncat <<E\nexit 0\nE\n{LOW}"}, ["etc/rc.local"]),
        ({"etc/rc.local": f"#!/bin/sh\n[ -e /nope ] &&\nexit 0\n{LOW}"}, ["etc/rc.local"]),
        ({"etc/rc.local": f"#!/bin/sh\nfalse ||\nexit 0\n{LOW}"}, ["etc/rc.local"]),
        ({"etc/rc.local": f"#!/bin/sh\nx='a\nexit 0\n'\n{LOW}"}, ["etc/rc.local"]),
        ({"etc/rc.local": f"#!/bin/sh\n(\nexit 0\n)\n{LOW}"}, ["etc/rc.local"]),
        ({"etc/rc.local": f"#!/bin/sh\nf() (\nexit 1\n)\n{LOW}"}, ["etc/rc.local"]),
        ({"etc/rc.local": f"#!/bin/sh\nif false; then\n echo }}\nexit 0\nfi\n{LOW}"}, ["etc/rc.local"]),
        (
            {f"{UNITS}/x.service": RUNS_LOW, f"{UNITS}/own.target": "", f"{UNITS}/own.target.wants/x.service": ""},
            [],
        ),
        (
            {f"{UNITS}/x.service": RUNS_LOW, f"{UNITS}/own.target": "", f"{UNITS}/own.target.wants/x.service": "",
             f"{UNITS}/multi-user.target.wants/own.target": ""},
            [f"{UNITS}/x.service"],
        ),
        (
            {f"{UNITS}/x.service": RUNS_LOW, f"{UNITS}/graphical.target.wants/x.service": "",
             f"{UNITS}/default.target": "-> /usr/lib/systemd/system/multi-user.target"},
            [],
        ),
        (
            {f"{UNITS}/x.service": RUNS_LOW, f"{UNITS}/own.target": "", f"{UNITS}/own.target.wants/x.service": "",
             f"{UNITS}/default.target": "-> own.target"},
            [f"{UNITS}/x.service"],
        ),
        # Names of cron's files, as Debian's reads them and as others do.
        ({"etc/cron.d/z.cron": f"@reboot root {LOW}"}, ["etc/cron.d/z.cron"]),
        ({"etc/cron.d/z.cron": f"@reboot root {LOW}", "etc/os-release": "ID=debian\n"}, []),
        ({"etc/cron.daily/z.sh": f"#!/bin/sh\n{LOW}", "etc/os-release": "ID=ubuntu\n"}, []),
        ({"etc/cron.daily/z": f"#!/bin/sh\n{LOW}", "etc/os-release": "ID=ubuntu\n"}, ["etc/cron.daily/z"]),
        # With each daemon-reload, and at each login of root.
        ({f"{UNITS[:-6]}system-generators/x": f"#!/bin/sh\n{LOW}"}, [f"{UNITS[:-6]}system-generators/x"]),
        ({"etc/profile.d/x.sh": LOW}, ["etc/profile.d/x.sh"]),
        ({"etc/profile.d/x.off": LOW}, []),
        ({"root/.bashrc": LOW}, ["root/.bashrc"]),
        (
            {"etc/pam.d/su": "session optional pam_exec.so /opt/x\n", "opt/x": f"#!/bin/sh\n{LOW}"},
            ["opt/x"],
        ),
        # Where a script lies, what its name holds, how large it is, and who else is called first.
        *(({"etc/rc.local": f"#!/bin/sh\n/{path}\n", path: SETS_LOW}, [path])
          for path in ("data/x", "home/u/x.sh", "var/lib/a/x", "opt/a+b@c-1/x")),
        ({"etc/rc.local": "#!/bin/sh\n'/opt/my own/x' a\n", "opt/my own/x": SETS_LOW}, ["opt/my own/x"]),
        ({"etc/rc.local": "#!/bin/sh\n/opt/my\\ own/x\n", "opt/my own/x": SETS_LOW}, ["opt/my own/x"]),
        ({f"{UNITS}/x.service": "[Service]\nExecStart=/opt/my\\x20own/x\n", f"{UNITS}/p.wants/x.service": "",
          "opt/my own/x": SETS_LOW}, ["opt/my own/x"]),
        ({"etc/rc.local": "#!/bin/sh\n/opt/x\n", "opt/x": f"{SETS_LOW}{'#' * 2**17}"}, ["opt/x"]),
        ({"etc/rc.local": "#!/bin/sh\n/opt/x\n", "opt/x": f"{SETS_LOW}{'#' * 2**21}"}, ["etc/rc.local"]),
        ({"etc/rc.local": "#!/bin/sh\n/opt/x\n", "opt/x": f"#!/usr/bin/python3\nPK\0{'#' * 2**21}"}, []),
        ({"etc/rc.local": "#!/bin/sh\ntrue # /opt/x\n", "opt/x": SETS_LOW}, []),
        (
            {"etc/rc.local": "#!/bin/sh\n/opt/a\n", "opt/d": SETS_LOW,
             **{f"opt/{name}": f"#!/bin/sh\n/opt/{other}\n" for name, other in ("ab", "bc", "cd")}},
            ["opt/d"],
        ),
        # A script may call what lies beside it, or in a folder that a variable holds.
        *(({"etc/rc.local": "#!/bin/sh\n/opt/s/a\n", "opt/s/a": f"#!/bin/sh\n{call}\n", "opt/s/b": SETS_LOW}, ["opt/s/b"])
          for call in (
              "$(dirname $0)/b", '"$(dirname "$0")"/b', '"$(dirname "$0")/b"', '"${0%/*}"/b', ". `dirname $0`/b",
              'cd "$(dirname "$0")"; ./b', '. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/b"',
              'D=$(cd "$(dirname "$0")" && pwd)\n"$D/b"', "A=/opt\nB=$A/s\nsh ${B}/b -x",
          )),
    ],
)  # fmt: skip
def test_what_runs_after_the_files_are_read(
    tree: Tree, files: dict[str, str], found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, text in files.items():
        if text.startswith("-> "):
            tree.link(path, text[3:])
        else:
            tree.write(path, text, 0o644 if path == "opt/x" and text == LOW else 0o755)
    paths = [one.at.path for one in find_script_writes(KEY, tree.look().scripts)]
    assert paths == [f"/{path}" for path in found]
    # What is left out before it is taken apart is what sets nothing.
    monkeypatch.setattr(Called, "may_matter", lambda *_words: True)
    assert [one.at.path for one in find_script_writes(KEY, tree.look().scripts)] == paths


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("if [ -x /opt/x ]; then /opt/x; fi", "65530"),
        ("nohup /opt/x > /var/log/x 2>&1 &", "65530"),
        ("flock /run/x /opt/x", ""),
        ("su - root -c /opt/x", ""),
        *((line, None) for line in (
            "chmod +x /opt/x", "cp /opt/x /usr/local/sbin/y", "ls -l /opt/x > /dev/null", "rm -f /opt/x",
            "exit 0\n/opt/x", "su - u -c /opt/x", "sudo -u u /opt/x", "runuser -u u -- /opt/x",
            f"sudo -u u {LOW}", f"su u -c '{LOW}'",
        )),
        # Where a script has commands looked for.
        ("PATH=/opt:$PATH\nx", "65530"),
        ("export PATH=/usr/bin:/opt\nx --now", "65530"),
        ('PATH="$PATH":/opt\nx', "65530"),
        ("PATH+=:/opt\nx", "65530"),
        ("PATH=${PATH:+$PATH:}/opt\nx", "65530"),
        ("(PATH=/opt x)", "65530"),
        ("PATH=/usr/bin\nx", None),
        ("PATH=/opt\nexit 0", None),
        # What goes through a folder may run it.
        ('for one in /opt/*; do [ -x "$one" ] && "$one"; done', ""),
        (". /opt/*", ""),
        ("for one in /opt/*.sh; do . $one; done", None),
        ("ls /opt/*", None),
        # A unit that a script starts.
        ("systemctl start y.service", ""),
        ("systemctl --no-block restart y", ""),
        ("systemctl stop y", None),
        # Files that sysctl(8) is given.
        ("sysctl -e -p /etc/sysctl.d/a.conf -p /opt/a.conf", "65530"),
        ("sysctl -p $(dirname $0)/../opt/a.conf", "65530"),
        ("A=/opt\nsysctl -p $A/a.conf", "65530"),
        ("sysctl -p - < /opt/a.conf", ""),
        ("cat /opt/a.conf | sysctl -p -", ""),
    ],
)  # fmt: skip
def test_what_a_line_has_run_or_read(tree: Tree, line: str, value: str | None) -> None:
    tree.write("etc/rc.local", f"#!/bin/bash\n{line}\n", 0o755)
    tree.write("opt/x", SETS_LOW, 0o755)
    tree.write("opt/a.conf", f"{KEY}=65530\n")
    tree.write(f"{UNITS}/y.service", RUNS_LOW)
    writes = find_script_writes(KEY, tree.look().scripts)
    assert [one.at.value for one in writes if not one.loads] == ([] if value is None else [value])


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("etc/rc.local", "#!/bin/sh\n/home/u/x\n", 2),
        ("etc/rc.local", "#!/bin/sh\nA=/home\n[ -e $A/u/x ] && exec sh -e $A/u/x\n", 3),
        ("etc/rc.local", "#!/bin/sh\ncd /home/u && ./x\n", 2),
        ("etc/cron.d/z", "\n@reboot root nice -n 5 /home/u/x\n", 2),
        (f"{UNITS}/x.service", "[Service]\nExecStart=-/bin/bash /home/u/x\n", 2),
        (f"{UNITS}/x@.service", "\n[Service]\nExecStart=/home/%i/x\n", 3),
        ("etc/udev/rules.d/x.rules", 'ACTION=="add", RUN+="/home/u/x"', 1),
        ("etc/rc.local", "#!/bin/sh\nrun-parts /home/u\n", 2),
        ("etc/rc.local", "#!/bin/sh\nfind /home/u -name x -exec sh {} +\n", 2),
        ("etc/rc.local", "#!/bin/sh\nfor f in /home/u/*; do . $f; done\n", 2),
        ("etc/rc.local", "#!/bin/sh\nls /home/u/*\n", 0),
        ("etc/rc.local", "#!/bin/sh\nfind /home/u -name x -delete\n", 0),
        ("etc/rc.local", "#!/bin/sh\nrsync /home/u/x /srv; su u -c /home/u/x; sudo -u u /home/u/x\n", 0),
        (f"{UNITS}/x.service", "[Service]\nUser=u\nExecStart=/home/u/x\n", 0),
    ],
)  # fmt: skip
def test_a_script_that_root_may_not_open_may_set_anything(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, path: str, text: str, line: int
) -> None:
    def refuse(path: str, *_words: object) -> int:
        raise OSError(f"{path}: belongs to uid 1000")

    monkeypatch.setattr("mlhost_limits.kernel.boot_called_read.open_file", refuse)
    monkeypatch.setattr("mlhost_limits.kernel.boot_called_read.list_folder", refuse_home)
    tree.write(path, text, 0o755)
    tree.write("home/u/x", SETS_LOW, 0o755)
    tree.link(f"{UNITS}/p.wants/x.service", "x")
    tree.link(f"{UNITS}/p.wants/x@u.service", "x")
    writes = find_script_writes(KEY, tree.look().scripts)
    assert [(one.at.place, one.at.value) for one in writes] == [(f"/{path}:{line}", "")] * (
        line > 0
    )


def refuse_home(folder: str, root: str) -> list[str]:
    if folder.startswith("/home"):
        raise OSError(f"{folder}: belongs to uid 1000")
    names: list[str] = list_folder(folder, root)
    return names


ONESHOT = "[Service]\nType=oneshot\n"
STOPS_LOW = f"ExecStart=/bin/true\nExecStop=/sbin/{LOW}"
NOBODY = f"[Service]\nExecStart=/sbin/{LOW}DynamicUser=yes\n"


@pytest.mark.parametrize(
    ("unit", "more", "value"),
    [
        # A service that has ended has run what it runs when it stops.
        (f"{ONESHOT}{STOPS_LOW}", {}, "65530"),
        (f"{ONESHOT}ExecStart=/bin/true\nExecStopPost=/sbin/{LOW}", {}, "65530"),
        (f"{ONESHOT}{STOPS_LOW}RemainAfterExit=yes\n", {}, None),
        (f"{ONESHOT}{STOPS_LOW}", {"x.service.d/a.conf": "[Service]\nRemainAfterExit=1\n"}, None),
        (f"[Service]\n{STOPS_LOW}", {}, ""),
        (f"[Service]\nExecStart=/opt/daemon\nExecStop=/sbin/{LOW}", {}, None),
        (f"{ONESHOT}ExecStart=/bin/true\nExecReload=/sbin/{LOW}", {}, None),
        # A line counts in its section alone.
        (RUNS_LOW, {"x.service.d/a.conf": "[Unit]\nExecStart=\nExecStart=/bin/true\n"}, "65530"),
        (RUNS_LOW, {"x.service.d/a.conf": "[Unit]\nUser=nobody\n"}, "65530"),
        (f"[Unit]\nExecStart=/sbin/{LOW}[Service]\nExecStart=/bin/true\n", {}, None),
        ("[Unit]\n[Service]\nWants=y.service\n", {"y.service": RUNS_LOW}, None),
        # Who may not write to /proc/sys sets nothing.
        (NOBODY, {}, None),
        (f"{NOBODY}User=root\n", {}, "65530"),
        (f"{RUNS_LOW}User=nobody\nCapabilityBoundingSet=\n", {}, None),
        (f"{RUNS_LOW}User=nobody\nAmbientCapabilities=CAP_DAC_OVERRIDE\n", {}, ""),
        (f"{RUNS_LOW}ProtectKernelTunables=yes\n", {}, None),
        (f"[Service]\nExecStart=+/sbin/{LOW}ProtectKernelTunables=yes\n", {}, "65530"),
        (RUNS_LOW, {"x.service.d/a.conf": "[Service]\nProtectKernelTunables=true\n"}, None),
        # A condition that the tree decides, and one that it does not.
        (f"[Unit]\nConditionPathExists=/opt/no\n{RUNS_LOW}", {}, None),
        (f"[Unit]\nConditionPathExists=!/opt/no\n{RUNS_LOW}", {}, "65530"),
        (f"[Unit]\nConditionPathExists=!{UNITS_PATH}\n{RUNS_LOW}", {}, None),
        (f"[Unit]\nAssertPathIsDirectory={UNITS_PATH}\n{RUNS_LOW}", {}, "65530"),
        (f"[Unit]\nConditionFileIsExecutable={UNITS_PATH}/y\n{RUNS_LOW}", {"y": ""}, None),
        (f"[Unit]\nConditionFileNotEmpty={UNITS_PATH}/y\n{RUNS_LOW}", {"y": "a"}, "65530"),
        (f"[Unit]\nConditionPathExists=|/opt/no\nConditionPathExists=|/\n{RUNS_LOW}", {}, "65530"),
        (f"[Unit]\nConditionPathExists=|/opt/no\n{RUNS_LOW}", {}, None),
        (f"[Unit]\nConditionPathExists=|/opt/no\nConditionHost=|a\n{RUNS_LOW}", {}, ""),
        (f"[Unit]\nConditionPathExists=/opt/no\n{RUNS_LOW}",
         {"x.service.d/a.conf": "[Unit]\nConditionHost=\n"}, "65530"),
        (f"[Unit]\nConditionVirtualization=vm\n{RUNS_LOW}", {}, ""),
        (f"[Unit]\nConditionPathExists=/run/x\n{RUNS_LOW}", {}, ""),
        (f"[Unit]\nConditionPathIsReadWrite=/proc/sys/\n{RUNS_LOW}", {}, "65530"),
        (f"[Unit]\nConditionUser=root\n{RUNS_LOW}", {}, "65530"),
        # What comes before the files has the last word only where they are silent.
        (f"[Unit]\nBefore=x.target systemd-sysctl.service\n{RUNS_LOW}", {}, ""),
        (f"[Unit]\nAfter=systemd-sysctl.service\n{RUNS_LOW}", {}, "65530"),
        (f"[Unit]\nDefaultDependencies=no\nBefore=sysinit.target\n{RUNS_LOW}", {}, ""),
        (f"[Unit]\nDefaultDependencies=no\nAfter=systemd-sysctl.service\n{RUNS_LOW}", {}, "65530"),
        (f"[Unit]\nDefaultDependencies=no\nDefaultDependencies=yes\n{RUNS_LOW}", {}, "65530"),
        # It may bring the files, which nobody has read yet.
        (f"[Unit]\nBefore=systemd-sysctl.service\n{ONESHOT}{BRINGS}", {}, ""),
        (f"{ONESHOT}{BRINGS}", {}, None),
        ("[Service]\nExecStart=/bin/true\n",
         {"systemd-sysctl.service.d/a.conf": f"[Service]\n{BRINGS.replace('Start', 'StartPre')}"}, ""),
        (f"[Service]\nExecCondition=/opt/y\nExecStart=/sbin/{LOW}", {}, ""),
        # What starts it may itself not be known.
        (f"[Unit]\nOnSuccess=y.service\n{ONESHOT}ExecStart=/bin/true\n", {"y.service": RUNS_LOW}, "65530"),
        ("[Unit]\nOnSuccess=y.service\n[Service]\nExecStart=/opt/z\n", {"y.service": RUNS_LOW}, ""),
        ("[Unit]\nOnFailure=y.service\n[Service]\nExecStart=/opt/z\n", {"y.service": RUNS_LOW}, ""),
        ("[Unit]\nRequisite=y.service\n", {"y.service": RUNS_LOW}, None),
        ("[Service]\n", {"y.service.d/a.conf": RUNS_LOW}, ""),
    ],
)  # fmt: skip
def test_what_a_unit_runs(tree: Tree, unit: str, more: dict[str, str], value: str | None) -> None:
    tree.link(f"{UNITS}/multi-user.target.wants/x.service", "../x.service")
    for path, text in {"x.service": unit, **more}.items():
        tree.write(f"{UNITS}/{path}", text)
    writes = find_script_writes(KEY, tree.look().scripts)
    assert [one.at.value for one in writes] == ([] if value is None else [value])


def test_what_an_early_unit_calls_may_bring_the_files(tree: Tree) -> None:
    tree.link(f"{UNITS}/multi-user.target.wants/x.service", "../x.service")
    tree.write("opt/bring", "#!/bin/sh\n\ncp /opt/x /run/sysctl.d/x.conf\n", 0o755)
    for before, places in (("x", []), ("systemd-sysctl", ["/opt/bring:3"])):
        head = f"[Unit]\nBefore={before}.service\n"
        tree.write(f"{UNITS}/x.service", f"{head}[Service]\nExecStart=/opt/bring\n")
        writes = find_script_writes(KEY, tree.look().scripts)
        assert [one.at.place for one in writes] == places


@pytest.mark.parametrize("mine", ["-> /dev/null", "[Service]\nExecStart=/bin/true\n"])
def test_a_vendors_unit_that_is_replaced_says_nothing(tree: Tree, mine: str) -> None:
    vendors = "usr/lib/systemd/system/x.service"
    tree.write(vendors, RUNS_LOW)
    link = tree.link(f"{UNITS}/multi-user.target.wants/x.service", f"/{vendors}")
    assert list(tree.look().all_scripts) == [f"/{vendors}"]
    if mine.startswith("-> "):
        tree.link(f"{UNITS}/x.service", mine[3:])
    else:
        tree.write(f"{UNITS}/x.service", mine)
    assert tree.look().all_scripts == {}
    (tree.top / UNITS / "x.service").unlink()
    tree.link(f"{UNITS}/x.service", f"/{vendors}")
    assert link.is_symlink()
    assert list(tree.look().all_scripts) == [f"/{vendors}"]


def test_profiles_of_tuned_may_stand_on_any_number_of_others(tree: Tree) -> None:
    folders = [f"usr/lib/tuned/p{number}/tuned.conf" for number in range(1200)]
    for number, path in enumerate(folders, 1):
        tree.write(path, f"[main]\ninclude=p{number % 1200},p3\n")
    tree.write("etc/tuned/active_profile", "p0\n")
    read = list(tuned_read._read_profiles(str(tree.top)))
    assert read == [f"/{path}" for path in reversed(folders)]
