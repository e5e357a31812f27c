# SPDX-License-Identifier: BSD-2-Clause
"""Change what new containers get, as commands for a person and in thought.

daemon.json is edited by key: such commands may be run in any order, and twice. In thought every
line keeps its number, so that what is found later is found where it stands in the file.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import NamedTuple

from .docker_config import SHM_KEY, ULIMITS_KEY, read_entries
from .docker_flags import parse_ulimit
from .docker_merge import format_ulimit
from .docker_site import Tools
from .docker_world import World, find_obstacles, predict
from .engines_policy import SHM
from .json_text import find_member, find_members, is_blank, remove_member, set_member
from .quote import one_line
from .remedy import Remedy
from .rlimit import ITEMS, UNLIMITED, Rlimit, format_quantity
from .shm_size import format_shm_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .declaration import Declaration
    from .dockerd_flags import Flag
    from .schema import DockerPolicy

_FLAGS = {ULIMITS_KEY: "default-ulimit", SHM_KEY: "default-shm-size"}
_PLAIN = re.compile(r"[A-Za-z0-9=:+./-]+")


class Change(NamedTuple):
    """A remedy, and the world once it was carried out."""

    remedy: Remedy
    world: World


def format_pair(item: str, limit: Rlimit) -> str:
    """Return ``65536:1048576``, or one value where both are alike."""
    unit = "bytes" if item == SHM else ITEMS[item].unit
    return ":".join(dict.fromkeys(format_quantity(bound, unit) for bound in limit))


def cite_statement(at: Declaration) -> str:
    """Return ``FILE:LINE TEXT``; a member of JSON has quotes of its own."""
    text = " ".join(one_line(at.text).split())
    return f"{one_line(at.place)} {text}".rstrip()


def choose_limit(item: str, policy: DockerPolicy, now: Rlimit) -> Rlimit | None:
    """Return what shall be stated for an item; ``None`` where the policy demands nothing of it.

    :param now: What there is, for an item that is only bounded above.
    """
    if item == SHM:
        return Rlimit(policy.shm_size, policy.shm_size) if policy.shm_size else None
    limit = policy.limits.get(item)
    if limit is None:
        return None
    if limit.soft is not None and limit.hard is not None:
        return Rlimit(limit.soft, limit.hard)
    most = UNLIMITED if limit.max is None else limit.max
    return Rlimit(min(now.soft, most), min(now.hard, most))


def count_met(world: World, policy: DockerPolicy) -> int:
    """Return how many defaults are at least what the policy asks."""
    if find_obstacles(world):
        return 0
    wanted = {item: choose_limit(item, policy, Rlimit(0, 0)) for item in (*policy.limits, SHM)}
    return sum(
        limit is not None
        and all(one.soft >= limit.soft and one.hard >= limit.hard for one in found)
        for item, limit in wanted.items()
        for found in [predict(world, item)]
    )


def key_of(item: str) -> str:
    """Return the key of daemon.json that states an item."""
    return SHM_KEY if item == SHM else ULIMITS_KEY


def state(item: str, limit: Rlimit, world: World, tools: Tools) -> Change:
    """State a default where those of its kind are stated: in a flag, or else in daemon.json.

    :raises ValueError: If daemon.json states the key twice.
    """
    flags = [flag for flag in world.flags if flag.name == _FLAGS[key_of(item)]]
    if not flags:
        return state_in_file(item, limit, world, tools)
    written = _format_flag(item, limit)
    same = [flag for flag in flags if item_of(flag) == item]
    flag = (same or flags)[-1]
    new = flag._replace(value=written)
    kept = () if same else (flag,)
    after = f"--{new.name} {new.value}"
    commands = _edit_flag(flag, f"{'' if same else '& '}{after}", tools)
    text = f"make it {after}" if same else f"add {after}"
    place = world.flags.index(flag)
    edited = (*world.flags[:place], *kept, new, *world.flags[place + 1 :])
    return Change(tools.restart(text, commands), world._replace(flags=edited))


def drop_flags(flags: Sequence[Flag], world: World, tools: Tools) -> Change:
    """Take flags out of the daemon's command line."""
    edits = [_edit_flag(flag, "", tools) for flag in flags]
    commands = tuple(dict.fromkeys(command for edit in edits for command in edit))
    names = ", ".join(dict.fromkeys(f"--{one_line(flag.name)}" for flag in flags))
    others = tuple(flag for flag in world.flags if flag not in flags)
    said = f"take {names} out"
    remedy = tools.restart(said, commands) if all(edits) else Remedy(said)
    return Change(remedy, world._replace(flags=others))


def _format_flag(item: str, limit: Rlimit) -> str:
    if item == SHM:
        return format_shm_size(limit.hard)
    entry = format_ulimit(item, limit)
    return f"{item}={entry['Soft']}:{entry['Hard']}"


def item_of(flag: Flag) -> str:
    """Return what a flag states, or is meant to."""
    if flag.name != _FLAGS[ULIMITS_KEY]:
        return SHM
    parsed = parse_ulimit(flag.value)
    return parsed[0] if parsed else flag.value.partition("=")[0]


