# SPDX-License-Identifier: BSD-2-Clause
"""Judge an image, which nobody has booted yet, by what its files will give."""

from __future__ import annotations

from .explain_kernel import foretell_key, gather_key
from .policy.container_findings import require_container
from .policy.containers_conf import ConfError, order_files, read_conf
from .policy.docker_causes import find_docker_causes
from .policy.docker_config import decode_daemon_json
from .policy.docker_site import Site
from .policy.docker_world import World, find_obstacles, foretell, pick, predict
from .policy.dockerd_flags import find_config_path
from .policy.finding import FAIL, UNKNOWN, Requirement, require_kernel, require_limits
from .policy.image_forecast import (
    Forecast,
    foretell_session,
    foretell_shm,
    tell,
)
from .policy.kernel_boot import predict_boot
from .policy.kernel_causes import find_kernel_causes
from .policy.pam_limits import User, find_obstacle
from .policy.pam_reach import find_bypass, find_hindrances
from .policy.pam_stack import find_pam_limits, find_service_file, flatten, read_limits_options
from .policy.podman_causes import PodmanFacts, find_podman_causes, foresee
from .policy.session_causes import SessionFacts
from .policy.session_model import Start
from .policy.session_rules import covers_everyone, find_limits, named_groups, named_users
from .policy.shm_mount import FSTAB, SHM
from .probe.files import read_bytes, read_text
from .probe.podman import read_tree_conf_files
from .probe.tree import Tree, read_tree_use_pam, read_tree_user
from .probe.unit import read_dockerd_flags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from .check_options import Options
    from .policy.finding import Finding
    from .policy.pam_reach import Hindrance
    from .policy.policy_reader import Limit
    from .policy.schema import Policy

    Foretold = Iterator[tuple[Requirement, Forecast]]

FORETOLD = ("kernel", "sessions", "services", "docker", "podman", "shared_memory")
_NOBODY = 2**31  # The number of whoever stands for users that an image does not have yet.
_DOCKERD = ("/usr/bin/dockerd", "/usr/sbin/dockerd", "/usr/local/bin/dockerd")
_PODMAN = ("/usr/bin/podman", "/usr/local/bin/podman", "/usr/sbin/podman")


def check_image(policy: Policy, options: Options, root: str) -> Iterator[Finding]:
    """Yield a finding for all that a policy asks of a host to come; none of them passes.

    :param root: Its tree; ``/`` where this process runs in it.
    :raises OSError: If the tree cannot be read.
    """
    tree = Tree(root)
    for name, look in _LOOKS.items():
        if name in options.sections:
            for wanted, forecast in look(policy, options, tree):
                yield tell(wanted, forecast, root)
    for wanted, forecast in _look_at_rest(policy, options, tree):
        yield tell(wanted, forecast, root)


def find_foretold(policy: Policy) -> list[str]:
    """Return the sections of a policy of which files say what a boot will give."""
    return [name for name in FORETOLD if getattr(policy, name) not in (None, (), {})]


def _look_at_kernel(policy: Policy, _options: Options, tree: Tree) -> Foretold:
    for key, value in policy.kernel.items():
        wanted = require_kernel(key, value)
        facts = gather_key(key, tree.boot, tree.boot.find_start(key))
        status, given = foretell_key(wanted, facts, tree.boot), predict_boot(facts)
        causes = tuple(find_kernel_causes(wanted, facts)) if status == FAIL else ()
        value_text = given.values[0] if given.values else None
        yield wanted, Forecast(status, value_text, given.by, causes, "no file states it")


def _look_at_sessions(policy: Policy, options: Options, tree: Tree) -> Foretold:
    for name in _choose_users(policy) if options.users is None else options.users:
        place, reason, limits = f"session:{name}", "no rule of the policy is about them", {}
        try:
            user = _STAND_INS.get(name[:1], _read_user)(name, tree)
            limits = find_limits(policy.sessions, user)
        except ValueError as exc:
            reason = str(exc)
        if not limits:
            yield Requirement(place, "all", "value"), Forecast(UNKNOWN, reason=reason)
        for service in options.services if limits else ():
            yield from _look_at_session(user, service, limits, tree)


def _choose_users(policy: Policy) -> list[str]:
    """Return who stands for all that the rules mean; an image may have none of them yet."""
    groups = [f"@{name}" for name in named_groups(policy.sessions)]
    everyone = ["*"] if covers_everyone(policy.sessions) else []
    return list(dict.fromkeys([*named_users(policy.sessions), *groups, *everyone]))


def _read_user(name: str, tree: Tree) -> User:
    return read_tree_user(tree.root, name)


_STAND_INS: Mapping[str, Callable[[str, Tree], User]] = {
    "*": lambda name, _tree: User(name, _NOBODY, _NOBODY),
    "@": lambda name, _tree: User(name, _NOBODY, _NOBODY, frozenset({name[1:]})),
}


