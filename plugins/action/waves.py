# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a plan on the controller, note which hosts are through, and stop where too many are red."""

from __future__ import annotations

import json
import os
import shlex
import time
from pathlib import Path

from ansible import constants as C  # noqa: N812 - Ansible's own name for it
from ansible import context
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ..module_utils.audit_files import load_json, open_beside
from ..module_utils.core.quote import clean, one_line
from ..module_utils.core.reader import PolicyError
from ..module_utils.rollout import (
    WAVES,
    count_left,
    find_edits,
    find_stop,
    read_rollout,
    tell_progress,
)
from ..module_utils.rollout_nodes import name_node
from ..module_utils.rollout_steps import STEPS, Case
from ..plugin_utils.shown import Audience

ARGUMENTS = {
    "plan": {"type": "path"},
    "record": {"type": "path"},
    "by_hand": {"type": "bool", "default": False},
    "override": {"type": "bool", "default": False},
    "wave": {"type": "int"},
    "rollout": {"type": "dict"},
    "step": {"type": "str", "choices": list(STEPS)},
    "drain": {"type": "str", "choices": ["", "kubernetes", "slurm"], "default": ""},
    "drain_wait": {"type": "int", "default": 86400},
    "node": {"type": "str", "default": ""},
    "reboot": {"type": "bool", "default": False},
    "why": {"type": "str", "default": ""},
}
_PLAN = "what `mlhost-limits plan --json` printed is accepted"


class ActionModule(ActionBase):
    """The action waves."""

    _supports_check_mode = True
    _supports_diff = True
    _requires_connection = False

    def run(self, tmp=None, task_vars=None):
        """Return what is left of the plan, or what became of a node."""
        result = super().run(tmp, task_vars)
        del tmp  # Ansible no longer uses it.
        words = self.validate_argument_spec(
            argument_spec=ARGUMENTS,
            required_one_of=[["plan", "step"]],
            mutually_exclusive=[["plan", "step"]],
            required_by={"step": ["rollout"]},
        )[1]
        if task_vars.get("ansible_limit"):
            raise AnsibleActionFail("a plan does not go with --limit: its waves would be others")
        try:
            done = self._take_step(words, task_vars) if words["step"] else None
            result.update(done or self._follow(words, task_vars))
        except OSError as exc:
            raise AnsibleActionFail(f"{exc.filename or words['plan']}: {exc.strerror}") from exc
        except ValueError as exc:
            raise AnsibleActionFail(str(exc)) from exc
        self._tell(result, task_vars["inventory_hostname"])
        return result

    def _tell(self, result, host):
        """Display what people read of a result that is not an error, which Ansible displays."""
        audience = Audience(context.CLIARGS, C.DEFAULT_STDOUT_CALLBACK, False, "auto")
        if result.get("msg") and not (result.get("failed") or audience.is_program):
            Display().display(clean(f"{host}: {result['msg']}"))

    def _follow(self, words, known):
        """Return what is left of the plan, once the hosts of this batch are noted."""
        if not words["plan"]:
            raise ValueError(f"plan (-e mlhost_limits_plan=FILE): names no file; {_PLAN}")
        if words["wave"] is not None and not 1 <= words["wave"] <= WAVES:
            raise ValueError(f"wave: {words['wave']} was given; 1 to {WAVES} are accepted")
        check_mode, path = self._task.check_mode, Path(words["plan"])
        record = Path(words["record"] or words["plan"] + ".done")
        plan = load_plan(path)
        names = frozenset(known["groups"]["all"]) - frozenset(known["groups"])
        rollout = read_plan(path, plan, (), names)  # A damaged plan is told before its notes.
        if not check_mode and not os.access(record.absolute().parent, os.W_OK):
            raise ValueError(f"{record.absolute().parent}: cannot be written, for the notes")
        before = read_done(record, plan)
        done = set(before)
        if words["wave"] is not None:
            refuse_another(path, plan, words["rollout"])
            done.update(known.get("ansible_play_batch", ()))
        if done != before and not check_mode:
            write_done(record, plan, sorted(done))
        rollout = read_plan(path, plan, before if check_mode else done, names)
        asked, alive = (known.get(f"ansible_play_hosts{end}", ()) for end in ("_all", ""))
        result = describe(rollout, words, set(asked) - set(alive))
        if done != before and self._task.diff:
            result["diff"] = format_diff(str(record), *map(format_names, (before, done)))
        return {**result, "changed": done != before, "written": plan["written"]}

    def _take_step(self, words, known):
        """Return what became of the node that this host is, if a fix ends its work."""
        host, rollout = known["inventory_hostname"], words["rollout"]
        reboots = host in rollout.get("reboots", ())
        result = {"changed": False, "reboot": reboots and words["reboot"], "shows_jobs": False}
        if reboots and not words["reboot"] and words["step"] == "drain":
            told = "a fix reboots it, which mlhost_limits_reboot does not allow: it goes on without"
            result["warnings"] = [f"{host}: {told}"]
        if not words["drain"] or host not in rollout.get("drains", ()):
            return {**result, "skipped": True}
        try:
            return {**result, **self._take_node(words, host)}
        except ValueError as exc:
            if not self._task.check_mode:
                raise
            return {**result, "warnings": [f"{host} would be red: {exc}"]}

    def _take_node(self, words, host):
        """Return what became of a node.

        :raises ValueError: If it is down, or is taken back, with what became of it then.
        """
        step, why = words["step"], one_line(words["why"])
        try:
            node, is_check = name_node(words["node"], host), self._task.check_mode
            ask, wait = self._ask, words["drain_wait"]
            case = Case(words["drain"], node, ask, time.sleep, wait, is_check)
            taken = STEPS[step](case)
        except ValueError as exc:
            raise ValueError(f"{why}; {exc}" if why else str(exc)) from exc
        if step == "take_back":
            raise ValueError(f"{why}; {taken.msg}")
        shows_jobs = taken.takes_work and words["drain"] == "slurm"
        result = {"changed": taken.changed, "msg": taken.msg, "shows_jobs": shows_jobs}
        if taken.changed and self._task.diff:
            result["diff"] = format_diff(case.who, f"{taken.before}\n", f"{taken.after}\n")
        return result

    def _ask(self, command):
        """Run a command where the scheduler is asked, also in check mode: looks change nothing."""
        done = self._low_level_execute_command(shlex.join(command))
        told = done["stdout"] if done["rc"] == 0 else f"{done['stdout']}\n{done['stderr']}"
        return done["rc"], told


