# SPDX-License-Identifier: GPL-3.0-or-later
"""What the site's files state of the kernel, services and Docker becomes a policy, or is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.adopt import format_policy, plain
from mlhost_limits.core import adopted
from mlhost_limits.core.adopted import Adopted, LeftOut, Stated
from mlhost_limits.core.values import Declaration
from mlhost_limits.docker.adopt import adopt_docker
from mlhost_limits.docker.dockerd_flags import parse_flags
from mlhost_limits.kernel.adopt import adopt_kernel, list_site_keys
from mlhost_limits.kernel.sysctl_writes import PROCPS, resolve_sysctl
from mlhost_limits.schema import load_policy
from mlhost_limits.services.adopt import adopt_services
from mlhost_limits.systemd.model import Files
from mlhost_limits.systemd.unit_file import Source

SITE, PEERS = "/etc/sysctl.d/10-site.conf", "/etc/sysctl.d/90-peers.conf"
LINK, CONF, VENDOR = (
    "/etc/sysctl.d/99-sysctl.conf",
    "/etc/sysctl.conf",
    "/usr/lib/sysctl.d/95-x.conf",
)


def tell(found: Adopted) -> tuple[Any, list[str]]:
    return plain(found.section), [f"{one.at.place} {one.reason}" for one in found.left]


def kernel(files: dict[str, str], *lacking: str) -> tuple[object, list[str]]:
    return tell(adopt_kernel(files, PROCPS, lacking))


def test_each_sysctl_is_asked_for_exactly_as_a_boot_gives_it() -> None:
    text = "fs.file-max=2097152\nfs/nr_open = 0x100000\nkernel.core_pattern = |/bin/x %p\n"
    assert kernel({PEERS: text}) == (
        {
            "kernel": {
                "fs.file-max": {"exact": 2097152},
                "fs.nr_open": {"exact": 1048576},
                "kernel.core_pattern": {"exact": "|/bin/x %p"},
            }
        },
        [],
    )


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({PEERS: "net.ipv4.conf.*.rp_filter = 1"}, "names many sysctls; a policy names each"),
        ({PEERS: "-net.ipv4.conf.all.rp_filter"}, "assigns nothing"),
        ({PEERS: "fs.nothing = 1"}, "this kernel has no such sysctl"),
        ({PEERS: "vm.x = "}, "'exact' stands alone and takes a number or one line of ASCII"),
        ({PEERS: "vm = 1"}, "'vm' is not a sysctl; accepted are names as fs.file-max"),
        ({PEERS: "vm.x = 1", VENDOR: "vm.x = 2"}, f"has no effect: {VENDOR}:1 counts"),
    ],
)
def test_a_sysctl_that_is_not_carried_over_is_named(files: dict[str, str], reason: str) -> None:
    assert kernel(files, "fs.nothing") == ({}, [f"{PEERS}:1 {reason}"])


def test_of_two_lines_the_one_that_a_boot_writes_last_counts() -> None:
    assert kernel({SITE: "vm.x = 1\nvm.y = 1\n", PEERS: "vm/x = 2\n-vm.y\n"}) == (
        {"kernel": {"vm.x": {"exact": 2}}},
        [
            f"{SITE}:1 has no effect: {PEERS}:1 counts",
            f"{SITE}:2 has no effect: {PEERS}:2 counts",
            f"{PEERS}:2 assigns nothing",
        ],
    )


def test_what_packages_state_is_not_the_site_s() -> None:
    assert kernel({VENDOR: "vm.x = 2\nvm.*.y = 3\n", "/run/sysctl.d/a.conf": "vm.z = 1"}) == (
        {},
        [],
    )


def test_more_lines_than_a_policy_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adopted, "_MOST", 2)
    line = "vm.swappiness = 1\n"
    files = {PEERS: line * 2, "/usr/lib/sysctl.d/10-x.conf": line * 9}
    assert kernel(files)[1] == [f"{PEERS}:1 has no effect: {PEERS}:2 counts"]
    monkeypatch.setattr(adopted, "find_refusal", None)  # Nobody may ask for one.
    told = "the site's files have 3 lines about it, more than the 2 that adopt writes"
    with pytest.raises(ValueError, match=f"^kernel: {told} into one policy$"):
        kernel({PEERS: line * 3})


def test_sysctl_conf_counts_where_no_other_file_states_the_same() -> None:
    late = "is read by sysctl -p alone and not at boot; a policy sets it at boot too"
    assert kernel({CONF: "vm.x = 1\nvm.y = 1\n", PEERS: "vm.x = 2\n"}) == (
        {"kernel": {"vm.y": {"exact": 1}, "vm.x": {"exact": 2}}},
        [f"{CONF}:1 has no effect: {PEERS}:1 counts", f"{CONF}:2 {late}"],
    )


def test_sysctl_conf_is_read_once_where_a_link_leads_to_it() -> None:
    files = {CONF: "vm.x = 1\n", LINK: "vm.x = 1\n"}
    assert kernel(files) == ({"kernel": {"vm.x": {"exact": 1}}}, [])
    assert list_site_keys({**files, VENDOR: "vm.z = 1", PEERS: "vm.*.q = 1"}, PROCPS) == ["vm.x"]


SYSCTL_LINES = st.tuples(
    st.sampled_from(["vm.x", "vm/x", "vm.y", "-vm.y", "vm.*"]), st.sampled_from(["1", "2", "0x10"])
).map(" = ".join)
SYSCTL_FILES = st.fixed_dictionaries(
    {
        path: st.lists(SYSCTL_LINES, max_size=4).map("\n".join)
        for path in (SITE, PEERS, VENDOR, LINK)
    }
)


@given(SYSCTL_FILES)
def test_what_the_policy_asks_of_the_kernel_is_what_a_boot_gives(files: dict[str, str]) -> None:
    """And a key of the site that it does not ask for is one that another's line decides."""
    section, _left = kernel(files)
    policy = load_policy(section, "none") if section else None
    asked = {key: value.exact for key, value in policy.get("kernel").items()} if policy else {}
    keys = list_site_keys(files, PROCPS)
    for key, bound in resolve_sysctl(files, keys).items():
        ours = bound.winner.path != VENDOR
        assert asked.get(key) == (str(bound.winner.value) if ours else None)


