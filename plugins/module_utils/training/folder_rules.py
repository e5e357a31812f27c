# SPDX-License-Identifier: BSD-2-Clause
"""Judge a directory that a run will work in, and say what keeps it from being usable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..core.cause import Cause, Remedy
from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, Requirement
from ..core.folder_states import ABSENT, BROKEN, CLOSED, DIRECTORY, NO_DIRECTORY
from ..core.line_edit import as_user
from ..core.quote import one_line
from ..core.values import NamedTuple, format_quantity

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


_PROVED = {
    # Item, how the report puts it, what breaks without it.
    "flock": ("exclusive", "folder-no-exclusion", "flock"),
    "O_EXCL": ("exclusive", "folder-no-exclusion", "open(2) with O_EXCL"),
    "rename": ("atomic", "folder-no-atomic-rename", "rename(2) over a file"),
    "directory rename": ("atomic", "folder-no-atomic-rename", "rename(2) of a directory"),
}
_SYSTEM = (
    *("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32"),
    *("proc", "root", "run", "sbin", "sys", "usr"),
)
"""Folders of / in which nothing is given to a user (hier(7))."""

_FATAL = (NO_DIRECTORY, ABSENT, CLOSED, BROKEN)
_TRIED = "tried by two processes of {user}"


def place_of(path: str) -> str:
    return f"path:{path}"


def judge_folder(facts: FolderFacts) -> Iterator[Finding]:
    """Yield whether the directory is there and writable, and what its file system keeps."""
    yield judge_writing(facts)
    if facts.state == DIRECTORY and facts.writing.status == PASS:
        for item, proof in facts.proofs.items():
            yield _judge_proof(facts, item, proof)


def judge_absent(above: FolderFacts, where: str) -> Iterator[Finding]:
    """Yield that a run can make its directory, and what the file system keeps there.

    :param above: What was found of the folder that it would be made in, under the path of its own.
    :param where: That folder.
    """
    wanted = _require_writable(above)
    told = f"absent, and {above.user} can make it in {where}"
    yield Finding(PASS, wanted, Observation(told, f"tried as {above.user}"))
    for item, proof in above.proofs.items():
        yield _judge_proof(above, item, proof)


def _require_writable(facts: FolderFacts) -> Requirement:
    exact = f"writable by {facts.user}"
    return Requirement(place_of(facts.path), "directory", "value", exact=exact)


def judge_writing(facts: FolderFacts) -> Finding:
    """Say whether the user can make files in the directory."""
    wanted, how = _require_writable(facts), f"tried as {facts.user}"
    if facts.state in _FATAL:
        seen = Observation(facts.state, how, facts.reason)
        return Finding(FAIL, wanted, seen, (_blame_state(facts),))
    if facts.state != DIRECTORY or facts.writing.status == UNKNOWN:
        reason = facts.reason if facts.state != DIRECTORY else facts.writing.trouble
        return Finding(UNKNOWN, wanted, Observation(None, how, reason))
    if facts.writing.status == PASS:
        return Finding(PASS, wanted, Observation(wanted.exact, how))
    seen = Observation(f"not writable, {facts.writing.trouble}", how)
    return Finding(FAIL, wanted, seen, (_blame_writing(facts),))


def _blame_state(facts: FolderFacts) -> Cause:
    """Say what is in the way before the directory."""
    if facts.state == ABSENT:
        owner = ("install", "-d", "-o", facts.user) if not facts.actor else ("mkdir", "-p")
        make = (*owner, "-m", "0750", facts.path)
        return blame("folder-absent", facts.reason, "make it", make, actor=facts.actor)
    if facts.state == NO_DIRECTORY:
        fix = "name a directory elsewhere, or move that out of the way"
        return blame("folder-not-one", facts.reason, fix)
    if facts.state == CLOSED:
        text = f"{facts.user} may not go through {facts.at}"
        fix = f"let {facts.user} through {facts.at}, or name a directory elsewhere"
        return blame("folder-closed", text, fix)
    fix = "mount its file system anew, or name a directory elsewhere"
    return blame("folder-broken", facts.reason, fix)


def _blame_writing(facts: FolderFacts) -> Cause:
    """Say why nothing can be written to a directory that is there."""
    if facts.read_only:
        text = f"{facts.mount} ({facts.filesystem}) is mounted read-only"
        remount = ("mount", "-o", "remount,rw", facts.mount)
        return blame("folder-read-only", text, "mount it for writing", remount)
    trouble = facts.writing.trouble
    if "Permission denied" in trouble:
        text = f"{facts.path} is {facts.owner}'s, with mode {facts.mode:04o}"
        if not _may_be_given_away(facts):
            fix = f"name a directory of {facts.user}'s own"
            return blame("folder-not-writable", text, fix)
        commands = [("chown", facts.user, facts.path), ("chmod", "u+rwx", facts.path)]
        fix = f"give it to {facts.user}, or name a directory elsewhere"
        actor = facts.actor
        if facts.owner == facts.user:
            del commands[0]
        elif actor:
            actor = None  # Only root gives away what is root's, and this is in a user's folder.
        return blame("folder-not-writable", text, fix, *commands, actor=actor)
    if "No space left" in trouble and facts.free_inodes == 0 and facts.free_bytes:
        text = f"{facts.mount} ({facts.filesystem}) has no inodes free: {trouble}"
        return blame("folder-no-inodes", text, _free_space(facts))
    if _is_full(facts.writing):
        return blame("folder-full", f"{facts.path}: {trouble}", _free_space(facts))
    fix = "see dmesg, mount its file system anew, or name a directory elsewhere"
    return blame("folder-broken", f"{facts.path}: {trouble}", fix)


def _may_be_given_away(facts: FolderFacts) -> bool:
    """Tell whether a directory may become one user's: never another's, nor one of the system's."""
    parts = facts.path.strip("/").split("/")
    least = 3 if parts[0] in ("var", "home") else 2
    of_the_system = parts[0] in _SYSTEM or len(parts) < least
    return facts.owner in ("root", facts.user) and not of_the_system


