# SPDX-License-Identifier: BSD-2-Clause
"""Change what new containers get, as commands for a person and in thought.

daemon.json is edited by key: such commands may be run in any order, and twice. In thought every
line keeps its number, so that what is found later is found where it stands in the file.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from ..containers.policy import SHM, ContainerPolicy
from ..core.cause import Remedy
from ..core.json_text import find_member, find_members, is_blank, remove_member, set_member
from ..core.line_edit import edit_line, find_row, find_top
from ..core.quote import one_line
from ..core.values import ITEMS, UNLIMITED, Declaration, NamedTuple, Rlimit, format_quantity
from ..shared_memory.size import format_shm_size
from .daemon_json import SHM_KEY, ULIMITS_KEY, read_entries
from .flags import parse_ulimit
from .merge import format_ulimit
from .model import World, find_obstacles, predict
from .site import Tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.line_edit import Commands
    from .dockerd_flags import Flag

_FLAGS = {ULIMITS_KEY: "default-ulimit", SHM_KEY: "default-shm-size"}
_TOLD = "has changed since the check, or cannot be: nothing was done; run the check again"
_BETWEEN = re.compile(r'"(?:[^"\\]|\\.)*"|[,}\n]')
"""Where white space may begin in JSON; what stands in a string is skipped with it."""
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


def choose_limit(item: str, policy: ContainerPolicy, now: Rlimit) -> Rlimit | None:
    """Return what shall be stated for an item; ``None`` where the policy demands nothing of it.

    :param now: What there is, for an item that is only bounded above.
    """
    if item == SHM:
        return Rlimit(policy.shm_size, policy.shm_size) if policy.shm_size else None
    return policy.choose(item, now) if item in policy.limits else None


def count_met(world: World, policy: ContainerPolicy) -> int:
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
    commands = _edit_flags([(flag, f"{'' if same else '& '}{after}")], tools)
    text = f"make it {after}" if same else f"add {after}"
    place = world.flags.index(flag)
    edited = (*world.flags[:place], *kept, new, *world.flags[place + 1 :])
    return Change(tools.restart(text, commands), world._replace(flags=edited))


def drop_flags(flags: Sequence[Flag], world: World, tools: Tools) -> Change:
    """Take flags out of the daemon's command line."""
    lines = dict.fromkeys((flag.path, flag.line) for flag in flags)
    edits = [
        _edit_flags([(flag, "") for flag in flags if (flag.path, flag.line) == line], tools)
        for line in lines
    ]
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


def _edit_flags(changes: Sequence[tuple[Flag, str]], tools: Tools) -> Commands:
    """Return the edit of the line that gives flags, where they stand there word by word.

    :param changes: Flags of one line, each with what takes its place.
    """
    flag = changes[0][0]
    at = Declaration(flag.path, flag.line, "", "")
    whole = find_row(at, tools.files.get(flag.path, ""))
    scripts = [_write_change(one, after, whole.text) for one, after in changes]
    script = scripts[0] if len(scripts) == 1 else f"{{{';'.join(scripts)}}}"
    edit = edit_line(whole, script) if all(scripts) else ()
    return (*edit, ("systemctl", "daemon-reload")) if edit else ()


def _write_change(flag: Flag, after: str, row: str) -> str:
    """Return the script of sed that changes a flag; nothing where it is not written there so."""
    value = flag.value.replace(".", "\\.")
    pattern = f"--{flag.name}[= ] *{value}\\b"
    if not _PLAIN.fullmatch(f"{flag.name}={flag.value}") or not re.search(pattern, row):
        return ""
    return f"s|{pattern if after else ' *' + pattern}|{after}|"


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
        old = next((member.value for member in members if member.key == SHM_KEY), None)
        steps = [_expect(SHM_KEY, old, value), f"d[{json.dumps(SHM_KEY)}] = {json.dumps(value)}"]
    else:
        after, steps = _put_ulimit(text, item, limit)
    said = f"in {world.path}: {_show(item, limit)}"
    return _change_file(said, steps, after, world, tools)


def _show(item: str, limit: Rlimit) -> str:
    """Return what daemon.json is to state, by its keys: ``default-ulimits.memlock -1``."""
    if item == SHM:
        return f"{SHM_KEY} {format_shm_size(limit.hard)}"
    pair = [-1 if value >= UNLIMITED else value for value in limit]
    return f"{ULIMITS_KEY}.{item} {':'.join(map(str, dict.fromkeys(pair)))}"


