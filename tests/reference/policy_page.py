# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the page of every key of a policy out of the tables that its readers use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlhost_limits.core.profiles import DEFAULT_PROFILE, PROFILES
from mlhost_limits.core.reader import BOUNDS, Key
from mlhost_limits.core.values import ITEMS, format_quantity
from mlhost_limits.training.policy import NEEDS, DeepSpeed, Training

from tests.reference.sections import list_sections

SECTIONS = list_sections()

PAGE = Path(__file__).parents[2] / "docs" / "policy-reference.md"
SOURCES = {
    "limits.nofile": "vLLM and SGLang raise their soft limit to 65535; dataloaders hold a descriptor"
    " for each tensor; hard is the kernel's own fs.nr_open, max what a program can close in seconds",
    "limits.memlock": "NCCL's manual: RDMA and pinned memory lock pages",
    "shm_size": "NCCL's manual asks for 1 GiB at least, vLLM's for more than the 64 MiB of Docker",
    "fs.file-max": "twice fs.nr_open: two such processes do not use up the host",
    "fs.nr_open": "the kernel's own",
    "vm.max_map_count": "measured: a mapping for each tensor that is passed by `file_system`",
    "net.core.somaxconn": "NCCL's first rank listens with 16384, servers on uvicorn with 2048; the"
    " kernel's own is 4096",
    "fs.inotify.max_user_watches": "the manuals of Visual Studio Code and of kind",
    "fs.inotify.max_user_instances": "sixteen times what kind's manual asks for: root's are those of all pods",
    "kernel.keys.root_maxkeys": "the kubelet's own (pkg/util/sysctl)",
    "kernel.keys.root_maxbytes": "25 times root_maxkeys, the kubelet's own",
}
"""By the ends of key paths."""
COMMAND = "python -m tests.reference"
HEAD = f"""\
<!-- SPDX-License-Identifier: GPL-3.0-or-later -->
<!-- Made by {COMMAND} -->
# Every key of a policy

What each is for, and how they go together: [the policy](policy.md). A name in capitals stands for
one of your own. A size is a number of bytes, or has `KiB`, `MiB`, `GiB` or `TiB` behind it. A whole
number goes to {Key._field_defaults["most"]} where no other end is named. Where no default is named,
a key that is not stated asks for nothing.
"""
KINDS = {
    "by name": "a mapping",
    "checks": f"a list of {' '.join(f'`{name}`' for name in NEEDS)}",
    "day": "a day",
    "domains": "a list of domains of limits.conf(5)",
    "limit": "as the item has it",
    "limits": "a mapping of [limits](#limits)",
    "line": "a number, or one line of ASCII",
    "list": "a list of mappings",
    "mapping": "a mapping",
    "number": "a number, or a size",
    "number or mapping": "a number, a size, or a mapping",
    "one of three": "a text; one of `user` `name` `unit`",
    "partitions": "a list of names",
    "path": "an absolute path",
    "pattern": "a pattern of the shell",
    "patterns": "a list of patterns of the shell",
    "place": "`self`, `session:USER@SERVICE`, `service:NAME.service`, `job:slurm`,"
    " `container:docker/NAME`, `new-container:docker`",
    "rule": "a mapping of [limits](#limits), and what is below",
    "size above 0": "a size above 0",
    "specifier": "a text",
    "switch": "`true` or `false`",
    "tasks": "a number above 0, or `unlimited`",
    "text": "a text",
    "user": "a name",
    "users": "a list of names, without root",
}
SPECIAL = {
    "nice": "-20 to 19",
    "priority": "-20 to 19",
    "nonewprivs": "0 or 1",
    "chroot": "an absolute path in small letters",
    "nofile": "a number; `unlimited` is refused where it is set",
    "rttime": "microseconds, or `unlimited`",
}
UNITS = {
    "bytes": "a size, or `unlimited`",
    "seconds": "seconds, or with `min` `h`, or `unlimited`",
    "": "a number, or `unlimited`",
}
HOLDERS = {
    "sessions": SECTIONS["sessions"].below["limits"],
    "services": SECTIONS["services"].below["default"],
    "containers": SECTIONS["containers"].below["docker"].below["limits"],
    "processes": SECTIONS["processes"].below["limits"],
    "jobs": SECTIONS["jobs"].below["slurm"].below["limits"],
}
"""What holds limits, by the name of its column."""


