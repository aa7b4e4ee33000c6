"""What only the C library can be asked: a file's birth time, and syncing a whole file system.

Loaded at the first question, so that commands that only read never pay for it.
"""

import ctypes
import os
import struct
import sys
from functools import cache
from typing import Final

_STATX_BYTES: Final = 256
_STATX_BIRTH: Final = 0x800
_AT_EMPTY_PATH: Final = 0x1000
_BIRTH_AT: Final = 80


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def sync_file_system(handle: int) -> bool:
    """Sync everything of the file system that `handle` is on; False where there is no such call.

    Raises: OSError when the kernel reports that some write failed.
    """
    call = getattr(_libc(), "syncfs", None)
    if call is None:
        return False
    if call(ctypes.c_int(handle)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return True


def birth_of(handle: int) -> str | None:
    """When the open file was made, `seconds.nanoseconds`; None where it is not known.

    A copy, a restored file and an unpacked one are born later than their original.
    """
    if sys.platform == "darwin":
        return repr(os.fstat(handle).st_birthtime)
    call = getattr(_libc(), "statx", None)
    if call is None:
        return None
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    flags = (ctypes.c_int(_AT_EMPTY_PATH), ctypes.c_uint(_STATX_BIRTH))
    if call(ctypes.c_int(handle), b"", *flags, buffer) != 0:
        return None
    (mask,) = struct.unpack_from("=I", buffer.raw, 0)
    if not mask & _STATX_BIRTH:
        return None
    seconds, nanoseconds = struct.unpack_from("=qI", buffer.raw, _BIRTH_AT)
    return f"{seconds}.{nanoseconds:09d}"
