"""`--precision auto`: the precision that searches fastest on a kind of chip.

The rules are what `benchmarks/decode.py` measured, docs/FIGURES.md has them.
They ask for the chip and not for the time of a trial, so that a run that is resumed on
the same machine gets the same precision.
"""

import itertools

from precis.model.inference.process_limits import has_accelerator

_CPU_INFO = "/proc/cpuinfo"
# On chips with AMX the matrix products of a narrow network take so little time that
# bfloat16 gains nothing.
_LEAST_WIDTH_WITH_AMX = 512
# With AVX-512 alone, products of bfloat16 take half the time of those in float32 on
# Zen 4 and almost twice the time on an Intel Xeon (model 207).
_AMD = "AuthenticAMD"


def fastest_precision(width: int) -> str:
    """The precision in which this machine searches fastest.

    Args:
      width: of the network.

    Returns:
      mixed_bfloat16 where that was measured to be faster, else float32, on accelerators
      too. A later AMD chip with bfloat16 counts as the Zen 4 that was measured.
    """
    if has_accelerator():
        return "float32"
    chip = _chip()
    features = chip.get("flags", "").split()
    if "amx_bf16" in features:
        is_faster = width >= _LEAST_WIDTH_WITH_AMX
    else:
        is_faster = chip.get("vendor_id") == _AMD and "avx512_bf16" in features
    return "mixed_bfloat16" if is_faster else "float32"


def _chip() -> dict[str, str]:
    """The fields of the first core in /proc/cpuinfo; none on other systems."""
    try:
        with open(_CPU_INFO, encoding="utf-8") as file:
            lines = itertools.takewhile(str.strip, file)
            pairs = (line.partition(":") for line in lines)
            return {name.strip(): value.strip() for name, _, value in pairs}
    except OSError:
        return {}
