"""Memory settings of a process that only does the work of a job."""

import ctypes
import gc

# The thresholds of `gc.set_threshold`; Python's default is to collect after every 700
# new objects.
_THRESHOLDS = (50_000, 20, 20)
# Settings of glibc's mallopt(3): free bytes at the end of the heap before it shrinks,
# bytes by which it grows, the number of separately mapped blocks, and of heaps.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -2, -4, -8
_ALLOCATION = {
    _M_TRIM_THRESHOLD: 2**31 - 1,
    _M_TOP_PAD: 1 << 26,
    _M_MMAP_MAX: 0,
    _M_ARENA_MAX: 1,
}


def prepare_own_process() -> None:
    """Makes this process collect garbage rarely and keep the memory that it frees.

    A job makes many small objects that live as long as a document, and few cycles, so
    collecting costs more than it frees. TensorFlow frees its arrays at every step; if
    the system maps and clears them again each time, training is much slower.
    """
    gc.set_threshold(*_THRESHOLDS)
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # only in glibc
    if set_option is not None:
        for option, value in _ALLOCATION.items():
            set_option(option, value)
