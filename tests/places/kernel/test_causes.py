# SPDX-License-Identifier: GPL-3.0-or-later
"""Every way in which a sysctl falls short is named by its line, and the remedy mends it for good."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mlhost_limits.core.edit import HEADER
from mlhost_limits.core.finding import FAIL, PASS, UNKNOWN, Requirement
from mlhost_limits.core.values import Declaration
from mlhost_limits.kernel.boot_scripts import ScriptWrite
from mlhost_limits.kernel.causes import CODES, find_kernel_causes, find_unclear
from mlhost_limits.kernel.causes_now import blame_absence
from mlhost_limits.kernel.lockouts import KernelUse
from mlhost_limits.kernel.model import judge_forecast, judge_value, predict_boot
from mlhost_limits.kernel.remedies import fix_by_renaming

from tests.worlds.kernel_world import APPLIER, MAPS, PROFILE, World
from tests.worlds.pasted import edit

D, RUN, LIB = "/etc/sysctl.d", "/run/sysctl.d", "/usr/lib/sysctl.d"
OURS, CONF, LINK = f"{D}/90-mlhost.conf", "/etc/sysctl.conf", f"{D}/99-sysctl.conf"
SITE = f"{D}/95-site.conf"
GOOD = f"{HEADER}\n{MAPS} = 262144\n"
LOW = f"# low\n{MAPS}=1000\n"
NEEDED = Requirement("kernel", MAPS, "value", 262144)
AT_MOST = NEEDED._replace(minimum=None, maximum=300000)
RANGE = NEEDED._replace(maximum=300000)
EXACT = Requirement("kernel", MAPS, "value", exact="262144")
TWO = Requirement("kernel", "net.ipv4.ip_local_port_range", "value", exact="1024 65000")
SWITCH = "[main]\nreapply_sysctl = 0\n"
DEFAULT = ("65530",)


class Fault(NamedTuple):
    """A host with one fault; ``running`` is what is seen, ``place`` what must be named."""

    files: dict[str, str]
    running: str
    code: str
    place: str
    wanted: Requirement = NEEDED
    facts: dict[str, Any] = {}
    shadows: str = ""


FAULTS = {
    "a later file": Fault(
        {OURS: GOOD, f"{D}/99-x.conf": LOW}, "1000", "sysctl-later-file-wins",
        f"{D}/99-x.conf:2", shadows=f"{OURS}:2",
    ),
    "a later file, not yet loaded": Fault(
        {OURS: GOOD, f"{D}/99-x.conf": LOW}, "262144", "sysctl-later-file-wins",
        f"{D}/99-x.conf:2", shadows=f"{OURS}:2",
    ),
    "a later file in /usr/local": Fault(
        {OURS: GOOD, "/usr/local/lib/sysctl.d/99-x.conf": LOW}, "1000", "sysctl-later-file-wins",
        "/usr/local/lib/sysctl.d/99-x.conf:2",
    ),
    "another spelling in a later file": Fault(
        {OURS: GOOD, f"{D}/99-x.conf": "vm/max_map_count = 0x10\r\n"}, "16",
        "sysctl-later-file-wins", f"{D}/99-x.conf:1",
    ),
    "a later file states too much": Fault(
        {OURS: GOOD, f"{D}/99-x.conf": f"{MAPS} = 400000\n"}, "400000", "sysctl-later-file-wins",
        f"{D}/99-x.conf:1", AT_MOST,
    ),
    "a later file states something else": Fault(
        {OURS: GOOD, f"{D}/99-x.conf": f"{MAPS} = 400000\n"}, "400000", "sysctl-later-file-wins",
        f"{D}/99-x.conf:1", EXACT,
    ),
    "the same key twice": Fault(
        {OURS: GOOD + LOW}, "1000", "sysctl-later-line-wins", f"{OURS}:4", shadows=f"{OURS}:2"
    ),
    "sysctl.conf, through the link of Debian 12": Fault(
        {OURS: GOOD, CONF: LOW, LINK: "->../sysctl.conf"}, "1000", "sysctl-conf-wins", f"{CONF}:2",
        shadows=f"{OURS}:2",
    ),
    "sysctl.conf, by sysctl --system alone": Fault(
        {OURS: GOOD, CONF: LOW}, "1000", "sysctl-conf-wins", f"{CONF}:2", shadows=f"{OURS}:2"
    ),
    "a file of /run that each boot makes": Fault(
        {OURS: GOOD, f"{RUN}/99-x.conf": LOW}, "1000", "sysctl-run-file-wins",
        f"{RUN}/99-x.conf:2",
    ),
    "a file of /run that is gone at boot": Fault(
        {OURS: GOOD, f"{RUN}/99-x.conf": LOW}, "1000", "sysctl-run-file-wins",
        f"{RUN}/99-x.conf:2", facts={"passing": frozenset({f"{RUN}/99-x.conf"})},
    ),
    "a file of a package": Fault(
        {OURS: GOOD, f"{LIB}/zz-vendor.conf": LOW}, "1000", "sysctl-vendor-file-wins",
        f"{LIB}/zz-vendor.conf:2", shadows=f"{OURS}:2",
    ),
    "a name beats a pattern": Fault(
        {f"{D}/10-a.conf": LOW, f"{D}/99-b.conf": "vm.max_map_coun? = 262144\n"}, "1000",
        "sysctl-name-beats-pattern", f"{D}/10-a.conf:2", shadows=f"{D}/99-b.conf:1",
    ),
    "a name beats a pattern of its own file": Fault(
        {f"{D}/10-a.conf": f"{LOW}vm.max_map_coun? = 262144\n"}, "1000",
        "sysctl-name-beats-pattern", f"{D}/10-a.conf:2",
    ),
    "an empty file hides a good one": Fault(
        {f"{LIB}/10-map.conf": GOOD, f"{D}/10-map.conf": ""}, "65530", "sysctl-file-masked",
        f"{D}/10-map.conf", shadows=f"{LIB}/10-map.conf:2",
    ),
    "a link to /dev/null hides a good one": Fault(
        {f"{LIB}/10-map.conf": GOOD, f"{D}/10-map.conf": "->/dev/null"}, "262144",
        "sysctl-file-masked", f"{D}/10-map.conf", shadows=f"{LIB}/10-map.conf:2",
    ),
    "a low file hides a good one": Fault(
        {f"{LIB}/10-map.conf": GOOD, f"{D}/10-map.conf": LOW}, "1000", "sysctl-file-masked",
        f"{D}/10-map.conf:2", shadows=f"{LIB}/10-map.conf:2",
    ),
    "an exclusion": Fault(
        {OURS: GOOD, f"{D}/99-x.conf": f"-{MAPS}\n"}, "65530", "sysctl-excluded",
        f"{D}/99-x.conf:1", shadows=f"{OURS}:2",
    ),
    "a value with a unit takes the good one along": Fault(
        {OURS: GOOD, f"{D}/99-x.conf": f"{MAPS} = 512k\n"}, "65530", "sysctl-value-refused",
        f"{D}/99-x.conf:1", shadows=f"{OURS}:2",
    ),
    "a value with a unit": Fault(
        {f"{D}/99-x.conf": f"{MAPS} = 512k\n"}, "65530", "sysctl-value-refused",
        f"{D}/99-x.conf:1",
    ),
    "a value in quotes": Fault(
        {f"{D}/99-x.conf": f'{MAPS} = "300000"\n'}, "65530", "sysctl-value-refused",
        f"{D}/99-x.conf:1",
    ),
    "a word for a value": Fault(
        {f"{D}/99-x.conf": f"{MAPS} = unlimited\n"}, "65530", "sysctl-value-refused",
        f"{D}/99-x.conf:1",
    ),
    "no sense in a value": Fault(
        {f"{D}/99-x.conf": f"{MAPS} = many\n"}, "65530", "sysctl-value-refused",
        f"{D}/99-x.conf:1",
    ),
    "above what the kernel takes": Fault(
        {f"{D}/99-x.conf": f"{MAPS} = 99999999999\n"}, "65530", "sysctl-value-refused",
        f"{D}/99-x.conf:1",
    ),
    "no equals sign": Fault(
        {SITE: f"{MAPS} 262144\n"}, "65530", "sysctl-line-skipped", f"{SITE}:1"
    ),
    "a colon": Fault({SITE: f"{MAPS}: 262144\n"}, "65530", "sysctl-line-skipped", f"{SITE}:1"),
    "the command in a file": Fault(
        {SITE: f"sysctl -w {MAPS}=262144\n"}, "65530", "sysctl-line-skipped", f"{SITE}:1"
    ),
    "a byte order mark": Fault(
        {SITE: f"\xef\xbb\xbf{MAPS} = 262144\n"}, "65530", "sysctl-line-skipped", f"{SITE}:1"
    ),
    "capitals": Fault(
        {SITE: "VM.MAX_MAP_COUNT = 262144\n"}, "65530", "sysctl-line-skipped", f"{SITE}:1"
    ),
    "without its folder": Fault(
        {SITE: "max_map_count = 262144 # maps\n"}, "65530", "sysctl-line-skipped", f"{SITE}:1"
    ),
    "the path of the key": Fault(
        {SITE: "/proc/sys/vm/max_map_count = 262_144\n"}, "65530", "sysctl-line-skipped",
        f"{SITE}:1",
    ),
    "a slip of the pen": Fault(
        {SITE: "vm.max_map_cuont = 262144\n"}, "65530", "sysctl-line-skipped", f"{SITE}:1"
    ),
    "a skipped line, and a low one of others": Fault(
        {SITE: "vm.max_map_counts = 262144\n", f"{LIB}/50-x.conf": LOW}, "1000",
        "sysctl-line-skipped", f"{SITE}:1",
    ),
    "no .conf": Fault(
        {f"{D}/90-map": GOOD}, "65530", "sysctl-file-not-read", f"{D}/90-map:2"
    ),
    "another ending": Fault(
        {f"{D}/90-map.cnf": GOOD}, "65530", "sysctl-file-not-read", f"{D}/90-map.cnf:2"
    ),
    "sysctl.conf on Debian 13": Fault(
        {CONF: LOW.replace("1000", "262144")}, "262144", "sysctl-conf-not-read", f"{CONF}:2"
    ),
    "a good file of /run that is gone at boot": Fault(
        {f"{RUN}/90-map.conf": GOOD}, "262144", "sysctl-run-file-lost", f"{RUN}/90-map.conf:2",
        facts={"passing": frozenset({f"{RUN}/90-map.conf"})},
    ),
    "a comment": Fault(
        {OURS: f"{HEADER}\n# {MAPS} = 262144\n"}, "65530", "sysctl-commented-out", f"{OURS}:2"
    ),
    "our own file emptied": Fault(
        {OURS: "->/dev/null"}, "262144", "sysctl-file-masked", OURS
    ),
    "the command line": Fault(
        {}, "1000", "sysctl-command-line", "/proc/cmdline",
        facts={"command_line": f"quiet sysctl.{MAPS}=1000 ro"},
    ),
    "tuned": Fault(
        {PROFILE: f"[main]\nsummary=x\n[sysctl]\n{MAPS} = 1000\n"}, "1000", "sysctl-tuned-wins",
        f"{PROFILE}:4",
    ),
    "tuned after a file of a package": Fault(
        {PROFILE: f"[sysctl]\n{MAPS} = 1000\n", f"{LIB}/90-map.conf": GOOD}, "1000",
        "sysctl-tuned-wins", f"{PROFILE}:2", shadows=f"{LIB}/90-map.conf:2",
    ),
    "tuned, told not to heed the files": Fault(
        {PROFILE: f"[sysctl]\n{MAPS} = 1000\n", OURS: GOOD, "/etc/tuned/tuned-main.conf": SWITCH},
        "1000", "sysctl-tuned-wins", f"{PROFILE}:2", shadows=f"{OURS}:2",
    ),
    "rc.local": Fault(
        {OURS: GOOD, "/etc/rc.local": f"#!/bin/sh\nsysctl -w {MAPS}=65530\n"}, "65530",
        "sysctl-script-wins", "/etc/rc.local:2", shadows=f"{OURS}:2",
    ),
    "a unit": Fault(
        {
            OURS: GOOD,
            "/etc/systemd/system/tune.service": "[Service]\n"
            "ExecStart=/bin/sh -c 'echo 65530 > /proc/sys/vm/max_map_count'\n",
        },
        "65530", "sysctl-script-wins", "/etc/systemd/system/tune.service:2",
    ),
    "rc.local has sysctl.conf read": Fault(
        {OURS: GOOD, CONF: LOW, "/etc/rc.local": "#!/bin/sh\nsysctl -p\n"}, "1000",
        "sysctl-conf-wins", f"{CONF}:2",
    ),
    "no file is applied": Fault(
        {OURS: GOOD, APPLIER: "->/dev/null"}, "65530", "sysctl-service-masked", APPLIER
    ),
    "a module": Fault(
        {OURS: "net.nf_conntrack_max = 262144\n"}, "65536", "sysctl-module-late", "",
        Requirement("kernel", "net.nf_conntrack_max", "value", 262144),
    ),
    "too low": Fault({OURS: LOW}, "1000", "sysctl-stated-too-low", f"{OURS}:2"),
    "too low, beside a comment": Fault(
        {OURS: f"#{MAPS} = 262144\n{MAPS} = 9\n"}, "9", "sysctl-stated-too-low", f"{OURS}:2"
    ),
    "too low in a package": Fault(
        {f"{LIB}/99-x.conf": LOW}, "1000", "sysctl-stated-too-low", f"{LIB}/99-x.conf:2"
    ),
    "too high": Fault(
        {OURS: f"{MAPS}=400000\n"}, "400000", "sysctl-stated-too-high", f"{OURS}:1", AT_MOST
    ),
    "too low for a range": Fault({OURS: LOW}, "1000", "sysctl-stated-too-low", f"{OURS}:2", RANGE),
    "another text": Fault(
        {OURS: "net.ipv4.ip_local_port_range = 2000 3000\n"}, "2000\t3000",
        "sysctl-stated-otherwise", f"{OURS}:1", TWO,
    ),
    "not stated": Fault({}, "65530", "sysctl-not-stated", ""),
    "not stated, and with an unknown default": Fault(
        {}, "65530", "sysctl-not-stated", "", facts={"defaults": ()}
    ),
    "set by hand": Fault({}, "300000", "sysctl-lost-at-boot", ""),
    "text set by hand": Fault(
        {}, "1024\t65000", "sysctl-lost-at-boot", "", TWO, {"defaults": ("32768 60999",)}
    ),
    "lowered by hand": Fault({OURS: GOOD}, "65530", "sysctl-changed-by-hand", "", shadows=f"{OURS}:2"),
    "lowered by hand after provision": Fault(
        {OURS: GOOD}, "65530", "sysctl-changed-by-hand", "", shadows=f"{OURS}:2",
        facts={"fresh": frozenset({OURS})},
    ),
    "lowered below the default": Fault(
        {}, "100", "sysctl-changed-by-hand", "", NEEDED._replace(minimum=65530)
    ),
    "lowered to what nothing states": Fault(
        {SITE: GOOD.replace(HEADER, "#")}, "777", "sysctl-changed-by-hand", "", shadows=f"{SITE}:2",
        facts={"fresh": frozenset({SITE})},
    ),
    "never loaded": Fault(
        {SITE: GOOD.replace(HEADER, "#")}, "65530", "sysctl-not-loaded", f"{SITE}:2",
        facts={"fresh": frozenset({SITE})},
    ),
    "never loaded over another file": Fault(
        {SITE: GOOD.replace(HEADER, "#"), f"{LIB}/10-x.conf": LOW}, "1000", "sysctl-not-loaded",
        f"{SITE}:2", facts={"fresh": frozenset({SITE})},
    ),
    "tuned, told not to heed the files about this key": Fault(
        {PROFILE: f"[sysctl]\n{MAPS} = 1000\n", OURS: GOOD,
         "/etc/tuned/tuned-main.conf": f"reapply_sysctl_exclude = kernel.x, {MAPS}\n"},
        "1000", "sysctl-tuned-wins", f"{PROFILE}:2", shadows=f"{OURS}:2",
    ),
    "tuned, whose line the files have beaten since": Fault(
        {OURS: GOOD, PROFILE: f"[sysctl]\n{MAPS} = 65530\n"}, "65530", "sysctl-tuned-wins",
        f"{PROFILE}:2",
    ),
}  # fmt: skip


def build(name: str, top: Path) -> tuple[Fault, World]:
    fault = FAULTS[name]
    facts = {"defaults": DEFAULT, **fault.facts}
    world = World(top, fault.files, fault.running, fault.wanted.item, **facts)
    return fault, world


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_and_its_remedy_mends_it_now_and_at_boot(
    name: str, tmp_path: Path
) -> None:
    fault, world = build(name, tmp_path)
    causes = find_kernel_causes(fault.wanted, world.gather())
    assert [cause.code for cause in causes] == [fault.code]
    (cause,) = causes
    assert (cause.at.place if cause.at else "") == fault.place
    assert (cause.shadows[-1].place if cause.shadows else "") == fault.shadows or not fault.shadows
    world.carry_out(cause.remedy.commands)
    assert judge_value(fault.wanted, world.running) == PASS
    assert judge_forecast(fault.wanted, predict_boot(world.gather())) == PASS
    assert find_kernel_causes(fault.wanted, world.gather()) == []


def find(world: World, wanted: Requirement = NEEDED) -> list[str]:
    return [cause.code for cause in find_kernel_causes(wanted, world.gather())]


@pytest.mark.parametrize(
    ("name", "both"), [("a later file", True), ("not stated", False), ("never loaded", False)]
)
def test_two_faults_are_both_named(name: str, both: bool, tmp_path: Path) -> None:
    """What nobody states is stated by the script, once that is mended."""
    fault, world = build(name, tmp_path)
    world.write("/etc/rc.local", f"#!/bin/sh\nsysctl -w {MAPS}=9\n")
    assert find(world) == ["sysctl-script-wins", *([fault.code] if both else [])]
    for cause in find_kernel_causes(NEEDED, world.gather()):
        world.carry_out(cause.remedy.commands)
    assert find(world) == []


def test_of_many_low_files_each_is_named(tmp_path: Path) -> None:
    files = {OURS: GOOD, **{f"{D}/{number}.conf": LOW for number in range(91, 99)}}
    world = World(tmp_path, files, "1000", defaults=DEFAULT)
    causes = find_kernel_causes(NEEDED, world.gather())
    assert [cause.at and cause.at.path for cause in causes] == [
        f"{D}/{number}.conf" for number in range(98, 90, -1)
    ]
    assert [cause.remedy.commands[-1][0] for cause in causes] == ["sh"] * 7 + ["sysctl"]


def test_no_more_than_a_dozen_causes(tmp_path: Path) -> None:
    world = World(tmp_path, {OURS: GOOD + LOW * 20}, "1000", defaults=DEFAULT)
    assert find(world) == ["sysctl-later-line-wins"] * 12


MET = {
    "as provision leaves it": {OURS: GOOD},
    "a lower line before it": {OURS: GOOD, f"{LIB}/10-x.conf": LOW},
    "a higher line after it": {OURS: GOOD, f"{D}/99-x.conf": f"{MAPS} = 300000\n"},
    "a malformed line before it": {OURS: GOOD, f"{D}/10-x.conf": f"{MAPS} 9\n"},
    "a low line that is hidden": {OURS: GOOD, f"{LIB}/99-x.conf": LOW, f"{D}/99-x.conf": ""},
    "a low line in a file put aside": {OURS: GOOD, f"{D}/99-x.conf.bak": LOW},
    "tuned, before the files": {OURS: GOOD, PROFILE: f"[sysctl]\n{MAPS} = 9\n"},
    "tuned, told not to heed the files about another key": {
        OURS: GOOD,
        PROFILE: f"[sysctl]\n{MAPS} = 9\n",
        "/etc/tuned/tuned-main.conf": "reapply_sysctl_exclude = kernel.*, vm.max_map\n",
    },
    "tuned, which only raises": {OURS: GOOD, PROFILE: f"[sysctl]\n{MAPS} = >9\n"},
    "tuned, about another key": {OURS: GOOD, PROFILE: "[sysctl]\nvm.swappiness = 9\n"},
    "a script that says the same": {OURS: GOOD, "/etc/rc.local": f"sysctl -w {MAPS}=262144\n"},
    "a script that the kernel refuses": {OURS: GOOD, "/etc/rc.local": f"sysctl -w {MAPS}=0x\n"},
    "a script that loads what was loaded": {OURS: GOOD, "/etc/rc.local": "sysctl --system\n"},
}


@pytest.mark.parametrize("name", MET)
def test_what_is_met_has_no_cause(name: str, tmp_path: Path) -> None:
    world = World(tmp_path, MET[name], "262144", defaults=DEFAULT)
    assert find(world) == []


@pytest.mark.parametrize(
    ("key", "files", "facts"),
    [
        # No file is read for an interface at a time that is known.
        ("net.ipv4.conf.eth0.rp_filter", {}, {}),
        ("vm.x", {PROFILE: "[sysctl]\nvm.x = ${isolated}\n"}, {}),
        # The kernel gives as many pages as it finds memory for.
        ("vm.nr_hugepages", {OURS: "vm.nr_hugepages = 64\n"}, {}),
    ],
)
def test_where_no_cause_is_certain_none_is_named(
    key: str, files: dict[str, str], facts: dict[str, Any], tmp_path: Path
) -> None:
    world = World(tmp_path, files, "1", key, **facts)
    causes = find_kernel_causes(Requirement("kernel", key, "value", 64), world.gather())
    assert [cause.code for cause in causes if cause.code != "sysctl-changed-by-hand"] == []


def test_text_where_a_number_is_asked_is_nobodys_fault(tmp_path: Path) -> None:
    world = World(tmp_path, {OURS: f"{MAPS} = many\n"}, "few")
    assert find(world) == []


def test_what_cannot_be_foretold_is_no_fault_while_it_is_met(tmp_path: Path) -> None:
    world = World(tmp_path, {"/etc/rc.local": f"sysctl -w {MAPS}=$N\n", OURS: LOW}, "262144")
    assert find(world) == []


def test_in_a_container_the_host_is_to_blame(tmp_path: Path) -> None:
    world = World(tmp_path, {OURS: GOOD}, "65530", read_only=True)
    assert find(world) == ["sysctl-read-only"]
    world.running = "262144"
    assert find(world) == []


@pytest.mark.parametrize(("used", "reached"), [(1139, False), (1140, True), (1201, True)])
def test_open_files_at_their_limit_are_said_first(used: int, reached: bool, tmp_path: Path) -> None:
    wanted = Requirement("kernel", "fs.file-max", "value", 2097152)
    facts = {"open_files": used, "defaults": (str(2**63 - 1),)}
    world = World(tmp_path, {}, "1200", "fs.file-max", **facts)
    first = ["sysctl-file-max-reached"] if reached else []
    assert find(world, wanted) == [*first, "sysctl-changed-by-hand"]
    for cause in find_kernel_causes(wanted, world.gather()):
        world.carry_out(cause.remedy.commands)
    assert world.running == str(2**63 - 1)


def test_a_key_that_the_kernel_lacks() -> None:
    cause = blame_absence("vm.no_such_thing")
    assert (cause.code, cause.remedy.commands) == ("sysctl-key-absent", ())
    assert blame_absence("net.bridge.bridge-nf-call-iptables").remedy.lines == [
        "modprobe br_netfilter",
        "echo br_netfilter >> /etc/modules-load.d/br_netfilter.conf",
    ]


def test_no_value_is_set_that_would_lock_the_host(tmp_path: Path) -> None:
    """A maximum of fs.nr_open below a nofile in use would have setrlimit(2) refused."""
    use = KernelUse(100, 100, 2**30, 2**29, 0, 0, 2**30, False, 2**21, 0, ((900000, "sshd"),))
    wanted = Requirement("kernel", "fs.nr_open", "value", None, 500000)
    world = World(tmp_path, {}, "1048576", "fs.nr_open", defaults=("1048576",), use=use)
    (cause,) = find_kernel_causes(wanted, world.gather())
    assert (cause.code, cause.remedy.commands) == ("sysctl-not-stated", ())
    assert "sshd has a nofile of 900000" in cause.remedy.text
    world.facts["use"] = use._replace(nofiles=())
    (cause,) = find_kernel_causes(wanted, world.gather())
    assert cause.remedy.commands[-1] == ("sysctl", "-w", "fs.nr_open=500000")


def test_more_than_the_little_there_is_locks_nobody_out(tmp_path: Path) -> None:
    use = KernelUse(100, 100, 2**30, 2**29, 0, 0, 2**30, False, 2**21, 0)
    wanted = NEEDED._replace(minimum=1000)
    world = World(tmp_path, {}, "500", use=use)
    (cause,) = find_kernel_causes(wanted, world.gather())
    assert cause.remedy.commands[-1] == ("sysctl", "-w", f"{MAPS}=1000")
    world = World(tmp_path, {}, "0", "vm.nr_hugepages", use=use)
    wanted = Requirement("kernel", "vm.nr_hugepages", "value", 1000000)
    (cause,) = find_kernel_causes(wanted, world.gather())
    assert cause.remedy.commands == ()


def test_a_folder_that_is_gone_is_made_again(tmp_path: Path) -> None:
    world = World(tmp_path, {}, "262144", defaults=DEFAULT)
    world.find(D).rmdir()
    (cause,) = find_kernel_causes(NEEDED, world.gather())
    world.carry_out(cause.remedy.commands)
    assert world.read(SITE) == f"{MAPS} = 262144\n"


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ({SITE: "vm.swappiness = 10"}, SITE),  # No line end: the line must not be glued to it.
        ({SITE: "->/dev/null"}, f"{D}/99-zz-site.conf"),
        ({f"{LIB}/95-site.conf": "vm.swappiness = 10\n"}, f"{D}/99-zz-site.conf"),
        ({f"{LIB}/99-x.conf": LOW}, f"{D}/99-zz-site.conf"),
        ({f"{LIB}/zz.conf": LOW}, f"{D}/zzzz-site.conf"),
        ({f"{LIB}/zzzzzz.conf": LOW}, f"{D}/zzzzzz.site.conf"),
        ({f"{D}/99-\x1b.conf": LOW}, f"{D}/99-zz-site.conf"),
        ({f"{D}/99-x.conf": f"{LOW}", f"{D}/99-y.conf": "->../../usr/a.conf"}, ""),
        ({f"{D}/99-x.conf": f"# a\r{MAPS} = 1000\n"}, f"{D}/99-zz-site.conf"),
        ({f"{D}/99-y.conf": "->../../usr/a.conf", "/usr/a.conf": LOW}, f"{D}/99-zz-site.conf"),
    ],
)
def test_what_must_not_be_edited_is_overruled(
    files: dict[str, str], path: str, tmp_path: Path
) -> None:
    world = World(tmp_path, files, "65530", defaults=DEFAULT)
    (cause,) = find_kernel_causes(NEEDED, world.gather())
    assert "\x1b" not in cause.text
    before = {one: world.read(one) for one in files}
    world.carry_out(cause.remedy.commands)
    assert f"{MAPS} = 262144" in world.read(path or f"{D}/99-x.conf").splitlines()
    assert find(world) == []
    if path != SITE and path:
        assert {one: world.read(one) for one in files} == before


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("echo 65530 > {file}", "echo 262144 > {file}"),
        ("echo 65530 | sudo tee -a '{file}' # 65530", "echo 262144 | sudo tee -a '{file}' # 65530"),
        ("printf '%s\\n' 65530 >{file}", "printf '%s\\n' 262144 >{file}"),
        (
            "sysctl -w fs.x=65530 {key}=65530 vm.y=65530",
            "sysctl -w fs.x=65530 {key}=262144 vm.y=65530",
        ),
        (
            "[ -d /x ] && sysctl -w '{key} = 65530' || exit 1",
            "[ -d /x ] && sysctl -w '{key} = 262144' || exit 1",
        ),
    ],
)
def test_nothing_but_the_value_of_a_script_is_changed(
    tmp_path: Path, line: str, right: str
) -> None:
    names = {"key": MAPS, "file": "/proc/sys/vm/max_map_count"}
    script = "/etc/rc.local"
    world = World(
        tmp_path, {OURS: GOOD, script: f"#!/bin/sh -e\n{line.format(**names)}\n"}, "65530"
    )
    (cause,) = find_kernel_causes(NEEDED, world.gather())
    assert cause.code == "sysctl-script-wins"
    world.carry_out(cause.remedy.commands)
    assert world.read(script) == f"#!/bin/sh -e\n{right.format(**names)}\n"
    assert find(world) == []


@pytest.mark.parametrize(
    "text",
    [
        "if [ -f /etc/gpu ]; then\n  {}\nfi",
        "if false; then {}; fi",
        "[ -e /dev/nvidia0 ] && {}",
        "grep -q gpu /etc/hostname || {}",
        "case $1 in\nstart)\n  {}\n  ;;\nesac",
        "tune() {{\n  {}\n}}",
        "while read a; do {}; done < /etc/x",
        "[ -f /etc/gpu ] || exit 0\n{}",
        "if [ -f /etc/gpu ]; then\n  exit\nfi\n{}",
    ],
)
@pytest.mark.parametrize("sets", [65530, 262144])
def test_what_runs_where_a_condition_holds_may_have_run(
    tmp_path: Path, text: str, sets: int
) -> None:
    """Whichever of the two is right: the file's line, or that of the script."""
    stated = {65530: "262144", 262144: "65530"}[sets]
    script = f"#!/bin/sh\n{text.format(f'sysctl -w {MAPS}={sets}')}\n"
    files = {OURS: f"{MAPS} = {stated}\n", "/etc/rc.local": script}
    facts = World(tmp_path, files, "1").gather()
    assert judge_forecast(NEEDED, predict_boot(facts)) == UNKNOWN
    (cause,) = find_unclear(NEEDED, facts)
    assert cause.text.endswith(f"where a condition holds, and sets {sets} then")


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "(\n  {}\n)",
        "if true; then\n  echo\nfi\n{}",
        "echo ${{A:-b}}; {}",
        "f() {{ echo; }}\n{}",
    ],
)
def test_what_no_condition_decides_on_has_run(tmp_path: Path, text: str) -> None:
    script = f"#!/bin/sh\n{text.format(f'sysctl -w {MAPS}=65530')}\n"
    facts = World(tmp_path, {OURS: GOOD, "/etc/rc.local": script}, "262144").gather()
    assert judge_forecast(NEEDED, predict_boot(facts)) == FAIL


