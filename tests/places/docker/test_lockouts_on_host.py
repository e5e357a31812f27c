# SPDX-License-Identifier: GPL-3.0-or-later
"""What stops dockerd or every container on a real host, and that provision will not be part of it.

Each file is first given to the host's own dockerd as it stands, then to provision.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.host import guest
from tests.host.connection import Host
from tests.host.library import carry

pytestmark = pytest.mark.host

RIG = Path(__file__).with_name("docker_rig.py")
CONFIG = "/etc/docker/daemon.json"
DROP_IN = "/etc/systemd/system/docker.service.d/site.conf"
FLAG = "--default-ulimit=nofile=1024:4096"

# Provisions each set of files in turn, and puts back what was there: one start of Python for all.
REFUSE = r"""
import glob, json, os, sys
from mlhost_limits.core.reader import PolicyError
from mlhost_limits.schema import load_policy
from mlhost_limits.provision import provision
from mlhost_limits.core.policy import ProvisionOptions

for line in sys.stdin:
    files = json.loads(line)
    for path, text in files.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    policy = {"containers": {"docker": {"limits": {"memlock": "unlimited"}}}}
    try:
        provision(load_policy(policy, "none"), ProvisionOptions(sections=("docker",)))
        said = ""
    except PolicyError as exc:
        said = str(exc)
    kept = all(open(path, encoding="utf-8").read() == text for path, text in files.items())
    for path in files:
        os.unlink(path)
    left = [*glob.glob("/etc/docker/.*"), *glob.glob("/var/lib/mlhost-limits*")]
    print(json.dumps({"said": said, "kept": kept, "left": left}))
"""


class Lockout(NamedTuple):
    """A daemon.json that breaks Docker: what dockerd or runc says, and what we say before.

    ``stops`` is the rig's word: ``refused`` where dockerd does not start, ``broken`` where no
    container does.
    """

    name: str
    stops: str
    docker_says: str
    we_say: str
    text: str
    flags: tuple[str, ...] = ()


def ulimits(entries: str) -> str:
    return f'{{"default-ulimits": {{{entries}}}}}'


def nofile(fields: str) -> str:
    return ulimits(f'"nofile": {{{fields}}}')


NOFILE = rf"{CONFIG}:1: default-ulimits\.nofile: "
NO_START = ": no container starts"
LOCKOUTS = (
    Lockout(
        *("a byte order mark", "refused", "invalid character 'ï'"),
        *(f"{CONFIG}:1: dockerd before 23.0 refuses a byte order mark", "\ufeff{}"),
    ),
    Lockout(
        *("a trailing comma", "refused", "looking for beginning of object key string"),
        *(f"{CONFIG}:1:17: Expecting a property name in double quotes", '{"debug": false,}'),
    ),
    Lockout(
        *("numbers in quotes", "refused", "cannot unmarshal string .* of type int64"),
        rf"{NOFILE}Hard is '4096', dockerd takes whole numbers \(-1: unlimited\)",
        nofile('"Name": "nofile", "Hard": "4096", "Soft": 1024'),
    ),
    Lockout(
        *("a float", "refused", r"cannot unmarshal number 4096\.0 .* of type int64"),
        rf"{NOFILE}Hard is 4096\.0, dockerd takes whole numbers \(-1: unlimited\)",
        nofile('"Name": "nofile", "Hard": 4096.0, "Soft": 1024'),
    ),
    Lockout(
        *("the form of the flag", "refused", "cannot unmarshal array"),
        f"{CONFIG}:1: default-ulimits: dockerd takes an object, not a list",
        '{"default-ulimits": ["nofile=1024:4096"]}',
    ),
    Lockout(
        *("a word for a limit", "refused", "cannot unmarshal string"),
        f"{NOFILE}dockerd takes an object with Name, Soft and Hard",
        ulimits('"nofile": "unlimited"'),
    ),
    Lockout(
        *("the name of the flag", "refused", "don't match any configuration option: nofile"),
        f"{CONFIG}:1: default-ulimit: dockerd does not know this key, default-ulimits is meant",
        '{"default-ulimit": {"nofile": {"Name": "nofile", "Hard": 4096, "Soft": 1024}}}',
    ),
    Lockout(
        *("a number for a size", "refused", "invalid size"),
        f"{CONFIG}:1: default-shm-size: 8589934592 is not a size, dockerd takes a string such as '8G'",
        '{"default-shm-size": 8589934592}',
    ),
    Lockout(
        *("a value that a later one replaces", "refused", "cannot unmarshal number"),
        f"{NOFILE}dockerd takes an object with Name, Soft and Hard",
        ulimits('"nofile": 1, "nofile": {"Name": "nofile", "Hard": 4096, "Soft": 1024}'),
    ),
    Lockout(
        *("a flag beside a key", "refused", "both as a flag and in the configuration file"),
        f"{DROP_IN}:3: --default-ulimit and default-ulimits in {CONFIG} exclude each other,"
        " dockerd does not start with both",
        *("{}", (FLAG,)),
    ),
    Lockout(
        *("no name", "broken", "wrong rlimit value"),
        f"{NOFILE}Name is missing{NO_START}",
        nofile('"Hard": 4096, "Soft": 1024'),
    ),
    Lockout(
        *("an unlimited nofile", "broken", "rlimit type 7: operation not permitted"),
        f"{NOFILE}unlimited is above fs.nr_open, 1048576{NO_START}",
        nofile('"Name": "nofile", "Hard": -1, "Soft": 1024'),
    ),
    Lockout(
        *("soft above hard", "broken", "rlimit type 7: invalid argument"),
        f"{NOFILE}soft 4096 is above hard 1024{NO_START}",
        nofile('"Name": "nofile", "Hard": 1024, "Soft": 4096'),
    ),
    Lockout(
        *("no soft", "broken", "too many open files"),
        rf"{NOFILE}soft 0 is too low \(Soft missing, which dockerd reads as 0\){NO_START}",
        nofile('"Name": "nofile", "Hard": 4096'),
    ),
    Lockout(
        *("a null", "broken", "hung up"),
        f"{NOFILE}is null, over which dockerd stumbles{NO_START}",
        ulimits('"nofile": null'),
    ),
    Lockout(
        *("a size beyond all", "broken", "SHM size can not be less than 0"),
        f"{CONFIG}:1: default-shm-size: '99999999999g' is too large{NO_START}",
        '{"default-shm-size": "99999999999g"}',
    ),
)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with guest.running() as fresh:
        carry(fresh, {RIG.name: RIG})
        fresh.run("systemctl stop docker.socket docker")
        yield fresh


@pytest.fixture(scope="module")
def broken(host: Host) -> dict[str, dict[str, Any]]:
    """What the host's dockerd makes of each file."""
    cases = []
    for lockout in LOCKOUTS:
        # The key that the flag stands beside is the one that provision would write.
        text = '{"default-ulimits": {}}' if lockout.flags else lockout.text
        files = {CONFIG: base64.b64encode(text.encode()).decode()}
        cases.append(json.dumps({"files": files, "flags": lockout.flags}))
    return run_all(host, "/opt/docker_rig.py", cases)


