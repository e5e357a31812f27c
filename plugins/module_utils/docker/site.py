# SPDX-License-Identifier: BSD-2-Clause
"""What is known of the Docker of a host, besides what decides the limits of its containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.cause import Remedy
from ..core.values import Declaration, NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..containers.policy import ContainerPolicy
    from .dockerd_flags import Flag
    from .model import Parent, UnitLimit


class Tools(NamedTuple):
    """What a remedy needs to know of a host.

    ``unit`` is dockerd's, empty where systemd does not run it; ``stops`` tells whether containers
    run that its restart stops; ``files`` are the texts of those that state its flags, by path.
    """

    unit: str = ""
    stops: bool = False
    files: Mapping[str, str] = {}

    def restart(self, text: str, commands: Sequence[tuple[str, ...]] = ()) -> Remedy:
        """Return a remedy that ends with the daemon's restart.

        The counter of its starts is cleared first: three within a minute are all that it has.
        """
        if not self.unit:
            return Remedy(text, tuple(commands), "restart dockerd")
        name = self.unit[: -len(".service")] if self.unit.endswith(".service") else self.unit
        line = f"systemctl reset-failed {name}; systemctl restart {name}"
        note = ", which stops the running containers" if self.stops else ""
        text = f"{text}, then restart {name}{note}" if text else f"restart {name}{note}"
        return Remedy(text, (*commands, ("sh", "-c", line)))


class Site(NamedTuple):
    """What is known of a host besides, and what a policy demands of its containers.

    ``own`` are the limits that people gave docker.service, which are dockerd's alone;
    ``nr_open_line`` is the line that sets fs.nr_open at boot, which then is ``nr_open_at_boot`` (0
    where that is not known), and ``usual`` the text of daemon.json
    in its usual place, where dockerd reads another file.
    """

    policy: ContainerPolicy
    tools: Tools = Tools()
    parent: Parent | None = None
    own: Mapping[str, UnitLimit] = {}
    nr_open_line: Declaration | None = None
    usual: str | None = None
    nr_open_at_boot: int = 0


class Pending(NamedTuple):
    """How a running dockerd differs from its files.

    ``since`` is its start, and ``changed`` when daemon.json changed after it, empty where it did
    not; ``flags`` are those that it runs with.
    """

    since: str
    changed: str
    flags: tuple[Flag, ...]