@pytest.mark.parametrize("line", ["sysctl -w {key}=$N", "cat /x > {file}", "K={key}; f $K"])
def test_a_script_that_may_set_anything_is_named(tmp_path: Path, line: str) -> None:
    text = line.format(key=MAPS, file="/proc/sys/vm/max_map_count")
    world = World(tmp_path, {OURS: GOOD, "/etc/rc.local": f"sysctl x\n{text}\n"}, "262144")
    facts = world.gather()
    assert judge_forecast(NEEDED, predict_boot(facts)) == UNKNOWN
    (cause,) = find_unclear(NEEDED, facts)
    assert (cause.code, cause.at and cause.at.place) == ("sysctl-script-unclear", "/etc/rc.local:2")
    assert cause.remedy.commands == ()
    short = World(tmp_path / "short", {OURS: GOOD, "/etc/rc.local": f"{text}\n"}, "65530")
    assert [one.code for one in find_kernel_causes(NEEDED, short.gather())] == [cause.code]


def test_a_word_of_the_boot_loader_is_named_and_overruled(tmp_path: Path) -> None:
    """The running kernel was not given it: what is fine today may not be after a boot."""
    word = Declaration("/etc/default/grub", 6, f"sysctl.{MAPS}=60000", "60000")
    wanted = NEEDED._replace(minimum=65530)
    world = World(tmp_path, {}, "65530", loader=(word,), defaults=("65530",))
    assert judge_forecast(wanted, predict_boot(world.gather())) == UNKNOWN
    (cause,) = find_unclear(wanted, world.gather())
    assert (cause.code, cause.at) == ("sysctl-command-line", word)
    world.carry_out(cause.remedy.commands)
    assert judge_forecast(wanted, predict_boot(world.gather())) == PASS
    (low,) = find_kernel_causes(
        NEEDED, World(tmp_path / "b", {}, "65530", loader=(word,), defaults=("65530",)).gather()
    )
    assert (low.code, low.at) == ("sysctl-command-line", word)


