# SPDX-License-Identifier: BSD-2-Clause
"""Make the Docker section of a policy of a site's daemon.json and its flags of dockerd."""

from __future__ import annotations

from ..core.adopted import Adopted
from ..host.files import read_bytes
from ..kernel.site_read import find_nr_open
from .adopted import adopt_docker
from .daemon_json import decode_daemon_json
from .dockerd_flags import find_config_path
from .unit_read import read_dockerd_flags


def adopt_tree_docker(root: str) -> Adopted:
    """Return the defaults of containers that the site states.

    :raises ValueError: If daemon.json is no JSON object.
    """
    flags = read_dockerd_flags(root)
    path = find_config_path(flags)
    text = decode_daemon_json(read_bytes(path, root) or b"", path)
    return adopt_docker(text, path, flags, find_nr_open(root))
