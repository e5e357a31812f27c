# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of systemd.exec(5), systemd.unit(5) and systemd-system.conf(5), shown by two services."""

from __future__ import annotations

from tests.faults.base import LIMITS, UNIT, UNIT_LINES
from tests.faults.fault import Culprit, Fault, Policy, append, sed, write

LOADED = "units loaded"
RESTART = "systemctl daemon-reload; systemctl restart trainer.service"
SOFT = (r"^(process|service):.* nofile soft",)
HARD = (*SOFT, r"^(process|service):.* nofile hard")
MEMLOCK = (r"^(process|service):.* memlock ",)
ETC = "/etc/systemd/system/trainer.service.d"

PLAIN = "/etc/systemd/system/plain.service"
START_PLAIN = (
    f"{write(PLAIN, '[Service]', 'ExecStart=/usr/bin/sleep infinity')}; systemctl daemon-reload;"
    " systemctl restart plain.service"
)
OF_PLAIN: Policy = {"processes": [{"unit": "plain.service", "limits": LIMITS}]}
MANAGER = "/etc/systemd/system.conf.d"
SITE = f"{MANAGER}/50-site.conf"
RIGHT = ("[Manager]", "DefaultLimitNOFILE=65536:1048576", "DefaultLimitMEMLOCK=infinity")


def drop_in(
    name: str, path: str, line: str, words: str = "", shows: tuple[str, ...] = HARD,
    section: str = "[Service]",
) -> Fault:  # fmt: skip
    """Return a drop-in that gives our service less than its own file."""
    return Fault(
        f"unit: {name}",
        f"{write(path, section, line)}; {RESTART}",
        (Culprit(path, line, words),),
        shows,
        touches=(path,),
        uses=(LOADED, UNIT),
    )


def own(name: str, old: str, new: str, words: str = "", shows: tuple[str, ...] = HARD) -> Fault:
    """Return our service's own file with a line that somebody wrote anew."""
    return Fault(
        f"unit: {name}",
        f"{sed(f's/^{old}$/{new}/', UNIT)}; {RESTART}",
        (Culprit(UNIT, new, words),),
        shows,
        touches=(UNIT,),
        uses=(LOADED,),
    )


def manager(name: str, make: str, culprit: Culprit, shows: tuple[str, ...], *touches: str) -> Fault:
    """Return a fault of the manager's defaults, which a service without limits of its own gets."""
    return Fault(
        f"manager: {name}",
        f"{make}; {START_PLAIN}",
        (culprit,),
        shows,
        OF_PLAIN,
        (*touches, PLAIN),
        (LOADED,),
    )


NOFILE = "LimitNOFILE=65536:1048576"

OF_FILES = [
    drop_in("a drop-in", f"{ETC}/50-low.conf", "LimitNOFILE=1024:4096"),
    drop_in("a drop-in in /run", "/run/systemd/system/trainer.service.d/60-run.conf",
            "LimitNOFILE=1024", shows=HARD),
    drop_in("a vendor's drop-in", "/usr/lib/systemd/system/trainer.service.d/70-vendor.conf",
            "LimitMEMLOCK=8M", shows=MEMLOCK),
    drop_in("a drop-in for all services", "/etc/systemd/system/service.d/99-all.conf",
            "LimitMEMLOCK=64K", shows=MEMLOCK),
    drop_in("bytes taken for kilobytes", f"{ETC}/80-bytes.conf", "LimitMEMLOCK=65536",
            shows=MEMLOCK),
    drop_in("a soft limit alone is both", f"{ETC}/40-one.conf", "LimitNOFILE=65536",
            shows=HARD[1:]),
    own("its own line is low", NOFILE, "LimitNOFILE=4096"),
    own("a value with a suffix", NOFILE, "LimitNOFILE=64k", "ignor|parse|value|read|number"),
    own("a value that only limits.conf knows", "LimitMEMLOCK=infinity", "LimitMEMLOCK=unlimited",
        "ignor|parse|value|read|number|infinity", MEMLOCK),
    own("soft above hard", NOFILE, "LimitNOFILE=65536:1024", "ignor|soft|above|hard"),
    own("a key in small letters", NOFILE, "limitnofile=65536:1048576", "ignor|unknown|key|spel"),
    own("a key that is misspelled", NOFILE, "LimitNOFILES=65536:1048576", "ignor|unknown|key|spel"),
    own("a comment behind the value", NOFILE, "LimitNOFILE=1048576 # files",
        "ignor|parse|value|read|number|comment"),
    Fault(
        "unit: a line in the wrong section",
        f"sed -i '/^LimitNOFILE/d; s/^.Unit.$/&\\n{NOFILE}/' {UNIT}; {RESTART}",
        (Culprit(UNIT, NOFILE, "section|ignor"),),
        HARD,
        touches=(UNIT,),
        uses=(LOADED,),
    ),
    Fault(
        "unit: nobody states it",
        f"sed -i '/^Limit/d' {UNIT}; {RESTART}",
        (Culprit(words="default|state|nobody|no line|nothing"),),
        (*HARD, *MEMLOCK),
        touches=(UNIT,),
        uses=(LOADED,),
    ),
    Fault(
        "unit: a drop-in hidden by a link to nothing",
        f"sed -i '/^LimitNOFILE/d' {UNIT}; "
        + write("/usr/lib/systemd/system/trainer.service.d/30-files.conf", "[Service]", NOFILE)
        + f"; mkdir -p {ETC}; ln -s /dev/null {ETC}/30-files.conf; {RESTART}",
        (Culprit(f"{ETC}/30-files.conf"),),
        HARD,
        touches=(UNIT, f"{ETC}/30-files.conf"),
        uses=(LOADED,),
    ),
    Fault(
        "unit: a drop-in without its ending",
        f"sed -i '/^LimitNOFILE/d' {UNIT}; {write(f'{ETC}/limits', '[Service]', NOFILE)}; {RESTART}",
        (Culprit(f"{ETC}/limits"), Culprit(f"{ETC}/limits", NOFILE)),
        HARD,
        touches=(UNIT, f"{ETC}/limits"),
        uses=(LOADED,),
    ),
    Fault(
        "unit: the command lowers it",
        sed("s,^ExecStart=.*,ExecStart=/bin/sh -c 'ulimit -n 1024; exec sleep infinity',", UNIT)
        + f"; {RESTART}",
        (Culprit(UNIT, "ulimit -n 1024"), Culprit(words="itself|ulimit|prlimit|running process")),
        HARD,
        touches=(UNIT,),
        uses=(LOADED,),
    ),
    Fault(
        "unit: prlimit starts it",
        f"{sed('s,^ExecStart=,&/usr/bin/prlimit -n1024 ,', UNIT)}; {RESTART}",
        (Culprit(UNIT, "prlimit"),),
        HARD,
        touches=(UNIT,),
        uses=(LOADED,),
        person=f"{sed('s,/usr/bin/prlimit -n1024 ,,', UNIT)}; {RESTART}",
    ),
]  # fmt: skip

