#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run check or provision from the copy of the library that an earlier run left on the target."""

from __future__ import annotations

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
  arguments:
    description: The arguments of that module.
    type: dict
    default: {}
  archive:
    description: The library itself.
    type: str
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

import base64
import gc
import importlib
import os
import sys
import tempfile
from contextlib import contextmanager, nullcontext

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.errors import UnsupportedError

from ..module_utils.kept_folder import (
    PACKAGE,
    find_library,
    name_folder,
    open_library,
    put_together,
    unseal,
)


def main():
    gc.disable()  # It lives for a moment.
    module = AnsibleModule(
        argument_spec={
            "verb": {"type": "str", "required": True, "choices": ["check", "provision", "monitor"]},
            "digest": {"type": "str", "required": True},
            "arguments": {"type": "dict", "default": {}},
            "archive": {"type": "str", "no_log": True},
        },
        supports_check_mode=True,
    )
    path = find_library(module.params["digest"], name_folder())
    if path is None and module.params["archive"] is None:
        module.exit_json(changed=False, absent=True)
    with nullcontext(path) if path else provided(module) as folder:
        together = open_library(folder, module.params["verb"])
        try:
            run(module)
        finally:
            if path and not (together or module.check_mode):
                put_together(path, module.params["verb"])


@contextmanager
def provided(module):
    """Hold a folder to import the library from, for this run alone where it cannot be kept."""
    digest, archive = module.params["digest"], module.params["archive"]
    with tempfile.TemporaryDirectory(dir=module.tmpdir) as folder:
        try:
            kept = load_kept(archive, os.path.join(folder, "library.zip"))
            files = kept.unpack(archive, digest)
        except ValueError as exc:
            module.fail_json(msg=str(exc))
        path = None
        if not module.check_mode:
            path = kept.keep_library(files, digest, kept.find_folder())
        path = path or kept.write_library(files, folder)
        for name in [one for one in sys.modules if one.partition(".")[0] == PACKAGE]:
            del sys.modules[name]  # It goes on with what Python compiles once.
        yield path


def load_kept(archive, file):
    """Return what keeps a library, from the library itself.

    :raises ValueError: If it did not arrive whole.
    """
    content = base64.b64decode(unseal(archive))
    with open(file, "wb") as target:
        target.write(content)
    sys.path.insert(0, file)
    try:
        return importlib.import_module(f"{PACKAGE}.kept")
    finally:
        sys.path.remove(file)


def run(module):
    """Do what the module does that is meant, and leave with its result."""
    verb = module.params["verb"]
    arguments, work = importlib.import_module(f"{PACKAGE}.verbs").VERBS[verb]
    checked = ArgumentSpecValidator(arguments).validate(module.params["arguments"])
    if checked.error_messages:
        module.fail_json(msg="; ".join(describe(error, verb) for error in checked.errors))
    given = {name: checked.validated_parameters.get(name) for name in arguments}
    result = work(given, module.check_mode)
    result["invocation"] = {"module_args": given}
    result["said"] = result.pop("warnings", [])  # The action knows of which host.
    if result.pop("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


def describe(error, verb):
    """Return what is wrong with the arguments, in Ansible's words."""
    if isinstance(error, UnsupportedError):
        return f"Unsupported parameters for (mlhost.limits.{verb}) module: {error.msg}"
    return error.msg


if __name__ == "__main__":
    main()
