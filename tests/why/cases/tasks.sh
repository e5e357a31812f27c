# SPDX-License-Identifier: GPL-3.0-or-later
# What ends because no process or thread could be started, or looks like it.

### bash-fork-nproc nproc pair=bash-fork-pids
ulimit -u 6
as_user timeout 40 bash -c 'for number in 1 2 3 4 5 6 7 8 9; do sleep 20 & done; wait'

### bash-fork-pids pids-max pair=bash-fork-nproc
in_tasks 6 $AS_USER timeout 40 bash -c 'for number in 1 2 3 4 5 6 7 8 9; do sleep 20 & done; wait'

### python-threads-nproc nproc pair=python-threads-pids
ulimit -u 12
as_user $PY - <<'END'
import threading, time
held = []
for number in range(40):
    one = threading.Thread(target=time.sleep, args=(2,), daemon=True); one.start(); held.append(one)
END

### python-threads-pids pids-max pair=python-threads-nproc
in_tasks 12 $PY - <<'END'
import threading, time
for number in range(40):
    threading.Thread(target=time.sleep, args=(2,), daemon=True).start()
END

### python-threads-space address-space pair=python-threads-pids
ulimit -v 300000
$PY - <<'END'
import threading, time
for number in range(400):
    threading.Thread(target=time.sleep, args=(2,), daemon=True).start()
END

### python-fork-nproc nproc pair=python-fork-pids
cat > $WORK/workers.py <<'END'
import os, time
for number in range(30):
    if os.fork() == 0:
        time.sleep(3); os._exit(0)
END
ulimit -u 10
as_user $PY $WORK/workers.py

### python-fork-pids pids-max pair=python-fork-nproc
cat > $WORK/workers.py <<'END'
import os, time
for number in range(30):
    if os.fork() == 0:
        time.sleep(3); os._exit(0)
END
in_tasks 10 $PY $WORK/workers.py

### subprocess-nproc nproc
ulimit -u 8
as_user $PY - <<'END'
import subprocess
held = [subprocess.Popen(["sleep", "3"]) for _ in range(20)]
END

### multiprocessing-pids pids-max
in_tasks 10 $PY - <<'END'
import multiprocessing, time
for number in range(30):
    multiprocessing.Process(target=time.sleep, args=(3,), daemon=True).start()
END

### openblas-nproc nproc pair=openblas-seccomp
ulimit -u 1
as_user env OPENBLAS_NUM_THREADS=16 $PY -c 'import numpy; a = numpy.ones((500, 500)); print((a @ a).sum())'

### openblas-seccomp seccomp pair=openblas-nproc
refusing 435 56 -- env OPENBLAS_NUM_THREADS=2 $PY -c 'import numpy; a = numpy.ones((500, 500)); print((a @ a).sum())'

### openblas-pids pids-max pair=openblas-nproc
in_tasks 1 env OPENBLAS_NUM_THREADS=16 $PY -c 'import numpy; a = numpy.ones((500, 500)); print((a @ a).sum())'

### torch-loader-pids pids-max
in_tasks 40 timeout 60 env OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $PY - <<'END'
import torch
from torch.utils.data import DataLoader
for batch in DataLoader(list(range(100)), num_workers=60):
    pass
END

### java-threads nproc pair=java-heap
cat > $WORK/Threads.java <<'END'
class Threads { public static void main(String[] a) throws Exception { for (int i = 0; i < 500; i++) new Thread(() -> { try { Thread.sleep(3000); } catch (Exception e) {} }).start(); } }
END
cd $WORK && javac Threads.java && chmod a+rx $WORK
ulimit -u 60
as_user timeout 40 java -XX:+UseSerialGC -cp $WORK Threads

### node-threads pids-max
in_tasks 3 node -e 'console.log(1)'

### cpp-thread-nproc nproc pair=cpp-thread-seccomp
cat > $WORK/start.cc <<'END'
#include <thread>
#include <vector>
#include <unistd.h>
int main() { std::vector<std::thread> held; for (int i = 0; i < 50; i++) held.emplace_back([] { sleep(2); }); for (auto &one : held) one.join(); }
END
g++ -pthread -o $WORK/start $WORK/start.cc
ulimit -u 8
as_user $WORK/start

### cpp-thread-seccomp seccomp pair=cpp-thread-nproc
cat > $WORK/start.cc <<'END'
#include <thread>
#include <unistd.h>
int main() { std::thread one([] { sleep(2); }); one.join(); }
END
g++ -pthread -o $WORK/start $WORK/start.cc
refusing 435 56 -- $WORK/start

### openmp-pids pids-max
cat > $WORK/parallel.c <<'END'
#include <omp.h>
#include <stdio.h>
int main(void) { int n = 0;
#pragma omp parallel num_threads(40) reduction(+:n)
n += 1; printf("%d\n", n); }
END
gcc -fopenmp -o $WORK/parallel $WORK/parallel.c
in_tasks 10 $WORK/parallel

### make-pids pids-max
printf 'all: a b c d e f g h i j\n%%:\n\t@sleep 3\n' > $WORK/Makefile
in_tasks 5 make -C $WORK -j 10

### perl-fork-nproc nproc
ulimit -u 5
as_user perl -e 'for (1..20) { my $pid = fork; die "cannot fork: $!\n" unless defined $pid; if (!$pid) { sleep 3; exit } }'

### python-threads-seccomp seccomp pair=python-threads-nproc
refusing 435 56 -- $PY -c 'import threading; threading.Thread(target=print).start()'

### joblib-nproc nproc
ulimit -u 12
as_user timeout 60 env JOBLIB_TEMP_FOLDER=/tmp HOME=/tmp $PY - <<'END'
from joblib import Parallel, delayed
print(Parallel(n_jobs=16)(delayed(abs)(number) for number in range(50)))
END

### unshare-count user-namespaces pair=unshare-forbidden
in_userns max_user_namespaces 0 unshare -U true

### unshare-forbidden namespaces-forbidden pair=unshare-count
refusing 272 -- unshare -U true

### arguments-sum arguments
ulimit -s 256
as_user bash -c '/bin/true $(seq 1 100000)'

### arguments-one arguments
$PY -c 'import subprocess; subprocess.run(["/bin/true", "x" * 200000])'

### nice-refused permission
as_user nice -n -10 true; as_user chrt -f 10 true

### keys-quota key-quota
cat > $WORK/keys.py <<'END'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def add_key(number):
    done = libc.syscall(248, b"user", b"why-%d" % number, b"x", 1, -3)
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
for number in range(300):
    add_key(number)
END
chmod a+rx $WORK
as_user $PY $WORK/keys.py

### maxlogins-none exception
$PY -c 'raise RuntimeError("Too many requests: the rate limit of this key is exceeded")'
