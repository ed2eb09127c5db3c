"""How many threads the linear algebra of a document may use: one."""

import functools
import math
from contextlib import AbstractContextManager, nullcontext

import threadpoolctl

NEVER_SPLIT = (
    1 << 18
)  # multiplications of a product that OpenBLAS keeps in one thread: 4 x 65,536


def one_thread(multiplications: float = math.inf) -> AbstractContextManager[object]:
    """Within it, BLAS and LAPACK work in the thread they are called from.

    A document's matrices are small, and bulk jobs have a process for each core: handing
    parts to threads that wait for a busy core makes the eigenvectors of 29 sentences
    take 30 ms instead of 0.06. Entering and leaving take 12 microseconds, which are
    saved where there are so few multiplications that BLAS does not split them up.
    """
    return (
        _controller().limit(limits=1, user_api="blas")
        if multiplications > NEVER_SPLIT
        else nullcontext()
    )


@functools.cache
def _controller() -> threadpoolctl.ThreadpoolController:
    return threadpoolctl.ThreadpoolController()
