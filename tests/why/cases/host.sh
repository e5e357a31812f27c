# SPDX-License-Identifier: GPL-3.0-or-later
# What a whole host is needed for: systemd, Docker, sysctls, quotas, logins. Recorded on a guest.

### unit-oom cgroup-memory pair=unit-killed-by-hand ask=unit:why-oom
systemd-run --quiet --wait --unit=why-oom -p MemoryMax=50M -p MemorySwapMax=0 $PY -c 'held = bytearray(10**9)'

### unit-killed-by-hand killed-by-hand pair=unit-oom ask=unit:why-hand
systemd-run --quiet --unit=why-hand sleep 100; sleep 1; systemctl kill -s KILL why-hand; sleep 1

### unit-raises exception ask=unit:why-raises
systemd-run --quiet --wait --unit=why-raises $PY -c 'raise ValueError("the loss is not a number")'

### unit-exit-137 own-exit pair=unit-killed-by-hand ask=unit:why-exit
systemd-run --quiet --wait --unit=why-exit sh -c 'exit 137'

### unit-nofile nofile ask=unit:why-nofile
systemd-run --quiet --wait --unit=why-nofile -p LimitNOFILE=40 $PY -c 'held = [open("/dev/null") for _ in range(60)]'

### unit-no-program unit-setup ask=unit:why-program
systemd-run --quiet --unit=why-program -p WorkingDirectory=/no/such true; sleep 1

### unit-no-user unit-setup ask=unit:why-user
systemd-run --quiet --unit=why-user -p User=nobody-has-this true; sleep 1

### unit-time killed-by-hand ask=unit:why-time
systemd-run --quiet --wait --unit=why-time -p RuntimeMaxSec=2 sleep 60

### unit-stopped killed-by-hand ask=unit:why-stopped
systemd-run --quiet --unit=why-stopped sh -c 'trap "exit 143" TERM; sleep 60 & wait'; sleep 1; systemctl stop why-stopped

### unit-segfault crash pair=unit-oom ask=unit:why-segfault
systemd-run --quiet --wait --unit=why-segfault $PY -c 'import ctypes; ctypes.string_at(0)'

### unit-cpu cpu-time pair=unit-killed-by-hand ask=unit:why-cpu
systemd-run --quiet --wait --unit=why-cpu -p LimitCPU=1:5 $PY -c 'while True: pass'

### unit-fsize fsize ask=unit:why-fsize
systemd-run --quiet --wait --unit=why-fsize -p LimitFSIZE=64K dd if=/dev/zero of=/var/tmp/why bs=1M count=1; rm -f /var/tmp/why