LOW = write(f"{ETC}/50-low.conf", "[Service]", "LimitNOFILE=1024:4096")

OF_RUNNING_SERVICES = [
    Fault(
        "unit: not restarted since it was put right",
        f"{LOW}; {RESTART}; rm {ETC}/50-low.conf; systemctl daemon-reload",
        (Culprit(words="restart|start|since|older"),),
        HARD,
        touches=(f"{ETC}/50-low.conf", LOADED),
        uses=(UNIT,),
    ),
    Fault(
        "unit: not reloaded since it was put right",
        f"{LOW}; {RESTART}; rm {ETC}/50-low.conf",
        (Culprit(words="reload"),),
        HARD,
        touches=(f"{ETC}/50-low.conf", LOADED),
        uses=(UNIT,),
    ),
    Fault(
        "unit: the file is right, the manager has read an older one",
        f"{sed('s/65536:1048576/1024:4096/', UNIT)}; {RESTART}; {sed('s/1024:4096/65536:1048576/', UNIT)}",
        (Culprit(words="reload"),),
        HARD,
        touches=(UNIT, LOADED),
    ),
    Fault(
        "unit: a file that waits for the next restart",
        f"{write(f'{ETC}/51-waits.conf', '[Service]', 'LimitNOFILE=1024:4096')}; systemctl daemon-reload",
        (Culprit(f"{ETC}/51-waits.conf", "LimitNOFILE=1024:4096"),),
        HARD,
        touches=(f"{ETC}/51-waits.conf", LOADED),
        uses=(UNIT,),
    ),
    Fault(
        "unit: lowered while it runs",
        "prlimit --pid $(systemctl show -P MainPID trainer) --nofile=1024:4096",
        (Culprit(words="prlimit|while it|running|itself|after its start|since"),),
        HARD,
        touches=(LOADED,),
        uses=(UNIT,),
    ),
]

OF_MANAGERS = [
    manager("a later drop-in", f"{write(SITE, *RIGHT)}; "
            + write(f"{MANAGER}/90-vendor.conf", "[Manager]", "DefaultLimitNOFILE=1024:4096"),
            Culprit(f"{MANAGER}/90-vendor.conf", "DefaultLimitNOFILE=1024:4096"), HARD,
            SITE, f"{MANAGER}/90-vendor.conf"),
    manager("a vendor's drop-in that sorts later", f"{write(SITE, *RIGHT)}; "
            + write("/usr/lib/systemd/system.conf.d/95-v.conf", "[Manager]", "DefaultLimitMEMLOCK=64K"),
            Culprit("/usr/lib/systemd/system.conf.d/95-v.conf", "DefaultLimitMEMLOCK=64K"), MEMLOCK,
            SITE, "/usr/lib/systemd/system.conf.d/95-v.conf"),
    manager("a drop-in beats system.conf", f"sed -i '/^.Manager./a{RIGHT[1]}\\n{RIGHT[2]}' /etc/systemd/system.conf; "
            + write(f"{MANAGER}/20-low.conf", "[Manager]", "DefaultLimitNOFILE=4096"),
            Culprit(f"{MANAGER}/20-low.conf", "DefaultLimitNOFILE=4096"), HARD,
            "/etc/systemd/system.conf", f"{MANAGER}/20-low.conf"),
    manager("no section header", write(SITE, *RIGHT[1:]),
            Culprit(SITE, "", "section|header|Manager"), (*HARD, *MEMLOCK), SITE),
    manager("a value with a suffix", write(SITE, "[Manager]", "DefaultLimitNOFILE=1M", RIGHT[2]),
            Culprit(SITE, "DefaultLimitNOFILE=1M", "ignor|parse|value|read|number"), HARD, SITE),
    manager("nobody states it", "true",
            Culprit(words="default|state|nobody|no line|nothing"), (*HARD, *MEMLOCK)),
    manager("a name without .conf", write(f"{MANAGER}/50-site", *RIGHT),
            Culprit(f"{MANAGER}/50-site"), (*HARD, *MEMLOCK), f"{MANAGER}/50-site"),
]  # fmt: skip