def _edit_flag(flag: Flag, after: str, tools: Tools) -> tuple[tuple[str, ...], ...]:
    """Return the edit of the line that gives a flag, where it stands there word by word."""
    lines = tools.files.get(flag.path, "").split("\n")
    if not 0 < flag.line <= len(lines) or not _PLAIN.fullmatch(f"{flag.name}={flag.value}"):
        return ()
    value = flag.value.replace(".", "\\.")
    pattern = f"--{flag.name}[= ] *{value}\\b"
    if not flag.path.isprintable() or not re.search(pattern, lines[flag.line - 1]):
        return ()
    script = f"{flag.line}s|{pattern if after else ' *' + pattern}|{after}|"
    edit = ("sed", "-i", "--follow-symlinks", script, flag.path)
    return (edit, ("systemctl", "daemon-reload"))


def state_in_file(item: str, limit: Rlimit, world: World, tools: Tools) -> Change:
    """State a default in daemon.json.

    :raises ValueError: If it states the key twice.
    """
    text = world.text or ""
    members = [] if is_blank(text) else find_members(text, world.path)
    keys = [member.key for member in members]
    if keys.count(key_of(item)) > 1:
        raise ValueError(f"{world.path} states {key_of(item)} more than once")
    if item == SHM:
        value = format_shm_size(limit.hard)
        after = set_member(text, SHM_KEY, value)
        steps = [f"d[{json.dumps(SHM_KEY)}] = {json.dumps(value)}"]
    else:
        after, steps = _put_ulimit(text, item, limit)
    said = f"state {item} {format_pair(item, limit)} in {world.path}"
    return _change_file(said, steps, after, world, tools)


def _put_ulimit(text: str, item: str, limit: Rlimit) -> tuple[str, list[str]]:
    """Return the text with the entry, and the steps; entries of other keys for it go."""
    value = format_ulimit(item, limit)
    whole = f'd.setdefault("{ULIMITS_KEY}", {{}})'
    step = f"{whole}[{json.dumps(item)}] = {json.dumps(value)}"
    members = [] if is_blank(text) else find_members(text)
    block = find_member(members, ULIMITS_KEY)
    if block is None or not isinstance(block.value, dict):
        null = f'd["{ULIMITS_KEY}"] = d["{ULIMITS_KEY}"] or {{}}'
        return set_member(text, ULIMITS_KEY, {item: value}), [null, step] if block else [step]
    entries = read_entries(text, "", members)
    stray = [entry.key for entry in entries if entry.item == item != entry.key]
    inner = text[block.value_start : block.end]
    for key in stray:
        inner = remove_member(inner, key)
    inner = set_member(inner, item, value)
    steps = [f"{whole}.pop({json.dumps(key)}, None)" for key in stray]
    return text[: block.value_start] + inner + text[block.end :], [*steps, step]


def drop_entry(key: str, world: World, tools: Tools) -> Change:
    """Take an entry out of default-ulimits.

    :raises ValueError: If daemon.json states that twice.
    """
    text = world.text or ""
    (block,) = [one for one in find_members(text, world.path) if one.key == ULIMITS_KEY]
    inner = remove_member(text[block.value_start : block.end], key)
    after = text[: block.value_start] + inner + text[block.end :]
    steps = [f'd["{ULIMITS_KEY}"].pop({json.dumps(key)}, None)']
    return _change_file("take that entry out", steps, after, world, tools)


def drop_key(key: str, world: World, tools: Tools) -> Change:
    """Take a key out of daemon.json."""
    after = remove_member(world.text or "", key)
    steps = [f"d.pop({json.dumps(key)}, None)"]
    return _change_file(f"take {json.dumps(key)} out of {world.path}", steps, after, world, tools)


def rename_key(key: str, right: str, world: World, tools: Tools) -> Change:
    """Give a key of daemon.json the name that dockerd knows.

    :raises ValueError: If it stands there twice.
    """
    text = world.text or ""
    (member,) = [one for one in find_members(text, world.path) if one.key == key]
    name_end = text.index(":", member.start + len(key))
    after = text[: member.start] + json.dumps(right) + text[name_end:]
    steps = [f"d.update({{{json.dumps(right)}: d.pop(k) for k in [{json.dumps(key)}] if k in d}})"]
    return _change_file(f"call that key {right}", steps, after, world, tools)


def _change_file(said: str, steps: Sequence[str], after: str, world: World, tools: Tools) -> Change:
    before = world.text or ""
    changed = world._replace(text=keep_lines(before, after))
    if not world.path.isprintable():
        return Change(tools.restart(said), changed)
    commands: list[tuple[str, ...]] = []
    if is_blank(before):
        path = shlex.quote(world.path)
        make = f"grep -qs '{{' {path} || echo '{{}}' > {path}"
        commands = [("mkdir", "-p", world.path.rpartition("/")[0]), ("sh", "-c", make)]
    read = [f"p = {json.dumps(world.path)}", 'd = json.load(open(p, "rb"))']
    lines = ["import json", *read, *steps, 'json.dump(d, open(p, "w"), indent=2)']
    commands.append(("python3", "-c", "; ".join(lines)))
    return Change(tools.restart(said, commands), changed)


def keep_lines(before: str, after: str) -> str:
    """Return JSON as it was edited, with every line that stayed under its old number.

    Line ends between two values are white space: behind the edit stand as many as there were.
    """
    shorter = min(len(before), len(after))
    head = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    rest = shorter - head
    tail = next((at for at in range(rest) if before[-1 - at] != after[-1 - at]), rest)
    while tail and after[-tail] not in ",}":
        tail -= 1
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    joined = " ".join(new.split("\n")) + "\n" * old.count("\n")
    return after[:head] + joined + after[len(after) - tail :]
