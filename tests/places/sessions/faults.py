# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of limits.conf(5) and the files in limits.d."""

from __future__ import annotations

from tests.faults.fault import Culprit, Fault, Policy, append, sed, session, write

FOLDER = "/etc/security/limits.d"
OURS = f"{FOLDER}/90-mlhost.conf"
MAIN = "/etc/security/limits.conf"
VENDOR = f"{FOLDER}/95-vendor.conf"
EARLY = f"{FOLDER}/10-site.conf"


def beats(
    name: str, path: str, line: str, words: str, *shows: str, needs: tuple[str, ...] = ()
) -> Fault:
    """Return a line of another file that gives less than ours and wins."""
    return Fault(
        f"limits: {name}",
        write(path, "# of the vendor", line),
        (Culprit(path, line, words),),
        shows,
        touches=(path,),
        uses=needs,
    )


def spoilt(name: str, good: str, bad: str, words: str, *shows: str, instead: str = "") -> Fault:
    """Return a line of our own file that somebody wrote anew, wrongly.

    :param instead: What may be said of other lines as well, which then do not do.
    """
    others = (Culprit(words=instead),) if instead else ()
    return Fault(
        f"limits: {name}",
        sed(f"s/^{good.replace('*', '[*]')}$/{bad}/", OURS),
        (Culprit(OURS, bad, words), *others),
        shows,
        touches=(OURS,),
    )


def renamed(name: str, path: str) -> Fault:
    """Return our file under a name that pam_limits does not read."""
    return Fault(
        f"limits: {name}",
        f"mv {OURS} {path}",
        (Culprit(path),),
        (*session("nofile", bound="soft"), *session("memlock", user="root")),
        touches=(OURS,),
    )


ALICE = session("nofile", bound="soft")
HARD = (*session("nofile", bound="soft"), *session("nofile", bound="hard"))
MEMLOCK = session("memlock")
# Ways in that do not start with what root has: su and sudo keep it where PAM sets nothing.
FRESH_WAYS = ("sshd", "cron", "login")
FRESH = session("nofile", *FRESH_WAYS, bound="soft")

OF_CLASSES = [
    beats("a user's line beats the wildcard", EARLY, "alice soft nofile 1024", "user", *ALICE),
    beats("a group's line beats the wildcard", EARLY, "@team hard nofile 4096", "group|hard", *HARD),
    beats("a range of user ids", VENDOR, "1000:1999 soft nofile 2048", "uid|id|range|user", *ALICE),
    beats("a range of group ids", f"{FOLDER}/20-gids.conf", "@1000:1000 soft nofile 2048",
          "gid|id|range|group", *ALICE),
    beats("a group id of a member", f"{FOLDER}/21-member.conf", "@:3000 soft memlock 512",
          "gid|id|range|group", *session("memlock", bound="soft")),
    beats("a user id", f"{FOLDER}/22-uid.conf", ":1000 hard nofile 8192", "uid|id|user|hard", *HARD),
    beats("a later file of the same class", f"{FOLDER}/99-zz.conf", "* soft nofile 8192",
          "later|last|after|order|beats", *ALICE),
    beats("a file whose name sorts after digits", f"{FOLDER}/Site.conf", "* hard memlock 65536",
          "later|last|after|order|beats|hard", *MEMLOCK),
    beats("a line for both, by a dash", f"{FOLDER}/30-dash.conf", "alice - nofile 8192", "user",
          *HARD),
    beats("a hard line that clamps the soft one", f"{FOLDER}/96-hard.conf", "* hard nofile 4096",
          "later|last|after|hard|beats", *HARD),
    beats("a line of root's", f"{FOLDER}/99-root.conf", "root - nofile 4096", "later|last|after|order|beats|hard",
          *session("nofile", user="root")),
    beats("two fields, which end everything", f"{FOLDER}/95-none.conf", "alice -",
          "field|nothing|stop|exempt|ends|no limits|-", *FRESH, *session("memlock", *FRESH_WAYS)),
    beats("kilobytes taken for gigabytes", f"{FOLDER}/91-memlock.conf", "* hard memlock 64",
          "", *MEMLOCK),
    beats("a suffix, which is not read", f"{FOLDER}/92-suffix.conf", "@team - memlock 64G",
          "", *MEMLOCK),
    beats("more than fs.nr_open", f"{FOLDER}/97-high.conf", "alice hard nofile 2000000",
          "nr_open", *FRESH),
    beats("a value below zero", f"{FOLDER}/98-minus.conf", "alice hard nofile -5", "", *FRESH),
    beats("hexadecimal digits", f"{FOLDER}/93-hex.conf", "alice soft memlock 0x1000000", "",
          *session("memlock", bound="soft")),
    Fault(
        "limits: a line of limits.conf itself",
        append(MAIN, "@team soft memlock 8192"),
        (Culprit(MAIN, "@team soft memlock 8192", "group"),),
        session("memlock", bound="soft"),
        touches=(MAIN,),
    ),
    Fault(
        "limits: the same class twice in one file",
        append(OURS, "* hard nofile 4096"),
        (Culprit(OURS, "* hard nofile 4096", "later|last|after|twice|beats|hard"),),
        HARD,
        touches=(OURS,),
    ),
]  # fmt: skip

