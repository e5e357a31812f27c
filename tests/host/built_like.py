"""Build systemd and pam_limits as another distribution does, for a host that is *built like* it.

The sources are those of a Debian release without Debian's patches, changed in what the other one
changes (docs/supported.md names each difference, and what stays Debian's).
"""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from . import like_red_hat, upstream_pam
from .cache import HostError, cache_root, produce, say
from .source import unpack_source
from .tool import run_tool

_TASKS = ("src/core/main.c", "{ 15U, 100U }", "{ 80U, 100U }")
_TASKS_257 = ("src/core/manager.c", "{ 15U, 100U }", "{ 80U, 100U }")
_IPC = ("src/login/logind-core.c", "m->remove_ipc = true;", "m->remove_ipc = false;")
_HIGHEST = "conf.set('HIGH_RLIMIT_NOFILE',          "
_NOFILE = ("meson.build", f"{_HIGHEST}512*1024)", f"{_HIGHEST}256*1024)")


class Family(NamedTuple):
    """Another distribution's release, and what is built of it."""

    release: str
    """The Debian whose sources and other programs it has."""

    edits: tuple[tuple[str, str, str], ...]
    """Of systemd: a file, what stands in it once, and what shall stand there."""

    options: tuple[str, ...]
    """Of systemd's build, where the other distribution has another default than Debian."""

    files: Mapping[str, str]
    """What lies elsewhere, or says something else, than on Debian."""

    replaced: tuple[str, ...]
    """What of Debian is not there."""


FAMILIES = {
    "like-rhel8": Family(
        "bullseye",
        (_TASKS, _IPC, _NOFILE),
        ("bump-proc-sys-fs-nr-open=false", "bump-proc-sys-fs-file-max=false"),
        like_red_hat.list_files("8.10"),
        like_red_hat.REPLACED,
    ),
    "like-rhel9": Family(
        "bookworm",
        (_TASKS, _IPC),
        ("bump-proc-sys-fs-nr-open=true",),
        like_red_hat.list_files("9.6"),
        like_red_hat.REPLACED,
    ),
    "like-rhel10": Family(
        "trixie",
        (_TASKS_257, _IPC),
        ("bump-proc-sys-fs-nr-open=true",),
        like_red_hat.list_files("10.0"),
        like_red_hat.REPLACED,
    ),
}

_TOOLS = (
    "gcc libc6-dev m4 meson ninja-build gperf pkg-config python3-jinja2 libcap-dev libmount-dev "
    "libblkid-dev libpam0g-dev libseccomp-dev libselinux1-dev libacl1-dev libaudit-dev "
    "libapparmor-dev libkmod-dev libcrypt-dev"
)
_OPTIONS = (
    "mode=release rootlibdir=/usr/lib/x86_64-linux-gnu pamlibdir=/usr/lib/x86_64-linux-gnu/security "
    "pam=true selinux=true apparmor=true audit=true seccomp=true kmod=true blkid=true acl=true "
    "gnutls=false p11kit=false libidn2=false pcre2=false openssl=false gcrypt=false resolve=false "
    "importd=false man=false html=false tests=false translations=false "
    "default-kill-user-processes=false default-hierarchy=unified nobody-group=nogroup "
    "dbuspolicydir=/usr/share/dbus-1/system.d sulogin-path=/sbin/sulogin mount-path=/bin/mount "
    "umount-path=/bin/umount quotaon-path=/sbin/quotaon nologin-path=/usr/sbin/nologin"
)
_PROGRAMS = ("systemd", "systemd-logind", "systemd-sysctl", "systemd-executor")
_MAKE = (
    'mount --make-rprivate / && mount --bind "$2" "$1/mnt" && mount -t proc proc "$1/proc"'
    ' && shift 2 && exec env LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$0" "$@"'
)


