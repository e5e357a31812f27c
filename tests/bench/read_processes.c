/* SPDX-License-Identifier: GPL-3.0-or-later
 * Opens and reads, and does nothing with them, the files of every process that our check reads:
 * what no program that reads them can be quicker than. Prints how many processes there were. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const files[] = {"stat", "status", "cgroup", "limits"};

int main(void)
{
    static char content[65536];
    char path[64];
    struct dirent *entry;
    struct stat found;
    int count = 0;
    DIR *proc = opendir("/proc");

    if (!proc)
        return 1;
    while ((entry = readdir(proc))) {
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
            continue;
        for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
            snprintf(path, sizeof path, "/proc/%.20s/%s", entry->d_name, files[i]);
            int handle = open(path, O_RDONLY | O_CLOEXEC);
            if (handle < 0)
                continue;
            if (read(handle, content, sizeof content) < 0)
                content[0] = 0;
            close(handle);
        }
        snprintf(path, sizeof path, "/proc/%.20s/fd", entry->d_name);
        if (stat(path, &found) == 0)
            count++;
    }
    printf("%d\n", count);
    return 0;
}
