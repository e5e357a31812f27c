# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of new services, users' managers, tasks and logind, whose places a policy may name."""

from __future__ import annotations

from tests.faults.base import UNIT
from tests.faults.fault import Culprit, Fault, Policy, write
from tests.places.systemd.faults import LOADED

DEFAULT: Policy = {"services": {"default": {"memlock": "unlimited"}}}
USER: Policy = {"services": {"user_default": {"nofile": {"soft": 65536, "hard": 1048576}}}}
TASKS: Policy = {"services": {"units": {"trainer.service": {"tasks": 1000}}}}
SLICE: Policy = {"services": {"units": {"user-.slice": {"tasks": 2000}}}}
SHARED: Policy = {"services": {"logind": {"remove_ipc": False}}}

SYSTEM_D, USER_D = "/etc/systemd/system.conf.d", "/etc/systemd/user.conf.d"
LOGIND_D, UNIT_D = "/etc/systemd/logind.conf.d", "/etc/systemd/system/trainer.service.d"
RELOAD = "systemctl daemon-reload"
RIGHT = write(f"{SYSTEM_D}/50-right.conf", "[Manager]", "DefaultLimitMEMLOCK=infinity")
RIGHT_FOR_USERS = write(f"{USER_D}/50-right.conf", "[Manager]", "DefaultLimitNOFILE=65536:1048576")
KEPT = write(f"{LOGIND_D}/50-right.conf", "[Login]", "RemoveIPC=no")
TELL_LOGIND = "systemctl kill --kill-who=main -s HUP systemd-logind.service"
ALICE = "/run/user/$(id -u alice)"
LINGER = f"loginctl enable-linger alice; until [ -S {ALICE}/systemd/private ]; do sleep 1; done"
TELL_ALICE = f"runuser -u alice -- env XDG_RUNTIME_DIR={ALICE} systemctl --user daemon-reload"

FAULTS = [
    Fault(
        "service: a later default for all",
        f"{RIGHT}; {write(f'{SYSTEM_D}/60-low.conf', '[Manager]', 'DefaultLimitMEMLOCK=64K')}; {RELOAD}",
        (Culprit(f"{SYSTEM_D}/60-low.conf", "DefaultLimitMEMLOCK=64K"),),
        ("^new-service:system memlock",),
        DEFAULT,
        (f"{SYSTEM_D}/50-right.conf", f"{SYSTEM_D}/60-low.conf"),
        (LOADED,),
    ),
    Fault(
        "service: a default that the manager has not read",
        RIGHT,
        (Culprit(words="reload|not read"),),
        ("^new-service:system memlock",),
        DEFAULT,
        (f"{SYSTEM_D}/50-right.conf", LOADED),
    ),
    Fault(
        "service: a default in a word that systemd does not know",
        f"{write(f'{SYSTEM_D}/50-word.conf', '[Manager]', 'DefaultLimitMEMLOCK=unlimited')}; {RELOAD}",
        (Culprit(f"{SYSTEM_D}/50-word.conf", "DefaultLimitMEMLOCK=unlimited", "ignor"),),
        ("^new-service:system memlock",),
        DEFAULT,
        (f"{SYSTEM_D}/50-word.conf",),
        (LOADED,),
    ),
    Fault(
        "service: a later default for users",
        f"{RIGHT_FOR_USERS}; "
        + write(f"{USER_D}/60-low.conf", "[Manager]", "DefaultLimitNOFILE=1024:4096")
        + f"; {LINGER}; {TELL_ALICE}",
        (Culprit(f"{USER_D}/60-low.conf", "DefaultLimitNOFILE=1024:4096"),),
        ("^new-service:alice nofile soft", "^new-service:alice nofile hard"),
        USER,
        (f"{USER_D}/50-right.conf", f"{USER_D}/60-low.conf"),
    ),
    Fault(
        "service: a default that a user's manager has not read",
        f"{LINGER}; sleep 1; {RIGHT_FOR_USERS}",
        (Culprit(words="reload|not read"),),
        ("^new-service:alice nofile soft",),
        USER,
        (f"{USER_D}/50-right.conf",),
    ),
    Fault(
        "service: few tasks for a unit",
        f"{write(f'{UNIT_D}/70-tasks.conf', '[Service]', 'TasksMax=20')}; {RELOAD}",
        (Culprit(f"{UNIT_D}/70-tasks.conf", "TasksMax=20"),),
        ("^service:trainer.service tasks",),
        TASKS,
        (f"{UNIT_D}/70-tasks.conf",),
        (LOADED, UNIT),
    ),
    Fault(
        "service: few tasks for the slice of all services",
        write("/etc/systemd/system/system.slice.d/70-tasks.conf", "[Slice]", "TasksMax=500")
        + f"; {RELOAD}",
        (Culprit("/etc/systemd/system/system.slice.d/70-tasks.conf", "TasksMax=500"),),
        ("^service:trainer.service tasks",),
        TASKS,
        ("/etc/systemd/system/system.slice.d/70-tasks.conf",),
        (LOADED, UNIT),
    ),
    Fault(
        "service: few tasks by default",
        f"{write(f'{SYSTEM_D}/70-tasks.conf', '[Manager]', 'DefaultTasksMax=30')}; {RELOAD}",
        (Culprit(f"{SYSTEM_D}/70-tasks.conf", "DefaultTasksMax=30"),),
        ("^service:trainer.service tasks",),
        TASKS,
        (f"{SYSTEM_D}/70-tasks.conf",),
        (LOADED, UNIT),
    ),
    Fault(
        "service: tasks bounded by hand",
        "echo 20 > /sys/fs/cgroup/system.slice/trainer.service/pids.max",
        (Culprit(words="pids.max"),),
        ("^service:trainer.service tasks",),
        TASKS,
        (LOADED,),
        (UNIT,),
    ),
    Fault(
        "service: few tasks for each user",
        write("/etc/systemd/system/user-.slice.d/70-tasks.conf", "[Slice]", "TasksMax=1%")
        + f"; {RELOAD}",
        (Culprit("/etc/systemd/system/user-.slice.d/70-tasks.conf", "TasksMax=1%"),),
        ("^service:user-0.slice tasks",),
        SLICE,
        ("/etc/systemd/system/user-.slice.d/70-tasks.conf",),
        (LOADED,),
    ),
    Fault(
        "service: logind removes shared memory",
        f"{KEPT}; {write(f'{LOGIND_D}/60-site.conf', '[Login]', 'RemoveIPC=yes')}; {TELL_LOGIND}",
        (Culprit(f"{LOGIND_D}/60-site.conf", "RemoveIPC=yes"),),
        ("^logind RemoveIPC",),
        SHARED,
        (f"{LOGIND_D}/50-right.conf", f"{LOGIND_D}/60-site.conf"),
    ),
    Fault(
        "service: logind has not read its files",
        KEPT,
        (Culprit(words="reload|not read"),),
        ("^logind RemoveIPC",),
        SHARED,
        (f"{LOGIND_D}/50-right.conf",),
    ),
]

MORE = [
    Fault(
        "service: logind removes shared memory by default",
        "true",
        (Culprit(words="no file|default"),),
        ("^logind RemoveIPC",),
        SHARED,
        (f"{LOGIND_D}/50-right.conf",),
    ),
]