BOB = "useradd --create-home --shell /bin/bash bob"
OF_OTHERS = [
    fault._replace(make=f"{BOB}; {fault.make}", shows=("^session:bob@sshd nofile",))
    for fault in (
        beats("a line of somebody who was not sampled", EARLY, "bob - nofile 1024", "user"),
        beats("a group of somebody who was not sampled", f"{FOLDER}/60-bob.conf",
              "@bob hard nofile 4096", "group|hard"),
        beats("two fields of somebody who was not sampled", f"{FOLDER}/95-bob.conf", "bob -",
              "field|ends|takes|every"),
        beats("a range without who was sampled", f"{FOLDER}/96-ids.conf", "1001: soft nofile 2000",
              "range|user"),
    )
]  # fmt: skip

OF_VALUES = [
    spoilt("a value in quotes", "* soft nofile 65536", '* soft nofile "65536"', "", *ALICE),
    spoilt("a value with a comma", "* soft nofile 65536", "* soft nofile 65,536", "", *ALICE),
    spoilt("three fields", "* soft nofile 65536", "* nofile 65536", "", *ALICE),
    spoilt("an item that is none", "* soft nofile 65536", "* soft nofiles 65536", "", *ALICE),
    spoilt("a type that is none", "* soft nofile 65536", "* both nofile 65536", "", *ALICE),
    spoilt("a word for a number", "* soft memlock unlimited", "* soft memlock max", "",
           *session("memlock", bound="soft")),
    spoilt("a user id without its colon", "root soft nofile 65536", "0 soft nofile 65536", "",
           *session("nofile", user="root", bound="soft"), instead="root"),
    Fault(
        "limits: a mark of byte order before the first line",
        f"sed -i 1d {OURS}; sed -i '1s/^/\\xef\\xbb\\xbf/' {OURS}",
        (Culprit(OURS, "* soft nofile 65536", ""),),
        ALICE,
        touches=(OURS,),
    ),
]  # fmt: skip

OF_ABSENCES = [
    Fault(
        "limits: the wildcard does not mean root",
        f"sed -i '/^root/d' {OURS}",
        (Culprit(words="root"),),
        (*session("nofile", user="root", bound="soft"), *session("memlock", user="root")),
        touches=(OURS,),
    ),
    Fault(
        "limits: a soft line without its hard one",
        f"sed -i '/hard memlock/d' {OURS}",
        (Culprit(words="hard"),),
        (*MEMLOCK, *session("memlock", user="root")),
        touches=(OURS,),
    ),
    Fault(
        "limits: a hard line without its soft one",
        f"sed -i '/[*] soft nofile/d' {OURS}",
        (Culprit(words="soft|no line|nothing|states"),),
        ALICE,
        touches=(OURS,),
    ),
    renamed("a copy kept as .bak", f"{OURS}.bak"),
    renamed("an ending in capitals", f"{FOLDER}/90-mlhost.CONF"),
    renamed("a hidden file", f"{FOLDER}/.90-mlhost.conf"),
    renamed("a name without an ending", f"{FOLDER}/90-mlhost"),
]


def rule(**limits: object) -> Policy:
    """Return a policy with these limits beside the profile's."""
    training = {"nofile": {"soft": 65536, "hard": 1048576}, "memlock": "unlimited"}
    return {"sessions": [{"users": ["*", "root"], "limits": {**training, **limits}}]}


OF_MAXIMA = [
    Fault(
        "limits: more files than a policy lets",
        "sysctl -q -w fs.nr_open=1073741816; " + write(VENDOR, "alice hard nofile 1073741816"),
        (Culprit(VENDOR, "alice hard nofile 1073741816", ""),),
        session("nofile", bound="hard"),
        rule(nofile={"soft": 65536, "hard": 1048576, "max": 1048576}),
        (VENDOR, "sysctl load"),
    ),
    Fault(
        "limits: more processes than a policy lets",
        write(f"{FOLDER}/50-nproc.conf", "* - nproc unlimited"),
        (Culprit(f"{FOLDER}/50-nproc.conf", "* - nproc unlimited", ""),),
        session("nproc", bound="hard"),
        rule(nproc={"max": 100000}),
        (f"{FOLDER}/50-nproc.conf",),
    ),
]

FAULTS = [*OF_CLASSES, *OF_VALUES, *OF_ABSENCES, *OF_MAXIMA]

DASH = "* - memlock unlimited"
MORE = [
    *OF_OTHERS,
    Fault(
        "limits: a user's line beats a group's",
        f"{write(f'{FOLDER}/11-team.conf', '@team soft nofile 131072')}; "
        + write(f"{FOLDER}/12-alice.conf", "alice soft nofile 1024"),
        (Culprit(f"{FOLDER}/12-alice.conf", "alice soft nofile 1024", "group"),),
        ALICE,
        touches=(f"{FOLDER}/12-alice.conf",),
    ),
    Fault(
        "limits: a dash after soft and hard",
        append(OURS, "* - nofile 4096"),
        (Culprit(OURS, "* - nofile 4096"),),
        HARD,
        touches=(OURS,),
    ),
    Fault(
        "limits: a dash whose soft half loses",
        f"sed -i '/[*] hard memlock/d; s/^[*] soft memlock.*/{DASH}/' {OURS}; "
        + write(EARLY, "alice soft memlock unlimited"),
        (Culprit(OURS, DASH), Culprit(EARLY, "alice soft memlock unlimited", "hard")),
        MEMLOCK,
        touches=(OURS, EARLY),
    ),
    spoilt("the only line is low", "* hard memlock unlimited", "* hard memlock 8192", "", *MEMLOCK),
]
