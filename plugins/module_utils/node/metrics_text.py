# SPDX-License-Identifier: BSD-2-Clause
"""Write metrics in the text format that Prometheus reads, with HELP and TYPE, and escaped labels.

Source: prometheus.io, "Text-based format", version 0.0.4; ``expfmt/text_parse.go``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..core.rlimit import UNLIMITED

TYPE_CHECKING = False
if TYPE_CHECKING:
    Sample = tuple[Mapping[str, str], float]

_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}
_STEERS = re.compile(r'[\\"\n]')


class Metric(NamedTuple):
    """A gauge: what it means, and its value for each set of labels."""

    name: str
    help: str
    samples: tuple[Sample, ...]


def format_metrics(metrics: Iterable[Metric]) -> str:
    """Return the text of all metrics that have a value."""
    return "".join(_format(metric) for metric in metrics if metric.samples)


def _format(metric: Metric) -> str:
    told = metric.help.replace("\\", "\\\\").replace("\n", "\\n")
    head = f"# HELP {metric.name} {told}\n# TYPE {metric.name} gauge\n"
    return head + "".join(
        f"{metric.name}{_format_labels(labels)} {_format_value(value)}\n"
        for labels, value in metric.samples
    )


def _format_labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escape(text: str) -> str:
    """Return a label's value as it must be written; what is no UTF-8 becomes a question mark."""
    plain = text.encode("utf-8", "replace").decode("utf-8")
    return _STEERS.sub(lambda match: _ESCAPED[match[0]], plain)


def _format_value(value: float) -> str:
    if value == UNLIMITED:
        return "+Inf"
    return repr(value) if isinstance(value, float) else str(int(value))
