# SPDX-License-Identifier: GPL-3.0-or-later
# What ends with "too many open files", "no space left", or looks like it.

### python-opens nofile pair=inotify-python
ulimit -n 40
$PY - <<'END'
held = []
for number in range(100):
    held.append(open("/dev/null"))
END

### inotify-python inotify-instances pair=python-opens
cat > $WORK/watch.py <<'END'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def inotify_init():
    handle = libc.inotify_init1(0)
    if handle < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return handle
held = [inotify_init() for _number in range(9)]
END
in_userns max_inotify_instances 3 $PY $WORK/watch.py

### bash-opens nofile
ulimit -n 12
for number in 1 2 3 4 5 6 7 8 9 10; do exec {handle}< /etc/passwd; done

### asyncio-accepts nofile
ulimit -n 24
$PY - <<'END'
import asyncio
async def hold(reader, writer):
    await asyncio.sleep(1)
async def main():
    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*(asyncio.open_connection("127.0.0.1", port) for _ in range(30)))
asyncio.run(main())
END

### asyncio-loops nofile
ulimit -n 20
$PY - <<'END'
import asyncio
held = [asyncio.new_event_loop() for _ in range(10)]
END

### subprocess-pipes nofile
ulimit -n 20
$PY - <<'END'
import subprocess
held = [subprocess.Popen(["sleep", "1"], stdout=subprocess.PIPE, stdin=subprocess.PIPE) for _ in range(12)]
END

### pool-pipes nofile
ulimit -n 16
$PY - <<'END'
import multiprocessing
pool = multiprocessing.Pool(16)
END

### numpy-memmaps nofile
ulimit -n 30
$PY - <<'END'
import numpy, os
path = os.environ["WORK"] + "/array"
numpy.zeros(1000).tofile(path)
held = [numpy.memmap(path) for _ in range(40)]
END

### node-opens nofile
ulimit -n 60
node -e 'const fs=require("fs"); const held=[]; for (let i=0;i<100;i++) held.push(fs.openSync("/etc/passwd"))'

### java-opens nofile
cat > $WORK/Open.java <<'END'
import java.io.*; import java.util.*;
class Open { public static void main(String[] a) throws Exception {
  List<Object> held = new ArrayList<>(); for (int i = 0; i < 5000; i++) held.add(new FileInputStream("/etc/passwd")); } }
END
ulimit -n 500
java $WORK/Open.java

### perl-opens nofile
ulimit -n 10
perl -e 'for (1..20) { open($h[$_], "<", "/etc/passwd") or die "cannot open /etc/passwd: $!\n" }'

### socket-connects nofile
ulimit -n 24
$PY - <<'END'
import socket
held = [socket.socketpair() for _ in range(20)]
END

### grpc-channels nofile
ulimit -n 48
timeout 20 $PY - <<'END'
import grpc
from concurrent import futures
servers = []
for number in range(60):
    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_insecure_port("127.0.0.1:0")
    server.start()
    servers.append(server)
END

### torch-loader-descriptors nofile
ulimit -n 60
timeout 60 $PY - <<'END'
import torch
from torch.utils.data import DataLoader, Dataset
class Many(Dataset):
    def __len__(self): return 400
    def __getitem__(self, index): return {str(k): torch.zeros(8) for k in range(6)}
held = []
for batch in DataLoader(Many(), batch_size=1, num_workers=2):
    held.append(batch)
END

### torch-ancdata nofile
ulimit -n 80
timeout 60 $PY - <<'END'
import torch, torch.multiprocessing as mp
def send(queue, done):
    for number in range(60):
        queue.put([torch.zeros(4) for _ in range(20)])
    done.wait()
if __name__ == "__main__":
    queue, done = mp.Queue(), mp.Event()
    worker = mp.Process(target=send, args=(queue, done)); worker.start()
    held = []
    try:
        for number in range(60):
            held.append(queue.get(timeout=10))
    finally:
        done.set()
END

### ssh-no-descriptors nofile
ulimit -n 3
ssh -o BatchMode=yes -o ConnectTimeout=2 127.0.0.1 true


### inotify-watchdog inotify-instances
cat > $WORK/observe.py <<'END'
import os, time
from watchdog.observers import Observer
from watchdog.events import FileSystemEventHandler
held = []
for number in range(9):
    one = Observer(); one.schedule(FileSystemEventHandler(), os.environ["WORK"]); one.start(); held.append(one)
