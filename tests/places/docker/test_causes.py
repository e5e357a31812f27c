# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a new container from its limits is named line by line, and its commands put it right."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.cause import Remedy
from mlhost_limits.core.finding import FAIL, PASS, UNKNOWN, Requirement
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, Declaration, Rlimit
from mlhost_limits.docker.causes import blame_pending, find_docker_causes
from mlhost_limits.docker.model import (
    Parent,
    UnitLimit,
    foretell,
    inherit,
    inherit_at_start,
)
from mlhost_limits.docker.site import Pending, Tools
from mlhost_limits.kernel.raises import raise_now, raise_nr_open

from tests.worlds.docker_scene import (
    HARD,
    HEALTHY,
    MEMLOCK,
    PATH,
    PLACE,
    POLICY,
    RESTART,
    SHM,
    SOFT,
    START,
    UNIT,
    carry_out,
    collect,
    flag,
    limit_flag,
    make_site,
    make_world,
)

if TYPE_CHECKING:
    from pathlib import Path

LOW = {"nofile": (Rlimit(1024, 524288),), "memlock": (Rlimit(2**23, 2**23),)}


def change(*pairs: tuple[str, str], text: str = HEALTHY) -> str:
    """Return daemon.json with words replaced, each of which must be there."""
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


ONE_LINE = json.dumps({**json.loads(HEALTHY), "labels": ["é=1"]}, ensure_ascii=False)
NO_NOFILE = change(('    "nofile": {"Name": "nofile", "Hard": 1048576, "Soft": 65536},\n', ""))
NO_SHM = change(('},\n  "default-shm-size": "8G"', "}"))
EMPTY_BLOCK = '{"default-ulimits": null, "default-shm-size": "8G"}'


@pytest.mark.parametrize("wanted", [SOFT, HARD, MEMLOCK, SHM], ids=lambda one: one.item)
def test_a_healthy_file_names_nothing(wanted: Requirement) -> None:
    assert find_docker_causes(wanted, make_world(), make_site()) == []
    assert foretell(wanted, make_world()) == PASS


