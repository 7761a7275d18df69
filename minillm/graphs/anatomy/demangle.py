"""C++ names as C++ has them."""

from __future__ import annotations

import ctypes
import functools
import sys

LIBRARIES = {"linux": ("libstdc++.so.6", "libc++abi.so.1"), "darwin": ("libc++abi.dylib",)}


@functools.cache
def _demangler():
    """(__cxa_demangle, free) of the C++ library that torch has loaded; None where there is none."""
    for library in LIBRARIES.get(sys.platform, ()):
        try:
            function, free = ctypes.CDLL(library)["__cxa_demangle"], ctypes.CDLL(None)["free"]
        except (OSError, AttributeError):
            continue
        function.restype, free.argtypes, free.restype = ctypes.c_void_p, [ctypes.c_void_p], None
        function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
        return function, free
    return None


@functools.lru_cache(4096)
def demangle(name: str) -> str:
    """``_ZN2at6native…`` as ``at::native::…``; unchanged what is not mangled, and on Windows."""
    tools = _demangler() if name.startswith("_Z") else None
    if tools is None:
        return name
    function, free = tools
    status = ctypes.c_int()
    pointer = function(name.encode(), None, None, ctypes.byref(status))
    if not pointer:
        return name
    try:
        return ctypes.string_at(pointer).decode()
    finally:
        free(pointer)