END
timeout 20 env WORK=$WORK bash -c "$(declare -f in_userns); in_userns max_inotify_instances 3 $PY $WORK/observe.py"

### inotify-python-watches inotify-watches pair=python-disk-full
cat > $WORK/watch.py <<'END'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
handle = libc.inotify_init1(0)
def inotify_add_watch(path):
    if libc.inotify_add_watch(handle, path.encode(), 2) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
for name in os.listdir("/etc"):
    inotify_add_watch(f"/etc/{name}")
END
in_userns max_inotify_watches 8 $PY $WORK/watch.py

### node-watches inotify-watches
for number in 1 2 3 4 5 6 7 8 9; do mkdir -p $WORK/many/$number; done
in_userns max_inotify_watches 4 node -e 'const fs=require("fs"); for (let i=1;i<10;i++) fs.watch(process.env.WORK+"/many/"+i)'

### node-instances inotify-instances pair=node-opens
in_userns max_inotify_instances 0 node -e 'const fs=require("fs"); fs.watch(process.env.WORK)'

### tail-instances inotify-instances
touch $WORK/log
in_userns max_inotify_instances 0 timeout 2 tail -f $WORK/log

### tail-watches inotify-watches
touch $WORK/log
in_userns max_inotify_watches 0 timeout 2 tail -f $WORK/log

### python-disk-full disk-full pair=inotify-python-watches
in_small size=64k $PY - <<'END'
import os
with open(os.environ["WORK"] + "/small/checkpoint", "wb") as file:
    file.write(bytes(10**6))
END

### python-inodes inodes pair=python-disk-full
in_small size=1m,nr_inodes=4 $PY - <<'END'
import os
for number in range(10):
    open(f"{os.environ['WORK']}/small/{number}", "w").close()
END

### cp-disk-full disk-full
in_small size=64k cp /usr/bin/python3.11 $WORK/small/model.bin

### tar-disk-full disk-full
in_small size=64k tar -C / -cf $WORK/small/data.tar etc/passwd usr/bin/env usr/bin/tar

### torch-save-disk-full disk-full pair=torch-save-fsize
in_small size=64k $PY - <<'END'
import os, torch
torch.save({"weight": torch.zeros(10**6)}, os.environ["WORK"] + "/small/model.pt")
END

### torch-save-fsize fsize pair=torch-save-disk-full
ulimit -f 64
$PY - <<'END'
import os, torch
torch.save({"weight": torch.zeros(10**6)}, os.environ["WORK"] + "/model.pt")
END

### python-fsize fsize
ulimit -f 64
$PY - <<'END'
import os
with open(os.environ["WORK"] + "/model", "wb") as file:
    file.write(bytes(10**6))
END

### dd-fsize fsize
bash -c 'ulimit -f 64; dd if=/dev/zero of=$WORK/model bs=1M count=1; exit $?'

### python-dup-high nofile pair=python-setrlimit
ulimit -n 64
$PY - <<'END'
import os
handles = []
while True:
    handles.append(os.dup(0))
END

### python-setrlimit hard-limit pair=python-dup-high
as_user $PY - <<'END'
import resource
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard * 2, hard * 2))
END

### bash-raises hard-limit
ulimit -Hn 500
as_user bash -c 'ulimit -n 65536'

### prlimit-raises hard-limit
ulimit -Hn 500
as_user prlimit --nofile=65536 true

### mq-open msgqueue pair=python-opens
cat > $WORK/queue.c <<'END'
#include <mqueue.h>
#include <stdio.h>
#include <fcntl.h>
int main(void) { char name[20]; for (int i = 0; i < 200; i++) { sprintf(name, "/why-%d", i);
  mqd_t q = mq_open(name, O_CREAT | O_RDWR, 0600, NULL); if (q < 0) { perror("mq_open"); return 1; } mq_unlink(name); } }
END
gcc -o $WORK/queue $WORK/queue.c
as_user $WORK/queue

### sysv-segments sysv-shm
cat > $WORK/segment.c <<'END'
#include <sys/shm.h>
#include <stdio.h>
int main(void) { int i; for (i = 0; i < 9000; i++) if (shmget(IPC_PRIVATE, 4096, 0600) < 0) { perror("shmget"); return 1; } }
END
gcc -o $WORK/segment $WORK/segment.c
unshare -i $WORK/segment