X = "/etc/systemd/system/x.service.d/a.conf"
UNIT = Source("/usr/lib/systemd/system/x.service", "[Service]\nLimitNOFILE=5\nLimitCORE=0\n")


def unit(text: str, *more: Source, name: str = "x.service") -> tuple[object, list[str]]:
    files = Files(UNIT, (Source(X, text), *more))
    section, left = tell(adopt_services({name: files}, 1048576))
    units = section["services"]["units"][name] if section else {}
    return units, [one.replace(f"{X}:", "") for one in left]


def test_limits_of_a_unit() -> None:
    text = (
        "[Service]\nLimitNOFILE=1024:4096\nLimitMEMLOCK=infinity\nLimitCPU=10min\nLimitNICE=+5\n"
        "TasksMax=500\nLimitSTACK=100\n"
    )
    assert unit(text) == (
        {
            "nofile": {"soft": 1024, "hard": 4096},
            "memlock": "unlimited",
            "cpu": "600s",
            "nice": 5,
            "stack": "100B",
            "tasks": 500,
        },
        [],
    )
    assert unit("[Service]\nTasksMax=infinity\n") == ({"tasks": "unlimited"}, [])
    assert unit("[Service]\nTasksMax=0x10\n") == ({"tasks": 16}, [])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("LimitSTACK=64k", "has no effect: accepted is a number of bytes, with K, M, G, T, P or E,"
         " 'infinity', or two of them as soft:hard"),
        ("TasksMax=33%", "'33%' is not a limit: accepted are a whole number or 'unlimited'"),
        ("LimitNOFILE=2000000", "is above fs.nr_open, 1048576, so no process can have it"),
        ("LimitNOFILE=infinity", "'unlimited' is above fs.nr_open, so the kernel refuses it and"
         " systemd gives what it has itself; a number is accepted"),
        ("TasksMax=", "'' is not a limit: accepted are a whole number or 'unlimited'"),
        ("LimitNICE=0", "20 is not a priority; accepted are -20 to 19"),
    ],
)  # fmt: skip
def test_a_line_of_a_unit_that_is_not_carried_over_is_named(line: str, reason: str) -> None:
    assert unit(f"[Service]\n{line}\n") == ({}, [f"2 {reason}"])


def test_a_unit_that_systemd_does_not_load_is_named() -> None:
    broken = Source("/etc/systemd/system/x.service", "[Service]\nLimitNOFILE=5\n[Oh\n")
    assert tell(adopt_services({"x.service": Files(broken)})) == (
        {},
        [
            f"{broken.path}:3 has no effect: is not a section header, so that systemd reads no further"
        ],
    )


def test_a_unit_that_no_policy_names() -> None:
    section, left = unit("[Service]\nLimitNOFILE=5\n", name="x.socket")
    assert (section, left[0][:23]) == ({}, "2 has no effect: stands")


def test_what_another_file_beats_is_named() -> None:
    stronger = Source("/run/systemd/system/x.service.d/b.conf", "[Service]\nLimitNOFILE=9\n")
    assert unit("[Service]\nLimitNOFILE=5\nLimitCORE=1\n", stronger) == (
        {"core": "1B"},
        [f"2 has no effect: {stronger.path}:2 counts"],
    )


def test_managers_and_logind() -> None:
    manager = Source("/etc/systemd/system.conf", "[Manager]\nDefaultLimitNOFILE=1024:524288\n")
    more = Source("/etc/systemd/system.conf.d/a.conf", "[Manager]\nDefaultTasksMax=90\n")
    user = Source("/etc/systemd/user.conf.d/a.conf", "[Manager]\nDefaultLimitCORE=0\n")
    logind = Source("/etc/systemd/logind.conf", "[Login]\nRemoveIPC=no\n")
    units = {
        "system.conf": Files(None, (), manager, (more,)),
        "user.conf": Files(None, (), None, (user,)),
        "logind.conf": Files(None, (), logind),
    }
    assert tell(adopt_services(units)) == (
        {
            "services": {
                "default": {"nofile": {"soft": 1024, "hard": 524288}, "tasks": 90},
                "user_default": {"core": "0B"},
                "logind": {"remove_ipc": False},
            }
        },
        [],
    )