assert UNIT_LINES[4] == NOFILE
FAULTS = [*OF_FILES, *OF_RUNNING_SERVICES, *OF_MANAGERS]

BOX, VENDORS_BOX = "/etc/systemd/system/box.service", "/usr/lib/systemd/system/box.service"
START_LINE = "ExecStart=/usr/bin/sleep infinity"
START_BOX = "systemctl daemon-reload; systemctl restart box.service"


def box(name: str, make: str, culprit: Culprit, shows: tuple[str, ...], limits: object) -> Fault:
    """Return a fault of another service, of which this is asked."""
    policy = {"processes": [{"unit": "box.service", "limits": limits}]}
    return Fault(
        f"unit: {name}", f"{make}; {START_BOX}", (culprit,), shows, policy, (BOX,), (LOADED,)
    )


MORE = [
    own("a line that is a comment", NOFILE, f"# {NOFILE}", "comment"),
    Fault(
        "unit: two lines in one file",
        f"{append(UNIT, 'LimitNOFILE=1024:4096')}; {RESTART}",
        (Culprit(UNIT, "LimitNOFILE=1024:4096"),),
        HARD,
        touches=(UNIT,),
        uses=(LOADED,),
    ),
    Fault(
        "unit: a drop-in whose header lacks its bracket",
        f"sed -i '/^LimitNOFILE/d' {UNIT}; {write(f'{ETC}/30-files.conf', '[Service', NOFILE)}; {RESTART}",
        (Culprit(f"{ETC}/30-files.conf", "[Service"),),
        HARD,
        touches=(UNIT, f"{ETC}/30-files.conf"),
        uses=(LOADED,),
    ),
    Fault(
        "unit: its own header lacks its bracket",
        f"{sed('s/^.Service.$/[Service/', UNIT)}; systemctl daemon-reload",
        (Culprit(UNIT, "[Service"),),
        HARD,
        touches=(UNIT,),
        uses=(LOADED,),
    ),
    Fault(
        "unit: more files than fs.nr_open",
        f"{sed('s/1048576/2000000/', UNIT)}; {RESTART}",
        (Culprit(UNIT, "LimitNOFILE=65536:2000000", "nr_open"),),
        HARD[1:],
        {"processes": [{"unit": "trainer.service", "limits": {"nofile": {"soft": 65536, "hard": 2000000}}}]},
        (UNIT, "fs.nr_open"),
        (LOADED,),
    ),
    box("more than a policy lets", write(BOX, "[Service]", START_LINE, "LimitNPROC=20000"),
        Culprit(BOX, "LimitNPROC=20000"), (r"^(process|service):.* nproc hard",),
        {"nproc": {"max": 10000}}),
    box("a copy in /etc hides the package's own",
        f"{write(VENDORS_BOX, '[Service]', START_LINE, NOFILE)}; {write(BOX, '[Service]', START_LINE)}",
        Culprit(BOX), HARD, {"nofile": LIMITS["nofile"]}),
    box("it runs through PAM, which starts over",
        write(BOX, "[Service]", START_LINE, "User=alice", "PAMName=cron", "LimitSTACK=64M"),
        Culprit(BOX, "PAMName=cron", "PAM"), (r"^(process|service):.* stack soft",),
        {"stack": {"soft": "64MiB"}}),
    Fault(
        "unit: PAM moves its process to a session",
        write(BOX, "[Service]", START_LINE, "User=alice", "PAMName=su", "LimitSTACK=64M")
        + f"; {START_BOX}",
        (Culprit(BOX, "PAMName=su", "PAM"),),
        (r"^service:box.service stack",),
        {"services": {"units": {"box.service": {"stack": "64MiB"}}}},
        (BOX,),
        (LOADED,),
    ),
    manager("a service that states less",
            f"{write(SITE, *RIGHT)}; {write(f'{PLAIN}.d/10-low.conf', '[Service]', 'LimitNOFILE=1024:4096')}",
            Culprit(f"{PLAIN}.d/10-low.conf", "LimitNOFILE=1024:4096"), HARD, SITE),
    manager("a default that is low", write(SITE, "[Manager]", "DefaultLimitNOFILE=1024:4096", RIGHT[2]),
            Culprit(SITE, "DefaultLimitNOFILE=1024:4096"), HARD, SITE),
]  # fmt: skip