FILES = [
    ("too little", change(('"Soft": 65536', '"Soft": 1024')), SOFT, ["docker-stated-too-low"], 3),
    ("of two bounds one", change(("1048576", "70000")), HARD, ["docker-stated-too-low"], 3),
    ("on one line", ONE_LINE.replace("65536", "9"), SOFT, ["docker-stated-too-low"], 1),
    ("entry lacking", NO_NOFILE, SOFT, ["docker-not-stated"], 0),
    ("no file", None, SOFT, ["docker-not-stated"], 0),
    ("no file, and no shm size", None, SHM, ["docker-shm-not-stated"], 0),
    ("nothing in it", "{}", MEMLOCK, ["docker-not-stated"], 0),
    ("a null for the limits", EMPTY_BLOCK, MEMLOCK, ["docker-not-stated"], 0),
    ("another Name", change(('"Name": "nofile"', '"Name": "nproc"')), SOFT, ["docker-name-differs"], 3),
    ("under another key", change(('"nofile": {', '"files": {'), ("65536", "9")), SOFT,
     ["docker-stated-too-low"], 3),
    ("later key", change(('"memlock": {"Name": "memlock", "Hard": -1, "Soft": -1}',
     '"nofile": {"Name": "nofile", "Hard": 9, "Soft": 8}')), SOFT, ["docker-later-wins"], 4),
    ("stated twice", change(('"memlock": {"Name": "memlock", "Hard": -1, "Soft": -1}',
     '"files": {"Name": "nofile", "Hard": 9, "Soft": 8}')), SOFT, ["docker-stated-twice"], 4),
    ("small shm", change(("8G", "64M")), SHM, ["docker-stated-too-low"], 6),
    ("no shm", NO_SHM, SHM, ["docker-shm-not-stated"], 0),
    ("soft above hard", change(("65536", "2000000")), SOFT, ["docker-no-container-starts"], 3),
    ("Name missing", change(('"Name": "memlock", ', "")), SOFT, ["docker-no-container-starts"], 4),
    ("a stranger's entry", change(('"memlock": {"Name": "memlock", "Hard": -1, "Soft": -1}',
     '"cpus": {"Name": "cpus", "Hard": 1, "Soft": 1}')), SOFT, ["docker-no-container-starts"], 4),
    ("unlimited", change(('"Hard": 1048576', '"Hard": -1')), SOFT, ["docker-above-nr-open"], 3),
    ("a text for a number", change(("65536", '"65536"')), SOFT, ["docker-dockerd-refuses"], 3),
    ("a number for a text", change(('"8G"', "8")), SOFT, ["docker-dockerd-refuses"], 6),
    ("too large a size", change(("8G", "9999999P")), SHM, ["docker-no-container-starts"], 6),
    ("a misspelled key", change(("default-ulimits", "default-ulimit")), SOFT, ["docker-dockerd-refuses"], 2),
    ("a misspelled size", change(("default-shm-size", "shm-size")), SHM, ["docker-dockerd-refuses"], 6),
    ("a misspelled second key", change(('"default-shm-size"', '"ulimits": 1, "default-shm-size"')),
     SHM, ["docker-dockerd-refuses"], 6),
    ("a key that no dockerd knows", change(('"default-shm-size"', '"open-files": 5, "default-shm-size"')),
     SHM, ["docker-dockerd-refuses"], 6),
    ("an object of such keys", change(('"default-shm-size"', '"x": {"files": 5}, "default-shm-size"')),
     SHM, ["docker-dockerd-refuses"], 6),
    ("a list", '{"default-ulimits": [],\n"default-shm-size": "8G"}', MEMLOCK,
     ["docker-dockerd-refuses", "docker-not-stated"], 1),
    ("a comma too much", change(('"Soft": -1}\n', '"Soft": -1},\n')), SOFT, ["docker-dockerd-refuses"], 5),
    ("a comma too few", change(("  },\n", "  }\n")), SOFT, ["docker-dockerd-refuses"], 6),
    ("no object around it", "", MEMLOCK, ["docker-dockerd-refuses", "docker-not-stated"], 0),
    ("a mark before it", "\ufeff" + HEALTHY, SOFT, ["docker-dockerd-refuses"], 1),
    ("two things", change(("65536", "9"), ('"Name": "memlock", ', "")), SOFT,
     ["docker-no-container-starts", "docker-stated-too-low"], 4),
    ("two that stop dockerd", change(("65536", '"9"'), ('"8G"', "8")), SOFT,
     ["docker-dockerd-refuses", "docker-dockerd-refuses"], 6),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "wanted", "codes", "line"), [case[1:] for case in FILES], ids=[one[0] for one in FILES]
)
@pytest.mark.slow
def test_the_line_of_a_file_is_named_and_mended(
    text: str | None, wanted: Requirement, codes: list[str], line: int, tmp_path: Path
) -> None:
    """The commands, carried out one after the other, make a file with which all is well."""
    world = make_world(text, base=LOW)
    causes = find_docker_causes(wanted, world, make_site())
    assert [cause.code for cause in causes] == codes
    assert causes[0].at is None or causes[0].at.line == line
    assert causes[-1].remedy.commands[-1] == RESTART
    after = text
    for cause in causes:
        after = carry_out(cause, tmp_path, {PATH: after or ""})[PATH]
    assert foretell(wanted, make_world(after, base=LOW)) == "pass"
    if text and text.strip().startswith("{") and "é" in text:
        assert json.loads(after or "")["labels"] == ["é=1"]


def test_a_value_of_another_type_is_left_to_a_person() -> None:
    """What was meant with it is not ours to guess: no command touches it."""
    text = change(('"default-shm-size"', '"debug": "true", "default-shm-size"'))
    (cause,) = find_docker_causes(SOFT, make_world(text), make_site())
    assert (cause.code, cause.remedy) == ("docker-dockerd-refuses", Remedy("correct it there"))
    assert cause.text == f"{PATH}:6: debug: dockerd takes true or false, not a string"


def test_what_stops_dockerd_is_restarted_once() -> None:
    """Of two things that stop dockerd the first remedy has no restart, which would fail."""
    text = change(("65536", '"9"'), ('"8G"', "8"))
    first, second = find_docker_causes(SOFT, make_world(text), make_site())
    assert (first.remedy.then, second.remedy.then) == ("restart dockerd", "")
    assert RESTART not in first.remedy.commands


