# SPDX-License-Identifier: GPL-3.0-or-later
# What was killed or ended, and errors of a program's own.

### bash-killed-group cgroup-memory pair=bash-killed-by-hand
in_memory 64M bash -c '$PY -c "held = bytearray(10**9)"; exit $?'

### bash-killed-by-hand killed-by-hand pair=bash-killed-group
bash -c '$PY -c "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"; exit $?'

### timeout-killed killed-by-hand pair=bash-killed-group
bash -c 'timeout -s KILL 1 sleep 9; exit $?'

### subprocess-killed-group cgroup-memory pair=subprocess-killed-by-hand
in_memory 96M $PY -c 'import subprocess, sys; subprocess.run([sys.executable, "-c", "held = bytearray(10**9)"], check=True)'

### subprocess-killed-by-hand killed-by-hand pair=subprocess-killed-group
$PY -c 'import subprocess; subprocess.run(["bash", "-c", "kill -9 $$"], check=True)'

### exit-137-own own-exit pair=subprocess-137-group
$PY -c 'import subprocess; subprocess.run(["bash", "-c", "exit 137"], check=True)'

### subprocess-137-group cgroup-memory pair=exit-137-own
in_memory 96M $PY -c 'import subprocess; subprocess.run(["bash", "-c", "$PY -c \"held = bytearray(10**9)\"; exit $?"], check=True)' 2>&1 | grep -v Killed

### make-137-own own-exit
printf 'train:\n\t@exit 137\n' > $WORK/Makefile
make -C $WORK train

### loader-worker-killed-group cgroup-memory pair=loader-worker-killed-by-hand
in_memory 400M timeout 60 $PY - <<'END'
from torch.utils.data import DataLoader, Dataset
class Hungry(Dataset):
    def __len__(self): return 10
    def __getitem__(self, index): return len(bytearray(10**9))
for batch in DataLoader(Hungry(), num_workers=1):
    pass
END

### loader-worker-killed-by-hand killed-by-hand pair=loader-worker-killed-group
timeout 60 $PY - <<'END'
import os, signal
from torch.utils.data import DataLoader, Dataset
class Struck(Dataset):
    def __len__(self): return 10
    def __getitem__(self, index): os.kill(os.getpid(), signal.SIGKILL)
for batch in DataLoader(Struck(), num_workers=1):
    pass
END

### torchrun-rank-killed-group cgroup-memory pair=torchrun-rank-killed-by-hand
cat > $WORK/train.py <<'END'
import os, time
if os.environ["RANK"] == "1":
    held = bytearray(10**9)
time.sleep(60)
END
in_memory 600M timeout 90 $PY -m torch.distributed.run --nproc-per-node 2 $WORK/train.py

### torchrun-rank-killed-by-hand killed-by-hand pair=torchrun-rank-killed-group
cat > $WORK/train.py <<'END'
import os, signal, time
if os.environ["RANK"] == "1":
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(60)
END
timeout 90 $PY -m torch.distributed.run --nproc-per-node 2 $WORK/train.py

### torchrun-rank-raises exception pair=torchrun-rank-killed-group
cat > $WORK/train.py <<'END'
import os, time
if os.environ["RANK"] == "1":
    raise ValueError("the loss is not a number")
time.sleep(60)
END
timeout 90 $PY -m torch.distributed.run --nproc-per-node 2 $WORK/train.py

### torchrun-rank-descriptors nofile pair=torchrun-rank-raises
cat > $WORK/train.py <<'END'
import os, resource, time
if os.environ["RANK"] == "1":
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    held = [open("/dev/null") for _ in range(60)]
time.sleep(60)
END
timeout 90 $PY -m torch.distributed.run --nproc-per-node 2 $WORK/train.py

### torchrun-rank-terminated killed-by-hand
cat > $WORK/train.py <<'END'
import os, signal, time
if os.environ["RANK"] == "1":
    os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