@pytest.mark.parametrize(
    ("path", "text", "when"),
    [
        ("/etc/rc.local", "sysctl -w x=$N", "runs after the files are read"),
        ("/etc/credstore/sysctl.extra", "x = $N", "is read after the files"),
        (
            "/etc/systemd/system/x.service",
            "SetCredential=sysctl.extra:x",
            "is read after the files",
        ),
        ("/etc/default/grub", "systemd.run=/x", "may be given to the next kernel"),
    ],
)
def test_when_a_line_counts_is_said(path: str, text: str, when: str, tmp_path: Path) -> None:
    write = ScriptWrite(Declaration(path, 2, text, ""))
    facts = World(tmp_path, {OURS: GOOD}, "262144", scripts=(write,)).gather()
    (cause,) = find_unclear(NEEDED, facts)
    assert cause.text == f'{path}:2 "{text}" {when}, and may set {MAPS}'


def test_a_file_that_was_renamed_is_there_once(tmp_path: Path) -> None:
    files = {f"{D}/90-map": GOOD, f"{D}/91-map": LOW}
    facts = World(tmp_path, files, "65530").gather()
    fix = fix_by_renaming(f"{D}/90-map", f"{D}/90-map.conf", facts)
    assert (list(fix.facts.others), fix.facts.files) == (
        [f"{D}/91-map"],
        {f"{D}/90-map.conf": GOOD},
    )


