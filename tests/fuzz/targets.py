# SPDX-License-Identifier: GPL-3.0-or-later
"""Every function that reads text of others, and texts near to what it expects.

A target takes any text, and refuses it with a ValueError of one printable line if at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mlhost_limits import schema
from mlhost_limits.core import edit, redaction, redaction_json
from mlhost_limits.core import values as proc_limits
from mlhost_limits.core import values as rlimit
from mlhost_limits.core.values import Rlimit
from mlhost_limits.crio import crio_conf
from mlhost_limits.docker import compose as compose_file
from mlhost_limits.docker import daemon_json as docker_config
from mlhost_limits.docker import flags as docker_flags
from mlhost_limits.docker import merge as docker_merge
from mlhost_limits.docker import record as docker_record
from mlhost_limits.docker.dockerd_flags import parse_flags
from mlhost_limits.docker.problems import find_daemon_json_problems
from mlhost_limits.kernel import (
    boot_calls,
    boot_loader,
    boot_modules,
    boot_presets,
    boot_scripts,
    boot_shell,
    boot_specifiers,
    boot_units,
    sysctl_conf,
    tuned_profile,
)
from mlhost_limits.kernel.sysctl_writes import SYSTEMD, find_procps, resolve_sysctl
from mlhost_limits.policy_file import parse_documents, parse_policy
from mlhost_limits.sessions import (
    limits_conf,
    pam_limits,
    pam_stack,
    shell_limits,
    shell_sources,
    sshd_config,
)
from mlhost_limits.sessions import reach as pam_reach
from mlhost_limits.sessions import unread as session_lines
from mlhost_limits.shared_memory import size as shm_size
from mlhost_limits.slurm import slurm_conf
from mlhost_limits.systemd import unit_file
from mlhost_limits.systemd import values as systemd_value
from mlhost_limits.words import kinds, launchers, precedence
from mlhost_limits.words.facts import join_words

from tests.worlds.distributions import DEBIAN

WANTED = docker_config.DockerDefaults({"nofile": Rlimit(1024, 4096)}, 2**30)
ALICE = pam_limits.User("alice", 1001, 1001, frozenset({"alice"}), frozenset({1001}))


def read_limits(text: str) -> None:
    for dialect in (pam_limits.Dialect(), pam_limits.Dialect(1023, wildcard_root=False)):
        lines = pam_limits.read_lines({pam_limits.LIMITS_CONF: text}, dialect)
        pam_limits.resolve_limits(lines, ALICE, dialect)


def read_near_limits(text: str) -> None:
    """Look for lines that only nearly are what pam_limits reads, and for what keeps it away."""
    files, others = {pam_limits.LIMITS_CONF: text}, {f"{pam_limits.LIMITS_D}/a.bak": text}
    for entry in session_lines.find_unread(files, others, pam_limits.Dialect(1023)):
        assert "\n" not in entry.instead
    stacks = {"/etc/pam.d/a": text, "/etc/pam.d/other": text}
    list(pam_reach.find_hindrances("a", stacks, {"gone.so"}, {}, pam_limits.Dialect()))


def read_shell(text: str) -> None:
    list(shell_limits.find_shell_limits(text, "/etc/profile"))
    shell_sources.find_sources(text, "/etc/profile", "/home/alice")


def read_tuned(text: str) -> None:
    tuned_profile.find_includes(text)
    tuned_profile.merge_profiles([("/etc/tuned/a/tuned.conf", text)])
    tuned_profile.read_reapply(text)
    tuned_profile.list_excluded(tuned_profile.read_exclude(text))


def read_scripts(text: str) -> None:
    scripts = {"/etc/rc.local": text, "/etc/cron.d/a": text, "/etc/systemd/system/a.service": text}
    list(boot_scripts.find_script_writes("vm.max_map_count", scripts))
    boot_scripts.is_about_sysctls(text)
    boot_units.settle_unit({**scripts, "/etc/systemd/system/a.service.d/a.conf": text})
    for path in scripts:
        boot_calls.find_called(path, text)
        boot_calls.find_words(path, text)
        boot_calls.find_loaded(path, text)
    boot_specifiers.put_specifiers("/etc/systemd/system/a@.service", text, ["a@b.service"])
    boot_calls.is_interpreted("/opt/a", text)
    boot_calls.find_parts(text)
    boot_shell.put_folders("/opt/a", text)


def read_first_boot(text: str) -> None:
    """Read a text as what a loader, a first boot and its modules read."""
    texts = {"/boot/loader/entries/a.conf": text, "/etc/modprobe.d/a.conf": text}
    list(boot_loader.find_loader_doubts(texts))
    boot_loader.find_loader_units(texts)
    boot_loader.find_loader_stops(texts)
    boot_modules.find_loads(texts)
    boot_modules.find_stops(texts)
    boot_presets.find_preset_starts({"a.service": text}, boot_presets.parse_presets([text]))
    tuned_profile.find_recommended([text])


def read_sysctl(text: str) -> None:
    files = {"/etc/sysctl.d/a.conf": text}
    keys = [line.key for line in sysctl_conf.parse_sysctl_conf(text, "/etc/sysctl.d/a.conf")]
    for reader in (SYSTEMD, find_procps(DEBIAN)):
        resolve_sysctl(files, ["vm.max_map_count", *keys[:20]], reader)


def read_unit(text: str) -> None:
    settings = unit_file.merge_units(unit_file.Source("/etc/systemd/system/a.service", text), [])
    for setting in settings[:50]:
        unit_file.parse_environment(setting)
        for word in unit_file.split_words(setting.value):
            unit_file.expand_word(word, {"A": "b c"})


def read_daemon_json(text: str) -> None:
    docker_config.read_defaults(text)
    find_daemon_json_problems(text, "/etc/docker/daemon.json", WANTED)
    merged = docker_merge.merge_daemon_json(text, WANTED)
    docker_record.undo(merged + " ", docker_record.Record(text, merged, WANTED.ulimits))
    redaction.redact(text)
    redaction_json.redact_json(text)


def read_pam_stack(text: str) -> None:
    lines = pam_stack.flatten("a", "session", {"/etc/pam.d/a": text, "/etc/pam.d/b": text})
    pam_stack.quiet_stack(lines, "/run/a")


def read_sshd_config(text: str) -> None:
    sshd_config.find_includes(text)
    files = {sshd_config.MAIN_FILE: text}
    sshd_config.find_use_pam(files)
    sshd_config.find_shut_out(files, sshd_config.MAIN_FILE, ALICE)


def read_slurm_conf(text: str) -> None:
    conf = slurm_conf.parse_slurm_conf({"/a": text, "/b": text}, "/a")
    slurm_conf.read_use_pam(conf)
    slurm_conf.write_propagation(slurm_conf.read_propagation(conf).items, conf)


def read_policy(text: str) -> None:
    tree = parse_policy(text, "policy.yml")
    schema.load_policy(tree.root, "none", told=tree.problems)


def read_run(text: str) -> None:
    """Read a text as each kind of file that starts a run, and make one run of all."""
    context = kinds.Context({"A": text[:50], "B": "x y"}, parse_documents)
    names = ("run.sh", "run.json", "run.yaml", "run.toml", "config.py")
    said = [kinds.read_file(kinds.Text(name, text, "/srv"), context).words for name in names]
    said += [launchers.read_command(text.split()), launchers.read_command(text.split(), "a:1")]
    for words in (*said, join_words(said)):
        precedence.take(words, {}, "/srv")


def edit_block(text: str) -> None:
    ours = edit.set_block(text, ["* soft nofile 1"], "/etc/security/limits.conf")
    edit.remove_block(ours or "", "")
    edit.restore(edit.neutralize(text, {1, 2}))


def with_value(function: Callable[..., object], *before: object) -> Callable[[str], None]:
    def target(text: str) -> None:
        function(*before, text)

    return target


TARGETS: dict[str, Callable[[str], None]] = {
    "limits.conf": read_limits,
    "what is nearly limits.conf": read_near_limits,
    "a startup file of a shell": read_shell,
    "a profile of tuned": read_tuned,
    "what a boot runs": read_scripts,
    "what a first boot reads": read_first_boot,
    "crio.conf": lambda text: crio_conf.read_all({"/etc/crio/crio.conf": text}),
    "a value of limits.conf": with_value(limits_conf.parse_value, "memlock"),
    "sysctl.conf": read_sysctl,
    "a sysctl number": with_value(sysctl_conf.parse_sysctl_number),
    "a systemd unit": read_unit,
    "an environment file": with_value(unit_file.parse_environment_file),
    "a limit of systemd": with_value(systemd_value.parse_limit_setting, "LimitNOFILE"),
    "a size of systemd": with_value(systemd_value.parse_limit_setting, "LimitMEMLOCK"),
    "a time of systemd": with_value(systemd_value.parse_limit_setting, "LimitCPU"),
    "words of systemd": with_value(unit_file.split_words),
    "flags of dockerd": lambda text: ignore(parse_flags((word, "a", 1) for word in text.split())),
    "daemon.json": read_daemon_json,
    "a size of Docker": with_value(shm_size.parse_shm_size),
    "a limit of Docker": with_value(docker_flags.parse_ulimit),
    "a Compose file": with_value(
        lambda text: compose_file.find_line(text, ("services", "a", "ulimits", "nofile"))
    ),
    "a record of daemon.json": with_value(lambda text: docker_record.parse_record(text, "/a")),
    "a PAM service": read_pam_stack,
    "sshd_config": read_sshd_config,
    "slurm.conf": read_slurm_conf,
    "/proc/PID/limits": with_value(proc_limits.parse_proc_limits),
    "a quantity of a policy": lambda text: ignore(rlimit.parse_quantity(text, "bytes")),
    "a policy": read_policy,
    "a file with our block": edit_block,
    "what starts a run": read_run,
}


def ignore(_result: Any) -> None:
    """Say that only an exception would count."""


def feed(name: str, text: str) -> None:
    """Give a text to a target.

    :raises AssertionError: If it is refused with anything but one sentence.
    """
    try:
        TARGETS[name](text)
    except ValueError as exc:
        message = str(exc)
        assert message, f"{name}: refused without a word"
        assert len(message) < 2000 + len(text), f"{name}: {len(message)} characters of refusal"


FRAGMENTS: Iterable[str] = (
    *("\n", "\r\n", " ", "\t", "\\\n", "\\", "#", ";", '"', "'", "=", ":", ",", "-", "@", "%", "*"),
    *("{", "}", "[", "]", "$", "${A}", "$$", "%%", "\0", "\x1b[31m", "\ufeff", "\u2028", "\xff"),
    *("* soft nofile 1024", "alice - memlock unlimited", "@ml hard nproc", "1000:2000 -"),
    *("vm.max_map_count", "net.ipv4.*.x", "-kernel.a", "0x10", "-1", "1e9", "9" * 30, "1.5G"),
    *(
        "{a,b}",
        "x{a,}.*=1\n",
        "[Service]",
        "[Manager]",
        "LimitNOFILE=1:2",
        "ExecStart=",
        "Environment=A=b",
        "infinity",
    ),
    *('"default-ulimits"', '"nofile"', '{"Name":"nofile","Hard":1,"Soft":1}', "null", "true"),
    *("ulimit -n 5", "limit -h open 5", ". ~/a", "[sysctl]", "include=a", "sysctl -w vm.x=1"),
    *("session required pam_limits.so", "[success=1 default=ignore]", "@include b", "substack b"),
    *("PropagateResourceLimits=", "RLIMIT_CORE", "include /b", "UsePAM=1"),
    *("services:\n  a:\n    ", "ulimits:\n      ", "nofile: 1", "- |\n", "<<: *x", "&x", "? "),
    *("UsePAM yes", "Match all", "Include /etc/ssh/x*", "Max open files  1 2 files", "unlimited"),
    *("torchrun --nproc-per-node=2 t.py ", "--num_workers 8 ", "docker run ", "$(", "`", "A=(\n"),
    *("#SBATCH --mem=1G\n", "export A=$A$A\n", "<<EOF\n", "A=${B:-$A} ", "&& ", "{{ a }}"),
    *('"num_workers": 8, ', "apiVersion: v1\nkind: Pod\n", "containers:\n- ", "x-{0..9}.tar "),
    *("enable a*.service\n", "DenyUsers a* !b\n", "eval `x` ", "sysctl.vm.x=1 ", "install x y\n"),
    *("default_ulimits = [", "[crio.runtime]\n", "for a in $a; do sysctl vm.$a=1\n"),
    *('{"sessions": [', '{"kernel": {"fs.nr_open": ', "1h 2min", "--default-ulimit=nofile=1:2"),
)
