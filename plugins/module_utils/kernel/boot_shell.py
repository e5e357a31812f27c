# SPDX-License-Identifier: BSD-2-Clause
"""Read a line as a shell does: where a comment starts, which words are a command, what folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..core.values import NamedTuple
from .glob_pattern import expand_braces

_SELF = r"(?:\$\{?0\}?|\$\{?BASH_SOURCE(?:\[0\])?\}?)"
_REAL = rf"\$\([ \t]*(?:readlink|realpath)[ \t]+(?:-\w+[ \t]+)*[\"']?{_SELF}[\"']?[ \t]*\)"
_DIRNAME = rf"dirname[ \t]+(?:--[ \t]+)?[\"']?(?:{_REAL}|{_SELF})[\"']?[ \t]*"
_OWN_FOLDER = rf"\$\([ \t]*{_DIRNAME}\)|`[ \t]*{_DIRNAME}`|\$\{{(?:0|BASH_SOURCE(?:\[0\])?)%/\*\}}"
_ENTERED = (
    r"\$\([ \t]*cd[ \t]+(?:-P[ \t]+|--[ \t]+)?[\"']?(/[\w./+@-]*)[\"']?[^()\n]*?"
    r"\bpwd(?:[ \t]+-\w)?[ \t]*\)"
)
# It starts with the sign, for which Python looks faster than for the name before it.
_STATED = r"(?m)=[\"']?(/[\w./+@-]{0,254})[\"']?[ \t\r]*(?=$|[;&#])"
"""What a variable stands for may be put in ten thousand times, so that a long path is left."""
_VARIABLE = r"(?:.*[;&])?[ \t]*(?:(?:export|readonly|local|declare)[ \t]+(?:-\w+[ \t]+)?)?(\w+)"
_USED = r"\$(?:(\w+)|\{(\w+)\})"
_QUOTED_FOLDER = r"[\"'](/[\w./+@-]*)[\"'](?=/)"
_SIGNS = ("=/", '="/', "='/", "dirname", "%/*}")  # Most scripts have none.
_NESTED = 3  # Variables that stand on others.
_BEFORE_COMMAND = (
    r"\S*=\S*|[-@:+!|]+|-\S+|@\w+|[\d*][\d*,/-]*|root|sudo|exec|nohup|nice|ionice|setsid|time"
    r"|timeout|env|command|eval|\.|source|if|then|else|elif|while|until|do|up|post-up|pre-up"
    r"|install|run-parts|(?:\S*/)?(?:(?:ba|da|k|z)?sh|python[\d.]*|perl|ruby)"
)
_LONGEST = 4096  # Characters of a line that is taken apart.
_TELLS = (
    r"(?:\S*/)?(?:echo|printf|logger|wall|true|false|test|[ef]?grep|zgrep|cat|head|tail|wc|cut|ls|stat"
    r"|diff|cmp|sort|uniq|tee|chmod|chown|rm|touch|mkdir|alias|unset|sed\s+-n\w*(?!.*\s-i))(?=\s|$)"
    r"|(?::|\[\[?)\s"
)
"""What sets no sysctl, and runs nothing that it is given, unless it writes to a file that does."""
_KEYWORDS = (
    r"Exec\w+\s*=\s*[-@:+!|]*|(?:if|then|else|elif|while|until|do|!|\{|sudo|time"
    r"|\w+=[^\s\"'$`]*|@reboot|root)\s+"
)
_INTO = r"(?<![<>])>{1,2}(?:[|]|(?=&))?\s*(?P<to>[^\s;&|<>()]+|&\d)"
_ELSEWHERE = r"&\d|[\"']?/(?!proc/|sys/|(?:etc|run|(?:usr/)?(?:local/)?lib)/sysctl)[\w./+@-]+[\"']?"
_SAYS_PERHAPS = (
    r"\s*(?!(?:a?sh|at|bash|batch|chroot|command|dash|echo|env|eval|exec|flock|ionice|ksh|nice|nohup"
    r"|nsenter|perl|printf|python\d*|runuser|ssh|su|sudo|sysctl|timeout|trap|watch|xargs|zsh)\b)"
    r"[a-z_]\w*\s+(?:-\S+\s+)*(?:\"[^\"]*\bsysctl\b|'[^']*\bsysctl\b)"
)
"""A function of the script, or a program, that may run what it is given, or print it."""
_NO_SHELL = r"\s*Exec\w+\s*=[-@:+!]*(?:\S*/)?(?:echo|printf|cat|true|test|grep)(?=\s)(?!.*\s;\s)"
_GIVES = (
    r"(?:^|[\s;&|])(?:[)}]|done|fi|esac)\s*(?:\|(?!\|)|>(?!\s*/dev/|&))|\)\s*\|(?!\|)"
    r"|^[^\"']*[\"']\s*(?:\|(?!\|)|>(?!\s*/dev/|&))|\beval\b|\bsh\s+-c\b"
)
"""The end of a group, or of a text over lines, of which another command is given what it says."""
_READ = (
    r"\$\(\s*(?:cat|date|hostname|id|nproc|uname|(?:\S*/)?sysctl(?:\s+-[aebinNq]+)*(?=\s+[\w./$]))\b"
    r"(?:[^()`;|&<>=]|2>/dev/null)*\)"
)
_BY_OTHERS = (
    r"(?:sudo\s+(?:-[A-Zbn]\s+)*(?:-[a-zA-Z]*u\s*|--user[= ])"
    r"|runuser\s+(?:-[lu]?\s+)?|su\s+(?:-l?\s+)?)"
    r"(?!root\b|-)[a-z_]\w*\s(?!.*\bsudo\b)"
)
"""A command that another user runs, who may set no sysctl."""
_FAR = (
    r"(?:\S*/)?(?:ssh\s(?!.*(?:localhost|\b127\.|::1|\$))|sysctl\s(?:.*\s)?--dry-run\b"
    r"|(?:docker|podman|nerdctl)\s+(?:run|create)\s(?!.*(?:\$|--(?:privileged|cap-add|security-opt|pid|mount|unmask)\b"
    r"|(?:-\w*v|--volume)[ =]*[\"']?/+(?:(?:proc|sys)[^:\s]*)?:)))"
)
"""A command whose words another host runs, or a container without rights; or that sets nothing."""
_AWAY = (
    r"(?:^|[\s;&|(\"'/])(?:ssh|docker|podman|nerdctl|kubectl|k3s|crictl|ctr|lxc(?:-attach)?|incus|virsh"
    r"|clush|srun|pdsh|pssh|parallel-ssh|ansible|salt(?:-ssh)?|machinectl|systemd-nspawn"
    r"|ip\s+(?:-\S+\s+(?:\w+\s+)?){0,9}netns)\s"
)
"""A command that runs its words elsewhere, or in namespaces: they may set what counts here."""
_HEREDOC = r"(?<!<)<<-?\s*[\"'\\]?(\w+)"
_WITHIN = r"\$\{[^{}]*\}|\$\([^()]*\)|\"[^\"]*\"|'[^']*'|`[^`]*`|(?<!\S)#.*"
_OPENS = (
    r"(?:^|[;&|(]|\b(?:then|else|do)\b)\s*(?:if|case|while|until|for|select)\b"
    r"|(?:^|[\s;)])\{(?=\s|$)"
)
_CLOSES = r"(?:^|[;\s])(?:fi|esac|done)(?=[\s;&|>]|$)|(?:^|[\s;])\}(?=[\s;&|>]|$)"
_IF_TRUE = (
    r"\|\||(?:^|[;(])\s*(?:!\s+)?(?:\[|test\s|(?:\S*/)?(?:e|f|z)?grep\s|false\b|command\s+-v|which\s)"
    r"[^;]*&&"
)
_THERE = r"(?:\[{1,2}|\btest)\s+-[efrswx]\s+[\"']?(/[\w./+@-]+)[\"']?\s*(?:\]{1,2}\s*)?&&(?=.*\1)"
_IF_THERE = (
    r"\bif\s+(?:\[{1,2}|test)\s+-[efrswx]\s+[\"']?(/[\w./+@-]+)[\"']?\s*(?:\]{1,2}\s*)?;\s*then\b"
    r"(?=.*\1)([^;]*);\s*fi\b"
)
"""A file is only used where it is there: it is, or its line does nothing anyhow."""
_LEAVES = r"(?:^|[;&|{]|\b(?:then|else|do)\b)\s*(?:exit|return|exec)\b"
_ENDS = r"[;|()`&]"
_PREFIX = r"^\s*Exec\w+\s*=\s*[-@:+!|]*|^.*\bRUN(?:\{\w+\})?\s*\+?=+"


def find_comment(line: str) -> int:
    """Return where the comment behind a command starts, or the end of the line."""
    for at, char, quote in _walk(line) if "#" in line else ():
        if char == "#" and not quote and (at == 0 or line[at - 1] in " \t;&|()"):
            # Of a text that is quoted over lines, the end is not known.
            return len(line) if line.count('"', at) % 2 else at
    return len(line)


def put_folders(path: str, text: str) -> str:
    """Return a script with plain folders in the place of its own and of variables that hold one."""
    if not ("$" in text or "`" in text) or not any(sign in text for sign in _SIGNS):
        return text
    folder = path.rpartition("/")[0]
    if "dirname" in text or "%/*}" in text:
        text = re.sub(_OWN_FOLDER, lambda _found: folder, text)
    for _round in range(_NESTED):
        before = text
        if "pwd" in text:
            text = re.sub(_ENTERED, lambda found: found[1], text)
        text = _put_variables(text, _list_folders(text))
        text = re.sub(_QUOTED_FOLDER, r"\1", text)
        if text == before:
            break
    return text


def _put_variables(text: str, folders: Mapping[str, str]) -> str:
    def put(found: re.Match[str]) -> str:
        value = folders.get(found[1] or found[2])
        return found[0] if value is None else value.rstrip("/")

    return re.sub(_USED, put, text) if folders else text


def _list_folders(text: str) -> dict[str, str]:
    """Return the variables that hold a plain path, and are used."""
    found: dict[str, str] = {}
    used = {one or other for one, other in re.findall(_USED, text)}
    for stated in re.finditer(_STATED, text):
        end = stated.start()
        start = max(0, end - 200)  # A line may be as long as the file.
        named = re.fullmatch(_VARIABLE, text[max(start, text.rfind("\n", start, end) + 1) : end])
        if named and named[1] in used:
            found[named[1]] = stated[1]
    return found


def is_command(before: str) -> bool:
    """Tell whether what follows the start of a line is run by it as root, and not an argument."""
    words = re.sub(_PREFIX, " ", before.replace('"', " ").replace("'", " "))
    words = re.split(r"[;&|(){}`]", words)[-1]
    return all(re.fullmatch(_BEFORE_COMMAND, word) for word in words.split())


class Line(NamedTuple):
    """A line that runs, and what counts of it; whether that is a command, or may be only said.

    ``depends`` says that it runs where a condition holds.
    """

    number: int
    text: str
    bare: str
    is_sure: bool
    depends: bool = False


def list_bare(lines: Iterable[tuple[int, str]]) -> Iterator[Line]:
    """Yield lines with what is left of them without comments and mere talk.

    What a command prints, searches or compares sets nothing, nor does a text that it is given,
    unless another command is given that. Each part keeps its place.
    """
    rows = list(lines)
    is_given = any(re.search(_GIVES, line) for _number, line in rows)
    goes_away, last = False, 0
    for (number, line), bare in zip(rows, _leave_out_texts(rows)):
        whole = line[: find_comment(line)]
        is_sure = not is_given or bare == whole
        is_unclear = re.match(_SAYS_PERHAPS, bare) or _may_be_away(bare)
        is_unclear = is_unclear or (goes_away and number == last + 1)
        yield Line(number, line, bare if is_sure else whole, is_sure and not is_unclear)
        goes_away = _is_continued(whole) and (goes_away or re.search(_AWAY, whole) is not None)
        last = number


def _may_be_away(line: str) -> bool:
    """Tell whether what a line sets may be set elsewhere alone, by one of its commands."""
    if not re.search(_AWAY, line):
        return False
    if len(line) > _LONGEST or "$(" in line or "`" in line:
        return True
    commands = [line[start:end] for start, end in find_commands(line)]
    return any(
        re.search(_AWAY, one) and ("sysctl" in one or "/proc/" in one or one.endswith("\\"))
        for one in commands
    )


def find_dependent(rows: Sequence[str]) -> set[int]:
    """Return which lines of a script run only if something holds, or somebody calls them.

    It need not be known what: a value that such a line sets may be in effect after a boot, or not.
    """
    found: set[int] = set()
    depth, may_end = 0, False
    for at, row in enumerate(rows):
        plain = re.sub(_IF_THERE, r" \2", row) if "-" in row and "/" in row else row
        plain = re.sub(_WITHIN, " ", re.sub(_THERE, "", plain))
        opened, closed = len(re.findall(_OPENS, plain)), len(re.findall(_CLOSES, plain))
        is_within = bool(depth or opened)
        if is_within or may_end or re.search(_IF_TRUE, plain):
            found.add(at)
        may_end = may_end or (
            (is_within or re.search("&&|[|][|]", plain) is not None)
            and re.search(_LEAVES, plain) is not None
        )
        depth = max(0, depth + opened - closed)
    return found


def _is_continued(line: str) -> bool:
    """Tell whether a line goes on in the next one: two backslashes are one of its characters."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _leave_out_texts(numbered: Sequence[tuple[int, str]]) -> Iterator[str]:
    rows = [line for _number, line in numbered]
    end = quote = away = ""
    last = {row.strip(): at for at, row in enumerate(rows)}
    last.update({sign: at for at, row in enumerate(rows) for sign in "\"'" if sign in row})
    for at, line in enumerate(rows):
        if end:
            yield ""
            end = "" if line.strip() == end else end
            continue
        # A comment between ends the command before it, in a script.
        away = away if at and numbered[at][0] == numbered[at - 1][0] + 1 else ""
        said = line.find(quote) + 1 if quote else 0
        if quote and not said:
            yield ""
            continue
        whole = " " * said + line[said:]
        whole = whole[: find_comment(whole)]
        bare = _leave_out_talk(away + (whole.rstrip("\\") if away else whole))[len(away) :]
        yield bare
        away = _find_open(away + whole)
        end, quote = _find_text(whole, bare) if bare != whole else ("", "")
        # Without an end it is no such text.
        end = end if last.get(end, 0) > at else ""
        quote = quote if last.get(quote, 0) > at else ""


