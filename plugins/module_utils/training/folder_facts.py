# SPDX-License-Identifier: BSD-2-Clause
"""What was found out about a directory that a run will work in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

NETWORK, LOCAL = "network", "local"
_NETWORK_NAMES = (
    "9p acfs afs afs3 beegfs ceph cifs cvmfs fhgfs gfs gfs2 glusterfs gpfs lustre lustre_lite ncpfs"
    " nfs nfs4 ocfs2 orangefs panfs pvfs2 smb3 smbfs vboxsf virtiofs wekafs"
    " fuse.ceph fuse.cvmfs2 fuse.dfs fuse.gcsfuse fuse.glusterfs fuse.goofys fuse.juicefs"
    " fuse.mount-s3 fuse.mountpoint-s3 fuse.rclone fuse.s3fs fuse.seaweedfs fuse.sshfs"
    " fuse.JuiceFS fuse.lizardfs fuse.mfs fuse.moosefs fuse.quobyte fuse.davfs"
)
_LOCAL_NAMES = (
    "bcachefs btrfs exfat ext2 ext3 ext4 f2fs fuseblk hfsplus iso9660 jfs msdos nilfs2 ntfs ntfs3"
    " overlay ramfs reiserfs squashfs tmpfs udf vfat xfs zfs fuse.bindfs fuse.fuse-overlayfs"
    " fuse.mergerfs fuse.gocryptfs"
)
_NETWORK, _LOCAL = frozenset(_NETWORK_NAMES.split()), frozenset(_LOCAL_NAMES.split())


class Proof(NamedTuple):
    """What trying one thing gave: pass, fail or unknown, and what went wrong."""

    status: str
    trouble: str = ""


class FolderFacts(NamedTuple):
    """A directory as the user who will work in it finds it.

    ``user`` and ``uid`` are who looked. ``state`` is one of the words above; ``reason`` says of all
    but :data:`DIRECTORY` what was seen, ``at`` where the way ends. ``free_inodes`` is ``None``
    where the file system counts none.
    ``real_path`` is the path with its links followed; ``mount`` is where its file system is
    mounted, ``mount_root`` the directory of that file system which is seen there. ``actor`` is who
    may change what is above it: empty for whoever looks, ``None`` where nobody safely can.
    """

    path: str
    user: str
    state: str
    reason: str = ""
    at: str = ""
    owner: str = ""
    mode: int = 0
    read_only: bool = False
    free_bytes: int = 0
    free_inodes: int | None = None
    filesystem: str = ""
    mount: str = ""
    source: str = ""
    mount_root: str = ""
    device: str = ""
    real_path: str = ""
    writing: Proof = Proof("unknown")
    proofs: Mapping[str, Proof] = {}
    uid: int = -1
    actor: str | None = ""


def may_work_there(facts: FolderFacts, user: str) -> bool:
    """Tell whether a user's process can be one that works in a directory.

    Whatever a process calls itself and its folders: who may not write there is no run in it.

    :param user: Whose the process is; empty for root's.
    """
    return user in ("", "root", facts.user, facts.owner) or bool(facts.mode & 0o022)


def find_reach(filesystem: str) -> str:
    """Return whether a file system is local or on the network; nothing where its name tells not."""
    if filesystem in _NETWORK:
        return NETWORK
    return LOCAL if filesystem in _LOCAL else ""
