# SPDX-License-Identifier: GPL-3.0-or-later
"""A process's container is read from its cgroup, whichever engine and driver made it."""

from __future__ import annotations

import pytest
from mlhost_limits.containers.cgroup import (
    Container,
    Monitor,
    find_container,
    locate,
    read_monitor,
)

ID = "3f1d" * 16
OUTER = "a0b1" * 16
UID = "0f6f6c2d-3b1a-4f6e-9a53-1c2d3e4f5a6b"
SLICE = UID.replace("-", "_")
V1 = "12:pids:{0}\n11:memory:{0}\n1:name=systemd:{0}\n"
HYBRID = V1 + "0::/init.scope\n"

# Where each name comes from: "documentation" is that of the engine, or its source.
DOCUMENTED = {
    f"0::/docker/{ID}": Container("docker", ID),  # documentation: cgroupfs driver
    V1.format(f"/docker/{ID}"): Container("docker", ID),
    HYBRID.format(f"/docker/{ID}"): Container("docker", ID),
    V1.format(f"/system.slice/docker-{ID}.scope"): Container("docker", ID),
    f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-{ID}.scope":
        Container("docker", ID, uid=1000),  # documentation: rootless
    f"0::/docker/{OUTER}/docker/{ID}": Container("docker", ID),  # docker in docker
    f"0::/docker/{ID}/system.slice/web.service": Container("docker", ID),
    f"0::/../docker-{ID}.scope": Container("docker", ID),  # seen from a cgroup namespace
    f"0::/batch.slice/{ID}": Container("", ID),  # --cgroup-parent
    f"0::/libpod_parent/{ID}": Container("podman", ID),
    f"0::/libpod_parent/libpod-{ID}": Container("podman", ID),  # cgroupfs manager
    f"0::/machine.slice/machine-libpod_pod_{OUTER}.slice/libpod-{ID}.scope/container":
        Container("podman", ID),  # in a pod
    f"0::/system.slice/web.service/libpod-payload-{ID}": Container("podman", ID),  # a Quadlet's
    f"0::/system.slice/nerdctl-{ID}.scope": Container("containerd", ID, namespace="nerdctl"),
    f"0::/default/{ID}": Container("", ID),  # nerdctl, cgroupfs
    f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SLICE}.slice/cri-containerd-{ID}.scope":
        Container("containerd", ID, UID),
    f"0::/kubepods.slice/kubepods-pod{SLICE}.slice/crio-{ID}.scope": Container("cri-o", ID, UID),
    f"0::/kubepods.slice/kubepods-pod{SLICE}.slice/crio-{ID}.scope/container":
        Container("cri-o", ID, UID),
    f"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{SLICE}.slice/docker-{ID}.scope":
        Container("docker", ID, UID),
    V1.format(f"/kubepods/burstable/pod{UID}/{ID}"): Container("", ID, UID),
    f"0::/kubepods/besteffort/pod{'ab' * 16}/{ID}": Container("", ID, "ab" * 16),  # a static pod
    f"0::/docker/{OUTER}/kubelet/kubepods/burstable/pod{UID}/{ID}": Container("", ID, UID),  # kind
    f"0::/system.slice/docker-{OUTER}.scope/kubelet.slice/kubelet-kubepods.slice/"
    f"kubelet-kubepods-pod{SLICE}.slice/cri-containerd-{ID}.scope": Container("containerd", ID, UID),
    "0::/lxc.payload.web/system.slice/ssh.service": Container("lxc", "web"),
    V1.format("/lxc/web"): Container("lxc", "web"),
    "0::/machine.slice/machine-my\\x2dbox.scope/payload": Container("nspawn", "my-box"),
    "0::/machine.slice/systemd-nspawn@box.service/payload": Container("nspawn", "box"),
}  # fmt: skip

HOSTS = [
    "",
    "0::/",
    "0::/init.scope",
    "0::/system.slice/ssh.service",
    "0::/user.slice/user-1000.slice/session-3.scope",  # apptainer, enroot: none of their own
    "0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.service",
    f"0::/machine.slice/libpod-conmon-{ID}.scope",
    f"0::/kubepods.slice/kubepods-pod{SLICE}.slice/crio-conmon-{ID}.scope",
    "0::/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/emulator",
    "0::/lxc.monitor.web",
    "0::/kubepods/burstable",
    "0::/system.slice/containerd.service",
    "0::/default/web",  # ctr: any name, which only the shim above it explains
    "no cgroup",
]


