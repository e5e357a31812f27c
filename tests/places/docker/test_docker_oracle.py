# SPDX-License-Identifier: GPL-3.0-or-later
"""What we predict of a daemon.json and flags is what a real dockerd and container make of them."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest
from mlhost_limits.core.values import Rlimit
from mlhost_limits.docker.daemon_json import (
    DockerDefaults,
    decode_daemon_json,
    read_defaults,
    read_members,
)
from mlhost_limits.docker.dockerd_flags import Flag, find_config_path, is_before_23, parse_flags
from mlhost_limits.docker.flags import read_flag_defaults
from mlhost_limits.docker.problems import (
    Problem,
    find_daemon_json_problems,
    flatten_keys,
)
from mlhost_limits.shared_memory.size import DEFAULT_SHM_SIZE

from tests.oracle.record import EVERYTHING, SEED, choose, needs_root, record, takes_long
from tests.places.docker.docker_cases import OTHERS, Case, hand_picked, make_case, raised
from tests.places.docker.docker_rig import FLAGS
from tests.places.docker.docker_world import World, enter_guest, enter_natively
from tests.worlds.docker_defaults import collect_defaults

RELEASES = ("bullseye", "bookworm", "trixie") if EVERYTHING else ("bookworm",)

# What dockerd or runc says where we say the sentence on the left: both are patterns.
SAYS = {
    "exclude each other": "specified both as a flag and in the configuration file",
    "does not know this key": "don't match any configuration option",
    "takes (an object|whole numbers|a string|true or false|a whole number|a list|strings)": "cannot unmarshal",
    "is not a size": "invalid size|invalid suffix|parsing .*: (invalid syntax|value out of range)",
    "default-runtime": "default runtime .* does not exist",
    "refuses it beside": "conflict labels|mutually exclusive|ICC=false|icc=false",
    "an address|addresses|length of": "not an ip address|invalid IP|not.* IP address|invalid CIDR|unable to parse",
    "names of domains": "is not a valid domain",
    "key=value": "bad attribute format|could not parse GenericResource",
    "https://": "invalid mirror",
    "tcp://": "[Ii]nvalid bind address",
    "cgroupdriver": "option .* (not supported|is invalid)",
    "[01] or more": "invalid (max|default)",
    "named runc": "is reserved",
    "runtimeType": "must be configured",
    "host or private": "cgroup namespace mode .* is invalid",
    "text or json": "invalid log format|don't match any",
    "address:port": "missing port|metrics",
    "json-file": "unknown log opt",
    "default-ipc-mode": "IPC.* mode .* is not supported|default-ipc-mode|[Ii]pc mode",
    "log-level": "unable to parse logging level|invalid logging level|not a valid logrus Level",
    "is not a limit": 'for "--default-ulimit" flag',
    "byte order mark": "invalid character",
    "empty file": "EOF",
    "is not UTF-8": "UTF-8",
    "beyond every number": "cannot unmarshal number",
    "no JSON number": "invalid character",
    "^/etc/[a-z./]+:[0-9]+:[0-9]+: ": "invalid character|unexpected end|EOF|cannot unmarshal",
    "is absent": "no such file",
    "Name is": "wrong rlimit value|invalid rlimit type",
    "is above hard": "invalid argument",
    "is above fs.nr_open|may not rise": "operation not permitted",
    "is too low": "too many open files|cannot allocate memory|stopped process|init process",
    "is null": "hung up",
    "is too large": "SHM size can not be less than 0",
}

# Of any other key dockerd may say that it does not know it; of that we say nothing.
KNOWN = set(re.findall('"([a-z-]+)":', f"{OTHERS}")) | {"default-ulimits", "default-shm-size"}


class Forecast(NamedTuple):
    """What is predicted; ``kind`` is the rig's word, or ``unknown`` where we do not predict."""

    kind: str
    limits: dict[str, Rlimit] = {}
    shm_size: int = 0
    reasons: tuple[str, ...] = ()


def predict(case: Case, world: World) -> Forecast:
    """Say what becomes of dockerd and of a new container, from the files and flags alone."""
    flags = parse_flags((word, "flags", 0) for word in (*FLAGS, *case.flags))
    path = find_config_path(flags)
    if path not in case.files and "config-file" in [flag.name for flag in flags]:
        return Forecast("refused", reasons=(f"{path} is absent",))
    try:
        text = read_text(case.files.get(path, b"{}"), path, world.version)
    except ValueError as error:
        return Forecast("refused", reasons=(str(error),))
    problems = judge(text, path, flags, world)
    strange = find_strange(text, path, world.version)
    for kind, stops in (("refused", "dockerd"), ("broken", "containers")):
        reasons = tuple(problem.text for problem in problems if problem.stops == stops)
        if reasons and not (strange and kind == "broken"):
            return Forecast(kind, reasons=reasons + strange)
    doubts = tuple(problem.text for problem in problems)
    if doubts or strange:
        return Forecast("unknown", reasons=doubts + strange)
    return expect_limits(collect(text, path, flags, world), world)


def find_strange(text: str, path: str, version: str) -> tuple[str, ...]:
    """Return the keys that dockerd may refuse: it may say so first, whatever else is wrong."""
    try:
        keys = set(flatten_keys(read_members(text, path, version)))
    except ValueError:
        return ()
    return tuple(f"perhaps dockerd does not know this key: {key}" for key in sorted(keys - KNOWN))