### unit-memlock memlock pair=python-memory-error ask=unit:why-memlock
cat > $WORK/pin.py <<'END'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def mlock(buffer):
    if libc.mlock(buffer, len(buffer)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
mlock(ctypes.create_string_buffer(2**24))
END
systemd-run --quiet --wait --unit=why-memlock -p User=nobody -p LimitMEMLOCK=64K $PY $WORK/pin.py

### unit-host-oom host-memory pair=unit-oom ask=unit:why-host
systemd-run --quiet --wait --unit=why-host -p OOMScoreAdjust=1000 $PY -c 'held = []
while True: held.append(bytes([1]) * 2 * 10**7)'

### file-max file-max pair=python-opens
sysctl -qw fs.file-max=$(( $(cut -f1 /proc/sys/fs/file-nr) + 300 ))
su alice -c "$PY -c 'held = [open(\"/dev/null\") for _ in range(900)]'"
sysctl -qw fs.file-max=9223372036854775807

### threads-max threads-max pair=python-threads-nproc
old=$(sysctl -n kernel.threads-max)
sysctl -qw kernel.threads-max=$(( $(cut -d/ -f2 /proc/loadavg | cut -d' ' -f1) + 30 ))
su alice -c "$PY -c 'import threading, time
for n in range(90): threading.Thread(target=time.sleep, args=(4,), daemon=True).start()'"
sysctl -qw kernel.threads-max=$old

### map-count mappings pair=mappings-address-space
sysctl -qw vm.max_map_count=200
$PY -c 'import mmap
held = []
while True: held.append(mmap.mmap(-1, 4096))'
sysctl -qw vm.max_map_count=65530

### disk-quota disk-quota pair=keys-quota
cat > $WORK/quota.py <<'END'
import ctypes, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
block = struct.pack("8QI4x", 100, 100, 0, 0, 0, 0, 0, 0, 1)
if libc.quotactl(0x800008 << 8, sys.argv[1].encode(), 1000, block):
    raise OSError(ctypes.get_errno(), "quotactl")
END
truncate -s 20M $WORK/disk && mkfs.ext4 -q -O quota $WORK/disk && mkdir -p $WORK/mnt
mount -o loop,usrquota $WORK/disk $WORK/mnt && chmod 777 $WORK/mnt
$PY $WORK/quota.py $(findmnt -no SOURCE $WORK/mnt)
su alice -c "dd if=/dev/zero of=$WORK/mnt/model bs=1M count=5"
umount $WORK/mnt

### overcommit-strict overcommit pair=python-memory-error
sysctl -qw vm.overcommit_memory=2
$PY -c 'held = bytearray(10**9)'
sysctl -qw vm.overcommit_memory=0

### fork-strict overcommit pair=python-fork-nproc
cat > $WORK/large.py <<'END'
import os
held = bytearray(3 * 10**8)
def start_worker():
    return os.fork()
start_worker()
END
sysctl -qw vm.overcommit_memory=2 vm.overcommit_ratio=75
$PY $WORK/large.py
sysctl -qw vm.overcommit_memory=0 vm.overcommit_ratio=50

### too-many-logins maxlogins
echo 'alice hard maxlogins 0' > /etc/security/limits.d/why.conf
su alice -c true
rm /etc/security/limits.d/why.conf
journalctl -q -n 30 -o cat --no-pager | grep -i 'too many logins'

### docker-oom cgroup-memory pair=docker-killed ask=container:why-oom
docker run --name why-oom -m 32m $MOUNTS empty:1 $PY -c 'held = bytearray(10**9)'

### docker-killed killed-by-hand pair=docker-oom ask=container:why-killed
docker run -d --name why-killed $MOUNTS empty:1 /bin/sleep 60; sleep 1; docker kill why-killed

### docker-exit-137 own-exit pair=docker-killed ask=container:why-exit
docker run --name why-exit $MOUNTS empty:1 /bin/sh -c 'exit 137'

### docker-nofile nofile ask=container:why-nofile
docker run --name why-nofile --ulimit nofile=20 $MOUNTS empty:1 $PY -c 'held = [open("/dev/null") for _ in range(60)]'

### docker-shm shm-size pair=file-bus ask=container:why-shm
docker run --name why-shm --shm-size 64k $MOUNTS empty:1 /bin/bash -c "$PY -c 'from multiprocessing import shared_memory
one = shared_memory.SharedMemory(create=True, size=10**6)
one.buf[:] = bytes(10**6)'; exit \$?"

### docker-raises exception ask=container:why-raises
docker run --name why-raises $MOUNTS empty:1 $PY -c 'import flash_attn'

### docker-above-nr-open hard-limit
docker run --rm --ulimit nofile=99999999:99999999 $MOUNTS empty:1 /bin/true

### docker-keyring key-quota pair=disk-quota
old=$(sysctl -n kernel.keys.root_maxkeys)
sysctl -qw kernel.keys.root_maxkeys=1
docker run --rm $MOUNTS empty:1 /bin/true
sysctl -qw kernel.keys.root_maxkeys=$old

### docker-unshare namespaces-forbidden pair=unshare-count
docker run --rm $MOUNTS empty:1 /usr/bin/unshare -U true

### docker-missing exception
docker run --rm $MOUNTS empty:1 /bin/no-such-program
