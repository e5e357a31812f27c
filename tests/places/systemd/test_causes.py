# SPDX-License-Identifier: GPL-3.0-or-later
"""Every way in which a unit's files give it less is named by its line, and its remedy works.

The remedies are carried out on real files, by the shell, and the files read again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.core.cause import Cause
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, Declaration, Rlimit
from mlhost_limits.kernel.raises import raise_nr_open
from mlhost_limits.kernel.sysctl_conf import LARGEST_NR_OPEN
from mlhost_limits.systemd.causes import find_unit_causes
from mlhost_limits.systemd.model import Manager, Stray, UnitFacts, predict_unit
from mlhost_limits.systemd.unit_file import Source
from mlhost_limits.systemd.want import find_target, is_enough

from tests.worlds.pasted import edit, paste
from tests.worlds.unit_world import (
    CONF,
    CONF_D,
    MANAGER,
    MIB,
    RUN_D,
    UNIT,
    VENDOR,
    VENDOR_D,
    WIDE_D,
    D,
    manager,
    service,
    unit,
)

WANTED = Limit(65536, 131072)
MEMLOCK = Limit(UNLIMITED, UNLIMITED)
GOOD, LOW = "LimitNOFILE=65536:131072", "LimitNOFILE=1024:4096"
DEFAULT_LOW = "DefaultLimitNOFILE=4096"

FAULTS = {
    "nothing": ({UNIT: service()}, ["unit-not-stated"], [""]),
    "unit": ({UNIT: service(LOW)}, ["unit-stated-too-low"], [f"{UNIT}:2"]),
    "vendor's unit": ({VENDOR: service(LOW)}, ["unit-stated-too-low"], [f"{VENDOR}:2"]),
    "later line": (
        {UNIT: service(GOOD, LOW)}, ["unit-later-line-wins"], [f"{UNIT}:3"],
    ),
    "drop-in over unit": (
        {UNIT: service(GOOD), D + "/90.conf": service("# why", LOW)},
        ["unit-dropin-beats-unit"], [f"{D}/90.conf:3"],
    ),
    "drop-in over drop-in": (
        {UNIT: service(), D + "/10.conf": service(GOOD), D + "/90.conf": service(LOW)},
        ["unit-dropin-beats-dropin"], [f"{D}/90.conf:2"],
    ),
    "vendor's drop-in over ours": (
        {UNIT: service(), D + "/10.conf": service(GOOD), VENDOR_D + "/99.conf": service(LOW)},
        ["unit-dropin-beats-dropin"], [f"{VENDOR_D}/99.conf:2"],
    ),
    "service.d": (
        {UNIT: service(GOOD), WIDE_D + "/90.conf": service(LOW)},
        ["unit-wide-dropin-wins"], [f"{WIDE_D}/90.conf:2"],
    ),
    "unit over manager": (
        {VENDOR: service(LOW), CONF: manager("DefaultLimitNOFILE=65536:131072")},
        ["unit-beats-manager"], [f"{VENDOR}:2"],
    ),
    "manager": (
        {UNIT: service(), CONF_D + "/a.conf": manager(DEFAULT_LOW)},
        ["unit-manager-too-low"], [f"{CONF_D}/a.conf:2"],
    ),
    "manager's two": (
        {
            UNIT: service(),
            CONF: manager("DefaultLimitNOFILE=65536:200000"),
            CONF_D + "/a.conf": manager(DEFAULT_LOW),
        },
        ["unit-manager-later-wins"], [f"{CONF_D}/a.conf:2"],
    ),
    "manager's of a vendor": (
        {
            UNIT: service(),
            CONF_D + "/a.conf": manager("DefaultLimitNOFILE=65536:200000"),
            "/usr/lib/systemd/system.conf.d/z.conf": manager(DEFAULT_LOW),
        },
        ["unit-manager-later-wins"], ["/usr/lib/systemd/system.conf.d/z.conf:2"],
    ),
    "value": (
        {UNIT: service("LimitNOFILE=64k:128k")}, ["unit-line-ignored"], [f"{UNIT}:2"],
    ),
    "value in a drop-in, low in the unit": (
        {VENDOR: service(LOW), D + "/a.conf": service("LimitNOFILE=unlimited")},
        ["unit-line-ignored"], [f"{D}/a.conf:2"],
    ),
    "value of a package": (
        {VENDOR: service("LimitNOFILE=unlimited")}, ["unit-line-ignored"], [f"{VENDOR}:2"],
    ),
    "no value of a package": (
        {VENDOR: service("LimitNOFILE=a lot")}, ["unit-not-stated"], [""],
    ),
    "comment of a package": (
        {VENDOR: service("#LimitNOFILE=infinity")}, ["unit-not-stated"], [""],
    ),
    "soft above hard": (
        {UNIT: service("LimitNOFILE=65536:1024")}, ["unit-line-ignored"], [f"{UNIT}:2"],
    ),
    "no value at all": (
        {UNIT: service("LimitNOFILE=a lot")}, ["unit-line-ignored"], [f"{UNIT}:2"],
    ),
    "manager's value": (
        {UNIT: service(), CONF: manager("DefaultLimitNOFILE=a lot")},
        ["unit-line-ignored"], [f"{CONF}:2"],
    ),
    "no value, and too little after it": (
        {UNIT: service("LimitNOFILE=a lot", LOW)}, ["unit-stated-too-low"], [f"{UNIT}:3"],
    ),
    "a comment that would not do": (
        {UNIT: service("#LimitNOFILE=5")}, ["unit-not-stated"], [""],
    ),
    "section": (
        {UNIT: service(), D + "/a.conf": f"[Unit]\n{GOOD}\n"},
        ["unit-line-misplaced"], [f"{D}/a.conf:2"],
    ),
    "misspelled section": (
        {UNIT: service(), D + "/a.conf": f"[service]\n{GOOD}\n"},
        ["unit-line-misplaced"], [f"{D}/a.conf:2"],
    ),
    "manager's section": (
        {UNIT: service(), CONF: f"[Service]\nDefault{GOOD}\n"},
        ["unit-line-misplaced"], [f"{CONF}:2"],
    ),
    "key": (
        {UNIT: service("LimitNoFile=65536:131072")}, ["unit-line-misspelled"], [f"{UNIT}:2"],
    ),
    "manager's key": (
        {UNIT: service(), CONF: manager(GOOD)}, ["unit-line-misspelled"], [f"{CONF}:2"],
    ),
    "commented out": (
        {UNIT: service(f"#{GOOD}")}, ["unit-line-commented-out"], [f"{UNIT}:2"],
    ),
    "header": (
        {UNIT: service(), D + "/a.conf": f"[Service\n{GOOD}\n"},
        ["unit-reading-ends"], [f"{D}/a.conf:1"],
    ),
    "no UTF-8": (
        {UNIT: service(), D + "/a.conf": f"[Service]\nX=\xff\n{GOOD}\n"},
        ["unit-reading-ends"], [f"{D}/a.conf:2"],
    ),
    "manager's header": (
        {UNIT: service(), CONF: f"[Manager\nDefault{GOOD}\n"},
        ["unit-reading-ends"], [f"{CONF}:1"],
    ),
    "unit's header": (
        {UNIT: f"[Service\n{GOOD}\n"}, ["unit-not-loaded"], [f"{UNIT}:1"],
    ),
    "masked drop-in": (
        {UNIT: service(), D + "/50.conf": "", VENDOR_D + "/50.conf": service(GOOD)},
        ["unit-dropin-hidden"], [D + "/50.conf"],
    ),
    "hidden drop-in": (
        {
            UNIT: service(),
            D + "/50.conf": service("Nice=5"),
            VENDOR_D + "/50.conf": service(GOOD),
        },
        ["unit-dropin-hidden"], [D + "/50.conf"],
    ),
    "manager's hidden": (
        {
            UNIT: service(),
            CONF_D + "/a.conf": "",
            "/usr/lib/systemd/system.conf.d/a.conf": manager(f"Default{GOOD}"),
        },
        ["unit-dropin-hidden"], [CONF_D + "/a.conf"],
    ),
    "manager's hidden by more": (
        {
            UNIT: service(),
            CONF_D + "/a.conf": manager("LogLevel=info"),
            "/usr/lib/systemd/system.conf.d/a.conf": manager(f"Default{GOOD}"),
        },
        ["unit-dropin-hidden"], [CONF_D + "/a.conf"],
    ),
    "hidden unit": (
        {UNIT: service(), VENDOR: service(GOOD)}, ["unit-file-hidden"], [UNIT],
    ),
    "the same unit twice": (
        {UNIT: service(LOW), VENDOR: service(LOW)}, ["unit-stated-too-low"], [f"{UNIT}:2"],
    ),
    "two at once": (
        {
            UNIT: service(),
            D + "/a.conf": service("LimitNOFILE=64k:128k"),
            D + "/z.conf": service("LimitNOFILE=2048"),
        },
        ["unit-line-ignored", "unit-dropin-beats-dropin"], [f"{D}/a.conf:2", f"{D}/z.conf:2"],
    ),
    "two that beat a third": (
        {
            UNIT: service(GOOD),
            D + "/a.conf": service("LimitNOFILE=4"),
            D + "/z.conf": service("LimitNOFILE=2048"),
        },
        ["unit-dropin-beats-unit", "unit-dropin-beats-unit"], [f"{D}/z.conf:2", f"{D}/a.conf:2"],
    ),
    "more than can be restored": (
        {UNIT: service(GOOD, *["LimitNOFILE=5"] * 4)},
        ["unit-later-line-wins"], [f"{UNIT}:6"],
    ),
    "a hidden one that would not do": (
        {UNIT: service(LOW), D + "/a.conf": "", VENDOR_D + "/a.conf": service("LimitNOFILE=5")},
        ["unit-stated-too-low"], [f"{UNIT}:2"],
    ),
    "the same unit twice, and a drop-in over both": (
        {UNIT: service(GOOD), VENDOR: service(GOOD), D + "/a.conf": service(LOW)},
        ["unit-dropin-beats-unit"], [f"{D}/a.conf:2"],
    ),
    "the twelfth that can be mended": (
        {UNIT: service(*["LimitNOFILE=5k"] * 11, "LimitNOFILE=64k:128k")},
        ["unit-line-ignored"], [f"{UNIT}:13"],
    ),
    "more than are tried": (
        {UNIT: service(*["LimitNOFILE=5k"] * 12, "LimitNOFILE=64k:128k")},
        ["unit-line-ignored"] * 2, [f"{UNIT}:2", f"{UNIT}:14"],
    ),
    "a hidden one about something else": (
        {UNIT: service(LOW), D + "/a.conf": "", VENDOR_D + "/a.conf": service("LimitCPU=5")},
        ["unit-stated-too-low"], [f"{UNIT}:2"],
    ),
}  # fmt: skip


def place(cause: Cause) -> str:
    return cause.at.place if cause.at else ""


@pytest.mark.parametrize("name", FAULTS)
def test_the_line_at_fault_is_named(name: str) -> None:
    files, codes, places = FAULTS[name]
    causes = find_unit_causes("nofile", WANTED, unit(files))
    assert [cause.code for cause in causes] == codes
    assert [place(cause) for cause in causes] == places


@pytest.mark.parametrize("name", FAULTS)
def test_the_commands_put_it_right(name: str, tmp_path: Path) -> None:
    files, _codes, _places = FAULTS[name]
    follow(find_unit_causes("nofile", WANTED, unit(files)), files, tmp_path)
    after = {
        str(path)[len(str(tmp_path)) :]: path.read_text(encoding="latin-1")
        for path in tmp_path.rglob("*.*")
        if path.is_file()
    }
    given = predict_unit(unit(after))
    assert given
    assert is_enough(WANTED, given["nofile"])
    vendors = {path for path in files if path.startswith("/usr/")}
    assert all(after[path] == files[path] for path in vendors), "a package's file is left alone"


def follow(causes: list[Cause], files: dict[str, str], root: Path) -> None:
    """Write the files below a folder, and run there what the remedies say."""
    for path, text in files.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="latin-1")
    for cause in causes:
        assert cause.remedy.commands
        for words in cause.remedy.commands:
            paste(words, root)


@pytest.mark.parametrize(
    "files",
    [
        {UNIT: service(GOOD)},
        {UNIT: service("LimitNOFILE=infinity")},
        {UNIT: service(GOOD, "LimitNOFILE=64k", "#LimitNOFILE=5"), D + "/a.conf": "[broken\n"},
        {UNIT: service(), CONF: manager(f"Default{GOOD}")},
    ],
)
def test_a_unit_that_meets_the_policy_has_no_cause(files: dict[str, str]) -> None:
    assert find_unit_causes("nofile", WANTED, unit(files)) == []


def test_a_cause_says_what_it_beats() -> None:
    files, _codes, _places = FAULTS["drop-in over unit"]
    (cause,) = find_unit_causes("nofile", WANTED, unit(files))
    assert cause.text == f'{D}/90.conf:3 "{LOW}" beats {UNIT}:2 "{GOOD}"'
    assert [one.place for one in cause.shadows] == [f"{UNIT}:2"]
    assert cause.remedy.lines == [edit(f"{D}/90.conf", 3, LOW, "s/^/# /")[2]]


def test_too_much_is_named_as_well() -> None:
    files = {UNIT: service("LimitNOFILE=65536:1000000")}
    (cause,) = find_unit_causes("nofile", Limit(65536, max=200000), unit(files))
    assert cause.code == "unit-stated-too-high"
    assert cause.text == f'{UNIT}:2 "LimitNOFILE=65536:1000000" states too much'
    assert cause.remedy.text == 'make x.service:2 "LimitNOFILE=65536:200000"'


def test_a_default_that_is_too_much_is_the_manager_s() -> None:
    files = {UNIT: service(), CONF: manager("DefaultLimitNOFILE=1000000")}
    (cause,) = find_unit_causes("nofile", Limit(max=200000), unit(files))
    assert cause.code == "unit-stated-too-high"


def test_sizes_are_written_in_systemd_s_units() -> None:
    (cause,) = find_unit_causes("memlock", Limit(64 * MIB, 128 * MIB), unit({UNIT: service()}))
    assert cause.text == "no file states memlock for x.service, and systemd's default is 8M"
    assert cause.remedy.text == f'state "LimitMEMLOCK=64M:128M" in {D}/95-site.conf'
    (cause,) = find_unit_causes("memlock", MEMLOCK, unit({UNIT: service("LimitMEMLOCK=64K")}))
    assert cause.remedy.text == 'make x.service:2 "LimitMEMLOCK=infinity"'
    low = service("LimitMEMLOCK=64K:infinity")
    (cause,) = find_unit_causes("memlock", MEMLOCK, unit({UNIT: low}))
    assert cause.code == "unit-stated-too-low"


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["10.conf"], "95-site.conf"),
        (["95-site.conf"], "95-site.conf"),
        (["96.conf"], "99-site.conf"),
        (["99-vendor.conf"], "zz-site.conf"),
        (["zzz.conf"], "zzzz-site.conf"),
        (["zzzzz.conf"], "zzzzzz-site.conf"),
    ],
)
def test_our_drop_in_sorts_after_all_others(names: list[str], chosen: str) -> None:
    files = {UNIT: service(), **{f"{D}/{name}": service("Nice=1") for name in names}}
    (cause,) = find_unit_causes("nofile", WANTED, unit(files))
    assert cause.remedy.commands[1][2].endswith(f" >> {D}/{chosen}")


def test_our_drop_in_is_hidden_by_no_other() -> None:
    files = {UNIT: service(), f"{RUN_D}/95-site.conf": service("Nice=1")}
    (cause,) = find_unit_causes("nofile", WANTED, unit(files))
    assert cause.remedy.commands[1][2].endswith(f" >> {D}/99-site.conf")


def test_our_drop_in_keeps_what_it_holds() -> None:
    files = {VENDOR: service(), D + "/95-site.conf": service("Nice=1")}
    facts = unit(files)
    (cause,) = find_unit_causes("nofile", WANTED, facts)
    assert cause.remedy.commands[1][2].startswith("printf '\\n[Service]\\nLimitNOFILE=")


@pytest.mark.parametrize(
    ("path", "better"), [(f"{D}/a.cfg", f"{D}/a.conf"), ("/etc/systemd/x.service.d/a.conf", D)]
)
def test_a_file_that_is_not_read_is_moved(path: str, better: str) -> None:
    better = better if better.endswith(".conf") else f"{better}/a.conf"
    stray = Stray(Source(path, service(GOOD)), "for a reason", better)
    (cause,) = find_unit_causes("nofile", WANTED, unit({UNIT: service()}, strays=(stray,)))
    assert (cause.code, place(cause)) == ("unit-dropin-not-read", path)
    assert cause.text == f"systemd does not read {path}: for a reason"
    made = [("mkdir", "-p", D)] if "x.service.d/a.conf" in path and path != f"{D}/a.cfg" else []
    moved = [("mv", "-nT", path, better)]
    assert list(cause.remedy.commands) == [*(made if not path.startswith(D) else []), *moved]


def test_a_manager_s_file_that_is_not_read_is_moved() -> None:
    path = f"{CONF_D}/a"
    stray = Stray(Source(path, manager(f"Default{GOOD}")), "for a reason", f"{path}.conf")
    (cause,) = find_unit_causes("nofile", WANTED, unit({UNIT: service()}, strays=(stray,)))
    assert cause.remedy.commands == (("mv", "-nT", path, f"{path}.conf"),)


def test_a_broken_unit_of_a_package_is_left_to_its_package() -> None:
    (cause,) = find_unit_causes("nofile", WANTED, unit({VENDOR: f"[Service\n{GOOD}\n"}))
    assert cause.code == "unit-not-loaded"
    assert cause.remedy.lines == []
    assert cause.remedy.text == "install the package that owns the file again"


def low(nr_open: int, line: Declaration | None = None, **other: Any) -> Manager:
    return MANAGER._replace(nr_open=nr_open, **other)


def explain(
    text: str, manager: Manager, limit: Limit = WANTED, line: Declaration | None = None
) -> list[Cause]:
    facts: UnitFacts = unit({UNIT: text}, manager)._replace(nr_open_line=line)
    return list(find_unit_causes("nofile", limit, facts))


RAISE = '[ "$(cat /proc/sys/fs/nr_open)" -ge 131072 ] || sysctl -w fs.nr_open=131072'


def test_a_start_that_nr_open_refuses() -> None:
    (cause,) = explain(service(GOOD), low(100000))
    assert (cause.code, place(cause)) == ("unit-refused-by-nr-open", f"{UNIT}:2")
    told = "asks for more than fs.nr_open, 100000: the start fails"
    assert cause.text == f'{UNIT}:2 "{GOOD}" {told}'
    assert cause.remedy == raise_nr_open(131072, 0, None)
    assert cause.remedy.lines[0] == RAISE


def test_the_line_that_lowers_nr_open_is_at_fault() -> None:
    line = Declaration("/etc/sysctl.d/50.conf", 3, "fs.nr_open = 100000", 100000)
    (cause,) = explain(service(GOOD), low(100000), line=line)
    assert place(cause) == "/etc/sysctl.d/50.conf:3"
    assert cause.text.endswith('; /etc/sysctl.d/50.conf:3 "fs.nr_open = 100000" sets that')
    lasting = edit(line.path, 3, line.text, "c\\fs.nr_open = 131072")
    assert cause.remedy.commands == (("sh", "-c", RAISE), lasting)
    (cause,) = explain(service(GOOD), low(100000), line=line._replace(value=131072))
    assert (place(cause), cause.remedy.lines) == (f"{UNIT}:2", [RAISE])


def test_another_line_about_nr_open_is_outdone() -> None:
    line = Declaration("/usr/lib/sysctl.d/50.conf", 3, "fs.nr_open = 9", 9)
    (cause,) = explain(service(GOOD), low(100000), line=line)
    assert place(cause) == f"{UNIT}:2"
    assert "/etc/sysctl.d/95-site.conf" in cause.remedy.lines[1]


def test_what_a_boot_gives_is_never_lowered() -> None:
    """Somebody lowered it by hand: no file is to say what is less than the files say."""
    line = Declaration("/etc/sysctl.d/90-mlhost.conf", 3, "fs.nr_open = 200000", 200000)
    (cause,) = explain(service(GOOD), low(100000), line=line)
    assert cause.remedy.lines == [RAISE]


def test_systemd_s_default_may_be_above_nr_open() -> None:
    (cause,) = explain(service(), low(65536), Limit(hard=131072))
    told = "systemd's default 1024:524288 asks for more than fs.nr_open, 65536"
    assert cause.text == f"{told}: x.service gets 1024:65536"
    assert (cause.code, cause.at) == ("unit-above-nr-open", None)
    (cause,) = explain(service(), low(65536, at_boot=True), Limit(soft=1000))
    assert cause.text == f"{told}: the start fails"


def test_infinity_is_cut_to_what_systemd_has() -> None:
    (cause,) = explain(service("LimitNOFILE=infinity"), low(2097152), Limit(65536, 2000000))
    assert cause.text.endswith("asks for more than fs.nr_open, 2097152: x.service gets 1048576")
    assert cause.remedy.text == 'make x.service:2 "LimitNOFILE=2097152"'


def test_infinity_and_a_low_nr_open_are_two_causes() -> None:
    causes = explain(service("LimitNOFILE=1024:infinity"), low(1048576), Limit(hard=2000000))
    assert [cause.remedy.text for cause in causes] == [
        "raise fs.nr_open to 2000000, now and at boot",
        'make x.service:2 "LimitNOFILE=1024:2000000"',
    ]


def test_a_package_s_line_above_nr_open_is_outdone() -> None:
    facts = unit({VENDOR: service("LimitNOFILE=1024:infinity")}, low(2097152))
    (cause,) = find_unit_causes("nofile", Limit(hard=2000000), facts)
    assert cause.remedy.text == f'state "LimitNOFILE=1024:2097152" in {D}/95-site.conf'


def test_infinity_that_nr_open_refuses_becomes_what_there_is() -> None:
    files = {UNIT: service("LimitNOFILE=infinity", "LimitMEMLOCK=infinity")}
    (cause,) = find_unit_causes("memlock", MEMLOCK, unit(files, low(100000)))
    assert cause.code == "unit-refused-by-nr-open"
    assert cause.remedy.text == 'make x.service:2 "LimitNOFILE=100000"'


def test_what_nr_open_refuses_fails_every_limit() -> None:
    facts = unit({UNIT: service(GOOD, "LimitMEMLOCK=infinity")}, low(100000))
    (cause,) = find_unit_causes("memlock", MEMLOCK, facts)
    assert cause.code == "unit-refused-by-nr-open"


def test_a_soft_bound_above_a_cut_hard_one_is_cut_as_well() -> None:
    causes = explain(service("LimitNOFILE=2000000"), low(1048576), Limit(hard=1500000))
    assert [cause.remedy.text for cause in causes] == [
        "raise fs.nr_open to 2000000, now and at boot"
    ]


@pytest.mark.parametrize(("item", "wanted"), [("memlock", MEMLOCK), ("nofile", WANTED)])
def test_what_a_user_s_manager_cannot_give_has_no_cause_in_files(item: str, wanted: Limit) -> None:
    own = {**MANAGER.own, "memlock": Rlimit(MIB, MIB), "nofile": Rlimit(1024, 4096)}
    around = MANAGER._replace(own=own, may_raise=False)
    facts = unit({UNIT: service(GOOD, "LimitMEMLOCK=infinity")}, around)
    assert find_unit_causes(item, wanted, facts) == []


def test_as_much_as_the_kernel_can_give_is_given() -> None:
    most = Limit(hard=LARGEST_NR_OPEN)
    (cause,) = explain(service(f"LimitNOFILE={LARGEST_NR_OPEN}"), low(100000), most)
    assert cause.remedy.text == f"raise fs.nr_open to {LARGEST_NR_OPEN}, now and at boot"


def test_a_limit_that_no_kernel_gives_has_no_remedy() -> None:
    limit = Limit(hard=UNLIMITED)
    assert explain(service("LimitNOFILE=infinity"), low(1048576), limit) == []


@pytest.mark.parametrize(
    ("limit", "given", "enough", "target"),
    [
        (Limit(5, 9), Rlimit(5, 9), True, Rlimit(5, 9)),
        (Limit(5, 9), Rlimit(4, 20), False, Rlimit(5, 20)),
        (Limit(5, 9), Rlimit(7, 8), False, Rlimit(7, 9)),
        (Limit(5), Rlimit(1, 2), False, Rlimit(5, 5)),
        (Limit(hard=9), Rlimit(0, 9), True, Rlimit(0, 9)),
        (Limit(soft=0), Rlimit(0, 0), True, Rlimit(0, 0)),
        (Limit(max=9), Rlimit(10, 10), False, Rlimit(9, 9)),
        (Limit(hard=UNLIMITED), Rlimit(1, 2), False, Rlimit(1, UNLIMITED)),
    ],
)
def test_as_little_as_will_do_is_changed(
    limit: Limit, given: Rlimit, enough: bool, target: Rlimit
) -> None:
    assert is_enough(limit, given) is enough
    assert find_target(limit, given) == target
    assert is_enough(limit, target)


def test_a_drop_in_of_run_may_be_edited() -> None:
    files = {UNIT: service(GOOD), RUN_D + "/a.conf": service(LOW)}
    (cause,) = find_unit_causes("nofile", WANTED, unit(files))
    assert place(cause) == f"{RUN_D}/a.conf:2"


def test_a_name_that_cannot_be_typed_is_left_to_a_person() -> None:
    path = f"{D}/a\x1b.conf"
    facts = unit({UNIT: service(GOOD), path: service(LOW)})
    (cause,) = find_unit_causes("nofile", WANTED, facts)
    assert cause.remedy.commands == ()
    facts = unit({UNIT: service(), path: "", VENDOR_D + "/a\x1b.conf": service(GOOD)})
    (cause,) = find_unit_causes("nofile", WANTED, facts)
    assert cause.remedy.commands == ()
    stray = Stray(Source(f"{D}/b\x1b", service(GOOD)), "", f"{D}/b\x1b.conf")
    (cause,) = find_unit_causes("nofile", WANTED, unit({UNIT: service()}, strays=(stray,)))
    assert cause.remedy.commands == ()
    odd = unit({UNIT: service()})._replace(name="x\x1b.service")
    (cause,) = find_unit_causes("nofile", WANTED, odd)
    assert cause.remedy.commands == ()
