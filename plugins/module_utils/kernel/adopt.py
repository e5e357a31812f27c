# SPDX-License-Identifier: BSD-2-Clause
"""Make the kernel of a policy of a site's sysctl files."""

from __future__ import annotations

import os

from ..host.files import read_os_release
from ..host.image import is_chroot
from .adopted import adopt_kernel, list_site_keys
from .read import sysctl_path
from .site_read import read_site_sysctls
from .sysctl_writes import find_procps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.adopted import Adopted


def adopt_tree_kernel(root: str) -> Adopted:
    """Return the sysctls that the site's files set; on a host, those that its kernel has."""
    files, procps = read_site_sysctls(root), find_procps(read_os_release(root))
    runs = root == "/" and not is_chroot()
    keys = list_site_keys(files, procps)
    lacking = {key for key in keys if runs and not os.path.exists(sysctl_path(key))}
    return adopt_kernel(files, procps, lacking)
