"""Writes requirements-{cpu,gpu}.txt: what the images of dataflow.Dockerfile
install, with the versions of requirements.lock and with hashes.

    python deploy/lock.py      from the root of the repository; needs uv
"""

import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent
WORKER_EXTRAS = ("beam", "endpoint", "gcs", "languages", "train", "web")
# The extras of each image, and what it has beside them.
IMAGES = {
    "cpu": (WORKER_EXTRAS, ""),
    "gpu": (WORKER_EXTRAS, "tensorflow[and-cuda]"),
}
# apache-beam[gcp] wants older ones than requirements.lock has.
NOT_OF_THE_LOCK = ("cachetools", "tenacity")


def main() -> None:
    """Writes the files."""
    for image, (extras, beside) in IMAGES.items():
        with tempfile.TemporaryDirectory() as folder:
            constraints = Path(folder, "constraints.txt")
            constraints.write_text(constraint_lines())
            further = Path(folder, "further.in")
            further.write_text(f"{beside}\n")
            command = [
                *("uv", "pip", "compile", "--quiet", "--generate-hashes"),
                *("--no-annotate", "--python-version", "3.11"),
                *("--python-platform", "x86_64-manylinux_2_28"),
                *("--constraint", str(constraints)),
                *(word for extra in extras for word in ("--extra", extra)),
                *("--custom-compile-command", "python deploy/lock.py"),
                *("--output-file", str(FOLDER / f"requirements-{image}.txt")),
                *("pyproject.toml", str(further)),
            ]
            subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=True)


def constraint_lines() -> str:
    """The versions of requirements.lock, one a line."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pinned = [line.rstrip(" \\") for line in lines if line[:1].isalnum()]
    return "".join(
        f"{line}\n" for line in pinned if line.split("==")[0] not in NOT_OF_THE_LOCK
    )


if __name__ == "__main__":
    main()
