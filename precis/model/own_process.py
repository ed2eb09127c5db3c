"""How the memory of a process is managed that is a job's own."""

import ctypes
import gc

# Objects that are made before Python looks among the youngest, and how often it does so
# before it looks among the older ones. By default it looks at every 700.
_THRESHOLDS = (50_000, 20, 20)
# Settings of glibc's mallopt(3) and what they are set to: bytes that are free at the
# end of the heap before they are given back, bytes by which it grows, blocks that are
# mapped each on its own, and heaps.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -2, -4, -8
_ALLOCATION = {
    _M_TRIM_THRESHOLD: 2**31 - 1,
    _M_TOP_PAD: 1 << 26,
    _M_MMAP_MAX: 0,
    _M_ARENA_MAX: 1,
}


def prepare_own_process() -> None:
    """Has this process look for garbage rarely and keep the memory that it frees.

    A job makes many small objects that live as long as a document, and no cycles worth
    mentioning: the summaries of news took a quarter less time. TensorFlow frees its
    arrays at every step; the system had to map and clear them each time, which took a
    third of the time of a training.
    """
    gc.set_threshold(*_THRESHOLDS)
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # of glibc alone
    if set_option is not None:
        for option, value in _ALLOCATION.items():
            set_option(option, value)
