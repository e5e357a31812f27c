# SPDX-License-Identifier: BSD-2-Clause
"""Judge the containers of users' own dockerds against a policy."""

from __future__ import annotations

import copy

from .check_engine import check_engine
from .policy.container_findings import judge_container_unknown
from .policy.docker_config import read_defaults
from .policy.docker_flags import read_flag_defaults
from .policy.docker_rootless import Rootless, explain_rootless
from .policy.quote import one_line
from .probe.docker_rootless import RootlessEvidence
from .probe.process import read_limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .policy.docker_config import StatedDefault
    from .policy.finding import Finding
    from .policy.schema import DockerPolicy
    from .probe.evidence import Evidence


def check_rootless(policy: DockerPolicy, canary: str, evidence: Evidence) -> Iterator[Finding]:
    """Yield the findings of every rootless daemon, its places named after its user."""
    for engine, docker in list_rootless(evidence):
        process = docker.process
        try:
            limits, own = read_limits(process.pid), docker.is_own
        except OSError:
            continue  # It ended since it was seen.
        if not own:
            reason = f"who answers at {one_line(docker.address)} is not uid {process.uid}"
            yield from judge_container_unknown(f"new-container:{engine}", policy, reason)
            continue
        look = look_with(docker, evidence)
        daemon = Rootless(docker.user, process.pid, limits, _read_stated(docker))
        for finding in check_engine(policy, canary, look, engine):
            yield explain_rootless(finding, daemon)


def list_rootless(evidence: Evidence) -> Iterator[tuple[str, RootlessEvidence]]:
    """Yield every rootless daemon, after what its places begin with."""
    for process in evidence.docker.rootless:
        docker = RootlessEvidence(process)
        yield f"docker/{one_line(docker.user)}", docker


def look_with(docker: RootlessEvidence, evidence: Evidence) -> Evidence:
    """Return the same look at a host, with a user's own Docker for that of all."""
    look = copy.copy(evidence)
    look.docker = docker
    return look


def _read_stated(docker: RootlessEvidence) -> list[StatedDefault]:
    """Return the defaults that a daemon's file and flags state; none where they are unclear."""
    try:
        text = docker.config
        stated = read_defaults(text, docker.config_path, docker.version) if text else []
        return [*stated, *read_flag_defaults(docker.flags)]
    except (OSError, ValueError):
        return []
