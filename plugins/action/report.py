# SPDX-License-Identifier: GPL-3.0-or-later
"""Write what was found on many hosts in one page, on the controller."""

from __future__ import annotations

from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.vars import load_extra_vars

from ..module_utils.audit_files import ENDINGS, read_before, write_reports
from ..module_utils.audit_results import read_clock, read_folder
from ..module_utils.core.finding import FAIL, LATER, UNKNOWN
from ..module_utils.fleet import UNCHECKED, read_host
from ..module_utils.fleet_formats import Beside
from ..module_utils.fleet_options import MAX_AGE
from ..module_utils.fleet_view import Fleet, summarize
from ..plugin_utils.old_words import find_old_words

ARGUMENTS = {
    "dest": {"type": "path", "required": True},
    "formats": {
        "type": "list",
        "elements": "str",
        "choices": sorted(ENDINGS),
        "default": ["html", "json"],
    },
    "results": {"type": "path"},
    "previous": {"type": "path"},
    "max_age": {"type": "float", "default": MAX_AGE},
    "variable": {"type": "str", "default": "audit_check"},
    "title": {"type": "str", "default": "Limits of training hosts"},
    "fail_on": {
        "type": "str",
        "choices": ["fail", "later", "unknown", "never"],
        "default": "fail",
    },
}
_COUNTING = {
    "fail": (FAIL, UNCHECKED),
    "later": (FAIL, UNCHECKED, LATER),
    "unknown": (FAIL, UNCHECKED, LATER, UNKNOWN),
    "never": (),
}


class ActionModule(ActionBase):
    """The action report."""

    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp=None, task_vars=None):
        """Return where the reports are and what they say."""
        result = super().run(tmp, task_vars)
        del tmp  # Ansible no longer uses it.
        words = self.validate_argument_spec(argument_spec=ARGUMENTS)[1]
        folder = (task_vars or {}).get("playbook_dir", "")
        problems = find_old_words(load_extra_vars(self._loader), folder)
        if problems:
            raise AnsibleActionFail("; ".join(problems))
        try:
            result.update(self._report(words, task_vars or {}))
        except OSError as exc:
            told = f"{exc.filename or words['dest']}: {exc.strerror}; no report was changed"
            raise AnsibleActionFail(told) from exc
        except ValueError as exc:
            raise AnsibleActionFail(str(exc)) from exc
        return result

    def _report(self, words, task_vars):
        clock = read_clock(words["max_age"])
        now = clock.now
        if words["results"]:
            hosts = read_folder(Path(words["results"]), clock)
        else:
            hosts = gather_play(task_vars, words["variable"], now)
        dest = Path(words["dest"])
        stem = dest.stem if dest.suffix in ENDINGS.values() else dest.name
        if not dest.parent.is_dir():
            raise ValueError(f"dest (mlhost_limits_audit_dest): {dest.parent} is not a directory")
        told = {"title": words["title"], "written": now}
        beside = gather_beside(words, task_vars, now)
        if self._task.check_mode:
            fleet, files = Fleet(), []
            for host in hosts:
                fleet.add(host)
        else:
            fleet, files = write_reports(hosts, dest.parent, stem, words["formats"], told, beside)
        return describe(fleet, files, words["fail_on"])


def gather_beside(words, task_vars, now):
    """Return the inventory of the play with its whole groups, and how an earlier run found it."""
    sources, whole = (), ()
    if not words["results"]:
        asked = set(task_vars.get("ansible_play_hosts_all", ()))
        sources = tuple(map(str, task_vars.get("ansible_inventory_sources") or ()))
        groups = task_vars.get("groups", {}).items()
        whole = tuple(name for name, members in groups if asked.issuperset(members))
    before = read_before(Path(words["previous"]), now) if words["previous"] else (None, "")
    return Beside(sources, whole, *before)


def describe(fleet, files, fail_on):
    """Return the result of the action."""
    counts = fleet.count_hosts()
    message = summarize(fleet)
    if files:
        message += f"\nwritten to {', '.join(files)}"
    return {
        "changed": bool(files),
        "failed": any(counts[status] for status in _COUNTING[fail_on]),
        "msg": message,
        "report": message.splitlines(),
        "summary": counts,
        "files": files,
    }


def gather_play(task_vars, variable, now):
    """Yield every host of the play by the result it registered, also one that has none."""
    hostvars = task_vars["hostvars"]
    groups = {}
    for group, members in task_vars.get("groups", {}).items():
        for member in members if group not in ("all", "ungrouped") else ():
            groups.setdefault(member, []).append(group)
    for name in task_vars.get("ansible_play_hosts_all", []):
        result = hostvars.raw_get(name).get(variable)
        yield read_host(name, result, tuple(groups.get(name, ())), now)
