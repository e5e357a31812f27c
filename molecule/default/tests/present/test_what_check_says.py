# SPDX-License-Identifier: GPL-3.0-or-later
"""The module check says what real logins, containers and the kernel show, and is green."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.look(
    "tail -n +1 /etc/security/limits.conf /etc/security/limits.d/* /etc/docker/daemon.json",
    "docker ps -a; ls -la /run/mlhost-limits",
    "journalctl -b --no-pager -n 20",
)

SERVICES = ("sshd", "su", "sudo", "cron")


@pytest.fixture(scope="module")
def result(ansible, request):
    request.getfixturevalue("container")
    wanted = {"users": ["root", "bob"]}
    return ansible.ansible("mlhost.limits.check", json.dumps(wanted), check=False)


@pytest.fixture(scope="module")
def told(result):
    """Return what check saw, by place and item, as soft and hard."""
    places = {}
    for finding in result["findings"]:
        places.setdefault((finding["place"], finding["item"]), []).append(finding["observed"])
    return places


def test_nothing_falls_short_and_nothing_is_unknown(result):
    assert (result["summary"]["fail"], result["summary"]["unknown"]) == (0, 0), result["report"]


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("user", ["root", "bob"])
def test_it_says_of_a_session_what_a_real_one_has(user, service, told, measure):
    seen = measure(f"{user}@{service}")
    place = f"session:{user}@{service}"
    assert (told[place, "nofile"], told[place, "memlock"]) == (
        list(seen.nofile),
        list(seen.memlock),
    )


@pytest.mark.parametrize("place", ["container:docker/{}", "new-container:docker"])
def test_it_says_of_a_container_what_one_has(place, told, container, contained):
    place = place.format(container)
    seen = (told[place, "nofile"], told[place, "memlock"])
    assert seen == (list(contained.nofile), list(contained.memlock))
    assert told[place, "shm_size"] == ["8GiB"]


@pytest.mark.parametrize("key", ["fs.file-max", "fs.nr_open", "vm.max_map_count"])
def test_it_says_of_the_kernel_what_sysctl_says(key, told, kernel):
    assert told["kernel", key] == [str(kernel[key])]
