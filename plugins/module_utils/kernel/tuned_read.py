# SPDX-License-Identifier: BSD-2-Clause
"""Read what tuned sets at boot: its active profiles, or those that it may recommend."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence

from ..host.files import list_folder, read_each, read_text, under
from .boot_scripts import is_about_sysctls
from .boot_units import mark
from .boot_units_read import find_started, read_script
from .tuned_profile import (
    MAIN_CONF,
    PROFILE_FOLDERS,
    Tuned,
    find_includes,
    find_recommended,
    merge_profiles,
    read_exclude,
    read_reapply,
)

_ACTIVE, _MODE = "/etc/tuned/active_profile", "/etc/tuned/profile_mode"
_CHOSEN = (_ACTIVE, "/etc/tuned/post_loaded_profile")
_RECOMMENDS = ("/etc/tuned/recommend.conf", "/usr/lib/tuned/recommend.conf")
_RECOMMEND_FOLDERS = ("/usr/lib/tuned/recommend.d", "/etc/tuned/recommend.d")


def read_tuned(root: str = "/") -> Tuned | None:
    """Return what tuned sets, where it starts at boot or runs now."""
    profiles = _read_profiles(root)
    enabled = bool(profiles) and "tuned.service" in find_started(root)
    if not profiles or not (enabled or os.path.exists(under("/run/tuned/tuned.pid", root))):
        return None
    main = read_text(MAIN_CONF, root) or ""
    switch, lines = read_reapply(main), merge_profiles(list(profiles.items()))
    return Tuned(lines, switch is None, switch, enabled, read_exclude(main))


def read_tuned_scripts(root: str) -> dict[str, str]:
    """Return what lies beside the active profile that it may run, as its plugin ``script`` does."""
    profiles = _read_profiles(root)
    is_chosen = bool(profiles)
    profiles = profiles or _read_named(find_recommended(_read_recommendations(root)), root)
    if not profiles or "tuned.service" not in find_started(root):
        return {}
    folders = [path.rpartition("/")[0] for path, text in profiles.items() if "script=" in text]
    paths = [f"{one}/{name}" for one in folders for name in list_folder(one, root)]
    texts = {path: read_script(path, root) for path in paths if path not in profiles}
    return {
        path: mark(text, text, () if is_chosen else {0})
        for path, text in texts.items()
        if is_about_sysctls(text)
    }


def read_recommended(root: str = "/") -> Iterator[Tuned]:
    """Yield what tuned sets with each profile that it may recommend, where none was chosen.

    The machine decides which one: ``_get_startup_profile()`` of tuned.
    """
    is_chosen = bool((read_text(_ACTIVE, root) or "").strip())
    mode = (read_text(_MODE, root) or "").strip()
    if (mode or is_chosen) and mode != "auto":
        return
    if not any(list_folder(one, root) for one in PROFILE_FOLDERS):
        return
    if "tuned.service" not in find_started(root):
        return
    main = read_text(MAIN_CONF, root) or ""
    switch, exclude = read_reapply(main), read_exclude(main)
    for name in find_recommended(_read_recommendations(root)):
        profiles = _read_named([name], root)
        if profiles:
            lines = merge_profiles(list(profiles.items()))
            yield Tuned(lines, switch is None, switch, True, exclude)


def _read_recommendations(root: str) -> list[str]:
    paths = list(_RECOMMENDS)
    for folder in _RECOMMEND_FOLDERS:
        names = (one for one in list_folder(folder, root) if one.endswith(".conf"))
        paths += [f"{folder}/{name}" for name in names]
    return [text for _path, text in read_each(paths, root)]


def _read_profiles(root: str) -> dict[str, str]:
    """Return the active profiles of tuned, by path, each after those that it stands on."""
    names = [name for file in _CHOSEN for name in (read_text(file, root) or "").split()]
    return _read_named(names, root)


def _read_named(names: Sequence[str], root: str) -> dict[str, str]:
    """Return profiles of these names, by path, each after those that it stands on."""
    folders = {one: frozenset(list_folder(one, root)) for one in PROFILE_FOLDERS if names}
    profiles: dict[str, str] = {}
    for name in names:
        _read_profile(os.path.basename(name), profiles, folders, root)
    return profiles


def _read_profile(
    name: str, profiles: dict[str, str], folders: Mapping[str, Collection[str]], root: str
) -> None:
    """Add a profile after those that it stands on, however many stand on each other.

    :param folders: The names in each of the folders that may have it.
    """
    waiting = [(name, "")]
    while waiting:
        name, stands = waiting.pop()
        if stands:
            profiles[stands] = profiles.pop(stands)
            continue
        paths = [f"{folder}/{name}/tuned.conf" for folder in folders if name in folders[folder]]
        texts = ((path, read_text(path, root)) for path in paths)
        path, text = next((one for one in texts if one[1] is not None), ("", None))
        if text is not None and path not in profiles:
            profiles[path] = text
            below = [(os.path.basename(other), "") for other in find_includes(text)]
            waiting += [("", path), *reversed(below)]
