# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of sysctl.d(5) and sysctl.conf(5), and of the running kernel."""

from __future__ import annotations

from tests.faults.fault import Culprit, Fault, Policy, append, sed, session, write

KEY = "vm.max_map_count"
OURS = "/etc/sysctl.d/90-mlhost.conf"
MAIN = "/etc/sysctl.conf"
LOAD = "/lib/systemd/systemd-sysctl"  # What the boot runs; it refuses bad lines and goes on.
RUNNING = "sysctl load"
LOW = f"{KEY} = 65530"
WATCHES = "fs.inotify.max_user_watches"
MANY: Policy = {"kernel": {WATCHES: 524288}}
SHOWS = (f"^kernel {KEY} ",)


def later(name: str, path: str, line: str = LOW, show: tuple[str, ...] = SHOWS) -> Fault:
    """Return a line of another file that counts more than ours, and was loaded."""
    return Fault(
        f"kernel: {name}",
        f"{write(path, '# of the vendor', line)}; {LOAD}",
        (Culprit(path, line),),
        show,
        touches=(path,),
        uses=(RUNNING,),
    )


def spoilt(name: str, line: str, words: str = "") -> Fault:
    """Return our own line, written anew so that it is not read, on a host that booted since."""
    return Fault(
        f"kernel: {name}",
        f"{sed(f's/^{KEY} = 262144$/{line}/', OURS)}; sysctl -q -w {KEY}=65530",
        (Culprit(OURS, line, words),),
        SHOWS,
        touches=(OURS,),
        uses=(RUNNING,),
    )


OF_FILES = [
    later("a later file in /etc", "/etc/sysctl.d/95-db.conf"),
    later("a later file in /run", "/run/sysctl.d/96-run.conf"),
    later("a vendor's file that sorts later", "/usr/lib/sysctl.d/99-vendor.conf"),
    later("a later file in /usr/local/lib", "/usr/local/lib/sysctl.d/98-local.conf"),
    later("a name with slashes", "/etc/sysctl.d/97-slash.conf", "vm/max_map_count=65530"),
    later("a line that heeds no error", "/etc/sysctl.d/97-quiet.conf", f"-{KEY}=65530"),
    later("a lower fs.file-max", "/etc/sysctl.d/50-files.conf", "fs.file-max = 100000",
          ("^kernel fs.file-max ",)),
    Fault(
        "kernel: /etc/sysctl.conf, by its link in sysctl.d",
        f"{append(MAIN, LOW)}; {LOAD}",
        (Culprit(MAIN, LOW), Culprit("/etc/sysctl.d/99-sysctl.conf", LOW)),
        SHOWS,
        touches=(MAIN,),
        uses=(RUNNING,),
    ),
    Fault(
        "kernel: the same key twice in one file",
        f"{append(OURS, LOW)}; {LOAD}",
        (Culprit(OURS, LOW),),
        SHOWS,
        touches=(OURS,),
        uses=(RUNNING,),
    ),
    Fault(
        "kernel: fs.nr_open below what sessions shall have",
        f"{write('/etc/sysctl.d/60-nr.conf', 'fs.nr_open = 600000')}; {LOAD}",
        (Culprit("/etc/sysctl.d/60-nr.conf", "fs.nr_open = 600000"), Culprit(words="nr_open")),
        ("^kernel fs.nr_open ", *session("nofile", "sshd", "cron", bound="soft")),
        touches=("/etc/sysctl.d/60-nr.conf", "fs.nr_open"),
        uses=(RUNNING,),
    ),
    spoilt("a line without its sign", f"{KEY} 262144", "=|sign|read|malformed|ignored"),
    spoilt("a value with a suffix", f"{KEY} = 262144k"),
    spoilt("a key that is misspelled", "vm.max_map_counts = 262144"),
    Fault(
        "kernel: a later value that the kernel refuses",
        f"{write('/etc/sysctl.d/94-lots.conf', f'{KEY} = lots')}; sysctl -q -w {KEY}=65530",
        (Culprit("/etc/sysctl.d/94-lots.conf", f"{KEY} = lots"),),
        SHOWS,
        touches=("/etc/sysctl.d/94-lots.conf",),
        uses=(RUNNING,),
    ),
    Fault(
        "kernel: a file that does not end in .conf",
        f"mv {OURS} {OURS}.bak; sysctl -q -w {KEY}=65530",
        (Culprit(f"{OURS}.bak"), Culprit(f"{OURS}.bak", f"{KEY} = 262144")),
        SHOWS,
        touches=(OURS,),
        uses=(RUNNING,),
    ),
    Fault(
        "kernel: a file hidden by a link to nothing",
        write("/usr/lib/sysctl.d/60-watches.conf", f"{WATCHES} = 524288")
        + "; ln -s /dev/null /etc/sysctl.d/60-watches.conf",
        (Culprit("/etc/sysctl.d/60-watches.conf"),),
        (f"^kernel {WATCHES} ",),
        MANY,
        ("/etc/sysctl.d/60-watches.conf", WATCHES),
    ),
    Fault(
        "kernel: a file hidden by one of the same name",
        write("/usr/lib/sysctl.d/61-watches.conf", f"{WATCHES} = 524288")
        + "; "
        + write("/etc/sysctl.d/61-watches.conf", "# nothing here"),
        (Culprit("/etc/sysctl.d/61-watches.conf"),),
        (f"^kernel {WATCHES} ",),
        MANY,
        ("/etc/sysctl.d/61-watches.conf", WATCHES),
    ),
    Fault(
        "kernel: more than a policy lets",
        write("/etc/sysctl.d/50-swap.conf", "vm.swappiness = 10")
        + f"; {write('/etc/sysctl.d/95-desktop.conf', 'vm.swappiness = 60')}; {LOAD}",
        (Culprit("/etc/sysctl.d/95-desktop.conf", "vm.swappiness = 60"),),
        ("^kernel vm.swappiness ",),
        {"kernel": {"vm.swappiness": {"max": 10}}},
        ("/etc/sysctl.d/50-swap.conf", "/etc/sysctl.d/95-desktop.conf"),
        (RUNNING,),
    ),
]  # fmt: skip

