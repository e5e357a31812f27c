# SPDX-License-Identifier: BSD-2-Clause
"""Which limits containerd's own configuration gives pods: ``base_runtime_spec`` of config.toml.

Source: ``docs/cri/config.md`` and ``internal/cri/opts/spec_opts.go`` of containerd: without a base
specification the limits are taken out, and a pod inherits those of containerd; with one, its
``process.rlimits`` are used as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..core.declaration import Declaration
from ..core.named import NamedTuple
from ..core.rlimit import Rlimit
from ..core.toml_text import read_toml

CONFIG = "/etc/containerd/config.toml"
_RUNTIME = "runc"


class BaseSpec(NamedTuple):
    """The limits and tasks of a base specification, and the line of config.toml that names it."""

    path: str
    limits: Mapping[str, Rlimit]
    at: Declaration
    tasks: int | None = None


def find_base_spec(text: str, path: str = CONFIG) -> Declaration | None:
    """Return the line that names the base specification of the default runtime, if one does.

    :param text: config.toml, read as latin-1. The value is the path.
    :raises ValueError: If it is no TOML.
    """
    entries = read_toml(text.encode("latin-1").decode("utf-8"))
    names = [one.node.value for one in entries if one.keys[-1] == "default_runtime_name"]
    runtime = names[-1] if names else _RUNTIME
    rows = text.split("\n")
    for one in entries:
        if one.keys[-3:] == ("runtimes", runtime, "base_runtime_spec") and one.node.value:
            line = one.node.line
            return Declaration(path, line, rows[line - 1].rstrip("\r"), str(one.node.value))
    return None
