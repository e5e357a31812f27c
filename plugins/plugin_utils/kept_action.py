# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module of ours from the library that the target keeps, and bring it where it is absent."""

from __future__ import annotations

import json

from ansible import constants as C  # noqa: N812 - Ansible's own name for it
from ansible import context
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.errors import UnsupportedError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible.utils.vars import load_extra_vars

from ..module_utils.core.quote import clean
from .library import read_arguments, read_digest, read_finder, read_packed
from .old_words import find_old_words, find_prefix
from .owners import claim
from .shown import Audience, drop_data, format_block

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from ansible.module_utils.errors import AnsibleValidationError

_KEPT = "mlhost.limits.kept"
_SWITCH = "mlhost_limits_keep_library"


class KeptAction(ActionBase):
    """An action whose module is small, because the target has the rest since the first run."""

    VERB = ""
    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: object = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the result of the module, and display what people read of it."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        del tmp  # Ansible no longer uses it.
        known = task_vars or {}
        problems = list(self._find_problems(known))
        if problems:
            return {**result, "failed": True, "msg": "; ".join(problems), "problems": problems}
        done = self._run_kept(task_vars, boolean(known.get(_SWITCH, True)))
        result.update(self._show(done, self._name_host(known)))
        return result

    def _find_problems(self, known: Mapping[str, Any]) -> Iterator[str]:
        """Yield why nothing is sent to the host."""
        arguments = self._task.args
        yield from find_second_keys(arguments.get("policy"))
        yield from find_old_words(load_extra_vars(self._loader), known.get("playbook_dir", ""))
        if self.VERB == "provision":
            role = self._task._role
            who = f"role {role.get_name()}" if role else f'task "{self._task.get_name()}"'
            play = self._task.get_play()._uuid
            yield from claim(arguments, who, self._name_host(known), play, C.DEFAULT_LOCAL_TMP)

    def _name_host(self, known: Mapping[str, Any]) -> str:
        return str(self._task.delegate_to or known.get("inventory_hostname", ""))

    def _show(self, done: dict[str, Any], host: str) -> dict[str, Any]:
        """Display what people read of a result, and return what the task returns."""
        said = [f"{host}: {clean(str(text))}" for text in done.pop("said", ())]
        if said:
            done["warnings"] = [*(done.get("warnings") or []), *said]
        audience = self._find_audience()
        lines = audience.pick_lines(done)
        if lines and not self._is_secret():
            Display().display(format_block(host, lines))
        return done if audience.keeps_data() else drop_data(done)

    def _find_audience(self) -> Audience:
        cli = context.CLIARGS
        is_plain = cli.get("module_name") and not C.DEFAULT_LOAD_CALLBACK_PLUGINS
        callback = "minimal" if is_plain else C.DEFAULT_STDOUT_CALLBACK
        display = str(self._task.args.get("display", "auto"))
        return Audience(cli, callback, bool(self._task.register), display)

    def _is_secret(self) -> bool:
        """Tell whether the task may show nothing; newer Ansible tells only of the template."""
        told = self._task.no_log
        told = self._templar.template(told) if isinstance(told, str) else told
        return bool(boolean(told, strict=False)) or told is None

    def _run_kept(self, task_vars: dict[str, Any] | None, keeps: bool) -> dict[str, Any]:
        folder = C.DEFAULT_LOCAL_TMP
        spec = read_arguments(folder, self.VERB)
        # Plain values, as a host gets them: newer Ansible has types of its own for tagged ones.
        plain = json.loads(json.dumps(dict(self._task.args), default=str))
        checked = ArgumentSpecValidator(spec).validate(plain)
        if checked.error_messages:
            told = "; ".join(self._describe(error) for error in checked.errors)
            return {"failed": True, "changed": False, "msg": told}
        words = {
            "verb": self.VERB,
            "digest": read_digest(folder),
            "keep": keeps,
            "finder": read_finder(),
            "prefix": self._find_prefix(),
            "arguments": {name: checked.validated_parameters.get(name) for name in spec},
        }
        detached = words["detached"] = bool(self._task.async_val)
        asks = keeps and not detached  # What runs by itself is asked nothing a second time.
        done = self._send(words, task_vars) if asks else {"absent": True}
        if done.get("absent"):
            words["digest"], words["archive"] = read_packed(folder)
            done = self._send(words, task_vars)
        return done

    def _find_prefix(self) -> str:
        """Return what the variables begin with that decide this task's options; or nothing."""
        role = self._task._role
        return find_prefix(role.get_name() if role else "", self.VERB)

    def _send(self, words: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        done: dict[str, Any] = self._execute_module(
            module_name=_KEPT,
            module_args=words,
            task_vars=task_vars,
            wrap_async=words["detached"] and not self._connection.has_native_async,
        )
        return done

    def _describe(self, error: AnsibleValidationError) -> str:
        """Return what is wrong with an argument, as a module of Ansible says it."""
        if isinstance(error, UnsupportedError):
            return f"Unsupported parameters for (mlhost.limits.{self.VERB}) module: {error.msg}"
        return str(error.msg)


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
