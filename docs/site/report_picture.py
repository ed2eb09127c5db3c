"""Draws the picture of a report that README.md shows."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

import precis

# The place of the document in the list of the report, which begins with the worst.
DOCUMENT = 80
# Where the dialog with the document stands: left, top, right, bottom, in pixels.
DIALOG = (20, 18, 940, 522)


def draw_report(picture: Path) -> None:
    """Draws a document in the report of a run on the built-in corpus.

    Without Chromium the picture stays as it is.

    Args:
      picture: the PNG file that is replaced.
    """
    chromium = shutil.which("chromium")
    if chromium is None:
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = folder / "summaries"
        precis.summarize(corpus="sample:200", output=run, max_words=40, workers=1)
        page = Path(precis.report(run, output=folder / "report.html").path)
        flags = "--headless --no-sandbox --hide-scrollbars --virtual-time-budget=5000"
        shot = (f"--screenshot={folder / 'shot.png'}", "--window-size=960,540")
        address = f"{page.as_uri()}#document-{DOCUMENT}"
        command = [chromium, *flags.split(), *shot, address]
        subprocess.run(command, check=True, capture_output=True)
        dialog = Image.open(folder / "shot.png").convert("RGB").crop(DIALOG)
        # So few colours are enough for text, and take a quarter of the bytes.
        dialog.quantize(64).save(picture, optimize=True)