HAND = "hand|running|written|since|runtime|sysctl -w|changed to|nothing"

OF_RUNNING_KERNELS = [
    Fault(
        "kernel: lowered by hand",
        f"sysctl -q -w {KEY}=65530",
        (Culprit(words=HAND),),
        SHOWS,
        touches=(RUNNING,),
        uses=(OURS,),
    ),
    Fault(
        "kernel: fs.nr_open lowered by hand",
        "sysctl -q -w fs.nr_open=600000",
        (Culprit(words="nr_open"), Culprit(words=HAND)),
        ("^kernel fs.nr_open ", *session("nofile", "sshd", "cron", bound="soft")),
        touches=("fs.nr_open",),
    ),
    Fault(
        "kernel: gone from its file, lost at the next boot",
        sed(f"/^{KEY}/d", OURS),
        (Culprit(words="boot|no file|nothing|states|lost|running"),),
        SHOWS,
        touches=(OURS,),
        uses=(RUNNING,),
    ),
    Fault(
        "kernel: a later file that waits for the next boot",
        write("/etc/sysctl.d/93-waits.conf", LOW),
        (Culprit("/etc/sysctl.d/93-waits.conf", LOW),),
        SHOWS,
        touches=("/etc/sysctl.d/93-waits.conf", RUNNING),
    ),
    Fault(
        "kernel: a file that was never loaded",
        write("/etc/sysctl.d/62-watches.conf", f"{WATCHES} = 524288"),
        (Culprit("/etc/sysctl.d/62-watches.conf", f"{WATCHES} = 524288",
                 "load|appl|boot|running|since"),),
        (f"^kernel {WATCHES} ",),
        MANY,
        ("/etc/sysctl.d/62-watches.conf", RUNNING, WATCHES),
    ),
    Fault(
        "kernel: in /etc/sysctl.conf, which the boot does not read",
        f"{sed(f'/^{KEY}/d', OURS)}; rm /etc/sysctl.d/99-sysctl.conf;"
        f" {append(MAIN, f'{KEY} = 262144')}; sysctl -q -p",
        (Culprit(MAIN, f"{KEY} = 262144"),),
        SHOWS,
        touches=(MAIN, OURS),
        uses=(RUNNING,),
    ),
]  # fmt: skip

