#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Make a guest of bookworm+slurm a cluster of one node, as the manual does, and wait until it is idle.
set -eu
name=$(hostname -s)
cat > /etc/slurm/slurm.conf << END
ClusterName=test
SlurmctldHost=$name(127.0.0.1)
SlurmUser=root
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=$name NodeAddr=127.0.0.1 CPUs=2 RealMemory=500
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=long Nodes=ALL MaxTime=INFINITE State=UP
END
# Slurm looks for addresses only while it starts, and a guest is online a little later.
cat > /etc/systemd/system/wait-for-address.service << END
[Unit]
Before=network-online.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'until ip -4 addr show scope global | grep -q inet; do sleep 1; done'
[Install]
WantedBy=network-online.target
END
mkdir -p /var/spool/slurmctld /var/spool/slurmd /var/log/slurm
systemctl enable --quiet wait-for-address munge slurmctld slurmd
systemctl restart munge slurmctld slurmd
for second in $(seq 60); do
    if [ "$(sinfo -h -p debug -o %T)" = idle ]; then
        exit 0
    fi
    sleep 1
done
sinfo
exit 1
