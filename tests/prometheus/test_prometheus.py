# SPDX-License-Identifier: GPL-3.0-or-later
"""Prometheus reads what a look at this machine writes, and its rules and dashboard use only that."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.node.zipapp_read import build_zipapp, read_library

TOP = Path(__file__).parents[2]
BUILD = TOP / "build" / "prometheus"
SHIPPED = TOP / "roles" / "monitor" / "files"
PACKAGES = ("prometheus", "prometheus-node-exporter")
NAME = re.compile(r"\bmlhost_limits_[a-z_]+")
STRANGE = 'a"b\\c\nd'  # The name of a process may hold anything.


@pytest.fixture(scope="module")
def tools() -> Path:
    """Return the folder of Debian's own programs, unpacked and not installed."""
    programs = BUILD / "usr" / "bin"
    if not (programs / "prometheus-node-exporter").exists():
        shutil.rmtree(BUILD, ignore_errors=True)
        BUILD.mkdir(parents=True)
        subprocess.run(["apt-get", "download", *PACKAGES], cwd=BUILD, check=True)
        for package in BUILD.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, BUILD], check=True)
    return programs


@pytest.fixture(scope="module")
def strange() -> Iterator[int]:
    """Run a process whose name must be escaped, with most of its descriptors open."""
    code = (
        "import os, resource, sys, time\n"
        f"open('/proc/self/comm', 'wb').write({STRANGE.encode()!r})\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))\n"
        "kept = [os.dup(0) for _ in range(15)]\n"
        "os.setuid(65534)\n"
        "print(len(os.listdir('/proc/self/fd')) - 1, flush=True)\n"
        "time.sleep(600)\n"
    )
    words = [sys.executable, "-IS", "-c", code]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield int(process.stdout.readline())
        process.kill()


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory, strange: int) -> Path:
    """Return what the program writes of this machine."""
    folder = tmp_path_factory.mktemp("textfiles")
    program, policy = folder / "mlhost-limits.pyz", folder / "policy.json"
    program.write_bytes(build_zipapp(read_library(), sys.executable))
    policy.write_text('{"kernel": {"vm.max_map_count": 2147483647, "fs.nr_open": 1, "no.such": 1}}')
    path = folder / "limits.prom"
    words = [sys.executable, "-I", str(program), "monitor"]
    words += ["--policy", str(policy), "--metrics", str(path)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "1 pass, 1 fail, 1 unknown" in done.stdout
    return path


def promtool(tools: Path, *words: str | Path, **options: Any) -> None:
    done = subprocess.run([tools / "promtool", *words], capture_output=True, text=True, **options)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def test_the_metrics_are_as_prometheus_wants_them(tools: Path, metrics: Path) -> None:
    promtool(tools, "check", "metrics", input=metrics.read_text())


def test_node_exporter_serves_every_sample(tools: Path, metrics: Path, strange: int) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    words = [str(tools / "prometheus-node-exporter"), f"--web.listen-address={address}"]
    words += ["--collector.disable-defaults", "--collector.textfile"]
    words += [f"--collector.textfile.directory={metrics.parent}"]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as exporter:
        try:
            served = scrape(f"http://{address}/metrics")
        finally:
            exporter.kill()
    written = [line for line in metrics.read_text().splitlines() if not line.startswith("#")]
    assert {read_sample(line) for line in written} <= {
        read_sample(line) for line in served if line.startswith("mlhost_limits_")
    }
    assert "node_textfile_scrape_error 0" in served
    name = r'process="a\"b\\c\nd"'
    assert [line for line in served if "worst_process_info" in line and name in line]
    full = [line for line in served if "worst_process_open_fds" in line and "nobody" in line]
    assert [float(line.rpartition(" ")[2]) for line in full] == [strange]


def scrape(url: str) -> list[str]:
    deadline = time.monotonic() + 20
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return str(answer.read().decode()).splitlines()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def read_sample(line: str) -> tuple[str, frozenset[str], float]:
    """Return the name, the labels in any order, and the value."""
    head, _, value = line.rpartition(" ")
    name, _, labels = head.partition("{")
    return name, frozenset(re.findall(r'[a-z_]+="(?:[^"\\]|\\.)*"', labels)), float(value)


def test_the_rules_say_what_they_should(tools: Path, tmp_path: Path) -> None:
    for path in (SHIPPED / "mlhost-limits.rules.yml", Path(__file__).with_name("rules_test.yml")):
        shutil.copy(path, tmp_path)
    promtool(tools, "check", "rules", tmp_path / "mlhost-limits.rules.yml")
    promtool(tools, "test", "rules", "rules_test.yml", cwd=tmp_path)


def list_expressions() -> list[str]:
    dashboard = json.loads((SHIPPED / "mlhost-limits.dashboard.json").read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def test_prometheus_reads_every_query_of_the_dashboard(tools: Path, tmp_path: Path) -> None:
    expressions = [text.replace("$instance", ".*") for text in list_expressions()]
    rules = [{"record": f"panel:{i}", "expr": text} for i, text in enumerate(expressions)]
    path = tmp_path / "queries.yml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool(tools, "check", "rules", path)


def test_rules_and_dashboard_use_metrics_that_there_are(metrics: Path) -> None:
    told = set(re.findall(r"^# TYPE (\S+) gauge$", metrics.read_text(), re.MULTILINE))
    optional = {
        # Only where something is locked.
        "mlhost_limits_locked_memory_bytes",
        "mlhost_limits_pinned_memory_bytes",
        "mlhost_limits_worst_process_locked_memory_bytes",
        "mlhost_limits_worst_process_locked_memory_limit_bytes",
        # Of the black box, which writes a file of its own.
        "mlhost_limits_near_limit_ratio",
        "mlhost_limits_full_in_seconds",
        "mlhost_limits_ended_at_limit",
        "mlhost_limits_black_box_timestamp_seconds",
    }
    used = set(NAME.findall(" ".join(list_expressions())))
    used |= set(NAME.findall((SHIPPED / "mlhost-limits.rules.yml").read_text()))
    assert used <= told | optional
    documented = set(NAME.findall((TOP / "docs" / "monitor.md").read_text()))
    variables = set(NAME.findall((TOP / "roles/monitor/meta/argument_specs.yml").read_text()))
    assert documented - variables == told | optional