FAULTS = [*OF_FILES, *OF_RUNNING_KERNELS]

NAMED = "/etc/sysctl.d/50-named.conf"
BRIDGE = "net.bridge.bridge-nf-call-iptables"
TRACK = "net.netfilter.nf_conntrack_max"

OPEN_MANY = (
    'setsid python3 -c \'import time; held = [open("/dev/null") for one in range(20000)];'
    ' open("/run/held", "w"); time.sleep(9999)\' > /dev/null 2>&1 < /dev/null &'
    " until [ -e /run/held ]; do sleep 0.2; done"
)


def many(name: str, make: str, *culprits: Culprit, touches: tuple[str, ...] = ()) -> Fault:
    """Return what keeps a key low that nothing else on the host states."""
    shows = (f"^kernel {WATCHES} ",)
    return Fault(f"kernel: {name}", make, culprits, shows, MANY, (*touches, WATCHES), (RUNNING,))


FILE = f"/proc/sys/{KEY.replace('.', '/')}"


def script(name: str, path: str, make: str, line: str, person: str = "") -> Fault:
    """Return a script of the boot that sets the key after the files were read."""
    return Fault(
        f"kernel: {name}",
        f"{make}; sysctl -q -w {KEY}=65530",
        (Culprit(path, line),),
        SHOWS,
        touches=(path,),
        uses=(RUNNING, OURS),
        person=person,
    )