def test_every_line_keeps_its_number() -> None:
    """What is found second stands where it stands in the file, not in what the first made of it."""
    text = """\
{
  "default-ulimits": {
    "memlock": {
      "Hard": -1,
      "Soft": -1
    },
    "nofile": {
      "Name": "nofile",
      "Hard": 1048576,
      "Soft": 1024
    }
  },
  "default-shm-size": "1G"
}
"""
    found = find_docker_causes(SOFT, make_world(text), make_site())
    assert collect(found) == [
        ("docker-no-container-starts", f"{PATH}:3"),
        ("docker-stated-too-low", f"{PATH}:7"),
    ]
    found = find_docker_causes(SHM, make_world(text), make_site())
    assert collect(found)[1:] == [("docker-stated-too-low", f"{PATH}:13")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"default-ulimits": {}, "default-ulimits": {}}', 1),
        ('{"default-ulimits": {},\n"a": {"default-ulimits": 1}, "default-ulimits": {}}', 2),
        ('{"a": 1 "b": 2}', 1),
        ('{\n\n"a": }', 3),
        ('{"default-shm-size": 8, "default-shm-size": "8G"}', 1),
        ("[1,\n2]", 1),
        ("null", 0),
    ],
)
def test_where_no_edit_is_sure_a_person_decides(text: str, line: int) -> None:
    """A key that stands there twice, or JSON that is not plainly meant, has no command."""
    causes = find_docker_causes(MEMLOCK, make_world(text, base=LOW), make_site())
    assert [cause.at.line for cause in causes if cause.at] == ([line] if line else [])
    assert not any(cause.remedy.commands for cause in causes)


OPTIONS = "-H fd:// --default-ulimit nofile=1024:4096 --default-shm-size=1.5g"
UNIT_TEXT = f"[Service]\nExecStart=\nExecStart=/usr/sbin/dockerd {OPTIONS}\n"


@pytest.mark.parametrize(
    ("wanted", "text", "edited"),
    [
        (SOFT, "make it --default-ulimit nofile=65536:1048576", "nofile=65536:1048576"),
        (MEMLOCK, "add --default-ulimit memlock=-1:-1", "memlock=-1:-1"),
        (SHM, "make it --default-shm-size 8G", "--default-shm-size 8G"),
    ],
)
def test_the_line_of_a_flag_is_named_and_mended(
    wanted: Requirement, text: str, edited: str, tmp_path: Path
) -> None:
    """Where flags state limits, the remedy is a flag: dockerd bears no second place."""
    flags = [limit_flag("nofile=1024:4096"), flag("default-shm-size=1.5g")]
    world, site = make_world(None, flags, LOW), make_site(files={UNIT: UNIT_TEXT})
    (cause,) = find_docker_causes(wanted, world, site)
    code = "docker-not-stated" if wanted is MEMLOCK else "docker-stated-too-low"
    assert collect([cause]) == [(code, "" if wanted is MEMLOCK else f"{UNIT}:3")]
    assert cause.remedy.text.startswith(text)
    assert cause.remedy.commands[1:] == (("systemctl", "daemon-reload"), RESTART)
    after = carry_out(cause, tmp_path, {UNIT: UNIT_TEXT})[UNIT]
    assert edited in after
    assert after.count("--default-ulimit") == (2 if wanted is MEMLOCK else 1)


def test_a_flag_beside_the_file_is_taken_out(tmp_path: Path) -> None:
    """Every flag of the name goes at once; what the file states then counts."""
    text = "[Service]\nExecStart=\nExecStart=dockerd --default-ulimit core=0 --default-ulimit=cpu=9 -D\n"
    flags = [limit_flag("core=0"), limit_flag("cpu=9"), flag("debug")]
    (cause,) = find_docker_causes(SOFT, make_world(flags=flags), make_site(files={UNIT: text}))
    assert collect([cause]) == [("docker-flag-conflict", f"{UNIT}:3")]
    assert carry_out(cause, tmp_path, {UNIT: text})[UNIT].endswith("ExecStart=dockerd -D\n")


