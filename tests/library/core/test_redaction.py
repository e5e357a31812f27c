# SPDX-License-Identifier: GPL-3.0-or-later
"""A diff or message shows of a foreign file only what is known to be harmless."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlhost_limits.core.redaction import redact, redact_message
from mlhost_limits.core.redaction_json import find_hidden, redact_json

S = "hunter2Xy"
TOKEN = "ghp_0123456789abcdefABCDEF0123456789abcd"
KEYS = [
    *("private_key", "auths", "auth", "password", "passwd", "token", "bearer", "identitytoken"),
    *("http-proxy", "https-proxy", "env", "labels", "insecure-registries", "registry-mirrors"),
    *("cluster-store", "tlskey", "sas", "signature", "data-root", "log-driver", "default-runtime"),
    *("storage-driver", "features", "default-shm-size", "default-ulimits", "Hunter", "hosts"),
    *("exec-opts", "runtimes", "dns", "log-level", "cgroup-parent", "pidfile", "live-restore"),
]
JSON_SECRETS = [
    *(f'{{"{key}": "s3cret {S}"}}' for key in KEYS),
    *(f'{{"{key}": ["{S}+/"]}}' for key in KEYS),
    *(f'{{"{key}": {{"a": {{"b": ["{S}"]}}}}}}' for key in KEYS),
    f'{{"\\u0070rivate_key": "{S}"}}',
    f'{{"{S} {S}": 1}}',
    f'{{"{TOKEN}": {{}}}}',
    f'{{"a":1,"auths":{{"https://x":{{"auth":"{S}"}}}},"debug":true}}',
    f'{{"private_key": "{S}\n{S}\n"}}',
    f"{{'private_key': '{S}'}}",
    f'{{"private_key": "{S}',
    f'{{"private_key": {S}}}',
    f'{{"private_key" "{S}"}}',
    f'{{\n// "private_key": "{S}"\n}}',
    f"# {S}\n{{}}",
    f"{{}}\n{S}",
    f'{{"a": "x"}} {{"private_key": "{S}"}}',
    f'["{S}"]',
    f'"{S}"',
    f'{{"a": 1, "a": "{S}"}}',
    f'{{"debug": true "x": "{S}"}}',
    f'{{"debug": "{S}"}}',
    f'{{"data-root": "https://u:{S}@x/"}}',
    f'{{"runtimes": {{"x": {{"path": "/x", "runtimeArgs": ["--token={S}"]}}}}}}',
    f'{{"runtimes": {{"x": {{"options": {{"k": "{S}"}}}}}}}}',
    f'{{"exec-opts": ["native.cgroupdriver=systemd", "native.x={S}"]}}',
    f'{{"log-opts": {{"splunk-token": "{S}", "max-size": "{S}"}}}}',
    f'{{"proxies": {{"http-proxy": "http://u:{S}@p"}}}}',
    f'{{"http-headers": {{"Authorization": "Bearer {S}"}}}}',
    f'{{"default-ulimits": {{"x": {{"Name": "{S}"}}}}}}',
    f'\ufeff{{"k": "{S}"}}',
    f'{{"k":\r\n"{S}"\r\n}}',
    f'{{"data-root": "{S}", "k": nul}}',
    f'{{"k": """{S}"""}}',
    f'{{"k": `{S}`}}',
    f'{{"k": "a\\\\" {S}"}}',
    f"{{k: {S}}}",
    f'{{"default-shm-size": "{S}',
    "[" * 3000 + f'"{S}"' + "]" * 3000,
]
LINE_SECRETS = [
    f'Environment="A=b c {S}"',
    f"Environment=A={S}",
    f'Environment="A=x" "B={S} z" C={S}',
    f"Environment='HTTP_PROXY=http://u:{S}@x:1/'",
    f'Environment="A=x \\\n  {S}"',
    f'Environment="A=x" \\\n  B={S}',
    f"Environment={S}",
    f'Environment="A={S}',
    f"Environment = A={S}",
    f"ExecStart=/usr/bin/dockerd --log-opt splunk-token={S} --icc=false",
    f"ExecStart=/usr/bin/dockerd --cluster-store {S}",
    f"ExecStart=/usr/bin/dockerd --cluster-store={S}",
    f'ExecStart=/usr/bin/dockerd "--label={S}"',
    f"ExecStart=/usr/bin/dockerd --registry-mirror https://u:{S}@x",
    f"ExecStart=/usr/bin/curl -u bob:{S}",
    f"ExecStart=/usr/bin/mysql -p{S}",
    f"ExecStart=/usr/bin/x --env TOKEN={S}",
    f"ExecStart=/usr/bin/x --key \\\n  {S}",
    f"StoragePass={S}",
    f"AccountingStoragePass = {S} {S}",
    f"#StoragePass={S}",
    f"# JobCompPass = {S}",
    f"AuthInfo=socket={S}",
    f"export AWS_SECRET_ACCESS_KEY={S}",
    f"A+={S}",
    f"password: {S}",
    f'"api_key" : "{S} {S}"',
    f"the password is: {S}",
    f"machine h login bob password {S}",
    f"Authorization: Bearer {S}",
    f"Proxy-Authorization: Basic {S}",
    f"Cookie: a={S}; b={S}",
    f"X-Vault: {S}",
    f"get with bearer {S}",
    f"https://{S}@x/y",
    f"https://u:{S}@x/y",
    f"u:{S}@x:1",
    f"https://x/y?sig={S}",
    f"https:\\/\\/u:{S}\\u0040x",
    f'env = ["TOKEN={S}"]',
    f'env = [\n  "TOKEN={S}",\n  "{S}",\n]',
    f"DOCKER_OPTS='--icc=false --cluster-store={S}'",
    f"DOCKER_OPTS=--label {S}",
    f"token {S}",
    f"1A={S}",
    f"a.b/c={S}",
    f"x=y:{S}",
    f'ExecStart=/usr/bin/dockerd "--icc=false --x={S}"',
    f"ExecStart=/usr/bin/dockerd --icc=false --x '{S} z",
    f'Environment="TZ=a {S}"',
    f"Environment=A=x\\\n{S}",
    f"Environment=TZ=UTC {S}",
    f"Environment=TZ=UTC \\\n {S}",
    f"ExecStart=@/bin/x {S}",
    f"ExecStart=/bin/x --icc=false {S}",
    f"ExecStart=/bin/x \\\n --icc=false \\\n {S}",
    f"ExecStart=/bin/x 7 '{S}'",
    f"DOCKER_OPTS='--icc=false {S}'",
    f'OPTIONS="{S}"',
]
TOKENS = [
    TOKEN,
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.c2ln",
    "xoxb-123456789012-abcdef",
    "glpat-abcdefghij1234567890",
    "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
    "d41d8cd98f00b204e9800998ecf8427e",
    "hf_abcdefghijklmnopqrst",
]

JSON_PLAIN = [
    '{"default-shm-size": "8G", "live-restore": true}',
    '{"default-shm-size": 8589934592}',
    '{"default-ulimits": {"nofile": {"Name": "nofile", "Hard": 1048576, "Soft": -1}}}',
    '{"default-ulimits": {"nofile": {"Name": "nofile", "Hard": 18446744073709551615}}}',
    '{"log-driver": "json-file", "log-opts": {"max-size": "10m", "max-file": "3"}}',
    '{"storage-driver": "overlay2", "data-root": "/data/docker", "exec-root": "/run/docker"}',
    '{"exec-opts": ["native.cgroupdriver=systemd"], "cgroup-parent": "/x.slice"}',
    '{"max-concurrent-downloads": 3, "experimental": false, "debug": true, "log-level": "warn"}',
    '{"iptables": false, "ip6tables": true, "icc": false, "userns-remap": "default"}',
    '{"features": {"buildkit": true}, "selinux-enabled": true, "default-runtime": "nvidia"}',
    '{"runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}}}',
    '{"runtimes": {"crun": {"path": "/usr/bin/crun"}}}',
    '{"dns": ["8.8.8.8", "2001:db8::1"], "bip": "10.0.0.1/24", "mtu": 1450}',
    '{"hosts": ["fd://", "unix:///run/docker.sock", "tcp://0.0.0.0:2376"]}',
    '{"default-address-pools": [{"base": "10.0.0.0/8", "size": 24}]}',
    "{\n  // \n}".replace("// ", ""),
    '{"proxies": {}, "a": "", "b": null}',
    '\ufeff{"a":\t1}\r\n',
    "{\n",
    '{\n  "default-shm-size": 5\n  "live-restore": true,\n}\n',
]
LINE_PLAIN = [
    "[Service]\nLimitNOFILE=65536\nLimitMEMLOCK=infinity\nTasksMax=50%\n".replace("50%", "5"),
    "ExecStart=/usr/bin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock",
    "ExecStart=/usr/bin/dockerd --default-ulimit nofile=65536:65536 $DOCKER_OPTS",
    "Environment=TZ=UTC GOMAXPROCS=4",
    'Environment="PATH=/usr/bin:/bin"',
    "PropagateResourceLimitsExcept=MEMLOCK,NOFILE",
    "NodeName=gpu[1-4] CPUs=64 RealMemory=500000 State=UNKNOWN",
    "# A note about this file, with nothing in it.",
    'default_ulimits = ["nofile=65536:65536", "memlock=-1:-1"]',
    "Restart=always\r\nType=notify\r\n",
    "WantedBy=multi-user.target",
    "dockerd refuses the new daemon.json: unknown directive live-store",
]


@pytest.mark.parametrize("text", JSON_SECRETS)
def test_json_hides_what_is_not_known(text: str) -> None:
    """No string of an unknown place is shown, the lines keep their number."""
    shown = redact_json(text)
    assert not any(secret in shown for secret in (S, TOKEN, "s3cret"))
    assert shown.count("\n") == text.count("\n")
    assert redact_json(shown) == shown


@pytest.mark.parametrize("text", JSON_PLAIN)
def test_json_shows_what_is_harmless(text: str) -> None:
    assert redact_json(text) == text


def test_json_hides_numbers_of_secrets() -> None:
    text = '{"pin": 5345, "a": 1, "b": 123456789012, "c": 1234567890123, "auths": {"x": 77}}'
    assert redact_json(text) == (
        '{"pin": "REDACTED", "a": 1, "b": 123456789012, "c": "REDACTED", "auths": {"x": "REDACTED"}}'
    )
    assert redact_json('{"default-ulimits": NaN}') == '{"default-ulimits": "REDACTED"}'


@pytest.mark.parametrize(
    ("key", "digits", "is_shown"),
    [
        ("default-ulimits", 21, True),
        ("default-ulimits", 22, False),
        ("a", 12, True),
        ("a", 13, False),
    ],
)
def test_json_shows_a_number_that_is_too_short_for_a_secret(
    key: str, digits: int, is_shown: bool
) -> None:
    text = f'{{"{key}": {{"nofile": {"1" * digits}}}}}'
    assert (redact_json(text) == text) is is_shown


def test_json_keeps_keys_and_our_change() -> None:
    """A key that is a plain word stays, so that a person sees what is hidden."""
    text = '{\n  "auths": {"x.y": {"auth": "z z"}},\n  "default-shm-size": "1G"\n}\n'
    assert redact_json(text) == (
        '{\n  "auths": {"x.y": {"auth": "REDACTED"}},\n  "default-shm-size": "1G"\n}\n'
    )


@settings(deadline=None)
@given(st.text(st.sampled_from("{}[]:,\"\\\n\r\t /#'a1") | st.characters(), max_size=60))
def test_any_text_keeps_its_lines(text: str) -> None:
    """Whatever the text, lines keep their number and a second time changes nothing."""
    for hide in (redact_json, redact):
        shown = hide(text)
        assert shown.count("\n") == text.count("\n")
    assert redact_json(redact_json(text)) == redact_json(text)


@settings(deadline=None)
@given(st.recursive(st.just(S) | st.integers(0, 9), lambda one: st.lists(one, max_size=3)
       | st.dictionaries(st.sampled_from([*KEYS, S + S + S + S]), one, max_size=3)))  # fmt: skip
def test_no_place_shows_a_secret(value: object) -> None:
    """Whatever the nesting, whole or cut off."""
    text = json.dumps(value)
    for cut in (text, text[:-1], text[1:], json.dumps(value, indent=1)[:-1]):
        assert S not in redact_json(cut)


@pytest.mark.parametrize("text", LINE_SECRETS)
def test_lines_hide_what_is_not_known(text: str) -> None:
    shown = redact(text)
    assert S not in shown
    assert shown.count("\n") == text.count("\n")


@pytest.mark.parametrize("token", TOKENS)
def test_tokens_are_known_by_their_look(token: str) -> None:
    assert token[4:] not in redact(f"a note {token} here")
    assert token[4:] not in redact_message(f"failed with {token}: x")


@pytest.mark.parametrize("text", LINE_PLAIN)
def test_lines_show_what_is_harmless(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('Environment="TZ=UTC" HOME=/root', 'Environment="TZ=UTC" HOME=REDACTED'),
        ('Environment="A=b" "GOGC=5 z"', 'Environment="A=REDACTED "GOGC=REDACTED'),
        (
            "DOCKER_OPTS='--icc=false --mtu 9 --x=y'",
            "DOCKER_OPTS='--icc=false --mtu 9 --x=REDACTED",
        ),
        ("ExecStart=/bin/x --mtu 9 /y --key z -D", "ExecStart=/bin/x --mtu 9 /y --key REDACTED -D"),
        (
            "ExecStart=/bin/x --a b c --icc=no /d",
            "ExecStart=/bin/x --a REDACTED REDACTED --icc=no /d",
        ),
        ("ExecStart=/bin/x \\\n word", "ExecStart=/bin/x \\\n REDACTED"),
        ("ExecStart=/bin/x\nword", "ExecStart=/bin/x\nword"),
        ("A=b\nword", "A=REDACTED\nword"),
        ("A=b \\\nword", "A=REDACTED \\\nREDACTED"),
        ('A="b\nword\nword', "A=REDACTED\nREDACTED\nword"),
        ('A="b" word\nword', "A=REDACTED REDACTED\nword"),
        ("A=5 word", "A=5 word"),
        ("--a=5 word", "--a=5 REDACTED"),
        ("TZ=x word", "TZ=x word"),
        ("TZ=x \\\n\nword", "TZ=x \\\n\nword"),
        ("A = b", "A=REDACTED"),
        ("TZ = b", "TZ = b"),
        ("the password is hidden", "the password is REDACTED"),
        ("the password is REDACTED by us", "the password is REDACTED by us"),
        ("env = [\n5,\nword\n]", "env=REDACTED\n5,\nREDACTED\n]"),
    ],
)
def test_what_is_shown_of_a_line(text: str, shown: str) -> None:
    """Behind what is hidden nothing is shown that has no harmless name, to the end of its line."""
    assert redact(text) == shown


def test_short_words_of_a_file_stay_in_a_message() -> None:
    """A word of two letters stands in every sentence."""
    text = '{"k": "no", "l": "yes"}'
    assert redact_message("no, yes", text) == "no, REDACTED"


def test_message_hides_what_the_file_hides() -> None:
    """A daemon that quotes its file in a message does not undo the redaction."""
    text = f'{{"k": "{S}", "l": "a\\nb c", "m": "no"}}'
    assert find_hidden(text) == {S, "a\nb c", "no"}
    shown = redact_message(f"bad value {S}, 'a\\nb c', no", text)
    assert shown == "bad value REDACTED, 'REDACTED', no"
    assert find_hidden("{") == set()
