# SPDX-License-Identifier: GPL-3.0-or-later
"""Turn median seconds into the figures that are compared, and into a table to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_FASTER = {
    "first_vs_peers": ("peers_first_s", "ours_first_s"),
    "noop_vs_peers": ("peers_noop_s", "ours_noop_s"),
    "noop_and_check_vs_peers": ("peers_noop_s", "noop_and_check_s"),
    "ping_vs_peers": ("peers_noop_s", "ping_s"),
    "first_vs_best": ("best_first_s", "ours_first_s"),
    "noop_vs_best": ("best_noop_s", "ours_noop_s"),
    "check_vs_best": ("best_read_s", "check_s"),
}
_SLOWER = {
    "noop_vs_ping": ("ours_noop_s", "ping_s"),
    "check_vs_ping": ("check_s", "ping_s"),
    "cold_check_vs_ping": ("cold_check_s", "ping_s"),
}
_TITLES = {
    "peers_first_s": "the stock modules, first run",
    "peers_noop_s": "the stock modules, no change",
    "peers_drop_in_noop_s": "  of it for docker.service",
    "best_first_s": "the stock modules at best, first run",
    "best_noop_s": "the stock modules at best, no change",
    "best_read_s": "one shell task that reads as much",
    "ours_first_s": "provision, first run",
    "ours_noop_s": "provision, no change",
    "noop_and_check_s": "provision, no change, then check",
    "check_s": "check",
    "cold_check_s": "check where nothing is kept",
    "ping_s": "ping",
    "first_vs_peers": "first run",
    "noop_vs_peers": "no change",
    "noop_and_check_vs_peers": "no change, then check",
    "noop_without_drop_in_vs_peers": "no change, without docker.service",
    "ping_vs_peers": "a ping, which does nothing",
    "first_vs_best": "first run, against their best",
    "noop_vs_best": "no change, against their best",
    "check_vs_best": "check, against a shell task that reads",
    "noop_vs_ping": "provision, no change",
    "check_vs_ping": "check",
    "cold_check_vs_ping": "check where nothing is kept",
}
_PAGE = ("cpu_s", "peak_mb", "page_mb")
_NODE = {
    "node_look_cpu_s": "a node's own look at 10,000 processes, CPU s",
    "node_loop_cpu_s": "  a loop in C that only reads the same files",
    "node_look_vs_loop": "  times that loop",
    "node_look_mb": "  peak memory, MB",
    "node_check_cpu_s": "its check of the training profile, CPU s",
    "node_check_mb": "  peak memory, MB",
    "node_prolog_cpu_s": "a prolog of Slurm that believes it, CPU s",
}
_NOTES = (
    "Medians of {runs} of the whole ansible-playbook, all sides in turn, pipelining on.",
    "Here: a private tree on this machine's kernel, reached by ssh; on both sides",
    "without Docker and without a change of running values. A ping is a module of Ansible.",
    "The stock modules also write a drop-in of docker.service; ours state what",
    "containers get in daemon.json alone. At best they have one task for each file,",
    "no loop, no facts. A first run and a check where nothing is kept bring the",
    "library to the target; on the guest that check also starts a container.",
)


def compute_ratios(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return how many times faster than the stock modules and slower than a ping ours are."""
    pairs = {**_FASTER, **_SLOWER}
    ratios = {name: seconds[above] / seconds[below] for name, (above, below) in pairs.items()}
    peers = seconds["peers_noop_s"] - seconds["peers_drop_in_noop_s"]
    ratios["noop_without_drop_in_vs_peers"] = peers / seconds["ours_noop_s"]
    return ratios


def format_table(figures: Mapping[str, float]) -> str:
    """Return all figures as a table of at most 80 columns; ``native_`` ones stand beside."""
    lines = [f"{'':40}{'guest':>12}{'here':>12}"]
    lines += _rows("seconds", [name for name in _TITLES if name.endswith("_s")], figures)
    faster = ["noop_without_drop_in_vs_peers", *_FASTER]
    lines += _rows("times faster than the stock modules", faster, figures)
    lines += _rows("times the duration of a ping", list(_SLOWER), figures)
    if "target_peak_mb" in figures:
        peaks = (figures["target_peak_mb"], figures["ping_peak_mb"])
        names = ("peak memory of the target's Python, MB", "  of a ping")
        lines += ["", *(f"{name:40}{peak:12.1f}" for name, peak in zip(names, peaks))]
    if "crowd_check_cpu_s" in figures:
        name = f"check beside {figures['crowd_processes']:.0f} processes, CPU s"
        lines += ["", f"{name:52}{figures['crowd_check_cpu_s']:12.2f}"]
    if "node_look_cpu_s" in figures:
        lines += ["", *(f"{name:52}{figures[key]:12.4f}" for key, name in _NODE.items())]
    if "training_import_s" in figures:
        keys = ["training_import_s", "guard_start_s", "plan_workers_s"]
        keys += ["guard_event_us", "guard_10_percent", "guard_10000_percent"]
        lines += ["", *(f"{name:52}{figures[name]:12.4f}" for name in keys)]
    for hosts in (1000, 10000):
        if f"audit_{hosts}_cpu_s" in figures:
            cpu, peak, page = (figures[f"audit_{hosts}_{key}"] for key in _PAGE)
            lines += [
                f"page of {hosts} hosts: {cpu:.2f} CPU s, {peak:.0f} MB held, {page:.1f} MB long"
            ]
    if "audit_filter_ms" in figures:
        lines += [f"{'a filter of its 1000 hosts, ms':52}{figures['audit_filter_ms']:12.0f}"]
    notes = (note.format(runs=int(figures["runs"])) for note in _NOTES)
    return "\n".join([*lines, "", *notes])


def _rows(title: str, names: list[str], figures: Mapping[str, float]) -> Iterator[str]:
    yield ""
    yield title
    for name in names:
        cells = (figures.get(key) for key in (name, f"native_{name}"))
        texts = ("-" if cell is None else f"{cell:.2f}" for cell in cells)
        yield f"  {_TITLES[name]:38}" + "".join(f"{text:>12}" for text in texts)
