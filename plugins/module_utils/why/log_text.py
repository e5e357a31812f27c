# SPDX-License-Identifier: BSD-2-Clause
"""Take a log apart: its lines without colors, who wrote them, and the lines that name a failure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from ..core.values import NamedTuple
from .message import PLAIN, Message
from .messages import MESSAGES

_STEERING = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,500}(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]"
)
_OTHERS = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]+")
_PREFIX = re.compile(
    r"^(?:\[?(?:rank ?)?\d{1,5}(?:\]|:\]?|(?=\]:))[: ]+|\[(?:\d+,)?(?:rank|default)\d+\]:?\s?"
    r"|\[\d+,\d+\]<std(?:out|err)>: ?|\([\w=, .]+\) "
    r"|[\w.-]{1,64}\s+\| |\[\s*\d+\.\d+\] |\[\d{4}-\d\d-\d\d[T ][\d:.,]+Z?\]:? ?"
    r"|\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-][\d:]{4,6})? (?:std(?:out|err) [FP] )?)+"
)
_SYSLOG = re.compile(
    r"^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-][\d:]{4,6})) "
    r"([\w.-]{1,64}) ([\w./@:-]{1,80}(?:\[\d+\])?): "
)
_HOSTS = re.compile(
    r"^ *host +: ([\w.-]{1,64})|\*\*\* (?:STEP|JOB) [\d.+_]+ ON ([\w-]{1,64})"
    r"|^srun: error: ([\w-]{1,64}):",
    re.MULTILINE,
)
_PIDS = re.compile(
    r"\bpids?\b\W{0,4}(\d{1,7})|\bprocess (\d{1,7})\b|line \d+: +(\d{1,7}) ", re.IGNORECASE
)
_TRACEBACK = "Traceback (most recent call last)"
_CHAINED = re.compile(r"During handling of the above|the direct cause of the following")
_IGNORED = re.compile(r"^Exception ignored (?:in|on)")
_REPEATED = re.compile(r"(?:errno|code|syscall): ")
"""How Node repeats below an error what its first line says."""
_INDENTS = (" ", "\t")
_PATH = re.compile(
    r"(?<![\w.<>/-])/(?!dev/|proc/|sys/|torch_|psm_|wnsm_|nccl)"
    r"[\w.@+-]{1,99}(?:/[\w.@+-]{0,99}){1,30}"
    r"(?<!\.cc)(?<!\.cpp)(?<!\.cu)(?<!\.c)(?<!\.h)(?<!\.go)(?<!\.rs)(?![\w./@+-])"
    r"|(?<=['\"])[\w.@+-]{1,99}/[\w./@+-]{0,200}(?=['\"])"
)
"""A path, but not of the kernel's, of shared memory, or of the source of a compiled program."""

_MOUNTED = ("/media/", "/mnt/", "/run/media/")
_SUPPOSED = re.compile(
    r"\bif (?:you|your|the|there|it|this)\b|\b(?:to|can|could|helps?) (?:avoid|prevent)\b"
    r"|\b(?:may|might|can|could) (?:\w+ )?(?:see|get|hit|lead|result|run|fail|cause|happen)\b"
    r"|\b(?:errors?|messages?) (?:like|such as)\b|\bsuch as\b|\be\.g\.|\bin case of\b"
    r"|\bcommit [0-9a-f]{3,40}\b|\b(?:echo|grep|printf)\b "
    r"|(?:^\W*|: |\b[0-9a-f]{7,40} )fix(?:es|ed)?\b"
    r"|(?:^\W*(?:tip|hint|faq|note|todo)s?|\b(?:tip|hint|faq|note|help|docs?|todo)s? ?:) ",
    re.IGNORECASE,
)
"""What stands before words that tell of what might come, or are another's."""

