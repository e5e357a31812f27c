# SPDX-License-Identifier: BSD-2-Clause
"""Open and close one PAM session in the running process through the host's own libpam.

Interface: pam_start(3), pam_conv(3); numbers from ``security/_pam_types.h``.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Mapping

from ..core.values import NamedTuple, Rlimit
from ..host.own_limits import read_own_limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    _MessageList = ctypes._Pointer[ctypes._Pointer["_Message"]]
    _AnswerList = ctypes._Pointer[ctypes.c_void_p]

ITEM_NUMBERS = {"user": 2, "tty": 3, "rhost": 4, "ruser": 8}
_SUCCESS, _CONV_ERR = 0, 19
_LONGEST = 2000
_ANSWER_SIZE = 2 * ctypes.sizeof(ctypes.c_void_p)  # struct pam_response
_PROMPTS, _ERROR_MESSAGE = (1, 2), 3
_MODULE_FOLDERS = (
    f"/usr/lib/{os.uname().machine}-linux-gnu/security",
    "/usr/lib64/security",
    "/usr/lib/security",
    "/lib/security",
)
_FALLBACK = "/lib/security"


class _Conversation(ctypes.Structure):
    _fields_ = (("function", ctypes.c_void_p), ("data", ctypes.c_void_p))


class _Message(ctypes.Structure):
    _fields_ = (("style", ctypes.c_int), ("text", ctypes.c_char_p))


_Messages = ctypes.POINTER(ctypes.POINTER(_Message))
_Answers = ctypes.POINTER(ctypes.c_void_p)
_Function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, _Messages, _Answers, ctypes.c_void_p)


class PamCall(NamedTuple):
    """What one session is opened with. ``items`` are keyed as in :data:`ITEM_NUMBERS`.

    ``account`` is the user whose account is checked, ``folder`` the one to read the service
    from, ``None`` for the host's own.
    """

    service: str
    user: str
    account: str
    items: Mapping[str, str]
    folder: str | None


class PamOutcome(NamedTuple):
    """What libpam said. ``opens`` is ``None`` where it could not even be asked.

    ``cgroup`` is /proc/PID/cgroup of the process that the session was opened in.
    """

    opens: bool | None
    reason: str
    limits: dict[str, Rlimit] | None
    cgroup: str = ""


def find_missing_modules(names: Iterable[str]) -> set[str]:
    """Return the modules of pam.d lines that are not installed; none where that is not known."""
    return {name for name in names if _find_module_folder() and not find_module(name)}


def find_module(name: str) -> str | None:
    """Return the path of a module. Debian's libpam looks into /lib/security as well."""
    folders = (_find_module_folder() or "", _FALLBACK)
    paths = (os.path.join(folder, name) for folder in folders)
    return next((path for path in paths if os.path.exists(path)), None)


def load_modules(names: Iterable[str]) -> None:
    """Load PAM modules into this process, so that its children find them loaded and linked."""
    for name in names:
        try:
            ctypes.CDLL(find_module(name) or name)
        except OSError:
            continue  # What cannot be loaded is libpam's to report.


def _find_module_folder() -> str | None:
    return next((path for path in _MODULE_FOLDERS if os.path.exists(f"{path}/pam_permit.so")), None)


def _read_own_cgroup() -> str:
    """Return what a session has made of this process's cgroup, as far as a child may report.

    It takes no buffer: a session may leave next to no memory.
    """
    try:
        file = os.open("/proc/self/cgroup", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""  # The session has no descriptor left.
    text = os.read(file, _LONGEST)
    os.close(file)
    return text.decode("utf-8", "replace")


class Libpam:
    """The host's libpam, with an application that answers no questions."""

    def __init__(self) -> None:
        """Load it.

        :raises OSError: If there is none.
        """
        # Modules that name no libraries take its functions from the program, as sshd has them.
        self._library = ctypes.CDLL("libpam.so.0", ctypes.RTLD_GLOBAL)
        self._library.pam_strerror.restype = ctypes.c_char_p
        self._calloc = ctypes.CDLL(None).calloc
        self._calloc.restype = ctypes.c_void_p
        self._said: list[str] = []
        self._answer = _Function(self._converse)  # libpam holds no reference to it.

    @property
    def reads_folders(self) -> bool:
        """Tell whether a service can be read from another folder: libpam 1.4 and later."""
        return hasattr(self._library, "pam_start_confdir")

    def open_session(self, call: PamCall) -> PamOutcome:
        """Run the account and session phases of a service and return the limits inside the session.

        Whatever a session does to its process happens to this one: call it in a child.
        """
        conversation = _Conversation(ctypes.cast(self._answer, ctypes.c_void_p), None)
        handle = ctypes.c_void_p()
        arguments = [call.service.encode(), call.account.encode(), ctypes.byref(conversation)]
        if call.folder is None:
            code = self._library.pam_start(*arguments, ctypes.byref(handle))
        else:
            code = self._library.pam_start_confdir(
                *arguments, call.folder.encode(), ctypes.byref(handle)
            )
        if code != _SUCCESS:
            return PamOutcome(None, f"PAM does not start: {self._describe(handle, code)}", None)
        for item, text in call.items.items():
            self._library.pam_set_item(handle, ITEM_NUMBERS[item], text.encode())
        outcome = self._run_phases(handle, call.user)
        self._library.pam_end(handle, _SUCCESS)
        return outcome

    def _run_phases(self, handle: ctypes.c_void_p, user: str) -> PamOutcome:
        code = self._library.pam_acct_mgmt(handle, 0)
        if code != _SUCCESS:
            return PamOutcome(False, f"account refused: {self._describe(handle, code)}", None)
        self._library.pam_set_item(handle, ITEM_NUMBERS["user"], user.encode())
        code = self._library.pam_open_session(handle, 0)
        if code != _SUCCESS:
            return PamOutcome(False, f"session refused: {self._describe(handle, code)}", None)
        limits, cgroup = read_own_limits(), _read_own_cgroup()
        self._library.pam_close_session(handle, 0)
        return PamOutcome(True, "", limits, cgroup)

    def _describe(self, handle: ctypes.c_void_p, code: int) -> str:
        words = str(self._library.pam_strerror(handle, code).decode("utf-8", "replace"))
        return f"{words} ({' '.join(self._said)})"[:500] if self._said else words

    def _converse(
        self, count: int, messages: _MessageList, answers: _AnswerList, _data: object
    ) -> int:
        """Note error messages and refuse to answer prompts, as pam_conv(3) asks."""
        for index in range(count):
            message = messages[index].contents
            if message.style in _PROMPTS:
                return _CONV_ERR
            if message.style == _ERROR_MESSAGE and message.text:
                self._said.append(message.text.decode("utf-8", "replace").strip())
        answers[0] = self._calloc(ctypes.c_size_t(count), ctypes.c_size_t(_ANSWER_SIZE))
        return _SUCCESS
