# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of sysctl.d(5) and sysctl.conf(5), and of the running kernel."""

from __future__ import annotations

from .fault import Culprit, Fault, Policy, append, sed, session, write

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

HAND = "hand|running|written|since|runtime|sysctl -w|nothing"

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
