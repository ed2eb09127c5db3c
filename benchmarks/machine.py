"""The machine that a benchmark runs on: its chip, the rate of its matrix products, the
interpreters that have the engines to compare, and the file of the measured figures.
"""

import datetime
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures.json"

# The modules of each engine and library; CTranslate2 needs the others to convert
# weights.
REQUIRED_MODULES = {
    "ours": ("tensorflow", "keras", "precis"),
    "ctranslate2": ("ctranslate2", "transformers", "torch"),
    "transformers": ("transformers", "torch"),
    "keras_hub": ("keras_hub", "tensorflow"),
    "sumy": ("sumy",),
    "rouge_score": ("rouge_score",),
    "tokenizers": ("tokenizers",),
}
# The distributions whose name is not that of their module.
_DISTRIBUTIONS = {"keras_hub": "keras-hub", "rouge_score": "rouge-score"}
_VERSIONS_PROGRAM = """
import importlib.metadata, importlib.util, json, sys
def version(module, distribution):
    if importlib.util.find_spec(module) is None: return None
    try: return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError: return ""
names = json.loads(sys.argv[1])
print(json.dumps({module: version(module, name) for module, name in names.items()}))
"""


def find_interpreter(
    engine: str, peers: Sequence[str] | None
) -> tuple[str, str] | None:
    """The first interpreter that has an engine, and the versions of its distributions.

    Args:
      engine: a key of REQUIRED_MODULES; `ours` is always run by this interpreter.
      peers: the interpreters that may have peers; this one where there are none.

    Returns:
      None where no interpreter has all modules.
    """
    candidates = [sys.executable]
    if engine != "ours" and peers:
        candidates = list(peers)
    for python in candidates:
        versions = _versions(python, REQUIRED_MODULES[engine])
        if None not in versions.values():
            return python, ", ".join(
                f"{_DISTRIBUTIONS.get(module, module)} {version}"
                for module, version in versions.items()
            )
    return None


def _versions(python: str, modules: Sequence[str]) -> dict[str, str | None]:
    """The versions of modules in an interpreter; None for those it does not have."""
    names = {module: _DISTRIBUTIONS.get(module, module) for module in modules}
    result = subprocess.run(
        [python, "-c", _VERSIONS_PROGRAM, json.dumps(names)],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(result.stdout)


def matrix_rate(precision: str, threads: int) -> float:
    """FLOP/s of large matrix products on this machine, measured in another process."""
    folder = os.path.dirname(os.path.abspath(__file__))
    worker = os.path.join(folder, "decode_workers.py")
    result = subprocess.run(
        [sys.executable, worker, "matrix_rate", precision, str(threads)],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(result.stdout.split()[-1])


def chip() -> str:
    """The model name of the processor, and whether it has AVX-512."""
    text = Path("/proc/cpuinfo").read_text("utf-8")
    name = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    with_or_without = "with" if "avx512f" in text else "without"
    return f"{name[1] if name else 'unknown'} {with_or_without} AVX-512"


def record(key: str, value: str, unit: str, command: str, path: Path = FIGURES) -> None:
    """Writes a figure of this machine into docs/figures.json, which pages quote.

    Args:
      key: its name, in lower case with dots; a marker on a page has the same.
      value: as it is shown; docs/site/figures.py has the forms.
      unit: what is counted, "documents/s".
      command: what measures it.
      path: the file.
    """
    figures = json.loads(path.read_text("utf-8"))
    figures[key] = {
        "value": value,
        "unit": unit,
        "command": command,
        "chip": f"{chip()}, {len(os.sched_getaffinity(0))} cores",
        "date": datetime.date.today().isoformat(),
    }
    lines = [
        f"  {json.dumps(name)}: {json.dumps(figures[name], ensure_ascii=False)}"
        for name in sorted(figures)
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
