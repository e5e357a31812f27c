# SPDX-License-Identifier: BSD-2-Clause
"""Tell from a process's cgroup which container it lives in, and which engine made that.

Source: cgroups(7), and the names that each engine gives: ``cgroupsPath`` of runc and crun with the
drivers systemd and cgroupfs, ``libpod/container_internal_linux.go`` of Podman, the kubelet's
``cgroup_manager_linux.go``, ``cri-containerd`` and ``crio`` as prefixes of scopes, lxc.conf(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ..core.cgroup import split_rows
from ..core.values import NamedTuple

DOCKER, PODMAN, CONTAINERD, CRIO, LXC, NSPAWN = (
    "docker", "podman", "containerd", "cri-o", "lxc", "nspawn",
)  # fmt: skip

_ID = "[0-9a-f]{64}"
_SCOPES = {"docker": DOCKER, "libpod": PODMAN, "libpod-payload": PODMAN, "nerdctl": CONTAINERD,
           "cri-containerd": CONTAINERD, "crio": CRIO}  # fmt: skip
_SCOPE = re.compile(rf"({'|'.join(_SCOPES)})-({_ID})(?:\.scope)?")
_BARE = re.compile(_ID)
_POD = re.compile(
    r"(?:.*-)?pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?"
)
_LXC = re.compile(r"lxc\.payload\.(.+)")
_MACHINE = re.compile(r"machine-(.+)\.scope|systemd-nspawn@(.+)\.service")
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
_MANAGER = re.compile(r"user@([0-9]+)\.service")


class Container(NamedTuple):
    """A container as its cgroup names it.

    ``engine`` is empty where an id is all that shows. ``pod`` is the uid of a Kubernetes pod,
    ``namespace`` that of containerd where it shows, ``uid`` whose rootless container it is,
    ``label`` the name that its engine gave it.
    """

    engine: str
    id: str
    pod: str = ""
    namespace: str = ""
    uid: int | None = None
    label: str = ""

    @property
    def name(self) -> str:
        """Return a short name: ``docker/0123456789ab``, ``kubernetes/POD/0123456789ab``."""
        short = self.label or (self.id[:12] if _BARE.fullmatch(self.id) else self.id)
        if self.pod:
            return f"kubernetes/{self.pod}/{short}"
        words = (self.engine or "unknown engine", self.namespace, short)
        return "/".join(word for word in words if word)


def find_container(text: str) -> Container | None:
    """Return the innermost container of a process, whose engine decides; none for the host's.

    :param text: /proc/PID/cgroup, of version 1, 2 or both.
    """
    found = [list(_read_path(path.split("/")[1:])) for path in _list_paths(text)]
    longest = max(found, key=len, default=[])
    return longest[-1] if longest else None


def _list_paths(text: str) -> list[str]:
    """Return the paths of every hierarchy once, systemd's and version 2's first."""
    fields = split_rows(text)
    first = [path for dummy, names, path in fields if names in ("name=systemd", "")]
    return list(dict.fromkeys([*first, *(path for dummy, dummy2, path in fields)]))


def _read_path(parts: Sequence[str]) -> Iterator[Container]:
    """Yield the containers of one path, the outermost first."""
    pod, uid, above = "", None, ""
    for part in parts:
        manager, in_pod = _MANAGER.fullmatch(part), _POD.fullmatch(part)
        if manager:
            uid = int(manager[1])
        elif in_pod:
            pod = in_pod[1].replace("_", "-")
        else:
            one = _read_part(part, above, pod, uid)
            if one:
                yield one
                pod = ""
        above = part


def _read_part(part: str, above: str, pod: str, uid: int | None) -> Container | None:
    scope, bare = _SCOPE.fullmatch(part), _BARE.fullmatch(part)
    payload, machine = _LXC.fullmatch(part), _MACHINE.fullmatch(part)
    if scope:
        namespace = "nerdctl" if scope[1] == "nerdctl" else ""
        return Container(_SCOPES[scope[1]], scope[2], pod, namespace, uid)
    if bare:
        engine = {"docker": DOCKER, "libpod_parent": PODMAN}.get(above, "")
        return Container(engine, part, pod, uid=uid)
    if payload or above in ("lxc", "lxc.payload"):
        return Container(LXC, payload[1] if payload else part)
    if machine and not (machine[1] or "").startswith("qemu"):
        return Container(NSPAWN, _unescape(machine[1] or machine[2]))
    return None


def _unescape(name: str) -> str:
    """Return a name as it was before systemd escaped it: systemd.unit(5)."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), name)


class Monitor(NamedTuple):
    """What the command line of a container's monitor says: conmon(8), containerd's shim."""

    engine: str
    id: str
    name: str = ""
    namespace: str = ""
    bundle: str = ""


_NAMESPACES = {"moby": DOCKER}


def read_monitor(words: Sequence[str]) -> Monitor | None:
    """Return what a monitor watches; nothing for any other program.

    :param words: Its command line.
    """
    program = words[0].rpartition("/")[2] if words else ""
    told = {key.lstrip("-"): value for key, value in zip(words[1:], words[2:]) if key[:1] == "-"}
    if program == "conmon" and "c" in told:
        crio = any("crio" in told.get(key, "") for key in ("exit-dir", "b", "p"))
        engine = CRIO if crio else PODMAN
        return Monitor(engine, told["c"], told.get("n", ""), bundle=told.get("b", ""))
    if program.startswith("containerd-shim") and "id" in told:
        namespace = told.get("namespace", "")
        engine = _NAMESPACES.get(namespace, CONTAINERD)
        shown = "" if engine == DOCKER else namespace
        return Monitor(engine, told["id"], namespace=shown)
    return None


def locate(text: str, above: Iterable[Sequence[str]]) -> Container | None:
    """Return the container of a process, by its cgroup and by the monitor that it descends from.

    A task of ctr has a cgroup of any name, and a rootless container may have none of its own.

    :param above: The command lines of the processes above it, its parent's first.
    """
    found = find_container(text)
    monitor = next(filter(None, map(read_monitor, above)), None)
    if monitor is None:
        return found
    if found is None:
        return Container(monitor.engine, monitor.id, "", monitor.namespace, None, monitor.name)
    if found.id != monitor.id and found.engine:
        return found  # One shim watches all containers of a pod, and conmon runs in containers too.
    namespace = found.namespace or ("" if found.pod else monitor.namespace)
    return found._replace(engine=monitor.engine, namespace=namespace, label=monitor.name)