def _look_at_session(user: User, service: str, limits: Mapping[str, Limit], tree: Tree) -> Foretold:
    place = f"session:{user.name}@{service}"
    missing = find_obstacle(tree.limits_files, tree.hanging, user, tree.dialect)
    trouble = f"{missing} is missing, and PAM refuses every login" if missing else ""
    hindrances: tuple[Hindrance, ...] = ()
    try:
        hindrances = tuple(_find_hindrances(service, tree))
    except ValueError as exc:
        trouble = str(exc)
    start = Start({}, {}, tree.nr_open, tree.dialect.resets)
    facts = SessionFacts(user, tree.dialect, tree.lines_of(user), start, hindrances)
    for wanted in require_limits(place, limits):
        if trouble or wanted.bound == "value":
            yield wanted, Forecast(UNKNOWN, reason=trouble)
        else:
            yield wanted, foretell_session(wanted, facts)


def _find_hindrances(service: str, tree: Tree) -> Iterator[Hindrance]:
    """Yield why the limits files do not count for a service of the tree.

    :raises ValueError: If there is none of that name, or libpam refuses it.
    """
    if service == "cron" and find_service_file(service, tree.pam_files) is None:
        service = "crond"  # As Red Hat has it.
    if find_service_file(service, tree.pam_files) is None:
        raise ValueError(f"no PAM service {service!r} in this image")
    if service == "sshd":
        bypass = find_bypass(read_tree_use_pam(tree.root), "ssh.service")
        yield from filter(None, [bypass])
    calls = find_pam_limits(flatten(service, "session", tree.pam_files))
    named = {read_limits_options(call).conf for call in calls}
    confs = {path: read_text(path, tree.root) for path in named if path}
    texts = {path: text for path, text in confs.items() if text is not None}
    yield from find_hindrances(service, tree.pam_files, (), texts, tree.dialect)


def _look_at_services(policy: Policy, _options: Options, tree: Tree) -> Foretold:
    if policy.services:
        from .check_image_services import look_at_services

        yield from look_at_services(policy.services, tree)


def _look_at_docker(policy: Policy, _options: Options, tree: Tree) -> Foretold:
    asked = policy.docker
    if not asked:
        return
    wanted = require_container("new-container:docker", asked)
    if not tree.has(*_DOCKERD):
        yield from _skip(wanted, "no dockerd in this image")
        return
    flags = tuple(read_dockerd_flags(tree.root))
    path = find_config_path(flags)
    content = read_bytes(path, tree.root)
    text = None if content is None else decode_daemon_json(content, path)
    world = World(text, path, flags, {}, tree.nr_open)
    for one in wanted:
        status = foretell(one, world)
        causes = tuple(find_docker_causes(one, world, Site(asked))) if status == FAIL else ()
        given = () if find_obstacles(world) else predict(world, one.item)
        value = pick(one, given[0]) if given else None
        yield one, Forecast(status, value, None, causes, "what containerd has decides")


def _skip(wanted: Iterable[Requirement], reason: str) -> Foretold:
    for one in wanted:
        yield one, Forecast(UNKNOWN, reason=reason)


def _look_at_podman(policy: Policy, _options: Options, tree: Tree) -> Foretold:
    asked = policy.podman
    if not asked:
        return
    wanted = require_container("new-container:podman", asked)
    if not tree.has(*_PODMAN):
        yield from _skip(wanted, "no podman in this image")
        return
    files = read_tree_conf_files(tree.root)
    facts = PodmanFacts((), tree.nr_open)
    try:
        facts = facts._replace(
            stated=tuple(read_conf(path, files[path]) for path in order_files(files))
        )
    except ConfError as error:
        facts = facts._replace(broken=error)
    for one in wanted:
        status = FAIL if facts.broken else foresee(one, facts, tree.nr_open) or UNKNOWN
        causes = tuple(find_podman_causes(one, facts, asked)) if status == FAIL else ()
        yield one, Forecast(status, None, None, causes, "what starts it decides")


def _look_at_shm(policy: Policy, _options: Options, tree: Tree) -> Foretold:
    if policy.shared_memory is not None:
        size = policy.shared_memory
        wanted = Requirement(f"path:{SHM}", "size", "value", size, unit="bytes")
        yield wanted, foretell_shm(size, read_text(FSTAB, tree.root) or "")


def _look_at_rest(policy: Policy, options: Options, _tree: Tree) -> Foretold:
    """Yield that of these, nothing can be said before somebody runs them."""
    rest: Iterable[tuple[str, object]] = (
        ("containerd", policy.containerd),
        ("slurm", policy.slurm),
        ("processes", policy.processes),
        ("training", policy.training),
    )
    for name, asked in rest:
        if asked and name in options.sections:
            yield Requirement(name, "all", "value"), Forecast(UNKNOWN)


_LOOKS = {
    "kernel": _look_at_kernel,
    "sessions": _look_at_sessions,
    "services": _look_at_services,
    "docker": _look_at_docker,
    "podman": _look_at_podman,
    "shared_memory": _look_at_shm,
}
