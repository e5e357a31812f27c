# SPDX-License-Identifier: BSD-2-Clause
"""Say what the files of a tree state for the kernel."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.cause import cite
from ..core.resolved import Effect, describe
from ..host.files import read_distribution, read_text
from .diagnose import gather_key
from .model import RANGES, SCRIPT, TUNED, is_in_range, predict_boot
from .sysctl_conf import SYSCTL_CONF, spell_key
from .sysctl_writes import SYSTEMD, find_procps, resolve_key
from .tree_read import TreeBoot, read_tree_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.values import Bound
    from ..host.image import Tree


def resolve_kernel(tree: Tree) -> Iterator[dict[str, object]]:
    """Yield each sysctl at boot, and what ``sysctl --system`` makes of it where that differs."""
    root, boot = tree.root, tree.at(TreeBoot)
    conf = read_text(SYSCTL_CONF, root)
    files = {**read_tree_files(root), **({} if conf is None else {SYSCTL_CONF: conf})}
    readers = (SYSTEMD, find_procps(read_distribution(root)))
    indexes = [(one.arrange(files), one) for one in readers]
    alike = indexes[0][0].is_read_like(indexes[1][0])
    named = {line.name for index, _reader in indexes for line in index.lines if not line.glob}
    keys = {spell_key(name) for name in named}
    for key in sorted(key for key in keys if key.strip() == key):
        bounds = [resolve_key(index, key, one) for index, one in indexes[: 1 if alike else 2]]
        at_boot, by_procps = bounds[0], bounds[-1]
        found = {"at_boot": at_boot, "by_procps": by_procps}
        values = {bound.winner.value if bound else "" for bound in found.values()}
        if len(values) == 1:
            found = {"value": found["at_boot"]}
        for kind, bound in found.items():
            if bound and bound.winner.value != "":  # "-key" alone assigns nothing.
                effect = _find_effect(key, bound)
                if effect is None and kind != "by_procps":
                    effect = _find_later(key, boot)
                yield describe("kernel", key, kind, _as_text(bound), "", effect)


def _find_later(key: str, boot: TreeBoot) -> Effect | None:
    """Return that the files are not applied at boot, or what sets the key after them."""
    if boot.stop:
        return Effect(None, f"{cite(boot.stop)} keeps systemd-sysctl from applying any file")
    forecast = predict_boot(gather_key(key, boot, boot.find_start(key)))
    if forecast.kind not in (SCRIPT, TUNED) or forecast.by is None:
        return None
    sole = forecast.values[0] if len(forecast.values) == 1 else None
    return Effect(sole, f"{cite(forecast.by)} {'sets' if sole else 'may set'} it after that")


def _as_text(bound: Bound) -> Bound:
    """Show a value as the file has it: none of the kernel's numbers means unlimited."""
    return bound._replace(winner=bound.winner._replace(value=str(bound.winner.value)))


def _find_effect(key: str, bound: Bound) -> Effect | None:
    """Return that the kernel refuses what is stated, where that is known."""
    refused = key in RANGES and not is_in_range(key, str(bound.winner.value))
    return Effect(None, "the kernel refuses it, and leaves what was there") if refused else None
