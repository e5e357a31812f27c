# SPDX-License-Identifier: BSD-2-Clause
"""What the kernel, early killers for memory, logind and the kubelet write of a lack.

Sources: net/ipv4/tcp.c, net/core/neighbour.c, nf_conntrack_core.c, mm/oom_kill.c and mm/mmap.c of
Linux; earlyoom(1), logind.conf(5), and node-pressure eviction of Kubernetes.
"""

from __future__ import annotations

from .message import say
from .reasons import HOST, SOCKETS, SPACE

SYSTEM = (
    say("consider tuning tcp_mem|table overflow|too many orphaned", (SOCKETS,), r"TCP:|neighb"),
    say("table full, dropping packet", ("conntrack",)),
    say("no killable processes", (HOST,), r"out of memory"),
    say("exceed data ulimit", (SPACE,)),
    say(
        "to process ", ("early-oom",), r"sending SIG(TERM|KILL) to process \d+.*(oom_score|badness)"
    ),
    say("maximum number of sessions", ("sessions-max",), r"reached"),
    say("the node was low on resource", ("evicted",)),
    say("usage exceeds the total limit|usage of emptydir volume", ("evicted",), r"limit"),
)
