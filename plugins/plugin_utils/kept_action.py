# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module of ours from the library that the target keeps, and bring it where it is absent."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ..module_utils.kept_folder import digest_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LIBRARY = Path(__file__).parents[1] / "module_utils"
_REPORTS = "audit"  # Files of this name serve the controller only.
_KEPT = "mlhost.limits.kept"
_SWITCH = "mlhost_limits_keep_library"


class KeptAction(ActionBase):
    """An action whose module is small, because the target has the rest since the first run."""

    VERB = ""
    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: object = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the result of the module."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        del tmp  # Ansible no longer uses it.
        problems = find_second_keys(self._task.args.get("policy"))
        if problems:
            return {**result, "failed": True, "msg": "; ".join(problems), "problems": problems}
        keeps = boolean((task_vars or {}).get(_SWITCH, True))
        if self._task.async_val or not keeps:
            done = self._run_whole(task_vars)
        else:
            done = self._run_kept(task_vars)
        result.update(done)
        return result

    def _run_whole(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        asynchronous = bool(self._task.async_val) and not self._connection.has_native_async
        done: dict[str, Any] = self._execute_module(
            module_name=f"mlhost.limits.{self.VERB}", task_vars=task_vars, wrap_async=asynchronous
        )
        return done

    def _run_kept(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        library = read_library()
        words = {
            "verb": self.VERB,
            "digest": digest_files(library),
            "arguments": dict(self._task.args),
        }
        done: dict[str, Any] = self._execute_module(
            module_name=_KEPT, module_args=words, task_vars=task_vars
        )
        if done.get("absent"):
            from ..module_utils.kept import pack  # Long, and needed once for each target.

            words["archive"] = pack(library)
            done = self._execute_module(module_name=_KEPT, module_args=words, task_vars=task_vars)
        return done


def find_second_keys(policy: object) -> list[str]:
    """Return what is wrong with a policy that was given as JSON in a text, as on a command line.

    Ansible makes a mapping of it, and a key that is stated twice is gone then.
    """
    if not isinstance(policy, str):
        return []
    from ..module_utils.core.policy_tree import parse_json  # Seldom needed.
    from ..module_utils.core.reader import PolicyError

    try:
        return list(parse_json(policy, "policy").problems)
    except PolicyError as exc:
        return exc.problems
    except ValueError:
        return []  # Ansible knows other ways to write a mapping.


def read_library() -> dict[str, bytes]:
    """Return the files that training hosts run, by their paths in the library."""
    return {
        path.relative_to(_LIBRARY).as_posix(): path.read_bytes()
        for path in _LIBRARY.rglob("*.py")
        if not path.name.startswith(_REPORTS)
    }
