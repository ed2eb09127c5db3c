"""A small finished run with its evaluation, for the tests of `precis report`."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

from precis.pipelines.evaluate.evaluate import evaluate
from precis.pipelines.summarize.summarize import summarize
from support.command_line import write_jsonl

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>"
STORMS = 60


def records() -> list[dict | str]:
    """Documents with references; one is hostile, one is empty, one line is broken.

    The summary of storm-58 is flagged too_short, that of storm-59 short_source, and the
    hostile one barely_shorter and markup_source. They are of 23 harbours: thirteen
    storms of the first, two or three of each other, the hostile one of its own.
    """
    storms = [
        {
            "id": f"storm-{number}",
            "article": f"\N{WATER WAVE} Storm {number} hit Larkspur. Nobody was hurt "
            f"on Monday.\nThe harbour was closed for {number} days. Ferries stayed in "
            "port. Fishing boats had left the day before, and all of them came back.",
            "highlights": f"Storm {number} hit Bremen.\nThe harbour was closed.",
            "harbour": f"h{max(number - 10, 0) % 22}",
        }
        for number in range(STORMS)
    ]
    storms[58]["article"] = "\n".join(["Rain."] * 60)
    storms[59]["article"] = "Storm 59 hit Larkspur."
    hostile = {
        "id": HOSTILE,
        "article": f"{HOSTILE} was sent to the mayor. The mayor read it twice. "
        "Nothing happened to the machine of the mayor, which is old. He sent it back "
        "to the sender with a letter, and the sender has not answered him since then.",
        "highlights": "It was harmless.",
        "harbour": HOSTILE,
    }
    empty = {"id": "empty", "article": " ", "highlights": "Nothing."}
    return [*storms, hostile, empty, '{"article": <b>broken</b>']


def write_run(folder: Path) -> None:
    """Writes `run` and its evaluation."""
    summarize(
        corpus=write_jsonl(folder / "news.jsonl", records()),
        output=folder / "run",
        extractive="lead,frequency,oracle",
        sentences=2,
        group_by="harbour",
        max_failed_share=0.1,
    )
    evaluate(input=folder / "run", resamples=20)
    reference = {"group_id": "h0", "highlights": "Storms closed the harbour."}
    references = write_jsonl(folder / "references.jsonl", [reference])
    evaluate(input=folder / "run", resamples=20, group_references=references)


def blocks_of(page: str) -> dict[str, Any]:
    """The data in a page, by the ids of its blocks."""
    pattern = r'<script type="application/octet-stream" id="([\w-]+)">([^<]*)</script>'
    return {
        name: json.loads(gzip.decompress(base64.b64decode(text)))
        for name, text in re.findall(pattern, page)
    }


def documents_of(page: str) -> list[dict[str, Any]]:
    """The documents in a page: their lines in the list and their details."""
    blocks = blocks_of(page)
    details = [
        document
        for number in range(len(blocks) - 1)
        for document in blocks[f"block-{number}"]
    ]
    lines = zip(blocks["list"], details, strict=True)
    return [{**line, **each} for line, each in lines]