_MAY_COME = re.compile(
    r"^.{0,20}?\b(?:(?:may|might|can|could) (?:\w+ )?(?:occur|happen|appear|arise|follow|result)"
    r"|means)\b"
    r"|^.{0,20}(?:errors? )?(?:was |were |is |are )?(?:fixed|resolved|avoided)\b",
    re.IGNORECASE,
)
_LEVEL = re.compile(r"^\W*(?:[\w:.,/\[\]-]{1,40} ){0,5}?\W?(?:WARN(?:ING)?|INFO|DEBUG|NOTICE)\b")
_TRIED_AGAIN = re.compile(r"\b(?:retrying|will retry|trying again)\b", re.IGNORECASE)
_WELL = re.compile(
    r"^\W*(?:INFO\W+)?(?:(?:training|run|job|build|tests?|epochs?|all|everything|inference|export"
    r"|evaluation|download|saved|saving|\d+)\b.{0,60}?)?"
    r"\b(?:done|finished|completed?|succe(?:ss|eded)|successfully|ok|bye|passed)\b"
    r"[^\w]*(?:in [\d.:smh ]+)?$|\.service: Deactivated successfully",
    re.IGNORECASE,
)
_NOT_WELL = re.compile(
    r"\b(?:error|fail\w*|abort\w*|not|un\w+|killed|exit(?:ed)?|[1-9]\d* errors?)\b", re.IGNORECASE
)
_WORK = re.compile(
    r"^(?!\s).*\b(?:epoch|step|iter(?:ation)?|batch|loss|acc(?:uracy)?|eta)\b\W{0,3}\d"
    r"|\d(?:it/s|s/it)\b",
    re.IGNORECASE,
)
_MOST_AFTER, _MUCH_AFTER = 400, 3
_LITTLE_WORK, _MUCH_WORK = 2, 20
"""Lines of work after a warning, and after an error, from which on neither ended the run."""
_KEYS = sorted({key.encode() for message in MESSAGES for key in message.keys})
_LAST, _AROUND = 1500, 120
_HEAD, _TAIL = 700, 400  # Bytes of a line that count: what is wrong stands at an end.
_MOST_OF_KEY = 40
_ABOVE, _BELOW, _BLOCK = 4, 4, 60


class Found(NamedTuple):
    """A line that names a failure, its number among those read, and what stands around it.

    ``at`` is where in the line it does. ``is_unsure`` tells of a warning after which it went on.
    """

    message: Message
    line: str
    number: int
    near: str
    at: int = 0
    is_unsure: bool = False


class Words:
    """The lines of a log: each is decoded and freed of colors and prefixes when it is asked for.

    A progress bar's line is as many as it was drawn.
    """

    def __init__(self, text: str) -> None:
        self.raw = text.encode("utf-8", "replace").splitlines()
        self._seen: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, number: int) -> str:
        if number not in self._seen:
            line = _decode(self.raw[number])
            match = _SYSLOG.match(line)
            self._seen[number] = _PREFIX.sub("", line[match.end() if match else 0 :], count=1)
        return self._seen[number]

    def pick(self, first: int, end: int) -> list[str]:
        """Return some lines; numbers beyond the ends are none."""
        return [self[number] for number in range(max(first, 0), min(end, len(self)))]

    def find_hosts(self, number: int) -> set[str]:
        """Return the hosts that the lines around one name as those that wrote it."""
        first, end = max(number - _AROUND, 0), min(number + _AROUND, len(self))
        lines = [_decode(self.raw[one]) for one in range(first, end)]
        found = {match[1] for match in map(_SYSLOG.match, lines) if match}
        named = _HOSTS.findall("\n".join(lines))
        return found | {name for names in named for name in names if name}


def _decode(line: bytes) -> str:
    if len(line) > _HEAD + _TAIL:
        line = line[:_HEAD] + b" ... " + line[-_TAIL:]
    text = line.decode("utf-8", "replace")
    return _OTHERS.sub(" ", _STEERING.sub("", text))


def find_failures(words: Words) -> list[Found]:
    """Return the lines that name a failure, in their order.

    Where the last lines name one by itself, those far above are not looked at.
    """
    first = max(len(words) - _LAST, 0)
    found = _find_from(words, first)
    if first and not any(one.message.rank >= PLAIN for one in found):
        found = _find_from(words, 0)
    return found