def _free_space(facts: FolderFacts) -> str:
    return f"remove what nobody needs from {facts.mount}, or name a directory elsewhere"


def _is_full(proof: Proof) -> bool:
    """Tell whether a trial failed for want of room, which says nothing of what it tried."""
    return "No space left" in proof.trouble or "quota" in proof.trouble


def _judge_proof(facts: FolderFacts, item: str, proof: Proof) -> Finding:
    word, code, what = _PROVED[item]
    how = _TRIED.format(user=facts.user)
    wanted = Requirement(place_of(facts.path), item, "value", exact=word)
    if proof.status == UNKNOWN or (proof.status == FAIL and _is_full(proof)):
        return Finding(UNKNOWN, wanted, Observation(None, how, f"{item}: {proof.trouble}"))
    if proof.status == PASS:
        return Finding(PASS, wanted, Observation(word, how))
    text = f"{what} on {facts.filesystem} ({facts.mount}): {proof.trouble}"
    fix = "name a directory on a local disk or a tmpfs"
    cause = blame(code, text, fix)
    return Finding(FAIL, wanted, Observation(f"not {word}", how), (cause,))


def judge_free(facts: FolderFacts, needed: int | None, files: int | None) -> Iterator[Finding]:
    """Yield whether there is room for bytes and for files.

    Where nobody says how many, a full file system fails, and one with little room is told.
    """
    if needed is not None:
        yield _judge_room(facts, "free space", needed, facts.free_bytes, "bytes")
    elif _is_to_be_told(facts, facts.free_bytes, _FEW_BYTES):
        yield _judge_room(facts, "free space", 1, facts.free_bytes, "bytes")
    inodes = facts.free_inodes
    if files is not None and (facts.state != DIRECTORY or inodes is not None):
        yield _judge_room(facts, "free inodes", files, inodes or 0, "")
    elif files is None and inodes is not None and _is_to_be_told(facts, inodes, _FEW_INODES):
        yield _judge_room(facts, "free inodes", 1, inodes, "")


