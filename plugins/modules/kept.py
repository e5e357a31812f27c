#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run check or provision from the copy of the library that an earlier run left on the target."""

DOCUMENTATION = r"""
module: kept
short_description: What check and provision send to the target
version_added: 0.1.0
author: The mlhost.limits founders (!UNKNOWN)
description:
  - Is called by M(mlhost.limits.check), M(mlhost.limits.provision) and M(mlhost.limits.monitor),
    and by nobody else.
  - Runs them from the library that an earlier run has left in C(/run/mlhost-limits/library), which
    only its owner can write. Says so where there is none; it is then called again with the library.
  - In check mode, and where there is no place for it, the library lives as long as the run.
options:
  verb:
    description: Which module is meant.
    type: str
    choices: [check, provision, monitor]
    required: true
  digest:
    description: What names the library by its content.
    type: str
    required: true
  keep:
    description: Whether the library is kept for the next run.
    type: bool
    default: true
  finder:
    description: The program that finds the library.
    type: str
    required: true
  arguments:
    description: The arguments of that module.
    type: dict
    default: {}
  archive:
    description: The library itself.
    type: str
  detached:
    description: Whether the task is asynchronous, so that no action sees the result.
    type: bool
    default: false
  prefix:
    description: What the variables of the role begin with that runs it; empty without a role.
    type: str
    default: ""
attributes:
  check_mode: {support: full, description: As the module that is meant.}
  diff_mode: {support: full, description: As the module that is meant.}
  idempotent: {support: full, description: As the module that is meant.}
  platform: {support: full, platforms: linux, description: Needs Python 3.8 or later.}
seealso:
  - module: mlhost.limits.check
  - module: mlhost.limits.provision
"""

EXAMPLES = r"""
- name: Let check call it
  mlhost.limits.check:
"""

RETURN = r"""
absent:
  description: Whether the library is not there and nothing was done.
  returned: where it is so
  type: bool
"""

import os
import sys

for one in ("", ".", os.path.dirname(sys.argv[0])):
    while one in sys.path:
        sys.path.remove(one)  # The folder that this starts in may be anybody's.

import contextlib
import gc
import importlib
import json
import syslog
import types

WORDS = r"""<<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>"""  # Ansible puts them here, and adds no more.
OLDEST = (3, 8)
FOLDERS = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - in one of them, a folder of its own


def main():
    gc.disable()  # It lives for a moment.
    try:
        result = run(json.loads(WORDS))
    except Exception as exc:
        result = tell(exc)
    sys.stdout.write(f"{json.dumps(result)}\n")
    raise SystemExit(1 if result.get("failed") else 0)


def run(words):
    """Return the result of the module that is meant."""
    if sys.version_info < OLDEST:
        found = ".".join(map(str, sys.version_info[:2]))
        raise OSError(f"Python 3.8 or later is needed on this host; it has {found}")
    note(words)
    finder = types.ModuleType("finder")
    exec(words["finder"], vars(finder))  # noqa: S102 - the controller's own, as all of this
    verb, check_mode = words["verb"], words["_ansible_check_mode"]
    path = finder.find_library(words["digest"], finder.name_folder())
    if path is None and not words.get("archive"):
        return {"changed": False, "absent": True}
    with contextlib.nullcontext(path) if path else provided(words, finder) as folder:
        together = finder.open_library(folder, verb)
        try:
            verbs = importlib.import_module(f"{finder.PACKAGE}.verbs")
            result = verbs.answer(verb, words["arguments"], check_mode, words["prefix"])
            if words["detached"]:
                result["warnings"] = result.pop("said")
            return result
        finally:
            if path and not (together or check_mode):
                finder.put_together(path, verb)


def note(words):
    """Leave the line in the log that every module of Ansible leaves, unless none is wanted."""
    if words["_ansible_no_log"]:
        return
    facility = getattr(syslog, str(words["_ansible_syslog_facility"]), syslog.LOG_USER)
    syslog.openlog(f"ansible-mlhost.limits.{words['verb']}", 0, facility)
    syslog.syslog(syslog.LOG_INFO, f"Invoked with {json.dumps(words['arguments'])}")
    syslog.closelog()


@contextlib.contextmanager
def provided(words, finder):
    """Hold a folder to import the library from, for this run alone where it cannot be kept."""
    with make_folder(words) as folder:
        kept = load_kept(words["archive"], finder, os.path.join(folder, "library.zip"))
        files = kept.unpack(words["archive"], words["digest"])
        path = None
        if words["keep"] and not words["_ansible_check_mode"]:
            path = kept.keep_library(files, words["digest"], kept.find_folder())
        path = path or kept.write_library(files, folder)
        for name in [one for one in sys.modules if one.partition(".")[0] == finder.PACKAGE]:
            del sys.modules[name]  # It goes on with what Python compiles once.
        yield path


def make_folder(words):
    """Return a folder that goes with the run; never in the one that this was started in."""
    import tempfile  # As the other imports below: long, and seldom needed.

    for parent in filter(None, (words["_ansible_tmpdir"], *FOLDERS)):
        try:
            return tempfile.TemporaryDirectory(prefix="ansible-mlhost-", dir=parent)
        except OSError as exc:
            problem = exc
    raise problem


def load_kept(archive, finder, file):
    """Return what keeps a library, from the library itself.

    :raises ValueError: If it did not arrive whole.
    """
    import base64

    content = base64.b64decode(finder.unseal(archive))
    with open(file, "wb") as target:
        target.write(content)
    sys.path.insert(0, file)
    try:
        return importlib.import_module(f"{finder.PACKAGE}.kept")
    finally:
        sys.path.remove(file)


def tell(exc):
    """Return the result of a run that has failed for a reason of its own."""
    import traceback

    msg = str(exc)
    if not isinstance(exc, (OSError, ValueError)):
        msg = f"the run ended with {type(exc).__name__}: {msg}"
    return {"failed": True, "msg": msg, "exception": traceback.format_exc()}


def describe():
    """Tell which words there are, to whoever looks at modules without a host."""
    basic = importlib.import_module("ansible.module_utils.basic")
    spec = {name: {"type": "str", "required": True} for name in ("verb", "digest", "finder")}
    spec["verb"]["choices"] = ["check", "provision", "monitor"]
    spec["arguments"] = {"type": "dict", "default": {}}
    spec["keep"] = {"type": "bool", "default": True}
    spec["detached"] = {"type": "bool", "default": False}
    spec["prefix"] = {"type": "str", "default": ""}
    spec["archive"] = {"type": "str"}
    module = basic.AnsibleModule(argument_spec=spec, supports_check_mode=True)
    module.fail_json(msg="Ansible has put no words in here")


if __name__ == "__main__":
    describe() if WORDS.startswith("<<") else main()