@pytest.mark.parametrize(
    ("flags", "text", "codes"),
    [
        (["nofile=65536:1048576", "memlock=-1:-1"], '{"core": ', ["docker-flag-conflict"]),
        (["nofile=9:9"], '{"nofile": ', ["docker-flag-conflict"]),
        (["nofile=9:9"], '{"core": ', ["docker-flag-conflict", "docker-not-stated"]),
        (["nofile=9:8"], '{"core": ', ["docker-dockerd-refuses", "docker-flag-conflict"]),
    ],
)
def test_of_a_flag_and_a_file_the_better_stays(
    flags: list[str], text: str, codes: list[str], tmp_path: Path
) -> None:
    """Whichever states more of what the policy asks, for all findings alike."""
    entry = {"Name": "nofile" if "nofile" in text else "core", "Hard": 1048576, "Soft": 1048576}
    text = f'{{"default-ulimits": {text}{json.dumps(entry)}}}}}'
    unit = f"[Service]\nExecStart=dockerd{''.join(f' --default-ulimit {one}' for one in flags)}\n"
    world = make_world(text, [limit_flag(one, 2) for one in flags], LOW)
    causes = find_docker_causes(SOFT, world, make_site(files={UNIT: unit}))
    assert [cause.code for cause in causes] == codes
    files = {PATH: text, UNIT: unit}
    for cause in causes:
        files = carry_out(cause, tmp_path, files)
    left = files[UNIT].count("--default-ulimit")
    assert (left == 0) != (json.loads(files[PATH]) == {})


def test_what_stops_dockerd_comes_before_what_stops_containers() -> None:
    """A flag that no container bears goes, since the file states the limits."""
    causes = find_docker_causes(SOFT, make_world(flags=[limit_flag("nofile=-1")]), make_site())
    assert [cause.code for cause in causes] == ["docker-flag-conflict"]


@pytest.mark.parametrize(
    ("name", "line", "files"),
    [
        ("label", 3, {UNIT: "\n\n--label=a"}),
        ("default-ulimit", 0, {}),
        ("default-ulimit", 1, {UNIT: "--default-ulimit ${LIMITS}"}),
        ("default-ulimit", 9, {UNIT: "--default-ulimit core=0"}),
    ],
)
def test_a_flag_that_stands_elsewhere_is_left_to_a_person(
    name: str, line: int, files: dict[str, str]
) -> None:
    """Out of a variable, or on a line that does not show it, no command takes a flag."""
    text = change(('{\n  "d', '{\n  "labels": [],\n  "d')) if name == "label" else HEALTHY
    value = "a/b" if name == "label" else "core=0"
    world = make_world(text, [flag(f"{name}={value}", line)])
    (cause,) = find_docker_causes(SOFT, world, make_site(files=files))
    instead = f", or labels out of {PATH}" if name == "label" else ""
    remedy = Remedy(f"take --{name} out{instead}")
    assert (cause.code, cause.remedy) == ("docker-flag-conflict", remedy)


@pytest.mark.parametrize(
    ("value", "code", "after"),
    [
        ("nofile=9:8", "docker-dockerd-refuses", "nofile=65536:1048576"),
        ("nofile=-1", "docker-above-nr-open", "nofile=65536:1048576"),
        ("cpu=soft", "docker-dockerd-refuses", None),
    ],
)
def test_a_flag_that_stops_everything_is_mended(
    value: str, code: str, after: str | None, tmp_path: Path
) -> None:
    """It is written as the policy has it, or goes where the policy says nothing of it."""
    text = f"[Service]\nExecStart=dockerd --default-ulimit {value}\n"
    world, site = make_world(None, [limit_flag(value, 2)]), make_site(files={UNIT: text})
    cause = find_docker_causes(SOFT, world, site)[0]
    assert collect([cause]) == [(code, f"{UNIT}:2")]
    changed = carry_out(cause, tmp_path, {UNIT: text})[UNIT]
    words = changed.split("dockerd", 1)[1].split()
    assert words == ([] if after is None else ["--default-ulimit", after])


