# SPDX-License-Identifier: GPL-3.0-or-later
"""Start files of shells that root has to run, in every shell of Debian."""

from __future__ import annotations

from .attack import Attack

KIND = "start files"
_STAY = "\nready()\nstay()\n"


def _rc(name: str, text: str, verb: str = "check") -> Attack:
    """Return an attack of bash's start files; ``text`` is a line of Python."""
    return Attack(name, KIND, verb, text + _STAY)


def _shell(shell: str, names: str, limit: str, text: str = "TELL") -> Attack:
    program = f'rc({text}, {names}, limit="{limit}"){_STAY}'
    return Attack(f"{shell}: reads root's keys", KIND, "check", program, shell=f"/usr/bin/{shell}")


_UNDONE = "rm -f /etc/security/limits.d/*mlhost*\n"
"""What makes root provision something, and try the shells before."""
_LEAVE = "setsid sh -c 'sleep 7777 & exit 0' >/dev/null 2>&1 </dev/null &"

_CHASE = """
put(HOME + '/chase.py', '''
import os, time
os.setsid()
while True:
    if os.fork():
        os._exit(0)
    time.sleep(0.5)
''')
rc('(python3 ~/chase.py >/dev/null 2>&1 </dev/null &)')"""

ATTACKS = (
    _rc("bash: reads root's keys", "rc(TELL)"),
    _rc("bash: reads root's keys (explain)", "rc(TELL)", "explain session"),
    Attack(
        "zsh: reads root's keys (provision)",
        KIND,
        "provision",
        "rc(TELL, '.zshenv')" + _STAY,
        _UNDONE,
        "/usr/bin/zsh",
    ),
    _rc("bash: reads root's keys (monitor)", "rc(TELL)", "monitor"),
    _rc("bash: reads root's keys (full probe)", "rc(TELL)", "check full"),
    Attack(
        "dash: reads root's keys",
        KIND,
        "check",
        f"rc(TELL, '.profile'){_STAY}",
        shell="/bin/dash",
    ),
    _shell("zsh", "'.zshenv', '.zshrc', '.zprofile'", "ulimit -n 1000"),
    _shell("ksh", "'.profile', '.kshrc'", "ulimit -n 1000"),
    Attack(
        "tcsh: reads root's keys",
        KIND,
        "check",
        "put(HOME + '/tell.sh', TELL)\n"
        f"rc('sh ' + HOME + '/tell.sh', '.tcshrc', '.login', limit='limit descriptors 1000'){_STAY}",
        shell="/usr/bin/tcsh",
    ),
    Attack(
        "fish: reads root's keys",
        KIND,
        "check",
        "put(HOME + '/tell.sh', TELL)\n"
        "put(HOME + '/.config/fish/config.fish', 'sh ~/tell.sh')\n"
        f"rc('', '.profile', '.bashrc'){_STAY}",
        shell="/usr/bin/fish",
    ),
    Attack(
        "a shell of the user's own",
        KIND,
        "check",
        f"put(HOME + '/shell', '#!/bin/sh' + chr(10) + TELL, 0o755)\nrc(''){_STAY}",
        shell="/home/mallory/shell",
    ),
    _rc("bash: leaves a process (double fork, setsid)", f'rc("""({_LEAVE})""")'),
    _rc(
        "bash: leaves a process that no signal ends",
        "rc(\"(trap '' TERM HUP INT; setsid sh -c 'sleep 7776' &)\")",
    ),
    _rc("bash: leaves 300 processes", 'rc("for i in $(seq 300); do (setsid sleep 7775 &); done")'),
    _rc("bash: sleeps", 'rc("sleep 1000")'),
    _rc("bash: closes what root hears, and lives on", 'rc("exec <&- >&- 2>&-; sleep 1000")'),
    _rc(
        "bash: sleeps before each of many processes that are too low",
        'rc("sleep 1000")\nimport resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n'
        "for _ in range(12):\n    be('cron')",
        "node-health",
    ),
    _rc("bash: prints without end", 'rc("cat /dev/zero")'),
    _rc("bash: prints lines without end", 'rc("yes mlhost-limits:")'),
    _rc(
        "bash: answers with JSON of its own",
        """rc('for fd in 1 2 3 4 5 6 7 8; do for index in 0 1 2 3; do '
   'echo "[$index, {}]" >&$fd; done 2>/dev/null; done')""",
    ),
    _rc(
        "bash: writes to every descriptor it finds",
        """rc('for n in /proc/$$/fd/* /proc/$PPID/fd/*; do echo "[0, null]" > $n; done 2>/dev/null')""",
    ),
    _rc("bash: leaves what forks and ends again and again", _CHASE),
    _rc("bash: stops every process of its own", 'rc("kill -STOP -1")'),
    _rc(
        "bash: types into root's terminal",
        """put(HOME + '/type.py', '''
import fcntl, termios, os
for name in ("/dev/tty", 0, 1, 2):
    try:
        handle = os.open(name, os.O_RDWR) if isinstance(name, str) else name
        for letter in "touch /root/canary/typed" + chr(10):
            fcntl.ioctl(handle, termios.TIOCSTI, letter)
    except OSError:
        pass
''')
rc("python3 ~/type.py")""",
        "check at a terminal",
    ),
    _rc(
        "start files whose answer is longer than a pipe writes at once",
        """put(HOME + '/.bashrc', ''.join(f"ulimit -n {n} # {'z' * 9000}" + chr(10) for n in range(12)))
put(HOME + '/.profile', 'ulimit -n 1000')""",
    ),
    Attack(
        "start files of two users, longer than a pipe writes at once",
        KIND,
        "check",
        """put(HOME + '/.bashrc', ''.join(f"ulimit -n {n} # {'z' * 600000}" + chr(10) for n in range(12)))"""
        + _STAY,
        """for n in 1 2 3 4 5 6 7 8 9 10 11; do
printf 'ulimit -n 100000 # %0600000d\\n' 7; done > /home/alice/.bashrc; chown alice: /home/alice/.bashrc""",
        rounds=4,
    ),
    _rc(
        "a start file that is a FIFO", "os.unlink(HOME + '/.bashrc')\nos.mkfifo(HOME + '/.bashrc')"
    ),
    _rc(
        "a start file on a file system that never answers",
        "fuse(HOME + '/point', 99)\nrc('. ~/point/file')",
    ),
    _rc(
        "a home that never answers",
        "put(HOME + '/.profile', 'ulimit -n 1000')\nfuse(HOME + '/.config', 1)",
        "check podman",
    ),
    _rc(
        "a start file with the bytes of a terminal",
        r"""put(HOME + '/.bashrc', b'ulimit -n 1000 # \x1b]0;evil\x07\x1b[2J\x00\x9b31m')""",
        "check as text",
    ),
    _rc(
        "a start file with markup, for the audit",
        r"""put(HOME + '/.bashrc', b'ulimit -n 1000 # </script><script>evil()</script>\x1b[2J\x00')""",
        "audit",
    ),
    Attack(
        "a variable file of PAM that is a FIFO",
        KIND,
        "check full",
        "os.mkfifo(HOME + '/.pam_environment')" + _STAY,
    ),
    Attack(
        "stops whatever root runs as the user",
        KIND,
        "check",
        """rc('sleep 1')
def stop():
    own = set(os.listdir("/proc"))
    while True:
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.stat("/proc/" + name).st_uid == 1001 and name not in own:
                    os.kill(int(name), signal.SIGSTOP)
            except OSError:
                continue
fork(stop)
ready()
stay()
""",
    ),
    Attack(
        "kills and confines whatever root runs as the user",
        KIND,
        "check",
        """import resource
rc('sleep 1')
def confine():
    own = set(os.listdir("/proc"))
    while True:
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.stat("/proc/" + name).st_uid == 1001 and name not in own:
                    resource.prlimit(int(name), resource.RLIMIT_NOFILE, (0, 0))
                    resource.prlimit(int(name), resource.RLIMIT_FSIZE, (0, 0))
                    os.kill(int(name), signal.SIGXFSZ)
            except (OSError, ValueError):
                continue
fork(confine)
ready()
stay()
""",
    ),
)
