# SPDX-License-Identifier: BSD-2-Clause
"""Blank out credentials of unit files, environment files, slurm.conf and messages."""

from __future__ import annotations

import re

from .redaction_json import find_hidden
from .values import RLIMITS, NamedTuple

_WORD = re.compile(r"""[ \t\r]+|(?:"(?:[^"\\]|\\.?)*"?|'(?:[^'\\]|\\.?)*'?|[^ \t\r"'])+""")
_ASSIGNED = re.compile(
    r"""(?P<lead>[#;"'\[{(,]*)(?P<name>[\w%][\w.%/:-]*?)(?P<mark>\+?=)(?P<value>.*)""", re.DOTALL
)
_FLAG = re.compile(
    r"""(?P<lead>["']?)(?P<name>--[A-Za-z][\w.-]*|-[A-Za-z])(?P<mark>=?)(?P<value>.*)""", re.DOTALL
)
_HARMLESS_VALUE = re.compile(
    r"""["']?(?:-?\d{1,20}(?:\.\d{1,6})?[kmgtKMGT]?i?[bB]?(?::-?\d{1,20}[kmgtKMGT]?)?|infinity"""
    r"""|unlimited|yes|no|true|false|on|off|none|all|\$\{?[A-Za-z_]\w*\}?)?["']?[\]},;]*"""
)
_HARMLESS_WORD = re.compile(
    r"""["']?(?:[-@:+!|]*\.{0,2}/[\w./@%+-]*|(?:fd|unix|tcp)://[\w./:-]*|[;|&>]{1,2}"""
    r"""|exec|ulimit|sh|bash|sysctl|dockerd|slurmd|sleep|true|false|infinity)["';]*"""
)
_NAMES = """
    TZ PATH LANG LC_ALL GOMAXPROCS TERM SHELL GOGC GODEBUG
    Description Documentation After Before Wants Requires BindsTo PartOf Conflicts Type Restart
    RestartSec User Group Slice WantedBy RequiredBy Alias KillMode Delegate NotifyAccess UMask
    WorkingDirectory EnvironmentFile PIDFile StandardOutput StandardError
    PropagateResourceLimits PropagateResourceLimitsExcept ClusterName SlurmctldHost NodeName
    PartitionName Nodes NodeHostname State Features Gres GresTypes Default MaxTime DefaultTime
    LaunchParameters PrologFlags TaskPlugin ProctrackType SelectType SelectTypeParameters
    SchedulerType JobAcctGatherType SlurmUser SlurmdUser SlurmdSpoolDir StateSaveLocation
    SlurmctldPidFile SlurmdPidFile SlurmctldLogFile SlurmdLogFile MpiDefault SwitchType
    Prolog Epilog TaskProlog TaskEpilog PlugStackConfig AuthType CryptoType
    AccountingStorageType AccountingStorageHost default_ulimits
"""
_STARTS = """
    ExecStart ExecStartPre ExecStartPost ExecReload ExecStop Environment DOCKER_OPTS OPTIONS
"""
_COMMANDS = frozenset(_STARTS.split())
_FLAGS = """
    default-ulimit default-shm-size live-restore log-driver log-level storage-driver data-root
    exec-root cgroup-parent containerd config-file pidfile group host bridge bip mtu ip icc
    iptables ip6tables default-runtime userns-remap debug experimental selinux-enabled
"""
_SHORT = ("-D", "-H", "-b", "-G", "-g", "-l", "-s")
_LONG = (f"--{name}" for name in _FLAGS.split())
_KNOWN = frozenset((*_NAMES.split(), *RLIMITS, *_SHORT, *_LONG))
_ENDLESS = re.compile(r"[^ \t\r\n]{1000,}|[ \t]{1000,}")  # They would take long to search.
_EMPTY = re.compile(r"[ \t]*(?:\[[\w -]+\])?[ \t]*\r?")
_SPACED = re.compile(r"^([ \t]*[#;]*[ \t]*[A-Za-z][\w.-]*)[ \t]+(\+?=)[ \t]*")
_GOES_ON = re.compile(r"[\\,\[{][ \t\r]*$")

_SENSITIVE = "pass|pwd|secret|token|credential|api[-_ ]?key|access[-_ ]?key|private[-_ ]?key"
_SPOKEN = re.compile(
    rf"(?<![\w/])([\w.-]*(?:{_SENSITIVE})[\w.-]*[\"']?(?:[ \t]+(?:is|was))?(?:\s*[:=]\s*|[ \t]+))"
    r"(\"[^\"\n]*\"?|'[^'\n]*'?|[^\s\"']+)",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"\b((?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?|(?:set-)?cookie:\s*|x-[\w-]+:\s*)[^\"'\n]+",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"\b(bearer|basic|digest|negotiate)([ \t]+|%20)[^\s\"']+", re.IGNORECASE)
