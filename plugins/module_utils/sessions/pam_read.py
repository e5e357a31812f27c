# SPDX-License-Identifier: BSD-2-Clause
"""Make the PAM services of the host ready to be opened, if wanted in a form without traces."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from ..core.values import NamedTuple
from ..host.files import list_folder, read_each
from ..host.scratch import make_scratch, remove_scratch
from .libpam_measure import Libpam, find_missing_modules, load_modules
from .pam_stack import DIRECTORIES, find_service_file, flatten, quiet_stack


class PamServices(NamedTuple):
    """libpam and the services to open through it.

    ``folder`` holds the quiet services and is ``None`` where the host's own run in full.
    ``skipped`` names, by service, modules that were left out; ``obstacles`` why a service cannot
    be opened. ``pam`` is ``None`` where none can.
    """

    pam: Libpam | None
    folder: str | None
    skipped: dict[str, tuple[str, ...]]
    obstacles: dict[str, str]


@contextmanager
def prepared_services(
    names: Collection[str],
    quiet: bool,
    besides: Collection[str] = (),
    files: Mapping[str, str] | None = None,
) -> Iterator[PamServices]:
    """Load libpam and write the quiet services, and remove them in the end.

    :param quiet: Where libpam is older than 1.4, the host's own services are used all the same.
    :param besides: Names of modules that quiet services run although they leave a trace.
    :param files: Those that libpam may read, where they were read.
    """
    services = PamServices(None, None, {}, {})
    try:
        try:
            if os.geteuid() != 0:
                raise PermissionError("opening a session of a user needs root")
            services = services._replace(pam=Libpam())
            if quiet and services.pam and services.pam.reads_folders:
                services = services._replace(folder=_make_folder())
            _prepare(names, services, besides, read_pam_files() if files is None else files)
        except OSError as error:
            services.obstacles.update(dict.fromkeys(names, str(error)))
        yield services
    finally:
        if services.folder is not None:
            remove_scratch(services.folder)


def _prepare(
    names: Collection[str],
    services: PamServices,
    besides: Collection[str],
    files: Mapping[str, str],
) -> None:
    modules: set[str] = set()
    for name in names:
        if find_service_file(name, files) is None:
            services.obstacles[name] = f"no PAM service {name!r} on this host"
        elif services.folder:
            modules.update(_write_quiet_service(name, files, services, besides))
    load_modules(modules)


def _write_quiet_service(
    name: str, files: Mapping[str, str], services: PamServices, besides: Collection[str]
) -> tuple[str, ...]:
    """Write the files of one service and return the modules that will run."""
    try:
        lines = [line for kind in ("account", "session") for line in flatten(name, kind, files)]
    except ValueError as error:
        services.obstacles[name] = str(error)
        return ()
    path = f"{services.folder}/{name}"
    missing = find_missing_modules({line.module for line in lines})
    stack = quiet_stack(lines, path, missing, besides)
    services.skipped[name] = stack.skipped
    for file, text in {path: stack.text, **stack.substacks}.items():
        _write_file(file, text)
    return stack.modules


def name_here(service: str) -> str:
    """Return the name that a PAM service has on this host: Red Hat calls cron's crond."""
    renamed = service == "cron" and not _exists("cron") and _exists("crond")
    return "crond" if renamed else service


def _exists(service: str) -> bool:
    return any(os.path.exists(f"{folder}/{service}") for folder in DIRECTORIES)


def read_pam_files() -> dict[str, str]:
    """Return the text of every service file that libpam may read, by path."""
    paths = (f"{folder}/{name}" for folder in DIRECTORIES for name in list_folder(folder))
    return {
        path: text.encode("latin-1").decode("utf-8", "surrogateescape")
        for path, text in read_each(paths)
        if os.path.isfile(path)
    }


def _make_folder() -> str:
    """Make a folder for quiet services, with the ``other`` that libpam asks for."""
    folder = make_scratch()
    _write_file(f"{folder}/other", "")
    return folder


def _write_file(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