def _find_from(words: Words, first: int) -> list[Found]:
    low = b"\n".join(words.raw[first:]).lower()
    starts = [0]
    for line in words.raw[first:]:
        starts.append(starts[-1] + len(line) + 1)
    numbers = sorted({bisect_right(starts, at) - 1 + first for at in _find_keys(low)})
    found = (_match(words, number) for number in numbers)
    return [one for one in found if one]


def _find_keys(low: bytes) -> Iterator[int]:
    """Yield where the keys of messages stand, of each the last ones."""
    for key in _KEYS:
        end = len(low)
        for _number in range(_MOST_OF_KEY):
            at = low.rfind(key, 0, end)
            if at < 0:
                break
            yield at
            end = low.rfind(b"\n", 0, at) + 1


def _match(words: Words, number: int) -> Found | None:
    line, near = words[number].strip(), ""
    if _REPEATED.match(line):
        return None
    said = _PATH.sub(_hide, line)
    low = said.lower()
    for message in MESSAGES:
        key = next((key for key in message.keys if key in low), None)
        if key is None or (message.words and not message.words.search(said)):
            continue
        if message.near:
            near = near or find_block(words, number).replace(line, said)
            if not message.near.search(near):
                continue
        at = low.index(key)
        if _SUPPOSED.search(said[:at]) or _MAY_COME.search(said[at + len(key) :]):
            return None
        near = near or find_block(words, number)
        is_unsure = bool(_TRIED_AGAIN.search(said))
        return Found(message, line, number, near, max(line.lower().find(key), 0), is_unsure)
    return None


def _hide(path: re.Match[str]) -> str:
    """Return a path without its names: they are no words of who wrote the line."""
    return "/mnt/x" if path[0].startswith(_MOUNTED) else "/x"


def find_block(words: Words, number: int) -> str:
    """Return a line with its traceback, or with the lines beside it."""
    first = max(number - _ABOVE, 0)
    if not words[number].startswith(_INDENTS):
        for above in range(number - 1, max(number - _BLOCK, -1), -1):
            if words[above].startswith(_TRACEBACK):
                first = above
                break
            if not words[above].startswith(_INDENTS) and above < first:
                break
    return "\n".join(words.pick(first, number + _BELOW + 1))


def is_ignored(words: Words, found: Found) -> bool:
    """Tell whether Python wrote of an exception that it ignored."""
    for above in range(found.number, max(found.number - _BLOCK, -1), -1):
        if _IGNORED.match(words[above]):
            return True
        if above < found.number and not words[above].startswith((*_INDENTS, _TRACEBACK)):
            return False
    return False


def are_chained(words: Words, first: Found, second: Found) -> bool:
    """Tell whether one exception was handled, or raised anew, when the other came."""
    start = max(first.number, second.number - _AROUND)
    return any(map(_CHAINED.search, words.pick(start, second.number)))


def list_pids(text: str) -> frozenset[int]:
    """Return the processes that a text names."""
    return frozenset(int(one) for row in _PIDS.findall(text) for one in row if one)


def find_path(line: str) -> str:
    """Return the last absolute path that a line names, or nothing."""
    found = [match[0] for match in _PATH.finditer(line) if match[0].startswith("/")]
    return found[-1] if found else ""


def worked_on(words: Words, found: Found, is_last: bool) -> bool:
    """Tell whether the run worked on after a warning; or long, to die later of something else."""
    is_warning = found.is_unsure or bool(_LEVEL.search(found.line))
    if is_last and not is_warning:
        return False
    after = words.pick(found.number + 1, found.number + _MOST_AFTER)
    least = _LITTLE_WORK if is_warning else _MUCH_WORK
    return sum(bool(_WORK.search(line)) for line in after) >= least


def ended_well(words: Words, found: Found) -> bool | None:
    """Tell whether a run went on after its last message and ended well.

    ``None`` where only the script around it may have.
    """
    after = [line for line in words.pick(found.number + 1, len(words)) if line.strip()]
    ends = after[-_MUCH_AFTER:]
    if any(map(_NOT_WELL.search, ends)) or not any(map(_WELL.search, ends)):
        return False
    return True if len(after) >= _MUCH_AFTER or _LEVEL.search(found.line) else None
