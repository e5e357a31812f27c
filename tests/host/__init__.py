"""A real Debian host for tests, booted by QEMU: image, snapshot, running guests."""

# SPDX-License-Identifier: GPL-3.0-or-later
