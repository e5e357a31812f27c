# SPDX-License-Identifier: GPL-3.0-or-later
"""Reach a root tree of this machine, as community.general.chroot does, in as few lines."""

from __future__ import annotations

import shlex

from ansible.plugins.connection.local import Connection as Local

DOCUMENTATION = """
name: chroot
short_description: Run in a root tree of this machine
description: The tree is what C(ansible_host) says.
options:
  pipelining:
    default: true
    type: boolean
    vars: [{name: ansible_pipelining}]
"""


class Connection(Local):
    """The local connection, one level down; files go to where the tree has them."""

    transport = "chroot"

    @property
    def _root(self):
        return self._play_context.remote_addr

    def exec_command(self, cmd, in_data=None, sudoable=True):
        return super().exec_command(f"chroot {shlex.quote(self._root)} {cmd}", in_data, sudoable)

    def put_file(self, in_path, out_path):
        super().put_file(in_path, self._root + out_path)

    def fetch_file(self, in_path, out_path):
        super().fetch_file(self._root + in_path, out_path)