@pytest.mark.parametrize(
    ("usual", "codes"),
    [
        (HEALTHY, ["docker-config-elsewhere"]),
        (NO_NOFILE, ["docker-config-elsewhere", "docker-not-stated"]),
        ("{}", ["docker-not-stated"]),
        (None, ["docker-not-stated"]),
        ("{", ["docker-not-stated"]),
    ],
)
def test_another_configuration_file_hides_daemon_json(
    usual: str | None, codes: list[str], tmp_path: Path
) -> None:
    """It is blamed where daemon.json states more of what the policy asks."""
    text = "[Service]\nExecStart=dockerd --config-file /etc/docker/site.json\n"
    flags = [flag("config-file=/etc/docker/site.json", 2)]
    world = make_world("{}", flags, LOW, path="/etc/docker/site.json")
    site = make_site(files={UNIT: text})._replace(usual=usual)
    causes = find_docker_causes(SOFT, world, site)
    assert [cause.code for cause in causes] == codes
    if codes[0] == "docker-config-elsewhere":
        after = carry_out(causes[0], tmp_path, {UNIT: text})[UNIT]
        assert after == "[Service]\nExecStart=dockerd\n"


def test_the_later_of_two_flags_counts() -> None:
    flags = [limit_flag("nofile=65536:1048576"), limit_flag("nofile=9:9", 4)]
    (cause,) = find_docker_causes(SOFT, make_world(None, flags), make_site())
    assert collect([cause]) == [("docker-later-wins", f"{UNIT}:4")]
    assert [one.line for one in cause.shadows] == [3]


NR_LINE = Declaration("/etc/sysctl.d/99-x.conf", 7, "fs.nr_open=500000", 500000)


def test_what_a_boot_gives_is_never_lowered() -> None:
    """Somebody lowered it since: the line of the files, or the kernel's own value, stays."""
    world = make_world(HEALTHY, nr_open=500000)
    for line in (None, NR_LINE._replace(value=2000000)):
        site = make_site()._replace(nr_open_line=line, nr_open_at_boot=2000000)
        (cause,) = find_docker_causes(SOFT, world, site)
        assert cause.remedy.commands == (raise_now("fs.nr_open", 1048576),)


@pytest.mark.parametrize("flagged", [False, True], ids=["file", "flag"])
@pytest.mark.parametrize("line", [None, NR_LINE], ids=["no line", "a line"])
def test_a_low_nr_open_is_raised(line: Declaration | None, flagged: bool) -> None:
    """Now and for the next boot; dockerd needs no restart."""
    flags = [limit_flag("nofile=65536:1048576")] if flagged else []
    world = make_world(None if flagged else HEALTHY, flags, nr_open=500000)
    (cause,) = find_docker_causes(SOFT, world, make_site()._replace(nr_open_line=line))
    assert cause.code == "docker-above-nr-open"
    assert cause.remedy == raise_nr_open(1048576, 0, line)


def test_what_the_policy_does_not_know_goes() -> None:
    """A nofile above fs.nr_open, and a size that is none, of which the policy demands nothing."""
    text = change(('"Hard": 1048576', '"Hard": -1'), ('"8G"', '"x"'))
    site = make_site(ContainerPolicy({"memlock": Limit(UNLIMITED, UNLIMITED)}, None))
    causes = find_docker_causes(MEMLOCK, make_world(text), site)
    assert [cause.remedy.text.partition(",")[0] for cause in causes] == [
        f'take "default-shm-size" out of {PATH}',
        "take that entry out",
    ]


PARENT = Parent(233, "containerd.service", {"nofile": Rlimit(2048, 2048)}, "T1")
LINE = Declaration("/etc/systemd/system/containerd.service.d/x.conf", 2, "LimitNOFILE=2048", 2048)
GOOD = LINE._replace(text="LimitNOFILE=infinity")
LOW_2048 = {"nofile": (Rlimit(2048, 2048),)}


