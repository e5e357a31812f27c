/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Wait for an entry of a folder, then exchange names in it with what was prepared.
 *
 * swap FOLDER PREFIX HOW OTHER NAME...
 *   HOW    "own": once the entry belongs to us; "seen": at once; "late": some time later
 *   NAME   below the entry, exchanged with OTHER.0, OTHER.1, ...; "." is the entry itself
 */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

static int round_number;

static void exchange(char *one, char *other)
{
    renameat2(-100, one, -100, other, RENAME_EXCHANGE);
}

static void wait_until_ours(const char *path)
{
    struct stat seen;
    long count = 0;
    while (stat(path, &seen) == 0 && seen.st_uid != getuid() && count++ < 2000000)
        ;
}

static void swap(char **argv, int argc, const char *entry)
{
    char path[PATH_MAX], below[2 * PATH_MAX], other[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", argv[1], entry);
    if (!strcmp(argv[3], "own"))
        wait_until_ours(path);
    if (!strcmp(argv[3], "late"))
        usleep((round_number++ % 40) * 50);
    for (int index = 5; index < argc; index++) {
        if (!strcmp(argv[index], ".")) {
            exchange(path, argv[4]);
            usleep(4000 + (round_number++ % 10) * 3000);
            exchange(path, argv[4]);
        } else {
            snprintf(below, sizeof below, "%s/%s", path, argv[index]);
            snprintf(other, sizeof other, "%s.%d", argv[4], index - 5);
            exchange(below, other);
        }
    }
}

int main(int argc, char **argv)
{
    static char buffer[65536] __attribute__((aligned(8)));
    int handle = inotify_init();
    inotify_add_watch(handle, argv[1], IN_CREATE);
    for (;;) {
        ssize_t got = read(handle, buffer, sizeof buffer);
        for (char *at = buffer; got > 0 && at < buffer + got;) {
            struct inotify_event *event = (struct inotify_event *)at;
            if (event->len && !strncmp(event->name, argv[2], strlen(argv[2])))
                swap(argv, argc, event->name);
            at += sizeof *event + event->len;
        }
    }
}
