# SPDX-License-Identifier: BSD-2-Clause
"""Run a program to its end: no shell, nothing to read from, and a time limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

NEVER_RAN = -128  # Below every signal, by whose negative number a process that it ended returns.


def run_program(
    words: Sequence[str],
    seconds: float,
    *,
    with_errors: bool = True,
    environment: Mapping[str, str] | None = None,
    become: Callable[[], None] | None = None,
) -> tuple[int, str]:
    """Return a program's exit status and what it said; below 0 it did not end by itself.

    :param words: The program, by its path, and its arguments.
    :param with_errors: Whether what it writes as an error counts as said.
    :param environment: All that it shall know; by default what this process knows.
    :param become: What the child does before it becomes the program.
    """
    import subprocess  # Needed only where a program must be asked; it is slow to import.

    try:
        done = subprocess.run(  # noqa: S603 - no shell, and the program is named by its path
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if with_errors else subprocess.DEVNULL,
            timeout=seconds,
            check=False,
            env=environment,
            cwd="/",
            preexec_fn=become,
        )
    except subprocess.TimeoutExpired:
        return NEVER_RAN, f"{words[0]} did not end within {seconds:.0f} s"
    except OSError as exc:
        return NEVER_RAN, f"{words[0]}: {exc.strerror}"
    if done.returncode < 0:
        return done.returncode, f"{words[0]}: was ended by signal {-done.returncode}"
    return done.returncode, done.stdout.decode("utf-8", "replace")


def last_line(text: str) -> str:
    """Return the last thing that a program said."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
