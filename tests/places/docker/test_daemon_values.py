# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of daemon.json by dockerd's own rules: what each key takes, and since which version."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.docker.daemon_json import LEAST_NOFILE, DockerDefaults
from mlhost_limits.docker.dockerd_flags import Flag
from mlhost_limits.docker.place import Docker
from mlhost_limits.docker.problems import _MOST, find_daemon_json_problems
from mlhost_limits.docker.read import DockerRead
from mlhost_limits.host.look import Look

PATH = "/etc/docker/daemon.json"
REWORKED, STRICT, NEW = "23.0.0", "25.0.0", "27.5.1"
BEFORE_REWORKED, BEFORE_STRICT = "22.9.9", "24.0.9"
JSON_FILE = (
    "max-file",
    "max-size",
    "compress",
    "labels",
    "labels-regex",
    "env",
    "env-regex",
    "tag",
)


def refuses(values: Mapping[str, object], version: str, *flags: str) -> list[str]:
    """Return the keys that dockerd of a version refuses; all of the file stands in one line."""
    given = [Flag(*flag.partition("=")[::2], "/u", 1) for flag in flags]
    problems = find_daemon_json_problems(
        json.dumps(values), PATH, DockerDefaults({}), given, UNLIMITED, version
    )
    return [one.text.split(": ")[1] for one in problems]


@pytest.mark.parametrize(
    ("key", "value", "version", "is_fit"),
    [
        *(("log-level", "warning", version, fit) for version, fit in (
            (BEFORE_STRICT, True), (STRICT, False), (NEW, False), ("", False))),
        ("log-level", "WARN", NEW, True),
        ("log-level", "loud", NEW, False),
        *(("max-download-attempts", value, version, fit) for value, version, fit in (
            (0, BEFORE_REWORKED, False), (1, BEFORE_REWORKED, True), (0, REWORKED, True),
            (-1, REWORKED, False))),
        *(("mtu", -1, version, fit) for version, fit in ((BEFORE_REWORKED, True), (REWORKED, False))),
        *(("max-concurrent-uploads", value, NEW, fit) for value, fit in ((0, True), (-1, False))),
        *(("dns", [value], version, fit) for value, version, fit in (
            (" 9.9.9.9 ", BEFORE_REWORKED, True), (" 9.9.9.9 ", REWORKED, False),
            ("", BEFORE_REWORKED, False), ("", REWORKED, True), ("fe80::1%eth0", NEW, False),
            (None, NEW, True))),
        *(("hosts", [value], NEW, fit) for value, fit in (
            ("fd://", True), ("unix:///x", True), ("tcp://x", True), ("npipe://x", True),
            ("http://x", False), ("127.0.0.1:1", True))),
        *(("exec-opts", [value], NEW, fit) for value, fit in (
            ("native.cgroupdriver=systemd", True), (" NATIVE.cgroupdriver =cgroupfs", True),
            ("native.cgroupdriver=", True), ("native.cgroupdriver", True),
            ("native.cgroupdriver=other", False), ("native.umask=other", True))),
        *(("bip", value, NEW, fit) for value, fit in (
            ("10.0.0.1/8", True), ("10.0.0.1", False), ("nothing/8", False))),
        *(("default-address-pools", value, NEW, fit) for value, fit in (
            ([{"base": "10.0.0.0/8", "size": 24}], True), ([{"base": "10.0.0.0"}], False),
            ([{"base": "nothing/8"}], False), (["10.0.0.0"], True))),
        *(("runtimes", value, version, fit) for value, version, fit in (
            ({"x": {}}, BEFORE_STRICT, True), ({"x": {}}, STRICT, False),
            ({"x": {"runtimeType": "y"}}, STRICT, True), ({"x": {"path": "y"}}, STRICT, True),
            ({"runc": {"path": "y"}}, STRICT, False), ({"runc": {"path": "y"}}, "20.10.5", False),
            ({"x": 1}, STRICT, True))),
        *(("default-runtime", value, NEW, fit) for value, fit in (
            ("runc", True), ("io.containerd.x", True), ("nvidia", False))),
        *(("registry-mirrors", [value], NEW, fit) for value, fit in (
            ("https://x", True), ("http://x/y", True), ("x", False))),
        *(("metrics-addr", value, NEW, fit) for value, fit in (("127.0.0.1:1", True), ("x", False))),
        *(("default-ipc-mode", value, NEW, fit) for value, fit in (
            ("private", True), ("shareable", True), ("host", False))),
        *(("default-cgroupns-mode", value, NEW, fit) for value, fit in (("host", True), ("x", False))),
        *(("log-format", value, NEW, fit) for value, fit in (("json", True), ("xml", False))),
        *(("labels", [value], NEW, fit) for value, fit in (("a=b", True), ("a", False))),
        *(("log-opts", dict.fromkeys(names, "1"), NEW, fit) for names, fit in (
            (JSON_FILE, True), ((*JSON_FILE, "mode", "max-buffer-size"), True), (("other",), False))),
        *((key, value, NEW, fit) for key in ("ip", "default-gateway", "default-gateway-v6")
          for value, fit in (("::1", True), ("x", False))),
    ],
)  # fmt: skip
def test_what_a_key_takes(key: str, value: object, version: str, is_fit: bool) -> None:
    assert refuses({key: value}, version) == ([] if is_fit else [key])


