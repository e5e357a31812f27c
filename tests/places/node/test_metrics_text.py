# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics are written as Prometheus reads them, whatever a label holds."""

from __future__ import annotations

import pytest
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.node.metrics import Metric, format_metrics


def test_a_metric_has_its_help_its_type_and_a_line_for_each_sample() -> None:
    metric = Metric("x_bytes", "How much.", (({"user": "a", "unit": "b"}, 1), ({}, 2.5)))
    assert format_metrics([metric]) == (
        "# HELP x_bytes How much.\n# TYPE x_bytes gauge\n"
        'x_bytes{user="a",unit="b"} 1\nx_bytes 2.5\n'
    )


def test_a_metric_without_a_value_is_left_out() -> None:
    assert format_metrics([Metric("x", "y", ())]) == ""


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('a"b', r"a\"b"),
        ("a\\b", r"a\\b"),
        ("a\nb", r"a\nb"),
        ("a\\nb", r"a\\nb"),
        ("}# HELP", "}# HELP"),
        ("größer", "größer"),
        ("\udcff", "?"),
    ],
)
def test_a_label_is_escaped(text: str, written: str) -> None:
    told = format_metrics([Metric("x", "y", (({"process": text}, 1),))])
    assert told.splitlines()[2:] == [f'x{{process="{written}"}} 1']


def test_a_help_text_stays_on_its_line() -> None:
    assert r"# HELP x a\\b\nc" in format_metrics([Metric("x", "a\\b\nc", (({}, 1),))])


@pytest.mark.parametrize(
    ("value", "written"), [(UNLIMITED, "+Inf"), (True, "1"), (0, "0"), (1e9, "1000000000.0")]
)
def test_a_value_is_a_number_of_prometheus(value: float, written: str) -> None:
    assert format_metrics([Metric("x", "y", (({}, value),))]).endswith(f"x {written}\n")