MORE = [
    many("a line that names the key, before a pattern",
         f"{write(NAMED, f'{WATCHES} = 8192')}; "
         + write("/etc/sysctl.d/60-watch.conf", "fs.inotify.max_user_watch* = 524288")
         + f"; {LOAD}",
         Culprit(NAMED, f"{WATCHES} = 8192"), touches=(NAMED,)),
    many("a later line that leaves the key alone",
         f"{write('/etc/sysctl.d/60-watch.conf', f'{WATCHES} = 524288')}; "
         + write("/etc/sysctl.d/70-not.conf", f"-{WATCHES}") + f"; {LOAD}",
         Culprit("/etc/sysctl.d/70-not.conf", f"-{WATCHES}")),
    many("on the kernel's command line",
         f"echo $(cat /proc/cmdline) sysctl.{WATCHES}=8192 > /run/cmdline;"
         f" mount --bind /run/cmdline /proc/cmdline; sysctl -q -w {WATCHES}=8192",
         Culprit("/proc/cmdline")),
    Fault(
        "kernel: in a file that a boot removes",
        f"{sed(f'/^{KEY}/d', OURS)}; {write('/run/sysctl.d/60-run.conf', f'{KEY} = 262144')}; {LOAD}",
        (Culprit("/run/sysctl.d/60-run.conf", f"{KEY} = 262144"),),
        SHOWS,
        touches=(OURS,),
        uses=(RUNNING,),
    ),
    Fault(
        "kernel: its line is a comment",
        f"{sed(f's/^{KEY}/# &/', OURS)}; sysctl -q -w {KEY}=65530",
        (Culprit(OURS, f"# {KEY}"),),
        SHOWS,
        touches=(OURS,),
        uses=(RUNNING,),
    ),
    script("a unit that sets it at boot", "/etc/systemd/system/tune.service",
           write("/etc/systemd/system/tune.service", "[Service]", "Type=oneshot",
                 f"ExecStart=/sbin/sysctl -w {KEY}=65530", "[Install]", "WantedBy=multi-user.target")
           + "; systemctl daemon-reload; systemctl enable -q tune.service",
           f"ExecStart=/sbin/sysctl -w {KEY}=65530"),
    script("a job of cron that sets it at boot", "/etc/cron.d/tune",
           write("/etc/cron.d/tune", f"@reboot root sysctl -w {KEY}=65530"), "@reboot"),
    script("rc.local sets it at boot", "/etc/rc.local",
           write("/etc/rc.local", "#!/bin/sh", f"echo 65530 > /proc/sys/{KEY.replace('.', '/')}")
           + "; chmod +x /etc/rc.local",
           "echo 65530"),
    script("rc.local sets it with tee", "/etc/rc.local",
           write("/etc/rc.local", "#!/bin/sh -e", f"echo 65530 | tee {FILE}") + "; chmod +x /etc/rc.local",
           "echo 65530 | tee"),
    script("rc.local sets it with printf", "/etc/rc.local",
           write("/etc/rc.local", "#!/bin/sh -e", f"printf '%s\\n' 65530 >{FILE}")
           + "; chmod +x /etc/rc.local",
           "printf"),
    script("a rule of udev sets it", "/etc/udev/rules.d/90-tune.rules",
           write("/etc/udev/rules.d/90-tune.rules",
                 f'ACTION=="add", KERNEL=="lo", SUBSYSTEM=="net", RUN+="/sbin/sysctl -w {KEY}=65530"'),
           "RUN+="),
    script("the boot loader's defaults set it", "/etc/default/grub.d/90-tune.cfg",
           f"rm -f {OURS}; sysctl -q -w {KEY}=65530; "
           + write("/etc/default/grub.d/90-tune.cfg", f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX sysctl.{KEY}=65531"'),
           "sysctl."),
    script("rc.local sets it from a variable", "/etc/rc.local",
           write("/etc/rc.local", "#!/bin/sh -e", f"N=65530; sysctl -w {KEY}=$N")
           + "; chmod +x /etc/rc.local",
           "N=65530",
           person=f"rm /etc/rc.local; sysctl -q -w {KEY}=262144"),
    script("a line of tmpfiles.d writes it", "/etc/tmpfiles.d/tune.conf",
           write("/etc/tmpfiles.d/tune.conf", f"w {FILE} - - - - 65530"), f"w {FILE}"),
    script("a unit sets it on a line that goes on", "/etc/systemd/system/tune.service",
           write("/etc/systemd/system/tune.service", "[Service]", "Type=oneshot",
                 "ExecStart=/bin/sh -c \\", f"  'sysctl -w {KEY}=65530'", "[Install]",
                 "WantedBy=multi-user.target")
           + "; systemctl daemon-reload; systemctl enable -q tune.service",
           f"'sysctl -w {KEY}=65530'"),
    script("a unit that another unit wants sets it", "/etc/systemd/system/tune.service",
           write("/etc/systemd/system/tune.service", "[Service]", "Type=oneshot",
                 f"ExecStart=/sbin/sysctl -w {KEY}=65530")
           + "; " + write("/etc/systemd/system/site.service", "[Unit]", "Wants=tune.service",
                          "[Service]", "Type=oneshot", "ExecStart=/bin/true", "[Install]",
                          "WantedBy=multi-user.target")
           + "; systemctl daemon-reload; systemctl enable -q site.service",
           f"ExecStart=/sbin/sysctl -w {KEY}=65530"),
    script("rc.local has a file of its own read", "/etc/low.conf",
           write("/etc/low.conf", f"{KEY} = 65530")
           + "; " + write("/etc/rc.local", "#!/bin/sh -e", "sysctl -p /etc/low.conf")
           + "; chmod +x /etc/rc.local",
           f"{KEY} = 65530"),
    script("an install line of modprobe.d sets it", "/etc/modprobe.d/tune.conf",
           write("/etc/modprobe.d/tune.conf",
                 f"install dummy /sbin/modprobe -i dummy; /sbin/sysctl -w {KEY}=65530"),
           "install dummy"),
    script("a hook of a network that comes up sets it", "/etc/network/if-pre-up.d/tune",
           write("/etc/network/if-pre-up.d/tune", "#!/bin/sh", f"sysctl -w {KEY}=65530")
           + "; chmod +x /etc/network/if-pre-up.d/tune",
           f"sysctl -w {KEY}=65530"),
    script("cloud-init sets it", "/etc/cloud/cloud.cfg.d/99-tune.cfg",
           write("/etc/cloud/cloud.cfg.d/99-tune.cfg", "bootcmd:", f"  - sysctl -w {KEY}=65530"),
           f"sysctl -w {KEY}=65530",
           person=f"rm /etc/cloud/cloud.cfg.d/99-tune.cfg; sysctl -q -w {KEY}=262144"),
    Fault(
        "kernel: no file is applied at boot",
        f"systemctl mask -q systemd-sysctl.service; sysctl -q -w {KEY}=65530",
        (Culprit(words="systemd-sysctl"),),
        SHOWS,
        touches=("systemd-sysctl",),
        uses=(OURS, RUNNING),
    ),
    Fault(
        "kernel: its module comes after the files",
        write("/etc/sysctl.d/60-track.conf", f"{TRACK} = 999999"),
        (Culprit(words="nf_conntrack"),),
        (f"^kernel {TRACK} ",),
        {"kernel": {TRACK: 999999}},
        ("/etc/sysctl.d/60-track.conf", RUNNING),
    ),
    Fault(
        "kernel: its module is not there",
        f"modprobe -r br_netfilter; {write('/etc/sysctl.d/60-bridge.conf', f'{BRIDGE} = 1')}",
        (Culprit(words="br_netfilter"),),
        (f"^kernel {BRIDGE} ",),
        {"kernel": {BRIDGE: 1}},
        ("/etc/sysctl.d/60-bridge.conf", RUNNING),
    ),
    Fault(
        "kernel: the only line states more than a policy lets",
        f"{write('/etc/sysctl.d/95-desktop.conf', 'vm.swappiness = 90')}; {LOAD}",
        (Culprit("/etc/sysctl.d/95-desktop.conf", "vm.swappiness = 90"),),
        ("^kernel vm.swappiness ",),
        {"kernel": {"vm.swappiness": {"max": 10}}},
        ("/etc/sysctl.d/50-swap.conf", "/etc/sysctl.d/95-desktop.conf"),
        (RUNNING,),
    ),
    Fault(
        "kernel: another text than the policy's",
        f"{write('/etc/sysctl.d/60-core.conf', 'kernel.core_pattern = /var/crash/%e')}; {LOAD}",
        (Culprit("/etc/sysctl.d/60-core.conf", "kernel.core_pattern"),),
        ("^kernel kernel.core_pattern ",),
        {"kernel": {"kernel.core_pattern": {"exact": "core.%p"}}},
        ("/etc/sysctl.d/60-core.conf",),
        (RUNNING,),
    ),
    Fault(
        "kernel: nobody states it",
        "true",
        (Culprit(words="no file|nobody|nothing"),),
        ("^kernel fs.aio-max-nr ",),
        {"kernel": {"fs.aio-max-nr": 1048576}},
        ("fs.aio-max-nr",),
        (RUNNING,),
    ),
    Fault(
        "kernel: as many files are open as may be",
        f"{OPEN_MANY}; sysctl -q -w fs.file-max=$(($(cut -f 1 /proc/sys/fs/file-nr) + 300))",
        (Culprit(words="files are open"), Culprit(words=f"fs.file-max.*({HAND})")),
        ("^kernel fs.file-max ",),
        touches=(RUNNING,),
    ),
    Fault(
        "kernel: /proc/sys cannot be written, as in a container",
        f"sysctl -q -w {KEY}=65530; mount --bind /proc/sys /proc/sys;"
        " mount -o remount,bind,ro /proc/sys",
        (Culprit(words="read-only"),),
        SHOWS,
        touches=(RUNNING,),
        uses=(OURS,),
        person=f"umount /proc/sys; sysctl -q -w {KEY}=262144",
    ),
]  # fmt: skip