def _find_open(line: str) -> str:
    """Return the command that goes on in the next line, if others than this host may run it."""
    if not _is_continued(line) or len(line) > _LONGEST or not re.search(_AWAY, line):
        return ""
    start, end = find_commands(line)[-1]
    command = re.sub(_PREFIX, "", line[start:end]).lstrip()
    return f"{command[:-1]} " if re.match(_FAR, command) else ""


def _find_text(line: str, bare: str) -> tuple[str, str]:
    """Return what ends a text that mere talk is given over lines: a word, or a quote."""
    if not re.search("<<|[\"']", line):
        return "", ""
    given = re.search(_HEREDOC, line)
    is_left = re.search(_HEREDOC, bare) is not None
    end = given[1] if given and not is_left else ""
    quote = _find_open_quote(line)
    is_said = quote and not bare[line.rfind(quote) :].strip()
    return end, quote if is_said else ""


def _leave_out_talk(line: str) -> str:
    if len(line) > _LONGEST:
        return line
    if re.match(_NO_SHELL, line):
        return ""  # A redirection is a word like others there.
    talks = False
    for start, end in reversed(find_commands(line)):
        talks = (talks or not _goes_on(line, end)) and is_talk(line[start:end])
        if talks:
            line = line[:start] + " " * (end - start) + line[end:]
    return line


