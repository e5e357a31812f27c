# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of tmux(1), screen(1), csh(1) and tuned(8), on a host that has them."""

from __future__ import annotations

from tests.places.kernel.faults import KEY, SHOWS, WATCHES
from tests.places.sessions.faults_pam import SHELLS

from .fault import Culprit, Fault, append, write
from .of_leftovers import HIDE, MINE, RESTORE, required
from .of_leftovers import SHOWS as OLD_SHOWS

EXTRA = "tools"
PROFILE = "/etc/tuned/site/tuned.conf"
MAIN = "/etc/tuned/tuned-main.conf"
PICK = "tuned-adm profile site"


def server(name: str, program: str, end: str) -> Fault:
    """Return a terminal server that outlived the login that started it."""
    start = f"su - alice -c '{program} sleep 9301'; sleep 1"
    return Fault(
        f"terminal: {name}",
        f"{HIDE}; {start}; {RESTORE}",
        (Culprit(words=name),),
        (OLD_SHOWS,),
        required(user="alice"),
        touches=MINE,
        person=f"su - alice -c '{end}'; sleep 1; {start}",
        extra=EXTRA,
    )


def tuned(
    name: str, make: str, line: str, words: str, show: str, policy: dict[str, object]
) -> Fault:
    """Return a profile of the site that tuned applies after the files are read."""
    return Fault(
        f"tuned: {name}",
        f"{make}; {write(PROFILE, '[main]', 'summary=of the site', '[sysctl]', line)}; {PICK}",
        (Culprit(PROFILE, line, words),),
        (show,),
        policy,
        extra=EXTRA,
    )


FAULTS: list[Fault] = []
MORE = [
    server("tmux", "tmux new-session -d", "tmux kill-server"),
    server("screen", "screen -dmS job", "screen -S job -X quit"),
    Fault(
        "shell: csh lowers it",
        "usermod -s /bin/csh alice; " + append("/etc/csh.cshrc", "limit openfiles 1024"),
        (Culprit("/etc/csh.cshrc", "limit openfiles 1024", "shell|lower"),),
        (SHELLS,),
        touches=("/etc/csh.cshrc",),
        extra=EXTRA,
    ),
    tuned("its profile, where tuned does not apply files again",
          f"sed -i '/^reapply_sysctl/d' {MAIN}; {append(MAIN, 'reapply_sysctl = 0')}",
          f"{KEY}=65530", "tuned", SHOWS[0], {}),
    tuned("its profile, over the file of a package",
          write("/usr/lib/sysctl.d/60-watches.conf", f"{WATCHES} = 524288"),
          f"{WATCHES}=8192", "tuned", f"^kernel {WATCHES} ", {"kernel": {WATCHES: 524288}}),
]  # fmt: skip