_TOKEN = re.compile(
    r"\b(?:(?:gh[pousr]|github_pat|glpat|xox[a-z]|hf|sk|pk|rk|npm|pypi|dckr_pat|hvs|AIza|ya29)"
    r"[_.-]?[\w.-]{8,}|A[KS]IA[A-Z0-9]{8,}|eyJ[\w.=-]{8,}|[0-9a-fA-F]{32,}"
    r"|(?=[\w+]*\d)(?=[\w+]*[a-z])(?=[\w+]*[A-Z])[\w+]{20,}={0,2})"
)
_USERINFO = re.compile(
    r"""(?:([a-z][\w+.-]*:(?:\\?/){2})|[^\s"'/:@=]+:)[^\s"']+(?:@|%40|\\u0040)""", re.IGNORECASE
)
_QUERY = re.compile(r"""(\w:\\?/[^\s"'?]*\?)[^\s"']+""")
_BLOT = "REDACTED"


class _State(NamedTuple):
    """What came before a word: one that is hidden, or the start of a command or of a list."""

    is_hot: bool = False
    is_command: bool = False

    def shows(self, word: str) -> bool:
        """Tell whether a word without a name may be shown."""
        return not self.is_hot and (
            not self.is_command or _HARMLESS_WORD.fullmatch(word) is not None
        )


def redact(text: str) -> str:
    """Blank out what may be a credential in a file of lines, or in a message.

    Values of unknown names and flags go, unless they are numbers or switches; so does what
    stands before the ``@`` of an address, and what looks like a token.
    """
    lines, state = [], _State()
    for line in _ENDLESS.sub(_BLOT, text).split("\n"):
        shown, state = _redact_words(line, state)
        lines.append(shown)
    return redact_message("\n".join(lines))


def redact_message(text: str, daemon_json: str = "") -> str:
    """Blank out what looks like a credential, and what is hidden of a daemon.json."""
    for hidden in sorted(find_hidden(daemon_json), key=len, reverse=True):
        if len(hidden) > 2:
            text = text.replace(hidden, _BLOT).replace(repr(hidden)[1:-1], _BLOT)
    text = _ENDLESS.sub(_BLOT, text)
    text = _HEADER.sub(rf"\1{_BLOT}", text)
    text = _SCHEME.sub(rf"\1\2{_BLOT}", text)
    text = _SPOKEN.sub(_hide_spoken, text)
    text = _USERINFO.sub(lambda match: f"{match[1] or ''}{_BLOT}@", text)
    text = _QUERY.sub(rf"\1{_BLOT}", text)
    return _TOKEN.sub(_BLOT, text)


def _hide_spoken(match: re.Match[str]) -> str:
    return match[0] if _BLOT in match[2] else f"{match[1]}{_BLOT}"


def _redact_words(line: str, before: _State) -> tuple[str, _State]:
    """Return a line as it may be shown, and what the next one goes on with."""
    if _EMPTY.fullmatch(line):
        return line, _State()
    joined = _SPACED.sub(r"\1\2", line)
    shown, after = _redact_each(joined, before)
    is_open = _GOES_ON.search(line) is not None or line.count('"') % 2 == 1
    return (line if shown == joined else shown), after if is_open else _State()


def _redact_each(line: str, state: _State) -> tuple[str, _State]:
    """Return words as they may be shown, and the state behind the last one.

    A word behind a hidden one is hidden, unless it has a harmless name itself.
    """
    words = []
    for word in _WORD.findall(line):
        if word.strip(" \t\\\r"):
            word, state = _redact_word(word, state)
        words.append(word)
    return "".join(words), state


def _redact_word(word: str, state: _State) -> tuple[str, _State]:
    named = _FLAG.fullmatch(word) or _ASSIGNED.fullmatch(word)
    start = named.start("value") if named else 0
    head, value = word[:start], word[start:]
    is_plain = _HARMLESS_VALUE.fullmatch(value) is not None
    if not named:
        return (word if is_plain or state.shows(word) else _BLOT), state
    name = named["name"]
    if name in _COMMANDS:
        is_list = name == "Environment"
        quote = value[0] if value[:1] in ("'", '"') and not is_list else ""
        shown, state = _redact_each(value[len(quote) :], _State(is_list, True))
        return head + quote + shown, state
    is_known = name in _KNOWN and not re.search(r"[ \t]", head + value.rstrip())
    hot = not is_known if name.startswith("-") else not (is_known or is_plain)
    return head + (value if is_known or is_plain else _BLOT), state._replace(is_hot=hot)
