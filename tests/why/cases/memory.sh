# SPDX-License-Identifier: GPL-3.0-or-later
# What ends for want of memory of some kind, or looks like it.

### numpy-address-space address-space pair=numpy-overcommit
ulimit -v 2000000
$PY -c 'import numpy; numpy.ones((2000, 2000, 100))'

### numpy-overcommit overcommit pair=numpy-address-space
$PY -c 'import numpy; numpy.ones((2000, 2000, 100000, 10))'

### torch-address-space address-space pair=torch-overcommit
ulimit -v 6000000
$PY -c 'import torch; torch.ones(2000, 2000, 1000)'

### torch-overcommit overcommit pair=torch-address-space
$PY -c 'import torch; torch.ones(2000, 2000, 100000, 10)'

### python-memory-error address-space
ulimit -v 500000
$PY -c 'held = bytearray(10**9)'

### python-data-limit address-space
ulimit -d 100000
$PY -c 'held = bytearray(10**9)'

### cpp-bad-alloc address-space
cat > $WORK/new.cc <<'END'
#include <vector>
int main() { std::vector<char> held(4000000000ul); return held[1]; }
END
g++ -o $WORK/new $WORK/new.cc
ulimit -v 1000000
$WORK/new

### malloc-overcommit overcommit
cat > $WORK/allocate.c <<'END'
#include <stdio.h>
#include <stdlib.h>
int main(void) { if (!malloc(1ul << 46)) { perror("malloc"); return 1; } }
END
gcc -o $WORK/allocate $WORK/allocate.c
$WORK/allocate

### java-heap heap pair=java-threads
cat > $WORK/Heap.java <<'END'
import java.util.*;
class Heap { public static void main(String[] a) { List<Object> held = new ArrayList<>(); while (true) held.add(new byte[1000000]); } }
END
java -Xmx64m $WORK/Heap.java

### java-address-space address-space
ulimit -v 300000
java -Xmx2g -version

### node-heap heap
node --max-old-space-size=30 -e 'const held=[]; while(true) held.push(new Array(1000).fill(1.5))' 2>&1 | cut -c1-300

### mappings-python mappings pair=mappings-address-space
$PY - <<'END'
import mmap
held = []
while True:
    held.append(mmap.mmap(-1, 4096))
END

### mappings-address-space address-space pair=mappings-python
ulimit -v 800000
$PY - <<'END'
import mmap
held = []
while True:
    held.append(mmap.mmap(-1, 64 * 2**20))
END

### mappings-torch mappings pair=torch-mmap-address-space
timeout 280 $PY - <<'END'
import torch, torch.multiprocessing
torch.multiprocessing.set_sharing_strategy("file_system")
held = []
while True:
    held.append(torch.zeros(1).share_memory_())
END

### torch-mmap-address-space address-space pair=mappings-torch
ulimit -v 6000000
$PY - <<'END'
import torch, torch.multiprocessing
torch.multiprocessing.set_sharing_strategy("file_system")
held = []
while True:
    held.append(torch.zeros(2**26).share_memory_())
END

### shm-torch-full shm-size pair=torch-shm-descriptors
in_shm size=1m $PY - <<'END'
import torch
held = torch.zeros(10**6).share_memory_()
END

### torch-shm-descriptors nofile pair=shm-torch-full
ulimit -n 40
$PY - <<'END'
import torch
held = []
while True:
    held.append(torch.zeros(10).share_memory_())
END

### shm-torch-loader-full shm-size
in_shm size=1m timeout 60 $PY - <<'END'
import torch
from torch.utils.data import DataLoader, Dataset
class Large(Dataset):
    def __len__(self): return 40
    def __getitem__(self, index): return torch.zeros(10**6)
for batch in DataLoader(Large(), batch_size=4, num_workers=2):
    pass
END

### shm-python-bus shm-size pair=file-bus
in_shm size=64k bash -c '$PY - <<END
from multiprocessing import shared_memory
one = shared_memory.SharedMemory(create=True, size=10**6)
one.buf[:] = bytes(10**6)
END
exit $?'

### file-bus file-shrank pair=shm-python-bus
cat > $WORK/shrink.py <<'END'
import mmap, os
path = os.environ["WORK"] + "/data.bin"
with open(path, "wb") as file:
    file.write(bytes(10**6))
with open(path, "r+b") as file:
    data = mmap.mmap(file.fileno(), 0)
    os.truncate(path, 0)
    print(data[50000])
END
bash -c '$PY $WORK/shrink.py; exit $?'

### shm-semaphores shm-size pair=python-inodes
in_shm size=1m,nr_inodes=4 $PY - <<'END'
import multiprocessing
held = [multiprocessing.Lock() for _ in range(20)]
END

### shm-writes shm-size pair=cp-disk-full
in_shm size=64k cp /usr/bin/python3.11 /dev/shm/batch.bin

### shm-torch-worker-bus shm-size
in_shm size=3m timeout 60 $PY - <<'END'
import torch
from multiprocessing import shared_memory
from torch.utils.data import DataLoader, Dataset
class Shared(Dataset):
    def __len__(self): return 40
    def __getitem__(self, index):
        one = shared_memory.SharedMemory(create=True, size=10**7)
        one.buf[:] = bytes(10**7)
        return 1
for batch in DataLoader(Shared(), batch_size=4, num_workers=1):
    pass
END

### shm-peer-unlinks another-died
$PY - <<'END'
from multiprocessing import shared_memory
one = shared_memory.SharedMemory(create=True, size=1000, name="psm_0a1b2c3d")
one.unlink()
shared_memory.SharedMemory(name="psm_0a1b2c3d")
END

### torch-shm-removed shm-removed pair=shm-peer-unlinks
cat > $WORK/share.py <<'END'
import glob, os, torch, torch.multiprocessing as mp
def receive(queue):
    torch.multiprocessing.set_sharing_strategy("file_system")
    print(queue.get()[0])
if __name__ == "__main__":
    mp.set_sharing_strategy("file_system")
    context = mp.get_context("spawn")
    queue = context.Queue()
    tensor = torch.zeros(1000).share_memory_()
    queue.put(tensor)
    for path in glob.glob(f"/dev/shm/torch_{os.getpid()}_*"):
        os.unlink(path)  # As logind does at the last logout of a user.
    worker = context.Process(target=receive, args=(queue,)); worker.start(); worker.join()
END
timeout 60 $PY $WORK/share.py

### mlock-limit memlock pair=malloc-overcommit
cat > $WORK/lock.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
int main(void) { void *held = malloc(1 << 24); if (mlock(held, 1 << 24)) { perror("mlock"); return 1; } }
END
gcc -o $WORK/lock $WORK/lock.c
ulimit -l 64
as_user $WORK/lock

### mlock-none memlock
cat > $WORK/lock.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
int main(void) { if (mlockall(MCL_CURRENT)) { perror("mlockall"); return 1; } }
END
gcc -o $WORK/lock $WORK/lock.c
ulimit -l 0
as_user $WORK/lock

### mlock-python memlock pair=numpy-address-space
ulimit -l 64
as_user $PY - <<'END'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def pin(buffer):
    if libc.mlock(buffer, len(buffer)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "mlock of the pinned buffer")
pin(ctypes.create_string_buffer(2**24))
END
