# SPDX-License-Identifier: GPL-3.0-or-later
"""A template gives what Jinja makes of it, to the byte; what is not known is a sentence."""

from __future__ import annotations

from typing import Any

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits import audit_page
from mlhost_limits.audit_expressions import Safe
from mlhost_limits.audit_template import fill_template
from mlhost_limits.fleet import read_host
from mlhost_limits.fleet_view import Fleet

from tests.bench.fleet import simulate

VALUES: dict[str, Any] = {
    "evil": "<b a='1'>\"&\n",
    "one": {"text": "a", "n": 1, "list": ["x", "<y>", "z"], "nothing": None, "empty": ""},
    "counts": {"fail": 2, "pass": 0},
    "many": [{"name": "a", "on": True}, {"name": "b", "on": False}, {"name": "c", "on": True}],
}


def fill_with_jinja(text: str, values: dict[str, Any]) -> str:
    room = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return room.from_string(text).render(**values)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\n",
        "a\n\n",
        "{{ evil }}|{{ evil | safe }}|{{ evil | e }}",
        "{{ one.text }} {{ one['text'] }} {{ one.list[0] }} {{ one.list[:2] | join(', ') }}",
        "{# a comment #}\nb\n  {# c #}\nd",
        "{% if one.n == 1 %}\n  yes\n{% elif one.n %}\n  no\n{% else %}\n  other\n{% endif %}\nend\n",
        "  {% for key, value in counts.items() %}\n  {{ key }}={{ value }}{{ ', ' if not loop.last }}\n"
        "  {% endfor %}\n",
        "{% for x in many if x.on %}{{ loop.index }}/{{ loop.length }} {{ x.name }};{% endfor %}",
        "{% for x in many %}{% set last = x.name %}{{ last }}{{ loop.index0 }}{% endfor %}",
        "{% set a = 1 + 2 * 3 %}{{ a }} {{ (1 + 2) * 3 }} {{ 7 // 2 }} {{ 7 % 4 }} {{ -a }} {{ 7 / 2 }}",
        "{{ 'a' ~ one.n + 1 ~ 'b' }}{{ one.list | length - 1 }}{{ 2 > one.list | length }}",
        "{{ ' and ' ~ (one.n - one.list | length) ~ ' more' if one.n }}",
        "{{ one.empty or 'none' }} {{ one.n and one.text }} {{ not one.n }} {{ 'a' in one.text }}",
        "{{ 'a' not in one.text }} {{ one.text in ('a', 'b') }} {{ [1, 2] | last }} {{ ('x') }}",
        "{{ one.nothing is none }} {{ one.n is not none }} {{ 1 if false }}|{{ 1 if true else 2 }}",
        "{% macro tell(id, text) %}<i id={{ id }}>{{ text }}</i>{% endmacro %}"
        "{{ tell('a', evil) }}{{ tell(1, '<' ~ one.text) }}",
        "{% macro s(n) %}{{ n }} host{{ '' if n == 1 else 's' }}{% endmacro %}{{ s(1) ~ ', ' ~ s(2) }}",
        "a {%- if true -%}  b  {%- endif -%}  c",
        "{{ 'x\\n\\'y' }}{{ \"q\\\"r\" }}{{ one.text | upper | lower | title }}",
    ],
)
def test_a_template_is_filled_as_jinja_does(text: str) -> None:
    assert fill_template(text, "page", VALUES) == fill_with_jinja(text, VALUES)


@given(st.text())
def test_no_text_becomes_markup(text: str) -> None:
    told = fill_template(
        "{{ x }}{% macro m(y) %}{{ y }}{% endmacro %}{{ m(x) }}", "page", {"x": text}
    )
    assert not set(told) & set("<>\"'")
    assert told == fill_with_jinja("{{ x }}{{ x }}", {"x": text})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "\n\n{% include 'a' %}",
            "page:3: \"include 'a'\" is not known; accepted are for, if, set",
        ),
        ("{% if x %}", "page:1: 'endif' is missing at the end"),
        ("{% endif %}", "page:1: 'endif' ends nothing"),
        ("{% for x in y %}{% endif %}", "page:1: 'endif' stands where endfor is missing"),
        (
            "{{ x | wrong }}",
            "page:1: 'wrong' is not a filter; accepted are count, default, e, first",
        ),
        ("{{ x is wrong }}", "page:1: 'wrong' is not a test; accepted are match, none, search"),
        ("{{ x y }}", "page:1: 'y' stands behind an expression"),
        ("{{ (x }}", "page:1: ')' is missing before ''"),
        ("{{ x ? y }}", "page:1: '? y' is not known here"),
        ("{{ }}", "page:1: a value is missing before ''"),
        ("{{ x.1 }}", "page:1: a name is missing before '1'"),
        ("{{ nothing }}", "'nothing' is not there"),
    ],
)
def test_what_is_not_known_is_a_sentence(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        fill_template(text, "page", {"x": 1, "y": []})
    assert str(refused.value).startswith(told)


def test_markup_stays_markup_where_it_is_joined() -> None:
    values = {"a": Safe("<i>"), "b": "<b>"}
    assert fill_template("{{ a ~ b }}", "page", values) == "<i>&lt;b&gt;"


@pytest.mark.parametrize("hosts", [0, 1, 60])
def test_the_page_is_what_jinja_makes_of_it(hosts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[str, dict[str, Any]]] = []

    def fill(text: str, name: str, values: dict[str, Any]) -> str:
        given.append((text, values))
        page: str = fill_template(text, name, values)
        return page

    monkeypatch.setattr(audit_page, "fill_template", fill)
    fleet = Fleet()
    for name, result in simulate(hosts):
        fleet.add(read_host(name, result))
    page = audit_page.PageText("<title>", "2026-11-30T12:00:00Z").finish(fleet)
    ((text, values),) = given
    assert page == fill_with_jinja(text, values)
    assert "&lt;title&gt;" in page
