# SPDX-License-Identifier: BSD-2-Clause
"""Tell what a file of a run is, by what stands in it, and have it read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ..core.policy_tree import Located, Tree
from ..core.reader import PolicyError
from ..core.toml_text import Scalar, TomlError, read_toml
from ..core.values import NamedTuple
from .compose_file import Site, is_compose, read_compose
from .env_file import read_env_file
from .facts import COMPOSE, FILE, VARIABLES, Fact, Words, join_words
from .launchers import read_script, read_variables
from .names import read_option
from .options import find_library
from .pod_file import is_pod, read_pod
from .trainer_file import (
    is_accelerate,
    is_backends,
    is_zero,
    read_accelerate,
    read_backends,
    read_trainer,
    read_zero,
)

SCRIPT, START, SETTINGS = "script", "start", "settings"
"""What runs something, what starts a container that does, and what such a thing reads."""

SUFFIXES = (".sh", ".sbatch", ".slurm", ".bash", ".json", ".yaml", ".yml", ".toml")
_SCRIPT = re.compile(r"#!|.*^#SBATCH\s", re.DOTALL | re.MULTILINE)
_PYTHON = re.compile(r"([A-Za-z_]\w*)\s*=\s*([\"']?)([^#\"'\[\](){}]+?)\2\s*(?:#.*)?")
_MOST_NOTES = 5


class Text(NamedTuple):
    """A file: its name for people, what is in it, and where relative paths in it begin."""

    name: str
    content: str
    folder: str
    arguments: tuple[str, ...] = ()
    """What a script is given."""


class Context(NamedTuple):
    """What a reader needs besides: the variables that are set, and what parses JSON and YAML.

    ``parse`` returns the documents of a text, each scalar with its line. ``read_beside`` returns
    what a path holds that begins in a folder, and nothing where nothing can be read.
    """

    environment: Mapping[str, str]
    parse: Callable[[str, str], Sequence[Tree]]
    read_beside: Callable[[str, str], str] = lambda _folder, _path: ""


class Read(NamedTuple):
    """What a file says, and what it is; ``kind`` is empty where it says nothing of a run."""

    kind: str
    words: Words


def read_file(text: Text, context: Context, kind: str = "") -> Read:
    """Return what a file says; what cannot be read is a problem among the words.

    :param kind: What whoever names the file takes it for: ``script``, ``zero``, ``accelerate``.
    """
    try:
        return _read(text, context, kind)
    except PolicyError as exc:
        hint = _hint(text.content)
        return Read(SETTINGS, Words(problems=tuple(f"{one}{hint}" for one in exc.problems)))
    except TomlError as exc:
        return Read(SETTINGS, Words(problems=(f"{text.name}:{exc.line}: {exc}",)))
    except ValueError as exc:
        return Read(SETTINGS, Words(problems=(f"{exc}{_hint(text.content)}",)))


def _hint(text: str) -> str:
    """Say so where a text is a template, whose marks are neither JSON nor YAML."""
    return "; it holds a template: give the file that it becomes" if "{{" in text else ""


def _read(text: Text, context: Context, kind: str) -> Read:
    if not text.content.strip():
        raise ValueError(f"{text.name}: is empty")
    if kind == SCRIPT or _SCRIPT.match(text.content) or _is_named(text, ".sh", ".bash", ".slurm"):
        look = context.read_beside
        words = read_script(
            text.content,
            text.name,
            context.environment,
            lambda path: look("", path) or look(text.folder, path),
            text.arguments,
        )
        return Read(SCRIPT if any(words) else "", words)
    if kind == VARIABLES:
        variables = read_env_file(text.content, context.environment)
        return Read(SETTINGS, read_variables(variables, text.name))
    if _is_named(text, ".py"):
        return Read(SETTINGS, _read_python(text))
    if _is_named(text, ".toml"):
        return Read(SETTINGS, _read_toml(text))
    trees = context.parse(text.content, text.name)
    parts = _leave_servers([_read_tree(tree.root, text, context, kind) for tree in trees])
    words = join_words([part.words for part in parts])
    doubles = tuple(problem for tree in trees for problem in tree.problems)[:_MOST_NOTES]
    words = words._replace(notes=(*words.notes, *doubles))
    kinds = [part.kind for part in parts if part.kind]
    return Read(START if START in kinds else kinds[0] if kinds else "", words)


def _leave_servers(parts: list[Read]) -> list[Read]:
    """Return what documents say, without pods that say nothing of a run beside one that does."""
    runs = [one for one in parts if one.kind == START and (one.words.facts or one.words.wanted)]
    return [one for one in parts if one.kind != START or one in runs] if runs else parts


def _is_named(text: Text, *suffixes: str) -> bool:
    return text.name.endswith((*suffixes, *((".sbatch",) if ".sh" in suffixes else ())))


def _read_tree(root: object, text: Text, context: Context, kind: str) -> Read:
    if root is None or isinstance(root, Located):
        raise ValueError(f"{text.name}: holds a single value; a mapping is accepted")
    if is_pod(root):
        return Read(START, read_pod(root, text.name))
    if is_compose(root):
        beside = partial(context.read_beside, text.folder)
        site = Site(text.name, context.environment, text.folder, beside)
        return Read(START, read_compose(root, site, kind.partition(COMPOSE)[2]))
    if kind == "zero" or is_zero(root):
        return Read(SETTINGS, read_zero(root, text.name))
    if is_accelerate(root):
        return Read(SETTINGS, read_accelerate(root, text.name))
    if is_backends(root):
        return Read(SETTINGS, read_backends(root, text.name))
    words = read_trainer(root, text.name)
    return Read(SETTINGS if words.facts or words.wanted else "", words)


def _read_python(text: Text) -> Words:
    """Read plain assignments such as ``batch_size = 12``; nothing is run."""
    found = []
    for number, line in enumerate(text.content.splitlines(), start=1):
        match = _PYTHON.fullmatch(line)
        if match and (match[2] or re.fullmatch(r"[0-9.eE+-]+|True|False", match[3])):
            found += read_option(match[1], match[3], f"{text.name}:{number}", FILE)
    return Words(tuple(one for one in found if isinstance(one, Fact)))


def _read_toml(text: Text) -> Words:
    found, names = [], []
    for keys, node in read_toml(text.content):
        value = node.value.text if isinstance(node.value, Scalar) else node.value
        if isinstance(value, str):
            names.append(keys[-1])
            found += read_option(".".join(keys), value, f"{text.name}:{node.line}", FILE)
    facts = tuple(one for one in found if isinstance(one, Fact))
    return Words(facts, library=find_library(names))