def build(name: str) -> Path:
    """Return a tree to lay over a Debian of the family's release, made once.

    :raises HostError: If a source is not as it was when this was written, or cannot be built.
    """
    target = cache_root() / "like" / f"{name}-{digest(name)}"
    return produce(target, f"building {name}", lambda to: _fill(to, name)) / "tree"


def digest(name: str) -> str:
    """Return twelve hex digits that change whenever what is built of a family would."""
    modules = (__file__, like_red_hat.__file__, upstream_pam.__file__)
    inputs = [*(Path(one).read_text() for one in modules), repr(FAMILIES[name]), _TOOLS]
    return hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:12]


def list_hooks(name: str) -> list[str]:
    """Return mmdebstrap's hooks that lay the tree over an installed Debian."""
    useless = " ".join(f'"$1"{path}' for path in FAMILIES[name].replaced)
    return [
        f"customize-hook=rm -f {useless}",
        f'customize-hook=tar -C {build(name)} --owner=0 --group=0 -c . | tar -C "$1" -xp',
        'customize-hook=chroot "$1" systemctl -q enable sshd.service crond.service',
    ]


def _fill(folder: Path, name: str) -> None:
    family, tree, log = FAMILIES[name], folder / "tree", folder / "build.log"
    for path, text in family.files.items():
        target = tree / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    modules = tree / "usr/lib/x86_64-linux-gnu/security"
    modules.mkdir(parents=True)
    shutil.copy(upstream_pam.build(family.release), modules)
    say(f"{name}: building the systemd of {family.release} (some minutes, once)")
    work = folder / "work"
    source = unpack_source("systemd", family.release, work, log)
    for path, old, new in family.edits:
        _edit(source / path, old, new)
    _compile(_unpack_tools(family.release), source, name, log)
    _install(source / "build", tree)
    shutil.rmtree(work)


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    if text.count(old) != 1:
        raise HostError(f"{path} does not say {old!r} once")
    path.write_text(text.replace(old, new))


def _unpack_tools(release: str) -> Path:
    """Return a system of a release with what systemd is built with."""
    digest = hashlib.sha256(_TOOLS.encode()).hexdigest()[:12]
    target = cache_root() / "like" / f"tools-{release}-{digest}"
    return produce(target, f"unpacking tools of {release}", lambda to: _fill_tools(to, release))


def _fill_tools(folder: Path, release: str) -> None:
    say(f"{release}: unpacking what systemd is built with (a minute, once)")
    include = f"--include={','.join(_TOOLS.split())}"
    words = ["unshare", "--mount", "mmdebstrap", "--variant=minbase", include]
    run_tool([*words, release, folder / "root"], folder / "log", 900)


def _compile(tools: Path, source: Path, name: str, log: Path) -> None:
    """Build those programs that an edit or an option changes."""
    family, known = FAMILIES[name], (source / "meson_options.txt").read_text()
    wanted = [*_OPTIONS.split(), *family.options]
    wanted += ["split-usr=true", "rootprefix=/usr"]
    options = [f"-D{one}" for one in wanted if f"'{one.split('=')[0]}'" in known]
    root = str(tools / "root")
    inside = ["unshare", "--mount", "sh", "-c", _MAKE, root, root]
    build_in = ["env", "-C", "/mnt"]
    run_tool([*inside, source, *build_in, "meson", "setup", "build", *options], log, 300)
    programs = [one for one in _PROGRAMS if f"'{one}'" in _read_builds(source)]
    run_tool([*inside, source, *build_in, "ninja", "-C", "build", *programs], log, 3600)


def _read_builds(source: Path) -> str:
    paths = [source / "meson.build", *source.glob("src/*/meson.build")]
    return "".join(path.read_text() for path in paths)


def _install(built: Path, tree: Path) -> None:
    """Lay programs where Debian's are, and their libraries where they look for them first."""
    there = [built / name for name in _PROGRAMS if (built / name).exists()]
    there += [path for path in built.glob("src/*/libsystemd-*.so") if path.is_file()]
    for path in there:
        target = tree / "usr/lib/systemd" / path.relative_to(built)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
