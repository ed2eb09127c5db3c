"""What editors and type checkers see of `import precis`, made from the options.

python -m docs.site.stub    writes precis/__init__.pyi
"""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import precis

PATH = Path(precis.__file__).with_suffix(".pyi")
_HEAD = '''"""{docstring}"""

# docs/site/stub.py writes this file.
# ruff: noqa: E501

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from precis.model.errors import DataError, JobError, Unfinished, UsageError
{imports}

__all__ = {names}
__version__: str

'''


def stub() -> str:
    """The content of the stub."""
    names = [name for name in precis.__all__ if name[0].islower()]
    functions = "\n".join(map(_function, names))
    # Classes of results, by their whole names.
    classes = sorted({*re.findall(r"\b(precis\.[a-z_.]+)\.([A-Z]\w+)", functions)})
    functions = re.sub(r"\bprecis\.[a-z_.]+\.([A-Z]\w+)", r"\1", functions)
    head = _HEAD.format(
        docstring=precis.__doc__,
        imports="\n".join(f"from {place} import {name}" for place, name in classes),
        names=precis.__all__,
    )
    return _ruff("format", _ruff("check", head + functions))


def _function(name: str) -> str:
    function = getattr(precis, name)
    text = function.__doc__.replace("\\", "\\\\").strip()
    docstring = textwrap.indent(f'"""{text}\n"""', "    ")
    signature = re.sub(r"collections\.abc\.|typing\.", "", str(function.__signature__))
    return f"def {name}{signature}:\n{docstring}\n"


def _ruff(command: str, text: str) -> str:
    flags = ["--stdin-filename", str(PATH), "-"]
    if command == "check":
        flags = ["--quiet", "--fix-only", *flags]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", command, *flags],
        input=text,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    PATH.write_text(stub(), encoding="utf-8")