@pytest.fixture(scope="module")
def refused(host: Host) -> dict[str, dict[str, Any]]:
    """What provision says of each file, and whether it is still the same."""
    unit = f"[Service]\nExecStart=\nExecStart=/usr/sbin/dockerd -H fd:// {FLAG}\n"
    cases = [
        json.dumps({CONFIG: lockout.text, **({DROP_IN: unit} if lockout.flags else {})})
        for lockout in LOCKOUTS
    ]
    host.run("cat > /opt/refuse.py", input=REFUSE)
    return run_all(host, "/opt/refuse.py", cases)


def run_all(host: Host, program: str, cases: list[str]) -> dict[str, dict[str, Any]]:
    lines = "".join(f"{case}\n" for case in cases)
    done = host.run(f"PYTHONPATH=/opt python3 {program}", input=lines, timeout=1200)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return {lockout.name: answer for lockout, answer in zip(LOCKOUTS, answers)}


@pytest.mark.parametrize("lockout", LOCKOUTS, ids=lambda lockout: lockout.name)
def test_it_breaks_docker(broken: dict[str, dict[str, Any]], lockout: Lockout) -> None:
    """The file is not a straw man: dockerd does not start with it, or no container does."""
    seen = broken[lockout.name]
    assert seen["kind"] == lockout.stops, seen
    assert re.search(lockout.docker_says, seen["message"]), seen


@pytest.mark.parametrize("lockout", LOCKOUTS, ids=lambda lockout: lockout.name)
def test_it_is_refused_before_anything_is_written(
    refused: dict[str, dict[str, Any]], lockout: Lockout
) -> None:
    """One sentence with the file and the line; daemon.json keeps its bytes, nothing is left."""
    seen = refused[lockout.name]
    assert re.fullmatch(lockout.we_say, seen["said"]), seen
    assert seen["kept"]
    assert seen["left"] == []