@pytest.mark.parametrize(
    ("parent", "own", "expected"),
    [
        (None, {}, ("docker-not-stated", "")),
        (PARENT, {}, ("docker-not-stated", "")),
        (
            PARENT._replace(stated={"nofile": UnitLimit(Rlimit(2048, 2048), LINE)}),
            {},
            ("docker-containerd-too-low", LINE.place),
        ),
        (
            PARENT._replace(stated={"nofile": UnitLimit(Rlimit(UNLIMITED, UNLIMITED), GOOD)}),
            {},
            ("docker-not-stated", ""),
        ),
        (
            PARENT._replace(
                stated={"nofile": UnitLimit(Rlimit(UNLIMITED, UNLIMITED), GOOD)}, changed=True
            ),
            {},
            ("docker-containerd-not-restarted", LINE.place),
        ),
        (
            PARENT._replace(stated={"nofile": UnitLimit(Rlimit(1024, 2048), LINE)}, changed=True),
            {},
            ("docker-containerd-too-low", LINE.place),
        ),
        (
            PARENT,
            {"nofile": UnitLimit(Rlimit(65536, 1048576), Declaration(UNIT, 2, "LimitNOFILE=x", 1))},
            ("docker-unit-limit-ignored", f"{UNIT}:2"),
        ),
        (
            PARENT,
            {"nofile": UnitLimit(Rlimit(9, 9), Declaration(UNIT, 2, "LimitNOFILE=9", 9))},
            ("docker-not-stated", ""),
        ),
    ],
)
def test_what_a_container_inherits_has_a_line(
    parent: Parent | None, own: dict[str, UnitLimit], expected: tuple[str, str]
) -> None:
    """Where daemon.json is silent: containerd's line, one of docker.service that helps nobody."""
    site = make_site()._replace(parent=parent, own=own)
    (cause,) = find_docker_causes(SOFT, make_world(NO_NOFILE, base=LOW_2048), site)
    assert collect([cause]) == [expected]


def test_a_containerd_that_may_give_enough_is_not_blamed() -> None:
    stated = {"nofile": UnitLimit(Rlimit(UNLIMITED, UNLIMITED), GOOD)}
    site = make_site()._replace(parent=PARENT._replace(stated=stated, changed=True))
    base = {"nofile": (Rlimit(1024, 1048576), Rlimit(1048576, 1048576))}
    (cause,) = find_docker_causes(SOFT, make_world(NO_NOFILE, base=base), site)
    assert cause.code == "docker-not-stated"


@pytest.mark.parametrize(
    ("limits", "stated", "changed", "now", "later"),
    [
        ((2048, 4096), None, False, [(2048, 4096)], [(2048, 4096)]),
        ((4096, 4096), None, False, [(4096, 4096), (1024, 4096)], [(4096, 4096), (1024, 4096)]),
        ((4096, 4096), None, True, [(4096, 4096), (1024, 4096)], []),
        ((4096, 4096), (4096, 4096), False, [(4096, 4096)], [(4096, 4096)]),
        ((4096, 4096), (2048, 4096), False, [(4096, 4096), (2048, 4096)], [(2048, 4096), (4096, 4096)]),
        (
            (4096, 4096),
            (2048, UNLIMITED),
            True,
            [(4096, 4096), (1024, 4096), (2048, 4096)],
            [(2048, 9999), (9999, 9999)],
        ),
    ],
)  # fmt: skip
def test_go_may_raise_the_soft_nofile(
    limits: Any, stated: Any, changed: bool, now: Any, later: Any
) -> None:
    """Its process hides what containers inherit, and so does its unit before its next start."""
    named = {"nofile": UnitLimit(Rlimit(*stated), LINE)} if stated else {}
    parent = Parent(1, "", {"nofile": Rlimit(*limits)}, "", named, changed)
    assert list(inherit(parent, "nofile")) == now
    assert list(inherit_at_start(parent, "nofile", 9999)) == later


def test_other_limits_are_what_the_unit_states() -> None:
    stated = {"memlock": UnitLimit(Rlimit(1, 2), LINE)}
    parent = Parent(1, "", {"memlock": Rlimit(9, 9)}, "", stated, True)
    assert inherit(parent, "memlock") == (Rlimit(9, 9),)
    assert inherit_at_start(parent, "memlock", 9) == (Rlimit(1, 2),)
    assert inherit(parent, "core") == ()


@pytest.mark.parametrize(
    "base", [{}, {"nofile": (Rlimit(1024, 1048576), Rlimit(1048576, 1048576))}]
)
def test_what_is_not_known_is_not_blamed_for_sure(base: dict[str, tuple[Rlimit, ...]]) -> None:
    """Without containerd's limits nothing is named; where two are possible, that nothing is stated."""
    world = make_world("{}", base=base)
    assert foretell(SOFT, world) == UNKNOWN
    found = find_docker_causes(SOFT, world, make_site())
    assert [cause.code for cause in found] == (["docker-not-stated"] if base else [])