def load_plan(path):
    """Return what a plan's file holds.

    :raises ValueError: If that is not a mapping in JSON.
    """
    if path.exists() and not path.is_file():
        raise ValueError(f"{path}: is not a regular file; {_PLAN}")
    if path.exists() and not path.stat().st_size:
        raise ValueError(f"{path}: is empty; {_PLAN}")
    try:
        plan = load_json(path)
    except ValueError as exc:
        raise ValueError(f"{exc}; {_PLAN}") from None
    if not isinstance(plan, dict):
        raise ValueError(f"{path}: is not a mapping; {_PLAN}")
    return plan


def read_plan(path, plan, done, known):
    """Return what is left of a plan.

    :raises ValueError: With the name of the file before each problem.
    """
    try:
        return read_rollout(plan, done, known)
    except PolicyError as exc:
        raise PolicyError(f"{path}: {one}" for one in exc.problems) from None


def refuse_another(path, plan, rollout):
    """Refuse a plan that took the place of the one that this run follows."""
    if rollout and rollout.get("written") != plan["written"]:
        told = f"was written {one_line(plan['written'])}, and this run follows another"
        raise ValueError(f"{path}: {told}; the same command begins with the new one")


def read_done(path, plan):
    """Return the hosts that are through; what is noted of an older plan of that name is not."""
    if not path.exists():
        return set()
    accepted = "what an earlier run noted is accepted; without the file it begins anew"
    try:
        noted = load_json(path)
        names = noted["done"] if noted["written"] == plan["written"] else []
    except ValueError as exc:
        raise ValueError(f"{exc}; {accepted}") from None
    except (KeyError, TypeError):
        names = None
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise ValueError(f"{path}: is not notes of a rollout; {accepted}")
    return set(names)


def write_done(path, plan, names):
    """Write them anew; the old file stays whole until the new one is."""
    with open_beside(path) as (file, take_name):
        json.dump({"written": plan["written"], "done": names}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
        take_name()


def format_names(names):
    return "".join(f"{name}\n" for name in sorted(names))


def format_diff(header, before, after):
    headers = {"before_header": header, "after_header": header}
    return {**headers, "before": before, "after": after}


def describe(rollout, words, red):
    """Return the result of the action.

    :param red: The hosts of this play that failed or were not reached.
    """
    stop = ""
    if words["wave"] is not None:
        stop = find_stop(rollout.waves[words["wave"] - 1], red)
    elif count_left(rollout) and not (words["by_hand"] or words["override"]):
        stop = find_edits(rollout)
    return {
        "failed": bool(stop),
        "msg": stop or tell_progress(rollout),
        "waves": [wave._asdict() for wave in rollout.waves],
        "drains": list(rollout.drains),
        "reboots": list(rollout.reboots),
        "by_hand": list(rollout.by_hand),
        "through": list(rollout.done),
    }
