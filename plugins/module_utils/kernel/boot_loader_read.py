# SPDX-License-Identifier: BSD-2-Clause
"""Read the files from which a boot loader, or what builds its files, has a command line."""

from __future__ import annotations

from ..host.files import list_folder, read_each, read_text
from .boot_loader import MATTERS

_FILES = (
    *("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg", "/etc/default/grub"),
    *("/boot/grub/grubenv", "/boot/grub2/grubenv"),
    *("/boot/grub/custom.cfg", "/boot/grub2/custom.cfg", "/boot/grub2/user.cfg"),
    *("/etc/kernel/cmdline", "/usr/lib/kernel/cmdline", "/etc/kernel/uki.conf"),
    *("/boot/firmware/cmdline.txt", "/boot/cmdline.txt", "/boot/armbianEnv.txt", "/boot/uEnv.txt"),
    *("/boot/extlinux/extlinux.conf", "/boot/syslinux/syslinux.cfg", "/boot/refind_linux.conf"),
    *("/etc/default/extlinux", "/etc/default/u-boot", "/etc/default/flash-kernel"),
    *("/etc/zipl.conf", "/etc/dracut.conf", "/etc/tuned/bootcmdline"),
)
_FOLDERS = (
    *(("/etc/default/grub.d", ".cfg"), ("/etc/grub.d", ""), ("/boot/loader/entries", ".conf")),
    *(("/efi/loader/entries", ".conf"), ("/boot/efi/loader/entries", ".conf")),
    *(("/etc/cmdline.d", ".conf"), ("/etc/kernel/cmdline.d", ".conf")),
    *(("/usr/lib/kernel/cmdline.d", ".conf"), ("/etc/dracut.conf.d", ".conf")),
    *(("/usr/lib/dracut/dracut.conf.d", ".conf"), ("/usr/lib/bootc/kargs.d", ".toml")),
)
_VENDORS = ("/boot/efi/EFI", "/efi/EFI")
_OF_VENDOR = ("grub.cfg", "grubenv", "custom.cfg")


def read_loader(root: str = "/") -> dict[str, str]:
    """Return the files of which a word may set a sysctl, or keep one from being set, by path."""
    more = [
        f"{folder}/{name}"
        for folder, end in _FOLDERS
        for name in list_folder(folder, root)
        if name.endswith(end)
    ]
    more += [
        f"{folder}/{vendor}/{name}"
        for folder in _VENDORS
        for vendor in list_folder(folder, root)
        for name in _OF_VENDOR
    ]
    texts = dict(read_each((*_FILES, *more), root, _read))
    return {path: text for path, text in texts.items() if MATTERS.search(text)}


def _read(path: str, root: str) -> str:
    """Return a file; one that only root may read, or that is too large, says nothing."""
    try:
        return read_text(path, root) or ""
    except PermissionError:
        return ""
