# SPDX-License-Identifier: BSD-2-Clause
"""Show the chain from the kernel to a job of Slurm: systemd, slurmd, login, slurm.conf, job."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..core.cause import Link, cite
from ..core.values import format_pair
from ..host.files import read_text
from ..host.look import Look, format_time, read_start_time
from ..processes.explain import trace_unit
from ..sessions.diagnose import trace_session
from ..sessions.host_read import SessionsRead
from ..sessions.shell_limits import find_shell_limits
from .adoption import describe_adoption, find_adopting, find_leaving
from .check import PLACE, Login, choose_user, find_partition, find_running, open_login
from .diagnose import Scene
from .measure import Job, find_hindrance, find_node, try_job
from .plan import UNIT
from .policy import SlurmPolicy
from .size_check import SSH, find_login
from .slurm_conf import parse_slurm_conf, read_use_pam

_PROLOGS = ("taskprolog", "prolog", "prologslurmctld")
_CONFINES = ("constrainramspace", "constraincores", "constrainswapspace", "constraindevices")


def trace_slurm(place: str, item: str, look: Look) -> list[Link]:
    """Return the chain of one limit of a job that is submitted now, in one partition.

    :raises OSError: If a file cannot be read.
    :raises ValueError: If there is no Slurm here, or its files cannot be understood.
    """
    scene = Scene(SlurmPolicy({}), look)
    if scene.slurmd is None and not scene.files.texts:
        raise ValueError("there is neither a slurmd nor a slurm.conf on this host")
    if place.endswith(SSH):
        return _trace_login(place[: -len(SSH)], item, scene)
    links = list(_trace_daemon(item, scene, look))
    login = open_login(choose_user(None), "quiet")
    if isinstance(login, str):
        links.append(Link("login", "unknown", login))
    else:
        links.append(Link("login", format_pair(item, login.limits[item]), login.who))
    links += _trace_conf(item, scene, look)
    links += [*_trace_prologs(item, scene, look), *_trace_confines(scene)]
    links += _trace_adoption(look)
    return [*links, _trace_job(place, item, login, scene)]


def _trace_daemon(item: str, scene: Scene, look: Look) -> Iterator[Link]:
    """Yield what leads to slurmd, and slurmd itself where its unit does not."""
    if scene.slurmd is None:
        yield Link("slurmd", "unknown", "it does not run on this host")
        return
    if scene.runs_in_unit:
        yield from trace_unit(UNIT, item, look)
        return
    pid, since = scene.slurmd.pid, format_time(read_start_time(scene.slurmd))
    source = f"/proc/{pid}/limits; it was not started by {UNIT}"
    yield Link(f"process {pid} (slurmd)", format_pair(item, scene.limits[item]), source, since)


def _trace_conf(item: str, scene: Scene, look: Look) -> Iterator[Link]:
    """Yield whether the login's soft limit is taken over, as stated and as in effect."""
    words = {True: "the login's soft limit", False: "slurmd's soft limit"}
    stated = scene.propagation
    if stated:
        path = scene.files.path
        source = cite(stated.line) if stated.line else f"no line of {path}, so all are taken over"
        yield Link("slurm.conf", words[item in stated.items], source, look.find_change(path))
    running = find_running(scene.shown)
    if running:
        source = "scontrol show config: what the controller has read"
        yield Link("running", words[item in running.items], source)
    pam = read_use_pam(scene.files.conf)
    if pam:
        yield Link("PAM", "", f"{cite(pam)}: the PAM service slurm sets limits after slurmd")


def _trace_prologs(item: str, scene: Scene, look: Look) -> Iterator[Link]:
    """Yield what looks as if it set a limit: a prolog is a process of its own."""
    scripts = [line for key in _PROLOGS for line in scene.files.conf.stated.get(key, ())]
    for path in dict.fromkeys(str(line.value) for line in scripts):
        for found in find_shell_limits(read_text(path) or "", path):
            if found.item == item:
                source = f"{cite(found.at)}: a prolog's own limits end with it"
                yield Link("no effect", "", source, look.find_change(path))


def _trace_confines(scene: Scene) -> Iterator[Link]:
    """Yield what confines jobs besides their limits."""
    path = f"{os.path.dirname(scene.files.path)}/cgroup.conf"
    conf = parse_slurm_conf({path: read_text(path) or ""}, path)
    for key in _CONFINES:
        line = conf.find(key)
        if line and str(line.value).lower() in ("yes", "up", "true", "1"):
            yield Link("cgroup", "", f"{cite(line)}: besides, a job has what it asked for")
    container = scene.files.conf.find("JobContainerType")
    if container and not str(container.value).endswith("none"):
        yield Link("container", "", f"{cite(container)}: a job has its own /tmp and /dev/shm")


def _trace_adoption(look: Look) -> Iterator[Link]:
    """Yield what takes a login into a job: into its cgroup, not to its limits."""
    at = find_adopting(look.at(SessionsRead).pam_files)
    if at:
        yield Link("ssh", "", f"{cite(at)}: a login to the node has its own limits still")


def _trace_login(place: str, item: str, scene: Scene) -> list[Link]:
    """Return the chain of a login that is adopted into a job.

    :raises ValueError: If none is adopted here.
    """
    look, user = scene.look, choose_user(None)
    node = find_node(scene.slurmd.pid if scene.slurmd else None)
    session = open_login(user, "quiet")
    if isinstance(node, str) or isinstance(session, str):
        raise ValueError(session if isinstance(session, str) else str(node))
    login = find_login(user, node.name, look)
    if login is None:
        raise ValueError("no login of this host is adopted into a job")
    links = [*trace_session(user, "sshd", item, look), *_trace_adoption(look)]
    partition = place[len(PLACE) + 1 :] or find_partition(node)
    job = try_job(user, session.limits, partition, node.name, None, login.open)
    if login.seen is None or login.seen.limits is None:
        reason = login.seen.reason if login.seen else job.reason
        return [*links, Link("adopted login", "unknown", reason)]
    source = describe_adoption(
        login.seen.cgroup, job.id, find_leaving(look.at(SessionsRead).pam_files)
    )
    return [*links, Link("adopted login", format_pair(item, login.seen.limits[item]), source)]


def _trace_job(place: str, item: str, login: Login | str, scene: Scene) -> Link:
    """Return what a job really has."""
    node = find_node(scene.slurmd.pid if scene.slurmd else None)
    if isinstance(login, str) or isinstance(node, str):
        reason = login if isinstance(login, str) else str(node)
        return Link("job", "unknown", reason)
    partition = place[len(PLACE) + 1 :] or find_partition(node)
    hindrance = find_hindrance(node, partition)
    job = Job(None, hindrance)
    if not hindrance:
        job = try_job(login.user, login.limits, partition, node.name)
    if job.limits is None:
        return Link("job", "unknown", job.reason)
    source = f"/proc/self/limits in job {job.id} of {login.user} on {job.node}"
    return Link("job", format_pair(item, job.limits[item]), source)