@pytest.mark.parametrize(
    ("values", "flags", "refused"),
    [
        ({"default-runtime": "x"}, [], ["default-runtime"]),
        ({"default-runtime": "x"}, ["add-runtime=x=/y"], []),
        ({"default-runtime": "x"}, ["label=x"], ["default-runtime"]),
        ({"default-runtime": "/y"}, ["add-runtime=x=/y"], ["default-runtime"]),
        ({"default-runtime": "x", "runtimes": {"x": {"path": "/y"}}}, [], []),
        ({"log-opts": {"tag": "a", "x": "b"}}, ["log-driver=gelf"], []),
        ({"log-opts": {"x": "b"}}, ["log-driver=json-file"], ["log-opts"]),
        ({"icc": False}, ["iptables=false"], ["icc"]),
        ({"icc": False}, ["iptables=true"], []),
        ({"icc": True}, ["iptables=false"], []),
        ({"bip": "x"}, ["bridge=none"], ["bip"]),
        ({"fixed-cidr": "x"}, ["bridge=none"], []),
        ({"dns": ["9.9.9.9", "9.9.9.9"], "labels": ["a=1", "a=1"]}, [], []),
        ({"labels": ["a=1", "a=2"]}, [], ["labels"]),
        ({"exec-opts": ["a=1", "a=2"]}, [], []),
        ({"labels": "a=1"}, [], ["labels"]),
        ({"bip": "", "bridge": "b0"}, [], []),
    ],
)
def test_other_keys_and_flags_decide_too(
    values: dict[str, object], flags: list[str], refused: list[str]
) -> None:
    """The same key in both places is another problem, which is not asked here."""
    assert refuses(values, NEW, *flags) == refused


def test_of_many_keys_that_are_not_known_the_first_are_told() -> None:
    values = {f"x{number}": number for number in range(_MOST + 5)}
    assert refuses(values, NEW) == list(values)[:_MOST]
    later = "30.0.0"  # Which may know them.
    assert refuses(values, later) == []


LEAST = {"nofile": 24, "cpu": 2, "stack": 2**17, "data": 2**28, "as": 2**32}
"""With less it depends on the release, and on luck, whether a container comes up."""


@pytest.mark.parametrize(
    ("name", "soft", "said"),
    [
        *((name, least, "") for name, least in LEAST.items()),
        *((name, least - 1, "may be too low") for name, least in LEAST.items()),
        ("nofile", LEAST_NOFILE, "may be too low"),
        ("nofile", LEAST_NOFILE - 1, "is too low: no container starts"),
        ("nofile", 7 - 1, "is too low: no container starts"),
        ("nofile", 7, "may be too low"),
        ("core", 2**63 - 1, ""),
        ("core", -(2**63), ""),
        ("core", -(2**63) - 1, "dockerd takes whole numbers"),
        ("\u017ftack", 2**17, ""),
        ("\u017ftack", 2**17 - 1, "may be too low"),
        ("\xdf", 1, "runc knows"),
    ],
)
def test_an_entry_by_its_name_and_number(name: str, soft: int, said: str) -> None:
    text = json.dumps({"default-ulimits": {"x": {"Name": name, "Hard": -1, "Soft": soft}}})
    problems = find_daemon_json_problems(text, PATH, DockerDefaults({}))
    assert len(problems) == bool(said)
    assert all(said in one.text for one in problems)


@pytest.mark.parametrize(("kind", "name"), [("process", "docker"), ("container", "podman/docker")])
def test_what_is_of_another_place_is_not_explained(kind: str, name: str) -> None:
    assert Docker().explain(kind, name, "nofile", Look()) is None


@pytest.mark.parametrize(
    ("kind", "name"),
    [("container", "docker/job"), ("new-container", "docker"), ("new-container", "docker/alice")],
)
def test_what_is_docker_s_is_explained(kind: str, name: str) -> None:
    look = Look()
    look.at(DockerRead).daemon, look.at(DockerRead).rootless = None, ()
    with pytest.raises(ValueError, match="dockerd"):
        Docker().explain(kind, name, "nofile", look)


def test_the_codes_of_each_name() -> None:
    found = [(name, code) for name, codes in Docker().codes() for code in codes]
    assert ("new-container:docker", "docker-not-stated") in found
    assert ("new-container:docker", "docker-dockerd-refuses") in found
    assert ("container:docker/NAME", "docker-own-ulimit") in found
    assert ("container:docker/NAME", "docker-compose-states") in found
    assert ("new-container:docker/USER", "docker-rootless-capped") in found