def docker(content: object, *flags: str) -> tuple[object, list[str]]:
    words = parse_flags([(flag, "/etc/default/docker", 7) for flag in flags])
    text = content if isinstance(content, str) else json.dumps(content)
    section, left = tell(adopt_docker(text, "daemon.json", words, 1048576))
    return section["containers"]["docker"] if section else {}, left


def entry(name: str, soft: int, hard: int) -> dict[str, object]:
    return {name: {"Name": name, "Soft": soft, "Hard": hard}}


def test_defaults_of_docker() -> None:
    ulimits = {**entry("nofile", 65536, 1048576), **entry("memlock", -1, -1)}
    content = {"runtimes": {}, "default-ulimits": ulimits, "default-shm-size": "8G"}
    assert docker(content) == (
        {
            "limits": {"nofile": {"soft": 65536, "hard": 1048576}, "memlock": "unlimited"},
            "shm_size": "8GiB",
        },
        [],
    )
    assert docker("") == docker("null") == ({}, [])
    assert docker({}, "--default-ulimit=core=0", "--default-shm-size=1g") == (
        {"limits": {"core": "0B"}, "shm_size": "1GiB"},
        [],
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            {"default-ulimits": {"x": {"Soft": 500, "Hard": 500}}},
            "Name is missing: no container starts",
        ),
        (
            {"default-ulimits": entry("nofile", 5, 2000000)},
            "soft 5 is too low: no container starts; 2000000 is above fs.nr_open, 1048576: no"
            " container starts",
        ),
        (
            {"default-ulimits": entry("as", 2**40, 2**40)},
            "is unknown; accepted are cpu, fsize, data, stack, core, rss, nproc, nofile, memlock,"
            " locks, sigpending, msgqueue, nice, rtprio, rttime",
        ),
        ({"default-shm-size": 5}, "dockerd takes no such size"),
        ({"default-shm-size": "9E"}, "dockerd takes no such size"),
    ],
)
def test_a_default_of_docker_that_is_not_carried_over_is_named(
    content: object, reason: str
) -> None:
    assert docker(content) == ({}, [f"daemon.json:1 {reason}"])


def test_a_file_that_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^daemon\.json:1"):
        docker("{")


AT = Declaration("/etc/a.conf", 3, "a\x1b = b", 1)


def test_the_text_says_each_place_and_is_yaml() -> None:
    other = AT._replace(path="/etc/b.conf", line=9)
    section = {
        "sessions": [
            {
                "users": Stated(["*", "no", "@ml", "ä b"], ()),
                "limits": {"nofile": Stated(5, (AT, AT))},
            },
            {
                "users": Stated(["root"], ()),
                "limits": {
                    "core": Stated(
                        {"soft": "64KiB", "hard": "unlimited"}, (AT, AT._replace(line=4), other)
                    )
                },
            },
        ],
        "kernel": {"a.b-c": Stated({"exact": '# "x": y'}, (AT._replace(line=0),))},
        "services": {"logind": {"remove_ipc": Stated(False, (AT,))}},
    }
    lines = format_policy([section], [LeftOut(AT, "is\nodd")])
    assert lines[3:] == [
        "sessions:",
        '  - users: ["*", "no", "@ml", "ä b"]',
        "    limits:",
        "      nofile: 5  # /etc/a.conf:3",
        "  - users: [root]",
        "    limits:",
        "      core: {soft: 64KiB, hard: unlimited}  # /etc/a.conf:3, :4, /etc/b.conf:9",
        "kernel:",
        '  a.b-c: {exact: "# \\"x\\": y"}  # /etc/a.conf',
        "services:",
        "  logind:",
        "    remove_ipc: false  # /etc/a.conf:3",
        "#",
        "# Left out, or not quite as it was:",
        '# - /etc/a.conf:3 "a? = b"',
        "#     is?odd",
    ]
    assert yaml.safe_load("\n".join(lines)) == plain(section)


def test_nothing_is_no_policy() -> None:
    assert format_policy([{}, {}], []) == ["# The files of this site state nothing for a policy."]


@given(
    st.text(max_size=12),
    st.text(alphabet=st.characters(categories=("L", "N", "P", "S")), max_size=9),
)
@pytest.mark.slow
def test_no_text_breaks_out_of_the_yaml(comment: str, text: str) -> None:
    at = AT._replace(path=comment, text=comment)
    section = {"kernel": {"a": Stated({"exact": text}, (at,)), "b": Stated(text, (at,))}}
    lines = format_policy([section], [LeftOut(at, comment)])
    assert yaml.safe_load("\n".join(lines)) == plain(section)
