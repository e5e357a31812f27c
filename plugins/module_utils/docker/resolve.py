# SPDX-License-Identifier: BSD-2-Clause
"""Say what the files of a tree state for containers of Docker."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.declaration import Bound
from ..core.resolved import describe
from ..core.rlimit import ITEMS
from ..host.files import read_bytes
from .daemon_json import decode_daemon_json, read_defaults
from .dockerd_flags import find_config_path
from .flags import read_flag_defaults
from .unit_read import read_dockerd_flags


def resolve_docker(root: str) -> Iterator[dict[str, object]]:
    """Yield what daemon.json and the flags of dockerd state for a new container."""
    flags = read_dockerd_flags(root.rstrip("/"))
    path = find_config_path(flags)
    content = read_bytes(path, root)
    stated = read_defaults(decode_daemon_json(content or b"", path), path)
    for default in [*stated, *read_flag_defaults(flags)]:
        unit = "bytes" if default.name == "shm_size" else ITEMS[default.name].unit
        pairs = [("value", default.limit.hard)]
        if default.name != "shm_size":
            pairs = list(default.limit._asdict().items())
        for kind, value in pairs:
            bound = Bound(default.declaration._replace(value=value))
            yield describe("new-container:docker", default.name, kind, bound, unit)