DOCK = "289386f8dc3d8b2f2ef634475a879885e2594dad087083e583880f430eb7b2dc"
WEB = "06d66a141fc38d26f600d2514fa1a565f613a27c81cd0b10677574d79577511a"
OWN = "86615bccea3fd6eb6481d09c14153f29e0d5e396f837a3b5bfd8c7575c00b897"
RUN = "/usr/bin/conmon --api-version 1 -c {0} -u {0} -r /usr/bin/crun -b {1}/{0}/userdata -p"
CAPTURED = {
    # docker.io 20.10.24 with systemd 252, cgroup version 2 (Debian 12)
    f"0::/system.slice/docker-{DOCK}.scope":
        (f"/usr/bin/containerd-shim-runc-v2 -namespace moby -id {DOCK} -address /run/containerd"
         "/containerd.sock", Container("docker", DOCK)),
    # podman 4.3.1 with crun 1.8.1, as root
    f"0::/machine.slice/libpod-{WEB}.scope/container":
        (RUN.format(WEB, "/var/lib/containers/storage/overlay-containers")
         + " /run/x/pidfile -n web --exit-dir /run/libpod/exits", Container("podman", WEB, label="web")),
    # podman 4.3.1, rootless, started by runuser from a session of root: no cgroup of its own
    "0::/user.slice/user-0.slice/session-24.scope":
        (RUN.format(OWN, "/home/alice/.local/share/containers/storage/vfs-containers")
         + " /tmp/x/pidfile -n own --exit-dir /tmp/podman-run-1000/libpod/tmp/exits",
         Container("podman", OWN, label="own")),
    # containerd 1.6.20, ctr run
    "0::/default/web2":
        ("/usr/bin/containerd-shim-runc-v2 -namespace default -id web2 -address /run/containerd"
         "/containerd.sock", Container("containerd", "web2", namespace="default")),
}  # fmt: skip


@pytest.mark.parametrize(("text", "told"), CAPTURED.items())
def test_names_captured_from_running_engines(text: str, told: tuple[str, Container]) -> None:
    words, container = told
    assert locate(text, [["sh"], words.split(" ")]) == container


@pytest.mark.parametrize(("text", "container"), DOCUMENTED.items())
def test_names_from_documentation(text: str, container: Container) -> None:
    assert find_container(text) == container


@pytest.mark.parametrize("text", HOSTS)
def test_the_hosts_own_processes_are_in_none(text: str) -> None:
    assert find_container(text) is None


def test_of_containers_in_containers_the_innermost_decides() -> None:
    found = find_container(f"0::/system.slice/docker-{OUTER}.scope/docker/{ID}")
    assert found
    assert found.id == ID


@pytest.mark.parametrize(
    ("container", "name"),
    [
        (Container("docker", ID), "docker/3f1d3f1d3f1d"),
        (Container("containerd", "web", namespace="default"), "containerd/default/web"),
        (Container("cri-o", ID, UID), f"kubernetes/{UID}/3f1d3f1d3f1d"),
        (Container("", ID), "unknown engine/3f1d3f1d3f1d"),
    ],
)
def test_a_name_is_short(container: Container, name: str) -> None:
    assert container.name == name


@pytest.mark.parametrize(
    ("words", "monitor"),
    [
        (["/usr/bin/conmon", "--api-version", "1", "-c", ID, "-u", ID, "-b", "/var/lib/x/userdata",
          "-n", "web", "--exit-dir", "/run/libpod/exits"],
         Monitor("podman", ID, "web", bundle="/var/lib/x/userdata")),
        (["/usr/bin/conmon", "-c", ID, "--exit-dir", "/var/run/crio/exits"], Monitor("cri-o", ID)),
        (["/usr/bin/containerd-shim-runc-v2", "-namespace", "moby", "-id", ID, "-address", "/x"],
         Monitor("docker", ID)),
        (["containerd-shim-runc-v2", "-namespace", "default", "-id", "web"],
         Monitor("containerd", "web", namespace="default")),
        (["/usr/bin/conmon", "--version"], None),
        (["/usr/bin/other", "-id", "web"], None),
        (["containerd-shim-runc-v2", "-namespace", "moby"], None),
        (["/usr/bin/python3", "-c", "x"], None),
        ([], None),
    ],
)  # fmt: skip
def test_a_monitor_says_what_it_watches(words: list[str], monitor: Monitor | None) -> None:
    assert read_monitor(words) == monitor


CONMON = ["/usr/bin/conmon", "-c", ID, "-n", "web"]
SHIM = ["/usr/bin/containerd-shim-runc-v2", "-namespace", "default", "-id", "web"]
CRI_SHIM = ["/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", OUTER]
KUBE = f"0::/kubepods/burstable/pod{UID}/{ID}"


@pytest.mark.parametrize(
    ("text", "above", "container"),
    [
        ("0::/system.slice/ssh.service", [["/usr/sbin/sshd", "-D"], []], None),
        (f"0::/docker/{ID}", [["bash"]], Container("docker", ID)),
        ("0::/default/web", [["sh"], SHIM], Container("containerd", "web", namespace="default")),
        ("0::/user.slice/user-1000.slice/session-3.scope", [CONMON],
         Container("podman", ID, label="web")),
        (f"0::/machine.slice/libpod-{ID}.scope", [CONMON], Container("podman", ID, label="web")),
        (f"0::/docker/{OUTER}", [CONMON], Container("docker", OUTER)),
        (KUBE, [CRI_SHIM], Container("containerd", ID, UID)),
        (f"0::/default/{ID}", [[*SHIM[:-1], ID]], Container("containerd", ID, namespace="default")),
    ],
)  # fmt: skip
def test_a_monitor_above_a_process_tells_its_container(
    text: str, above: list[list[str]], container: Container | None
) -> None:
    assert locate(text, above) == container


def test_of_two_hierarchies_systemd_s_is_read_first() -> None:
    for first in ("1:name=systemd:", "0::"):
        found = find_container(f"4:pids:/docker/{OUTER}\n{first}/docker/{ID}")
        assert found == Container("docker", ID)