def test_a_script_of_a_package_is_left_to_a_person(tmp_path: Path) -> None:
    unit = "/usr/lib/systemd/system/x.service"
    files = {OURS: GOOD, unit: f"[Service]\nExecStart=/sbin/sysctl -w {MAPS}=9\n"}
    (cause,) = find_kernel_causes(NEEDED, World(tmp_path, files, "9").gather())
    assert (cause.at and cause.at.place, cause.remedy.commands) == (f"{unit}:2", ())


def test_a_word_of_the_command_line_is_left_to_a_person(tmp_path: Path) -> None:
    stop = Declaration("/proc/cmdline", 0, "systemd.mask=systemd-sysctl", "")
    world = World(tmp_path, {OURS: GOOD}, "65530", stopped_by=stop)
    (cause,) = find_kernel_causes(NEEDED, world.gather())
    assert (cause.code, cause.remedy.commands) == ("sysctl-service-masked", ())


def test_a_name_that_is_taken_is_not_given(tmp_path: Path) -> None:
    files = {f"{D}/90-map": GOOD, f"{LIB}/90-map.conf": "# mine\n"}
    assert find(World(tmp_path, files, "65530")) == ["sysctl-not-stated"]


def test_a_cause_as_data(tmp_path: Path) -> None:
    files = {OURS: GOOD, CONF: f"{MAPS} = 9 # Bj\xc3\xb6rn\n", LINK: "->../sysctl.conf"}
    (cause,) = find_kernel_causes(NEEDED, World(tmp_path, files, "9").gather())
    assert cause.as_dict() == {
        "code": "sysctl-conf-wins",
        "text": f'{CONF}:1 "{MAPS} = 9 # Björn", read as {LINK}, is read after and beats'
        f' {OURS}:2 "{MAPS} = 262144"',
        "at": {"file": CONF, "line": 1, "text": f"{MAPS} = 9 # Björn"},
        "shadows": [{"file": OURS, "line": 2, "text": f"{MAPS} = 262144"}],
        "writer": "",
        "verdict": "",
        "remedy": {
            "text": "comment out sysctl.conf:1, and set the running value",
            "commands": [
                list(edit(CONF, 1, f"{MAPS} = 9 # Bj\xc3\xb6rn", "s/^/# /")),
                ["sysctl", "-w", f"{MAPS}=262144"],
            ],
            "then": "",
        },
    }


def test_every_code_is_shown_here() -> None:
    elsewhere = {"sysctl-read-only", "sysctl-file-max-reached", "sysctl-key-absent"}
    elsewhere.add("sysctl-script-unclear")
    assert {fault.code for fault in FAULTS.values()} | elsewhere == set(CODES)