END
timeout 90 $PY -m torch.distributed.run --nproc-per-node 2 $WORK/train.py

### torchrun-told-to-end killed-by-hand
printf 'import time\ntime.sleep(60)\n' > $WORK/train.py
timeout -s TERM 12 $PY -m torch.distributed.run --nproc-per-node 2 $WORK/train.py

### gloo-peer-died another-died
cat > $WORK/train.py <<'END'
import os, signal, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.zeros(4))
if dist.get_rank() == 1:
    time.sleep(1); os._exit(0)
for number in range(9):
    dist.all_reduce(torch.zeros(4)); time.sleep(1)
END
timeout 90 $PY -m torch.distributed.run --nproc-per-node 2 $WORK/train.py

### gloo-times-out collective-timeout
cat > $WORK/train.py <<'END'
import datetime, time, torch, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=4))
if dist.get_rank() == 1:
    time.sleep(20)
dist.all_reduce(torch.zeros(4))
END
timeout 90 $PY -m torch.distributed.run --nproc-per-node 2 $WORK/train.py

### store-times-out collective-timeout
$PY - <<'END'
import datetime, torch.distributed as dist
dist.init_process_group("gloo", "tcp://127.0.0.1:29777", rank=0, world_size=2, timeout=datetime.timedelta(seconds=4))
END

### joblib-worker-killed-group cgroup-memory pair=joblib-worker-killed-by-hand
in_memory 200M timeout 60 env HOME=/tmp $PY - <<'END'
from joblib import Parallel, delayed
print(Parallel(n_jobs=2)(delayed(bytearray)(10**9) for number in range(2)))
END

### joblib-worker-killed-by-hand killed-by-hand pair=joblib-worker-killed-group
timeout 60 env HOME=/tmp $PY - <<'END'
import os
from joblib import Parallel, delayed
def strike(): os.kill(os.getpid(), 9)
print(Parallel(n_jobs=2)(delayed(strike)() for number in range(2)))
END

### futures-worker-ends another-died
$PY - <<'END'
import os
from concurrent.futures import ProcessPoolExecutor
with ProcessPoolExecutor(2) as pool:
    print(pool.submit(os._exit, 1).result())
END

### cpu-time cpu-time
ulimit -St 1
bash -c '$PY -c "while True: pass"; exit $?'

### terminated killed-by-hand
bash -c '$PY -c "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"; exit $?'

### segfault-null crash pair=segfault-stack
bash -c '$PY -c "import ctypes; ctypes.string_at(0)"; exit $?'

### segfault-stack stack pair=segfault-null
cat > $WORK/deep.c <<'END'
int down(int n) { volatile char held[4096]; held[0] = n; return down(n + 1) + held[0]; }
int main(void) { return down(0); }
END
gcc -O0 -o $WORK/deep $WORK/deep.c
bash -c '$WORK/deep; exit $?'

### abort crash
bash -c '$PY -c "import os; os.abort()"; exit $?'

### faulthandler-segfault crash
$PY -X faulthandler -c 'import ctypes; ctypes.string_at(0)'

### rename-not-empty not-empty
$PY - <<'END'
import os
folder = os.environ["WORK"]
os.makedirs(folder + "/tmp-checkpoint-100"); os.makedirs(folder + "/checkpoint-100")
open(folder + "/checkpoint-100/.hidden", "w").close()
os.rename(folder + "/tmp-checkpoint-100", folder + "/checkpoint-100")
END

### mv-not-empty not-empty
mkdir -p $WORK/a/run $WORK/b/run && touch $WORK/a/run/x $WORK/b/run/y
mv $WORK/a/run $WORK/b/

