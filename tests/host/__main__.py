"""Test hosts from the command line: ``python3 -m tests.host up``."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from . import guest, image, tree, warm
from .cache import HostError, cache_root, discard, say
from .connection import Host


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    words, remote_command = _split(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(words)
    options.command = remote_command
    try:
        if not sys.platform.startswith("linux"):
            raise HostError("test hosts need Linux")
        return int(options.run(options))
    except (HostError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
    except OSError as error:
        print(f"error: {error.strerror}: {error.filename}", file=sys.stderr)
    return 1


def _split(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return what stands before and after the first ``--``."""
    if "--" not in words:
        return words, ()
    end = words.index("--")
    return words[:end], words[end + 1 :]


def _leave(number: int, _frame: FrameType | None) -> None:
    """Unwind, so that whatever is half made is removed; a second signal is ignored."""
    for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m tests.host", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    up = commands.add_parser("up", help="start a fresh host")
    _add_name(up)
    _add_release(up)
    up.add_argument("--cold", action="store_true", help="boot, do not resume")
    up.add_argument("--tree", type=Path, metavar="FOLDER", help="boot what unpack made")
    up.add_argument("--json", action="store_true", help="print the host as JSON")
    up.set_defaults(run=_up)

    unpack = commands.add_parser("unpack", help="lay out a host's root tree that nobody booted")
    unpack.add_argument("folder", type=Path, metavar="FOLDER")
    _add_release(unpack)
    unpack.set_defaults(run=_unpack)

    ssh = commands.add_parser("ssh", help="log in, or run what follows --")
    _add_name(ssh)
    ssh.add_argument("-u", "--user", default="root", help="root or alice")
    ssh.set_defaults(run=_ssh)

    down = commands.add_parser("down", help="end a host and remove its files")
    _add_name(down)
    down.add_argument("--all", action="store_true", help="every host")
    down.set_defaults(run=_down)

    hosts = commands.add_parser("list", help="show the running hosts")
    hosts.add_argument("--json", action="store_true", help="print them as JSON")
    hosts.set_defaults(run=_list)

    build = commands.add_parser("build", help="make image and snapshot now")
    _add_release(build)
    build.set_defaults(run=_build)

    clean = commands.add_parser("clean", help="remove the images from the cache")
    clean.set_defaults(run=_clean)
    return parser


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", default=guest.DEFAULT_NAME, metavar="NAME")


def _add_release(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--release", default=guest.DEFAULT_RELEASE, help="of Debian")


def _up(options: argparse.Namespace) -> int:
    host = guest.start(options.name, options.release, options.cold, options.tree)
    say(f"{host.name} is up")
    if options.json:
        print(json.dumps(_facts(host)))
    else:
        print(shlex.join(host.ssh_command()))
        print(host.inventory)
    return 0


def _unpack(options: argparse.Namespace) -> int:
    tree.unpack(options.release, options.folder)
    return 0


def _facts(host: Host) -> dict[str, str | int]:
    """Return a host in the words of molecule's instance configuration."""
    return {
        "instance": host.name,
        "address": host.address,
        "port": host.port,
        "user": host.user,
        "identity_file": str(host.identity_file),
        "inventory": str(host.inventory),
        **host.ansible_vars,
    }


def _ssh(options: argparse.Namespace) -> int:
    host = guest.find(options.name)
    if host is None:
        raise HostError(f"there is no host {options.name!r}")
    words = host.ssh_command(options.user)
    os.execvp(words[0], [*words, *options.command])


def _down(options: argparse.Namespace) -> int:
    hosts = guest.running_hosts()
    for name in [host.name for host in hosts] if options.all else [options.name]:
        guest.stop(name)
        say(f"{name} is down")
    return 0


def _list(options: argparse.Namespace) -> int:
    hosts = guest.running_hosts()
    if options.json:
        print(json.dumps([_facts(host) for host in hosts]))
        return 0
    for host in hosts:
        print(f"{host.name:24} {host.address}:{host.port}")
    return 0


def _build(options: argparse.Namespace) -> int:
    print(warm.take(image.build(options.release)).folder)
    return 0


def _clean(_options: argparse.Namespace) -> int:
    if guest.running_hosts():
        raise HostError("hosts are running on these images: first down --all")
    images = cache_root() / "hosts"
    for folder in images.glob("*/booted-*"):
        discard(folder)
    shutil.rmtree(images, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