def _put_ulimit(text: str, item: str, limit: Rlimit) -> tuple[str, list[str]]:
    """Return the text with the entry, and the steps; entries of other keys for it go."""
    value = format_ulimit(item, limit)
    whole = f'd.setdefault("{ULIMITS_KEY}", {{}})'
    step = f"{whole}[{json.dumps(item)}] = {json.dumps(value)}"
    members = [] if is_blank(text) else find_members(text)
    block = find_member(members, ULIMITS_KEY)
    if block is None or not isinstance(block.value, dict):
        null = f'd["{ULIMITS_KEY}"] = d["{ULIMITS_KEY}"] or {{}}'
        first = _expect_entry(item, None, value)
        after = set_member(text, ULIMITS_KEY, {item: value})
        return after, [first, null, step] if block else [first, step]
    entries = read_entries(text, "", members)
    stray = [entry.key for entry in entries if entry.item == item != entry.key]
    step = f"{_expect_entry(item, block.value.get(item), value)}; {step}"
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
    old = block.value.get(key) if isinstance(block.value, dict) else None
    steps = [_expect_entry(key, old), f'd["{ULIMITS_KEY}"].pop({json.dumps(key)}, None)']
    return _change_file("take that entry out", steps, after, world, tools)


def drop_key(key: str, world: World, tools: Tools) -> Change:
    """Take a key out of daemon.json."""
    after = remove_member(world.text or "", key)
    old = find_member(find_members(world.text or "", world.path), key)
    steps = [_expect(key, old and old.value), f"d.pop({json.dumps(key)}, None)"]
    return _change_file(f"take {json.dumps(key)} out of {world.path}", steps, after, world, tools)


def rename_key(key: str, right: str, world: World, tools: Tools) -> Change:
    """Give a key of daemon.json the name that dockerd knows.

    :raises ValueError: If it stands there twice.
    """
    text = world.text or ""
    (member,) = [one for one in find_members(text, world.path) if one.key == key]
    name_end = text.index(":", member.start + len(key))
    after = text[: member.start] + json.dumps(right) + text[name_end:]
    rename = f"d.update({{{json.dumps(right)}: d.pop(k) for k in [{json.dumps(key)}] if k in d}})"
    steps = [_expect(key, member.value), rename]
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
    commands.append(("python3", "-I", "-c", "; ".join(_write_program(world.path, steps))))
    return Change(tools.restart(said, commands), changed)


def _expect(key: str, *allowed: object) -> str:
    """Return the step that ends where a key is no more what it was, nor yet what it becomes."""
    return f"assert d.get({json.dumps(key)}) in {_list(allowed)}"


def _expect_entry(key: str, *allowed: object) -> str:
    """Return the same for an entry of default-ulimits."""
    entry = f'(d.get("{ULIMITS_KEY}") or {{}}).get({json.dumps(key)})'
    return f"assert {entry} in {_list(allowed)}"


def _list(values: Iterable[object]) -> str:
    return f"[{', '.join(map(ascii, [one for one in values if one is not None] + [None]))}]"


def _write_program(path: str, steps: Sequence[str]) -> Iterator[str]:
    """Yield the statements that change a file of JSON whole or not at all.

    They run isolated (``-I``): a module beside whoever pastes them is not Python's.
    """
    top, named = find_top(path), json.dumps(path)
    told = json.dumps(f"{path} {_TOLD}")
    yield "import json, pathlib, shutil, sys"
    yield f"sys.excepthook = lambda *_: print({told}, file=sys.stderr)"
    yield f"p = pathlib.Path({named})" + (".resolve()" if top else "")
    yield "assert p.is_file() and " + (
        f'str(p).startswith("{top}")' if top else "not p.is_symlink()"
    )
    yield "d = json.loads(p.read_bytes())"
    yield from steps
    yield 't = p.with_name(p.name + ".new")'
    yield "shutil.copy2(str(p), str(t))"
    yield "t.write_text(json.dumps(d, indent=2))"
    yield "t.replace(p)"


def keep_lines(before: str, after: str) -> str:
    """Return JSON as it was edited, with every line that stayed under its old number.

    Line ends between two values are white space: behind the edit stand as many as there were.
    """
    tail = _count_alike(before[::-1], after[::-1])
    lengths = (len(after) - found.start() for found in _BETWEEN.finditer(after))
    tail = next((length for length in lengths if length <= tail), 0)
    head = _count_alike(before[: len(before) - tail], after[: len(after) - tail])
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if new.count("\n") != old.count("\n"):
        new = " ".join(new.split("\n")) + "\n" * old.count("\n")
    return after[:head] + new + after[len(after) - tail :]


def _count_alike(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other))))