def walk(keys: Mapping[str, Key] = SECTIONS, above: str = "") -> Iterator[tuple[str, Key]]:
    """Yield every key with its path, those of a list with ``[]`` in it."""
    for name, key in keys.items():
        path = f"{above}{name}"
        yield path, key
        yield from walk(key.below, f"{path}{'[]' if key.kind == 'list' else ''}.")


def list_defaults() -> dict[str, Any]:
    """Return what counts where a key is not stated, by its path."""
    found = {f"training.{name}": value for name, value in Training._field_defaults.items()}
    nested = DeepSpeed._field_defaults.items()
    found |= {f"training.deepspeed.{name}": value for name, value in nested}
    return {
        path: value
        for path, value in found.items()
        if value not in (None, (), {}) or value is False
    }


def describe_value(key: Key) -> str:
    """Return what is accepted, in words."""
    if key.kind == "count":
        end = f" to {key.most}" if key.most != Key._field_defaults["most"] else ""
        return f"a whole number from {key.least}{end}"
    if key.kind == "size":
        return f"a size from {format_quantity(key.least, 'bytes')}" if key.least else "a size"
    if key.kind in ("word", "stage"):
        return " ".join(f"`{word}`" for word in key.accepted)
    if key.kind == "propagate":
        return f"`none`, or a list of {' '.join(f'`{word}`' for word in key.accepted)}"
    return KINDS[key.kind]


def describe_plain(value: object) -> str:
    """Return a value as YAML has it."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {describe_plain(one)}' for key, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(describe_plain(one) for one in value)}]"
    if isinstance(value, str) and value in ("", "*"):
        return f"'{value}'"
    return str(value).lower() if isinstance(value, bool) else str(value)


def format_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [columns, ["---"] * len(columns), *rows]
    return ["", *(" ".join(f"| {' | '.join(cells)} |".split()) for cells in lines), ""]


def format_keys(section: str, key: Key) -> list[str]:
    """Return a section's keys; the first row is the section itself."""
    defaults = list_defaults()
    rows = [
        (
            f"`{path}`",
            describe_value(one),
            f"`{describe_plain(defaults[path])}`" if path in defaults else "",
            one.text,
        )
        for path, one in walk({section: key})
    ]
    return [f"## {section}", *format_table(("key", "value", "default", "means"), rows)]


def format_limits() -> list[str]:
    """Return every limit, and which sections know it."""
    rows = []
    for name, item in ITEMS.items():
        value = SPECIAL.get(name, UNITS[item.unit])
        known = ["yes" if name in key.accepted else "" for key in HOLDERS.values()]
        rows.append((f"`{name}`", value, *known))
    bounds = [(f"`{name}`", key.text) for name, key in BOUNDS.items()]
    return [
        "## Limits",
        "",
        "Each is one value for soft and hard, or a mapping of bounds; what is not a limit of a process",
        "has one value alone.",
        *format_table(("bound", "means"), bounds),
        *format_table(("item", "value", *HOLDERS), rows)[1:],
    ]


def list_stated(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield what a profile states, by key paths; a limit and a list of words is one value."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        for one in value:
            yield from list_stated(one, f"{path}[]")
    elif isinstance(value, dict) and value and not set(value) <= set(BOUNDS):
        for name, one in value.items():
            yield from list_stated(one, f"{path}.{name}" if path else name)
    elif path:
        yield path, describe_plain(value)


def format_profiles() -> list[str]:
    """Return what the profiles state: a row for each value, with those that have it."""
    holders: dict[tuple[str, str], list[str]] = {}
    for name, profile in PROFILES.items():
        for stated in list_stated(profile):
            holders.setdefault(stated, []).append(f"`{name}`")
    rows = [
        (f"`{path}`", f"`{value}`", " ".join(names), find_source(path))
        for (path, value), names in sorted(holders.items(), key=lambda row: row[0])
    ]
    return [
        "## Profiles",
        "",
        f"A policy is merged over one of them, `{DEFAULT_PROFILE}` where none is named; `none`"
        " states nothing. [What each is for](policy.md#profiles).",
        *format_table(("key", "value", "profiles", "where the value is from"), rows),
    ]


def find_source(path: str) -> str:
    """Return where a profile's value is from; what a run ``needs`` is of our own making."""
    if path.startswith(("training.", "sessions[].users")):
        return ""
    known = [text for name, text in SOURCES.items() if path.endswith(f".{name}")]
    return known[0]


def format_page() -> str:
    """Return the page."""
    parts = [line for name, key in SECTIONS.items() for line in format_keys(name, key)]
    return "\n".join([HEAD, *parts, *format_limits(), *format_profiles()]).rstrip() + "\n"