### stale-handle stale
cat > $WORK/stale.c <<'END'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int n, char **words) { struct file_handle *h = malloc(sizeof *h + 128); int mount; h->handle_bytes = 128;
  close(open(words[1], O_CREAT | O_WRONLY, 0600)); if (name_to_handle_at(AT_FDCWD, words[1], h, &mount, 0)) { perror("name_to_handle_at"); return 1; }
  unlink(words[1]); int top = open("/tmp", O_RDONLY); if (open_by_handle_at(top, h, O_RDONLY) < 0) { perror(words[1]); return 1; } }
END
gcc -o $WORK/stale $WORK/stale.c
$WORK/stale $WORK/gone

### import-missing exception
$PY -c 'import flash_attn_that_nobody_has'

### key-error exception
$PY -c '{}["learning_rate"]'

### assertion exception
$PY -c 'assert 1 == 2, "shapes differ"'

### recursion exception pair=segfault-stack
$PY -c 'f = lambda: f()
f()'

### torch-shapes exception
$PY -c 'import torch; torch.zeros(2, 3) @ torch.zeros(2, 3)'

### torch-no-cuda exception
$PY -c 'import torch; torch.zeros(1).cuda()'

### loader-worker-raises exception
timeout 60 $PY - <<'END'
from torch.utils.data import DataLoader, Dataset
class Broken(Dataset):
    def __len__(self): return 10
    def __getitem__(self, index): raise ValueError("sample %d is out of the limit" % index)
for batch in DataLoader(Broken(), num_workers=1):
    pass
END

### interrupted killed-by-hand
$PY -c 'raise KeyboardInterrupt'

### json-broken exception
$PY -c 'import json; json.loads("{")'

### pt-broken exception
$PY - <<'END'
import os, torch
path = os.environ["WORK"] + "/model.pt"
torch.save({"a": torch.zeros(1000)}, path)
os.truncate(path, 2000)
torch.load(path)
END

### refused-python network
$PY -c 'import urllib.request; urllib.request.urlopen("http://127.0.0.1:9")'

### refused-ssh network
ssh -o BatchMode=yes -p 9 127.0.0.1 true

### refused-curl network
curl -sS http://127.0.0.1:9/

### no-name-ssh network
ssh -o BatchMode=yes node-that-is-not.invalid true

### port-in-use network
$PY - <<'END'
import socket
a = socket.socket(); a.bind(("127.0.0.1", 0)); a.listen()
b = socket.socket(); b.bind(a.getsockname())
END

### open-forbidden permission
touch $WORK/secret; chmod 600 $WORK/secret; chmod a+rx $WORK
as_user $PY -c 'import os; open(os.environ["WORK"] + "/secret")'

### bash-not-found exception
bash -c 'torchrunn --nproc-per-node 2 train.py'

### grpc-unavailable network
$PY - <<'END'
import grpc
channel = grpc.insecure_channel("127.0.0.1:9")
channel.unary_unary("/x/y")(b"", timeout=5)
END

### warned-then-raised exception pair=python-opens
ulimit -n 40
$PY - <<'END'
import logging
held = []
try:
    while True:
        held.append(open("/dev/null"))
except OSError as error:
    logging.warning("cannot open the cache: %s; going on without it", error)
held.clear()
print({}["labels"])
END

### wrapped-descriptors nofile pair=warned-then-raised
ulimit -n 40
$PY - <<'END'
held = []
try:
    while True:
        held.append(open("/dev/null"))
except OSError as error:
    raise RuntimeError("the data set could not be opened") from error
END

### bait-words exception
$PY - <<'END'
print("epoch 137: 3 jobs killed by the scheduler last night, loss 0.137, memory limit 80 GB")
raise ValueError("unknown option --memory-limit; see --help")
END

### python-peer-resets another-died
$PY - <<'END'
import socket, struct
server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen()
client = socket.create_connection(server.getsockname())
there, _ = server.accept()
there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); there.close()
client.recv(10)
END

### broken-pipe another-died
$PY -c 'import subprocess; p = subprocess.Popen(["true"], stdin=subprocess.PIPE); p.wait(); p.stdin.write(b"x"); p.stdin.flush()'
