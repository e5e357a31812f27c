# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a plan on the controller, note which hosts are through, and stop where too many are red."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..module_utils.audit_files import load_json
from ..module_utils.rollout import NOBODY, WAVES, find_stop, read_rollout

ARGUMENTS = {
    "plan": {"type": "path", "required": True},
    "record": {"type": "path"},
    "by_hand": {"type": "bool", "default": False},
    "override": {"type": "bool", "default": False},
    "wave": {"type": "int"},
}


class ActionModule(ActionBase):
    """The action waves."""

    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp=None, task_vars=None):
        """Return what is left of the plan."""
        result = super().run(tmp, task_vars)
        del tmp  # Ansible no longer uses it.
        words = self.validate_argument_spec(argument_spec=ARGUMENTS)[1]
        if not words["plan"]:
            told = "names no file; what `mlhost-limits plan --json` printed is accepted"
            raise AnsibleActionFail(f"plan (-e mlhost_limits_plan=FILE): {told}")
        if task_vars.get("ansible_limit"):
            raise AnsibleActionFail("a plan does not go with --limit: its waves would be others")
        known = frozenset(task_vars["groups"]["all"])
        record = Path(words["record"] or words["plan"] + ".done")
        try:
            plan = load_plan(Path(words["plan"]))
            if not self._task.check_mode and not os.access(record.absolute().parent, os.W_OK):
                raise ValueError(f"{record.absolute().parent}: cannot be written, for the notes")
            before = read_done(record, plan)
            batch = task_vars.get("ansible_play_batch", ()) if words["wave"] is not None else ()
            done = {*before, *batch}
            rollout = read_plan(words["plan"], plan, before, known)
            if done != before and not self._task.check_mode:
                write_done(record, plan, sorted(done))
        except OSError as exc:
            raise AnsibleActionFail(f"{exc.filename or record}: {exc.strerror}") from exc
        except ValueError as exc:
            raise AnsibleActionFail(str(exc)) from exc
        asked, alive = (task_vars.get(f"ansible_play_hosts{end}", ()) for end in ("_all", ""))
        result.update(describe(rollout, words, set(asked) - set(alive)))
        result["changed"] = done != before
        return result


def load_plan(path):
    """Return what a plan's file holds, as far as it is a mapping."""
    plan = load_json(path)
    return plan if isinstance(plan, dict) else {}


def read_plan(path, plan, done, known):
    """Return what is left of a plan.

    :raises ValueError: With the name of the file.
    """
    try:
        return read_rollout(plan, done, known)
    except ValueError as exc:
        raise ValueError(f"{path} {exc}") from None


def read_done(path, plan):
    """Return the hosts that are through; what is noted of an older plan of that name is not."""
    if not path.exists():
        return set()
    noted = load_plan(path)
    names = noted.get("done") if noted.get("written") == plan.get("written") else noted and []
    if not isinstance(names, list):
        raise ValueError(f"{path}: is not what an earlier run has noted")
    return set(map(str, names))


def write_done(path, plan, names):
    """Write them anew; the old file stays whole until the new one is."""
    new = path.with_name(f".{path.name}.new")
    with open(new, "w", encoding="utf-8") as file:
        json.dump({"written": plan.get("written"), "done": names}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


def describe(rollout, words, red):
    """Return the result of the action.

    :param red: The hosts of this play that failed or were not reached.
    """
    stop = ""
    if words["wave"] is not None:
        if not 1 <= words["wave"] <= WAVES:
            raise AnsibleActionFail(f"wave: {words['wave']} is not one of 1 to {WAVES}")
        stop = find_stop(rollout.waves[words["wave"] - 1], red)
    elif rollout.by_hand and not (words["by_hand"] or words["override"]):
        stop = (
            "the plan has edits that a person makes, or provision where it may override the lines"
            " of others; with mlhost_limits_by_hand or mlhost_limits_override it goes on:"
            f" {'; '.join(rollout.by_hand)}"
        )
    left = sum(len(wave.hosts) for wave in rollout.waves if wave.hosts != NOBODY)
    return {
        "failed": bool(stop),
        "msg": stop or f"{len(rollout.done)} hosts are through, {left} are left",
        "waves": [wave._asdict() for wave in rollout.waves],
        "drains": list(rollout.drains),
        "reboots": list(rollout.reboots),
        "by_hand": list(rollout.by_hand),
        "through": list(rollout.done),
    }
