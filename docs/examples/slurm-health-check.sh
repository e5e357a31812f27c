#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# HealthCheckProgram for slurm.conf: drains this node where it falls short of its policy, and says
# why. It resumes no node: that is for whoever has put right what was wrong.
#
# slurmd runs it as root with its own limits, at its start and every HealthCheckInterval seconds,
# without arguments, and ends it after 60 seconds. No job and no container is started.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
policy=/etc/mlhost-limits.json
node=${SLURMD_NODENAME:-$(hostname -s)}

report=$(timeout 50 mlhost-limits check --profile none --policy "$policy" --canary never 2>&1)
status=$?
if [ "$status" -eq 0 ]; then
    exit 0
fi
case $(sinfo -h -n "$node" -o %T) in
    drain*) exit "$status" ;; # Somebody has a reason already, and it stays.
esac
if [ "$status" -eq 1 ]; then
    reason=$(printf '%s\n' "$report" | grep -m 1 '^FAIL ' | cut -c 6-200)
else
    reason="the check itself failed: $(printf '%s\n' "$report" | tail -n 1 | cut -c 1-150)"
fi
scontrol update nodename="$node" state=drain reason="mlhost-limits: $reason"
printf '%s\n' "$reason"
exit "$status"
