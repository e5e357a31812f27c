/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Call itself until the stack ends, with a pause at each call. */
#include <stdlib.h>
#include <unistd.h>

static int descend(int pause)
{
	volatile char frame[65536];

	for (unsigned at = 0; at < sizeof(frame); at += 4096)
		frame[at] = 1;
	usleep(pause);
	return descend(pause) + frame[0];
}

int main(int count, char **words)
{
	return descend(count > 1 ? atoi(words[1]) : 10000);
}