def read_text(content: bytes, path: str, version: str) -> str:
    """Return the text that dockerd reads.

    Before 23.0 it takes any byte inside a string; since then UTF-16 with its mark, and every
    kind of white space around.
    """
    if is_before_23(version):
        return content.decode("utf-8", "replace")
    if content.startswith(b"\xff\xfe"):
        return content.decode("utf-16")
    return str(decode_daemon_json(content, path).strip("\t\n\v\f\r \x85\xa0"))


def judge(text: str, path: str, flags: Iterable[Flag], world: World) -> list[Problem]:
    nothing = DockerDefaults({})
    return list(find_daemon_json_problems(text, path, nothing, flags, world.nr_open, world.version))


def collect(text: str, path: str, flags: Iterable[Flag], world: World) -> DockerDefaults:
    stated = read_defaults(text, path, world.version)
    return collect_defaults([*stated, *read_flag_defaults(flags)])


def expect_limits(defaults: DockerDefaults, world: World) -> Forecast:
    """Return the limits of a container: the defaults over what it has without any."""
    for item, limit in defaults.ulimits.items():
        if limit.hard > world.limits[item].hard and not world.privileged:  # setrlimit(2), EPERM
            return Forecast("broken", reasons=(f"{item} may not rise here",))
    limits = {**world.limits, **defaults.ulimits}
    return Forecast("started", limits, defaults.shm_size or DEFAULT_SHM_SIZE)


def compare(forecast: Forecast, seen: dict[str, Any]) -> str:
    """Return what differs; nothing where the prediction was right, or none was made."""
    if forecast.kind == "unknown":
        return ""
    if forecast.kind != seen["kind"]:
        said = seen.get("message", "with its limits")
        return f"predicted {forecast.kind} {forecast.reasons}, but {seen['kind']}: {said[-300:]}"
    if forecast.kind == "started":
        limits = {name: Rlimit(*pair) for name, pair in seen["limits"].items()}
        wrong = [
            f"{name}: predicted {limit.soft}:{limit.hard}, got {limits[name].soft}:{limits[name].hard}"
            for name, limit in forecast.limits.items()
            if limits[name] != limit
        ]
        if abs((seen["shm_size"] or 0) - forecast.shm_size) >= 4096:  # A tmpfs has whole pages.
            wrong.append(f"/dev/shm: predicted {forecast.shm_size}, got {seen['shm_size']}")
        return "; ".join(wrong)
    patterns = [SAYS[ours] for ours in SAYS for text in forecast.reasons if re.search(ours, text)]
    if any(re.search(pattern, seen["message"]) for pattern in patterns):
        return ""
    return f"{forecast.kind} as predicted, but {forecast.reasons} is not {seen['message'][-300:]!r}"


def shrink(case: Case, world: World) -> Case:
    """Return the case with everything left out that the mismatch does not need."""
    smallest, tries = case, 150
    for path in case.files:
        step = max(len(case.files[path]) // 2, 1)
        while step and tries:
            content = smallest.files[path]
            for start in range(0, len(content), step):
                fewer = content[:start] + content[start + step :]
                tried = smallest._replace(files={**smallest.files, path: fewer})
                tries -= 1
                if tries <= 0:
                    return smallest
                if compare(predict(tried, world), world.try_case(tried)):
                    smallest = tried
                    break
            else:
                step //= 2
    return smallest


def run(world: World, cases: Iterable[Case]) -> tuple[int, int, list[str]]:
    """Return how many cases there were, how many of them unknown, and every mismatch."""
    count = unknown = 0
    mismatches: list[str] = []
    kinds: dict[str, int] = {}
    for case in cases:
        forecast, seen = predict(case, world), world.try_case(case)
        count += 1
        unknown += forecast.kind == "unknown"
        kinds[seen["kind"]] = kinds.get(seen["kind"], 0) + 1
        if compare(forecast, seen):
            least = shrink(case, world) if len(mismatches) < 5 else case
            differs = compare(predict(least, world), world.try_case(least))
            mismatches.append(f"{dict(least.files)} {' '.join(least.flags)}\n    {differs}")
    print(f"  dockerd {world.version}: {kinds}")
    return count, unknown, mismatches


def make_cases(share: int, everything: int) -> Iterable[Case]:
    """Return hand-picked cases and generated ones: all, or a share of both."""
    rng = random.Random(SEED)
    picked = hand_picked()
    if not EVERYTHING:
        picked = rng.sample(picked, share // 2)
    total = choose(share, everything)
    return [*picked, *(make_case(rng) for _ in range(max(total - len(picked), 0)))]


def report(
    kind: str, release: str, of: int, result: tuple[int, int, list[str]], seconds: float
) -> None:
    count, unknown, mismatches = result
    print()
    record(kind, release, count, len(mismatches), unknown, of=of)
    print(f"  seed {SEED}, {seconds:.0f} s")
    assert not mismatches, "\n" + "\n".join(mismatches)


@needs_root
@pytest.mark.parametrize("release", RELEASES)
def test_prediction_is_what_dockerd_does(release: str) -> None:
    """Started or not, with which error, and the container's limits: on this machine's kernel."""
    started = time.monotonic()
    with enter_natively(release) as world:
        result = run(world, make_cases(80, 600))
    report("docker", release, choose(80, 600), result, time.monotonic() - started)


@takes_long
@pytest.mark.parametrize("release", RELEASES)
def test_prediction_holds_where_limits_rise(release: str) -> None:
    """The same on an emulated host, where root may raise every limit as on a training host."""
    started = time.monotonic()
    with enter_guest(release) as world:
        result = run(world, raised())
    report("docker-raised", release, len(list(raised())), result, time.monotonic() - started)
