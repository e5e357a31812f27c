# SPDX-License-Identifier: GPL-3.0-or-later
"""daemon.json as tools, distributions and people write it."""

from __future__ import annotations

NVIDIA = b"""\
{
    "default-runtime": "nvidia",
    "runtimes": {
        "nvidia": {
            "args": [],
            "path": "nvidia-container-runtime"
        }
    }
}
"""
PROXIES = b"""\
{
  "proxies": {
    "http-proxy": "http://ml:s3cret@proxy.example.com:3128",
    "https-proxy": "http://ml:s3cret@proxy.example.com:3128",
    "no-proxy": "127.0.0.0/8,.example.com"
  },
  "registry-mirrors": ["https://mirror.example.com"],
  "insecure-registries": [
    "registry.example.com:5000"
  ]
}
"""
LOGS = b"""\
{
\t"log-driver": "json-file",
\t"log-opts": {
\t\t"max-size": "100m",
\t\t"max-file": "3",
\t\t"labels": "job,user"
\t},
\t"live-restore": true,
\t"userland-proxy": false
}
"""
STORAGE = (
    b'{"storage-driver":"overlay2","storage-opts":["overlay2.size=20G"],"data-root":"/data/docker"}'
)
KUBERNETES = b"""\
{
  "exec-opts": ["native.cgroupdriver=systemd"],
  "log-driver": "json-file",
  "log-opts": {"max-size": "100m"},
  "storage-driver": "overlay2",
  "max-concurrent-downloads": 10
}"""
OTHER_LIMITS = b"""\
{
  "default-ulimits": {
    "nofile": {
      "Name": "nofile",
      "Hard": 64000,
      "Soft": 64000
    },
    "core": {"Name": "core", "Hard": 0, "Soft": 0}
  },
  "default-shm-size": "1G"
}
"""
SAME_LIMITS = (
    b'{"default-ulimits": {"memlock": {"Name": "memlock", "Soft": -1, "Hard": -1}, "open": '
    b'{"name": "NOFILE", "soft": 65536, "hard": 1048576}}, "default-shm-size": "8192m"}\n'
)
BROKEN_LIMITS = b"""\
{ "default-ulimits": { "nofile": { "Name": "nofile", "Hard": -1, "Soft": "65536" } },
  "default-shm-size": 8589934592 }
"""

CORPUS = {
    "nvidia": NVIDIA,
    "nvidia, CRLF": NVIDIA.replace(b"\n", b"\r\n"),
    "nvidia, tabs": NVIDIA.replace(b"    ", b"\t"),
    "nvidia, no final line end": NVIDIA.rstrip(),
    "nvidia, on one line": NVIDIA.replace(b"\n", b" "),
    "proxies and mirrors": PROXIES,
    "logs": LOGS,
    "storage": STORAGE,
    "kubernetes": KUBERNETES,
    "kubernetes, empty lines after": KUBERNETES + b"\n\n\n",
    "other limits": OTHER_LIMITS,
    "other limits, CRLF": OTHER_LIMITS.replace(b"\n", b"\r\n"),
    "the same limits": SAME_LIMITS,
    "broken limits that are replaced": BROKEN_LIMITS,
    "an empty default-ulimits": b'{\n  "debug": false,\n  "default-ulimits": {}\n}\n',
    "a null for default-ulimits": b'{"default-ulimits": null}\n',
    "nothing": b"{}",
    "nothing, with a line end": b"{}\n",
    "nothing, on two lines": b"{\n}\n",
    "nothing but space": b"{   }",
    "an empty file": b"",
    "a line end": b"\n",
    "no ASCII": '{"labels": ["rack=süd", "\\u00fc="], "é": {}}\n'.encode(),
    "blanks around": b'\n\n  { "debug" : true }  \n\n',
    "commas first": b'{ "debug": true\n, "tls": false\n, "mtu": 1450\n}\n',
}