_FEW_BYTES, _FEW_INODES = 64 * 2**20, 100


def _is_to_be_told(facts: FolderFacts, free: int, few: int) -> bool:
    """Tell whether so little is free that it is told; a trial that failed has told it."""
    return facts.state == DIRECTORY and facts.writing.status != FAIL and free < few


def _judge_room(facts: FolderFacts, item: str, needed: int, free: int, unit: str) -> Finding:
    wanted = Requirement(place_of(facts.path), item, "value", needed, unit=unit)
    how = f"statvfs as {facts.user}"
    if facts.state != DIRECTORY:
        return Finding(UNKNOWN, wanted, Observation(None, how, facts.reason))
    seen = Observation(free, how)
    if free >= needed:
        return Finding(PASS, wanted, seen)
    has, wants = (format_quantity(number, unit) for number in (free, needed))
    what = "bytes" if unit else "inodes"
    text = f"{facts.mount} ({facts.filesystem}) has {has} {what if not unit else ''}".rstrip()
    text = f"{text} free for {facts.user}, and {wants} {'is' if needed == 1 else 'are'} needed"
    code = "folder-full" if unit else "folder-no-inodes"
    return Finding(FAIL, wanted, seen, (blame(code, text, _free_space(facts)),))


CODES = {
    "folder-absent": "the directory does not exist, and the user cannot make it",
    "folder-not-one": "something other than a directory has that name",
    "folder-closed": "the user may not go through a directory above it, or read a file in it",
    "folder-not-writable": "the user may not write to the directory",
    "folder-read-only": "its file system is mounted read-only",
    "folder-broken": "the file system answers with an error",
    "folder-full": "too few bytes are free",
    "folder-no-inodes": "too few files can still be made",
    "folder-no-exclusion": "two processes can do at once what only one may",
    "folder-no-atomic-rename": "a reader can see a rename half done",
    "cache-on-network": "the cache is on a network file system",
    "cache-not-of-one-job": "jobs that run at the same time use the same directory",
    "cache-shared-by-containers": "containers use the same directory, and have the same pids",
    "cache-variable-elsewhere": "the variable that the library reads names another directory",
    "cache-variable-unread": "a variable is set that the installed version does not read",
    "cache-few-shards": "there are more workers than shards",
    "cache-file-corrupt": "a file of the cache is damaged",
    "checkpoint-conflict": "something other than a directory has a checkpoint's name",
    "checkpoint-broken": "the newest checkpoint cannot be resumed from, or there is none",
    "checkpoint-hidden-files": "a directory seems empty and holds hidden files",
    "checkpoint-stale": "an old checkpoint has a higher number than the newest",
    "output-in-use": "another run works in the directory",
    "package-absent": "a package that the run needs is not installed",
    "package-version": "the installed version is not one of those asked for",
    "package-development": "the installed version is a development version",
    "gpu-too-few": "the host has fewer GPUs than the run needs",
    "gpu-little-memory": "a GPU has less memory than the run needs",
    "gpu-in-use": "processes are already on the GPUs",
}


def blame(
    code: str,
    text: str,
    fix: str,
    *commands: tuple[str, ...],
    then: str = "",
    actor: str | None = "",
) -> Cause:
    """Return a cause; a command that names what cannot be typed is left to a person.

    :param actor: As whom the commands run: empty for whoever looks, ``None`` where nobody safely
        can.
    """
    if not all(word.isprintable() for words in commands for word in words):
        commands = ()
    if actor is None:
        commands = ()
    elif actor:
        commands = tuple(as_user(actor, words) for words in commands)
    return Cause(code, one_line(text), Remedy(one_line(fix), commands, then))
