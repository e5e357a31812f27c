/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keep COUNT processes that do nothing until the standard input ends.
 *
 * crowd COUNT
 *   They share one memory, so that 50,000 of them need 2 GiB of the kernel's and none of their own.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char stack[65536] __attribute__((aligned(16)));

static int idle(void *unused)
{
    while (!unused)
        pause();
    return 0;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 0, number;
    char nothing;
    setpgid(0, 0);
    for (number = 0; number < count; number++) {
        /* One stack for all: they sleep in the same call, and none ever returns. */
        if (clone(idle, stack + sizeof stack, CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, NULL) < 0) {
            perror("clone");
            break;
        }
    }
    printf("%d\n", number);
    fflush(stdout);
    while (read(0, &nothing, 1) > 0)
        ;
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    while (wait(NULL) > 0)
        ;
    return 0;
}
