"""Articles as they are crawled, and what transformers writes of them.

`frozen_reference` keeps the summaries of a tiny BART in `data/raw_articles.json`.
"""

import itertools
import random
from pathlib import Path

from support.small_checkpoint import POSITIONS, write_checkpoint, write_tokenizer

_HEADS = ("", "(CNN) -- ", " ", "LONDON (Reuters) - ", "By . Jane Roe . ")
_BODIES = (
    "Rain fell",
    "Nobody came",
    "the cafe\u0301 closed",
    "It was cold,  on Monday",
)
_JOINS = (" ", "\n\n", "\r\n", "  ", "\t", "\u00a0", " <pad> ", "\u200b ")
_ENDS = (".", ".\n", " ", "<pad>")
DOCUMENTS = 40
# Nothing is to clean in these.
CLEAN = ("Rain fell on Monday.", "Nobody came, it was cold.")


def raw_articles() -> list[str]:
    """DOCUMENTS articles; the first are CLEAN."""
    draw = random.Random(3)
    kinds = list(itertools.product(_HEADS, _BODIES, _JOINS, _BODIES, _ENDS))
    return [*CLEAN, *("".join(parts) for parts in draw.sample(kinds, DOCUMENTS - 2))]


def write_raw_checkpoint(folder: Path) -> str:
    """A checkpoint of BART with its tokenizer."""
    write_tokenizer(folder)
    return write_checkpoint(folder)


def reference_summaries(folder: Path) -> list[str]:
    """What `generate` of transformers writes of each article, as text."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, PreTrainedTokenizerFast

    write_raw_checkpoint(folder)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), pad_token="<pad>"
    )
    batch = tokenizer(
        raw_articles(),
        padding=True,
        truncation=True,
        max_length=POSITIONS,
        return_tensors="pt",
    )
    model = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    with torch.no_grad():
        tokens = model.generate(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]
        )
    return tokenizer.batch_decode(tokens, skip_special_tokens=True)