@pytest.mark.parametrize(
    ("policy", "text", "after"),
    [
        (ContainerPolicy({"nofile": Limit(max=4096)}, None), HEALTHY, "4096"),
        (ContainerPolicy({}, None), HEALTHY, ""),
    ],
)
def test_too_much_is_bounded(policy: ContainerPolicy, text: str, after: str) -> None:
    """Both bounds go down to the most that is allowed; what nobody demands has no remedy."""
    wanted = Requirement(PLACE, "nofile", "hard", None, 4096)
    causes = find_docker_causes(wanted, make_world(text), make_site(policy))
    assert [cause.text for cause in causes] == (
        [f'{PATH}:3 "nofile": {{"Name": "nofile", "Hard": 1048576, "Soft": 65536}} states too much']
        if after
        else []
    )
    assert all(f"default-ulimits.nofile {after}" in cause.remedy.text for cause in causes)


def test_that_containers_start_needs_no_limit() -> None:
    assert find_docker_causes(START, make_world("{}", base={}), make_site()) == []
    bad = make_world(change(("65536", "2000000")))
    assert [one.code for one in find_docker_causes(START, bad, make_site())] == [
        "docker-no-container-starts"
    ]
    assert foretell(SOFT, bad) == FAIL


def test_a_daemon_out_of_a_unit_is_restarted_by_a_person() -> None:
    site = make_site()._replace(tools=Tools())
    (cause,) = find_docker_causes(SOFT, make_world(change(("65536", "9"))), site)
    assert cause.remedy.then == "restart dockerd"
    assert RESTART not in cause.remedy.commands
    other = Tools("docker-ml", True).restart("do it")
    assert other.text == "do it, then restart docker-ml, which stops the running containers"


def test_a_list_of_causes_ends() -> None:
    """However many entries stop every container."""
    entries = {f"x{number}": {"Name": "cpus"} for number in range(99)}
    text = json.dumps({"default-ulimits": entries})
    assert len(find_docker_causes(START, make_world(text), make_site())) == 12


def test_a_name_that_cannot_be_typed_has_no_command() -> None:
    world = make_world(change(("65536", "9")), path="/etc/a\nb.json")
    (cause,) = find_docker_causes(SOFT, world, make_site())
    assert cause.remedy.commands == (RESTART,)
    assert "\n" not in cause.text


RUNNING = Pending("T1", "", ())
LOW_FLAG = limit_flag("nofile=9:9", 0, "/proc/253/cmdline")
GOOD_FLAG = limit_flag("nofile=65536:1048576")


@pytest.mark.parametrize(
    ("text", "unit_flags", "pending", "expected"),
    [
        (HEALTHY, [], RUNNING, None),
        (HEALTHY, [], RUNNING._replace(changed="T2"), ("docker-config-not-read", f"{PATH}:3")),
        (NO_NOFILE, [], RUNNING._replace(changed="T2"), ("docker-config-not-read", PATH)),
        (None, [GOOD_FLAG], RUNNING._replace(flags=(GOOD_FLAG,)), None),
        (None, [GOOD_FLAG], RUNNING, ("docker-unit-not-read", f"{UNIT}:3")),
        (
            None,
            [GOOD_FLAG],
            RUNNING._replace(flags=(LOW_FLAG,)),
            ("docker-unit-not-read", f"{UNIT}:3"),
        ),
        (
            HEALTHY,
            [],
            RUNNING._replace(flags=(LOW_FLAG,)),
            ("docker-unit-not-read", "/proc/253/cmdline"),
        ),
    ],
)
def test_what_dockerd_has_not_read(
    text: str | None, unit_flags: Any, pending: Pending, expected: tuple[str, str] | None
) -> None:
    """Its own flags against its unit's, its start against the file's change."""
    cause = blame_pending(SOFT, make_world(text, unit_flags), pending, make_site().tools)
    assert collect([cause] if cause else []) == ([expected] if expected else [])
    assert cause is None or cause.remedy.commands[-1] == RESTART


def test_the_policy_of_these_tests_is_the_one_that_ships() -> None:
    assert POLICY.limits["nofile"] == Limit(65536, 1048576)
