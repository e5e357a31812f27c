# SPDX-License-Identifier: GPL-3.0-or-later
"""What a first boot may lower is no pass, and names its file; what cannot is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.check_host import check_host
from mlhost_limits.core.finding import Finding
from mlhost_limits.core.policy import CheckOptions
from mlhost_limits.schema import load_policy

from .test_image import FILES, GOOD, MAPS, NOFILE, OURS, STATED, UNIT_NOFILE, units, users

OWN, OF_PACKAGES = "/etc/systemd/system", "/usr/lib/systemd/system"
WANTS = f"{OWN}/multi-user.target.wants"
LOW = f"{MAPS}=65530"
RUNS = f"[Service]\nType=oneshot\nExecStart=/sbin/sysctl -w {LOW}\n"
INSTALL = "[Install]\nWantedBy=multi-user.target\n"
SEED = "/var/lib/cloud/seed/nocloud/user-data"
SEED_NET = "/var/lib/cloud/seed/nocloud-net/user-data"
WRITES = "#cloud-config\nwrite_files:\n- path: {}\n  content: |\n    {}\n"
PACKED = (
    "#cloud-config\nwrite_files:\n- path: /etc/sysctl.d/z.conf\n  encoding: b64\n  content: {}\n"
)
X = f"{OF_PACKAGES}/x.service"
PRESET = "/usr/lib/systemd/system-preset/90-a.preset"
FIRST = {"/etc/machine-id": "uninitialized\n"}
TUNED = {
    f"{WANTS}/tuned.service": f"->{OF_PACKAGES}/tuned.service",
    f"{OF_PACKAGES}/tuned.service": "[Service]\nExecStart=/usr/sbin/tuned -l -P\n",
    "/usr/lib/tuned/balanced/tuned.conf": "[main]\nsummary=x\n",
    "/usr/lib/tuned/low/tuned.conf": f"[sysctl]\n{LOW}\n",
    "/etc/tuned/tuned-main.conf": "reapply_sysctl = 0\n",
}
RECOMMENDS = "/usr/lib/tuned/recommend.d/50-tuned.conf"
CMDLINE = "/etc/kernel/cmdline"
EXTRA, STORE = "sysctl.extra", "/etc/credstore"
APPLIER_D = f"{OWN}/systemd-sysctl.service.d/x.conf"

LOWERS: dict[str, tuple[dict[str, str], str]] = {
    "a preset enables it": ({**FIRST, X: RUNS + INSTALL, PRESET: "enable x.service\n"}, X),
    "no preset says no": ({**FIRST, X: RUNS + INSTALL}, X),
    "there is no machine-id": ({"-": "/etc/machine-id", X: RUNS + INSTALL}, X),
    "a plain credential": ({f"{STORE}/{EXTRA}": LOW}, f"{STORE}/{EXTRA}:1"),
    "a credential of a package": ({f"/usr/lib/credstore/{EXTRA}": LOW}, "/usr/lib/credstore"),
    "a credential that is a pattern": ({f"{STORE}/{EXTRA}": "vm.max_map_*=1"}, STORE),
    "a credential that is encrypted": ({f"{STORE}.encrypted/{EXTRA}": "x"}, f"{STORE}.encrypted"),
    "a credential for tmpfiles": (
        {f"{STORE}/tmpfiles.extra": "w /proc/sys/vm/max_map_count - - - - 1\n"}, STORE,
    ),
    "a credential that a drop-in states": (
        {APPLIER_D: f"[Service]\nSetCredential={EXTRA}:{LOW}\n"}, f"{APPLIER_D}:2",
    ),
    "a credential that a drop-in loads": (
        {APPLIER_D: f"[Service]\nLoadCredential={EXTRA}:/etc/x\n", "/etc/x": LOW}, "/etc/x:1",
    ),
    "a credential of the command line": (
        {CMDLINE: f"quiet systemd.set_credential={EXTRA}:{LOW}\n"}, f"{CMDLINE}:1",
    ),
    "a mask of the command line": (
        {CMDLINE: "quiet systemd.mask=systemd-sysctl.service\n"}, f"{CMDLINE}:1",
    ),
    "a unit of the command line": ({CMDLINE: "systemd.wants=x\n", X: RUNS}, X),
    "runcmd of a seed": ({SEED: f"#cloud-config\nruncmd:\n- sysctl -w {LOW}\n"}, f"{SEED}:3"),
    "bootcmd of a seed": (
        {SEED_NET: f"#cloud-config\nbootcmd:\n- [sysctl, -w, {LOW}]\n"}, f"{SEED_NET}:3",
    ),
    "a file that a seed writes": ({SEED: WRITES.format("/etc/sysctl.d/z.conf", LOW)}, SEED),
    "a file that a seed writes, packed": (
        {SEED: PACKED.format("dm0ubWF4X21hcF9jb3VudD02NTUzMAo=")}, f"{SEED}:5",
    ),
    "a script of a seed": ({SEED: f"#!/bin/sh\nsysctl -w {LOW}\n"}, f"{SEED}:2"),
    "a script once for an instance": (
        {"/var/lib/cloud/scripts/per-instance/a.sh": f"#!/bin/sh\nsysctl -w {LOW}\n"},
        "/var/lib/cloud/scripts/per-instance/a.sh:2",
    ),
    "a script once": (
        {"/var/lib/cloud/scripts/per-once/a.sh": f"#!/bin/sh\nsysctl -w {LOW}\n"},
        "/var/lib/cloud/scripts/per-once/a.sh:2",
    ),
    "a script of a vendor": (
        {"/var/lib/cloud/scripts/vendor/a.sh": f"#!/bin/sh\nsysctl -w {LOW}\n"},
        "/var/lib/cloud/scripts/vendor/a.sh:2",
    ),
    "a profile that tuned may choose": (
        {**TUNED, RECOMMENDS: "[low,1]\nvirt=kvm\n"}, "/usr/lib/tuned/low/tuned.conf:2",
    ),
    "a profile of an old recommend.conf": (
        {**TUNED, "/usr/lib/tuned/recommend.conf": "[low]\n"}, "/usr/lib/tuned/low/tuned.conf:2",
    ),
    "tuned that chooses though one was chosen": (
        {**TUNED, RECOMMENDS: "[low]\n", "/etc/tuned/active_profile": "balanced\n",
         "/etc/tuned/profile_mode": "auto\n"}, "/usr/lib/tuned/low/tuned.conf:2",
    ),
    "tuned that a preset enables": (
        {**TUNED, **FIRST, f"{WANTS}/tuned.service": "", RECOMMENDS: "[low]\n",
         f"{OF_PACKAGES}/tuned.service": INSTALL}, "/usr/lib/tuned/low/tuned.conf:2",
    ),
    "a link that starts what lies elsewhere": (
        {"/opt/x.service": RUNS, f"{WANTS}/x.service": "->/opt/x.service"}, "/opt/x.service:3",
    ),
    "a link of another name": (
        {X: RUNS, f"{OWN}/y.service": f"->{X}", f"{WANTS}/y.service": "->../y.service"}, X,
    ),
    "a name that a loop puts together": (
        {"/etc/rc.local": "#!/bin/sh\nfor k in max_map_count; do sysctl -w vm.$k=1; done\n"},
        "/etc/rc.local:2",
    ),
}  # fmt: skip


def look(tree: Path, policy: dict[str, object], files: dict[str, str]) -> list[Finding]:
    """Return what is found of a tree; a file that begins with an arrow is a link."""
    for path, text in {**FILES, "/etc/machine-id": "", **files}.items():
        if path in ("-", files.get("-")):
            continue
        target = tree / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            target.symlink_to(text[2:])
        else:
            target.write_text(text)
            target.chmod(0o755 if text.startswith("#!") else 0o644)
    options = CheckOptions(services=("sshd",), root=str(tree))
    return list(check_host(load_policy(policy, "none"), options).findings)


def tell(finding: Finding) -> str:
    return "; ".join([*(cause.text for cause in finding.causes), finding.observation.reason])


@pytest.mark.parametrize("name", LOWERS)
def test_what_a_first_boot_may_lower_is_no_pass(name: str, tmp_path: Path) -> None:
    files, named = LOWERS[name]
    (finding,) = look(tmp_path, {"kernel": {MAPS: 262144}}, {**STATED, **files})
    assert finding.outlook.after_boot in ("unknown", "fail")
    assert named in tell(finding)


HARMLESS: dict[str, dict[str, str]] = {
    "nothing besides": {},
    "a unit that is not enabled": {X: RUNS + INSTALL},
    "an empty machine-id, which is no first boot": {X: RUNS + INSTALL, PRESET: "enable *\n"},
    "a first boot, and a machine-id": {"/etc/machine-id": "a" * 32, X: RUNS + INSTALL},
    "a preset that disables it": {**FIRST, X: RUNS + INSTALL, PRESET: "disable *\n"},
    "a unit that presets enable and does nothing here": {
        **FIRST, X: f"[Service]\nExecStart=/sbin/sysctl -w vm.swappiness=1\n{INSTALL}",
    },
    "a unit without [Install]": {**FIRST, X: RUNS, PRESET: "enable x.service\n"},
    "a mask": {**FIRST, X: RUNS + INSTALL, f"{OWN}/x.service": "->/dev/null"},
    "a credential in /run, which a boot empties": {f"/run/credstore/{EXTRA}": LOW},
    "a credential of another key": {f"{STORE}/{EXTRA}": "vm.swappiness=1\n"},
    "a credential that states enough": {f"{STORE}/{EXTRA}": f"{MAPS}=300000\n"},
    "a credential of something else": {f"{STORE}.encrypted/sshd.key": "x"},
    "a credential that nothing asks for": {
        f"{STORE}/{EXTRA}": LOW,
        f"{OF_PACKAGES}/systemd-sysctl.service": (
            "[Service]\nExecStart=/usr/lib/systemd/systemd-sysctl\n"
        ),
    },
    "a credential of a masked unit": {
        f"{STORE}/tmpfiles.extra": "w /proc/sys/vm/max_map_count - - - - 1\n",
        f"{OWN}/systemd-tmpfiles-setup.service": "->/dev/null",
    },
    "a seed that is about something else": {SEED: "#cloud-config\nruncmd:\n- apt-get update\n"},
    "a seed that sets another key": {SEED: "#cloud-config\nruncmd:\n- sysctl -w vm.swappiness=1\n"},
    "a seed with something else that is packed": {
        SEED: PACKED.replace("sysctl.d/z.conf", "motd").format("SGVsbG8gd29ybGQsIGhlbGxvIQo="),
    },
    "meta-data of a seed": {"/var/lib/cloud/seed/nocloud/meta-data": f"x: sysctl -w {LOW}\n"},
    "a seed that was put away": {"/var/lib/cloud/old/user-data": f"#!/bin/sh\nsysctl -w {LOW}\n"},
    "cloud-init that is off": {
        SEED: f"#!/bin/sh\nsysctl -w {LOW}\n", "/etc/cloud/cloud-init.disabled": "",
    },
    "tuned that recommends what sets nothing": {**TUNED, RECOMMENDS: "[balanced]\n"},
    "tuned that is not enabled": {
        **TUNED, f"{WANTS}/tuned.service": "->/dev/null", f"{OWN}/tuned.service": "->/dev/null",
        RECOMMENDS: "[low]\n",
    },
    "tuned that has the files count last": {
        **TUNED, RECOMMENDS: "[low]\n", "/etc/tuned/tuned-main.conf": "",
    },
    "tuned with a profile that was chosen": {
        **TUNED, RECOMMENDS: "[low]\n", "/etc/tuned/active_profile": "balanced\n",
    },
    "tuned by hand, without a profile": {
        **TUNED, RECOMMENDS: "[low]\n", "/etc/tuned/profile_mode": "manual\n",
    },
    "tuned that raises it": {
        **TUNED, "/usr/lib/tuned/low/tuned.conf": f"[sysctl]\n{MAPS}=>65530\n",
        RECOMMENDS: "[low]\n",
    },
    "a command line that a file corrects": {CMDLINE: f"quiet sysctl.{LOW}\n"},
    "a command line about other things": {
        CMDLINE: "quiet systemd.mask=x.service systemd.unit=multi-user.target\n",
    },
    "a comment of a boot loader": {
        "/etc/default/grub": "# systemd.mask=systemd-sysctl.service\nGRUB_CMDLINE_LINUX=quiet\n",
    },
    "a unit elsewhere that nothing starts": {"/opt/x.service": RUNS},
    "a link that hangs": {f"{WANTS}/x.service": "->/opt/x.service"},
    "an instance of a template": {
        f"{OF_PACKAGES}/x@.service": "[Service]\nExecStart=/bin/true\n",
        f"{WANTS}/x@a.service": f"->{OF_PACKAGES}/x@.service",
    },
    "a name of another key that is put together": {
        "/etc/rc.local": "#!/bin/sh\nfor k in swappiness; do sysctl -w vm.$k=1; done\n",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", HARMLESS)
def test_what_lowers_nothing_is_left_alone(name: str, tmp_path: Path) -> None:
    files = {**STATED, **HARMLESS[name]}
    (finding,) = look(tmp_path, {"kernel": {MAPS: 262144}}, files)
    assert finding.outlook.after_boot == "pass", tell(finding)


LOADERS = {
    "/usr/lib/kernel/cmdline": "{}\n",
    CMDLINE: "{}\n",
    "/boot/extlinux/extlinux.conf": "LABEL x\n  APPEND root=x {}\n",
    "/etc/zipl.conf": '[x]\nparameters="root=x {}"\n',
    "/boot/loader/entries/a.conf": "options {}\n",
    "/etc/default/grub": 'GRUB_CMDLINE_LINUX="{}"\n',
    "/etc/default/grub.d/a.cfg": 'GRUB_CMDLINE_LINUX="{}"\n',
    "/etc/grub.d/40_custom": "#!/bin/sh\nlinux /x {}\n",
    "/boot/grub2/grubenv": "kernelopts=root=x {}\n",
    "/boot/efi/EFI/fedora/grub.cfg": "linux /x {}\n",
    "/boot/refind_linux.conf": '"x" "root=x {}"\n',
    "/usr/lib/bootc/kargs.d/10-a.toml": 'kargs = ["{}"]\n',
    "/etc/cmdline.d/a.conf": "{}\n",
    "/etc/dracut.conf.d/a.conf": 'kernel_cmdline="{}"\n',
}


@pytest.mark.parametrize("path", LOADERS)
def test_a_word_of_a_boot_loader_counts_where_no_file_states_the_key(
    path: str, tmp_path: Path
) -> None:
    files = {path: LOADERS[path].format(f"sysctl.{MAPS}=1000")}
    (finding,) = look(tmp_path, {"kernel": {MAPS: 65530}}, files)
    assert finding.outlook.after_boot == "unknown"
    assert path in tell(finding)


CONNECTIONS = "net.netfilter.nf_conntrack_max"
LOADED = {
    "/usr/lib/modules-load.d/n.conf": "nf_conntrack\n",
    "/etc/sysctl.d/n.conf": f"{CONNECTIONS} = 262144\n",
}
MODPROBE = "/etc/modprobe.d/n.conf"
STOPS = {
    "a mask": ({"/etc/modules-load.d/n.conf": "->/dev/null"}, "/etc/modules-load.d/n.conf"),
    "a file of that name": ({"/etc/modules-load.d/n.conf": "x\n"}, "/etc/modules-load.d/n.conf"),
    "install": ({MODPROBE: "install nf_conntrack /bin/false\n"}, f"{MODPROBE}:1"),
    "blacklist": ({MODPROBE: "\nblacklist nf-conntrack\n"}, f"{MODPROBE}:2"),
    "no loader": (
        {f"{OWN}/systemd-modules-load.service": "->/dev/null"},
        f"{OWN}/systemd-modules-load.service",
    ),
    "the command line": ({CMDLINE: "modprobe.blacklist=x,nf_conntrack\n"}, f"{CMDLINE}:1"),
    "a mask of the command line": (
        {CMDLINE: "systemd.mask=systemd-modules-load\n"},
        f"{CMDLINE}:1",
    ),
}


@pytest.mark.parametrize("name", STOPS)
def test_a_sysctl_of_a_module_that_is_not_loaded_is_unknown(name: str, tmp_path: Path) -> None:
    files, named = STOPS[name]
    (finding,) = look(tmp_path, {"kernel": {CONNECTIONS: 262144}}, {**LOADED, **files})
    assert finding.outlook.after_boot == "unknown"
    assert named in tell(finding)
    assert "nf_conntrack" in tell(finding)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {MODPROBE: "# blacklist nf_conntrack\nblacklist nf_conntrack_ftp\ninstall x /bin/true\n"},
        {MODPROBE: "install nf_conntrack /sbin/modprobe --ignore-install nf_conntrack && x\n"},
        {MODPROBE: "->/dev/null", "/usr/lib/modprobe.d/n.conf": "blacklist nf_conntrack\n"},
        {"/etc/modules-load.d/n.conf": "nf_conntrack\nx\n"},
        {"/etc/modules-load.d/n.conf": "->/dev/null", "/etc/modules-load.d/a.conf": "nf-conntrack"},
        {"/etc/modprobe.d/n": "blacklist nf_conntrack\n"},
        {CMDLINE: "modprobe.blacklist=nf_conntrack_ftp\n"},
    ],
)
def test_a_sysctl_of_a_module_that_is_loaded_is_judged(
    files: dict[str, str], tmp_path: Path
) -> None:
    (finding,) = look(tmp_path, {"kernel": {CONNECTIONS: 262144}}, {**LOADED, **files})
    assert finding.outlook.after_boot == "pass"


A_UNIT = {f"{OF_PACKAGES}/a.service": "[Service]\nLimitNOFILE=65536:131072\n"}
GENERATOR = "/etc/systemd/system-generators/g"
DROP_IN = "#!/bin/sh\nprintf '[Service]\\nLimitNOFILE=1000\\n' > {}\n"
TEXT = "[Service]\n    LimitNOFILE=1000"
WRITERS = {
    "a generator": {GENERATOR: DROP_IN.format("$1/a.service.d/z.conf")},
    "a generator for each unit": {GENERATOR: DROP_IN.format('"$1/${u}.service.d/z.conf"')},
    "a generator for the manager": {
        GENERATOR: "#!/bin/sh\necho DefaultLimitNOFILE=1 >> /etc/systemd/system.conf\n",
    },
    "a seed": {SEED: WRITES.format(f"{OWN}/a.service.d/z.conf", TEXT)},
    "a seed, packed": {SEED: PACKED.format("W1NlcnZpY2VdCkxpbWl0Tk9GSUxFPTEwMDAK")},
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_may_write_units_at_boot_is_no_pass(name: str, tmp_path: Path) -> None:
    files = WRITERS[name]
    for finding in look(tmp_path, units(a=UNIT_NOFILE), {**A_UNIT, **files}):
        assert finding.outlook.after_boot == "unknown"
        assert next(iter(files)) in tell(finding)
        assert "may write unit files at boot" in tell(finding)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {GENERATOR: DROP_IN.format("$1/b.service.d/z.conf")},
        {GENERATOR: "#!/bin/sh\n# LimitNOFILE=1 of a.service\n"},
        {SEED: WRITES.format(f"{OWN}/b.service.d/z.conf", TEXT)},
        {f"{OWN}/b.service": "[Service]\nLimitNOFILE=1\nExecStart=/bin/true a.service\n",
         f"{WANTS}/b.service": "->../b.service"},
    ],
)  # fmt: skip
def test_what_writes_other_units_is_left_alone(files: dict[str, str], tmp_path: Path) -> None:
    found = look(tmp_path, units(a=UNIT_NOFILE), {**A_UNIT, **files})
    assert [one.outlook.after_boot for one in found] == ["pass", "pass"]


def test_a_limits_file_that_a_seed_writes_is_no_pass(tmp_path: Path) -> None:
    files = {OURS: GOOD, SEED: WRITES.format("/etc/security/limits.d/z.conf", "root - nofile 1")}
    (finding,) = look(tmp_path, users("root", **NOFILE), files)
    assert finding.outlook.after_boot == "unknown"
    assert SEED in tell(finding)