def _goes_on(line: str, at: int) -> bool:
    """Tell whether another command, or line, is given what the one before a place says."""
    rest = line[at:]
    return (rest[:1] == "|" and rest[:2] != "||") or (not rest and line.endswith("\\"))


def is_talk(command: str) -> bool:
    """Tell whether a command only prints, or reads: what it runs for that is not known."""
    stem = command.lstrip()
    if re.match(_BY_OTHERS, stem):
        return True
    while True:
        keyword = re.match(_KEYWORDS, stem)
        if not keyword:
            break
        stem = stem[keyword.end() :]
    program, _blank, rest = stem.partition(" ")
    runs_more = "`" in stem or "<(" in stem or "$(" in re.sub(_READ, "", stem)
    if runs_more or not (re.match(_TELLS, stem) or re.match(_FAR, stem)):
        return False
    targets = find_targets(stem)
    if program.endswith("tee"):
        targets += [one for one in rest.split("<")[0].split(">")[0].split() if one[:1] != "-"]
    return all(re.fullmatch(_ELSEWHERE, one) for one in targets)


def find_targets(command: str) -> list[str]:
    """Return the files to which the shell sends what a command says."""
    return [found["to"] for found in re.finditer(_INTO, _leave_out_quoted(command))]


def _leave_out_quoted(text: str) -> str:
    """Return a text with nothing in its quotes that a redirection starts with."""
    return re.sub(r"\"[^\"]*\"|'[^']*'", lambda one: re.sub("[<>]", "_", one[0]), text)


def find_commands(line: str) -> list[tuple[int, int]]:
    """Return where the commands of a line start and end, as far as no quotes surround them."""
    found, start = [], 0
    for at, char, quote in _walk(line) if re.search(_ENDS, line) else ():
        is_end = char in ";|()`" or (char == "&" and ">" not in line[max(at - 1, 0) : at + 2])
        if is_end and not quote:
            found.append((start, at))
            start = at + 1
    return [*found, (start, len(line))]


def _find_open_quote(line: str) -> str:
    """Return the quote in which a line ends, or nothing."""
    return next((quote for _at, _char, quote in _walk(f"{line} ") if _at == len(line)), "")


def _walk(line: str) -> Iterator[tuple[int, str, str]]:
    """Yield the characters of a line that no backslash stands before, and the quote around each."""
    quote, skips = "", False
    for at, char in enumerate(line):
        if skips or (char == "\\" and quote != "'"):
            skips = not skips
            continue
        yield at, char, quote
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char


def put_braces(line: str) -> str:
    """Return a line with what bash makes of the braces in it, where it has some."""
    if "{" not in line or "," not in line or len(line) > _LONGEST:
        return line
    return " ".join(one for word in line.split() for one in expand_braces(word))
