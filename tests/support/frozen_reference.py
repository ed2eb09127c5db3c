"""What transformers computes with tiny checkpoints.

The results are kept in the repository, so that imported networks are compared with them
where it is not installed. Written again, in an environment with the extra
`parity`, whenever `small_checkpoint`, `small_encoder_checkpoint` or this file changes:

    cd tests
    python -m support.frozen_reference checkpoints
    python -m support.frozen_reference raw_articles

writes

    data/checkpoints.npz    inputs, states and logits of each checkpoint
    data/raw_articles.json  what a tiny BART writes of `raw_articles`
"""

import itertools
import json
import random
import sys
import tempfile
from pathlib import Path

import numpy as np

from support import DATA, small_checkpoint, small_encoder_checkpoint
from support.small_checkpoint import POSITIONS, write_checkpoint, write_tokenizer

# Every eleventh logit is kept.
LOGITS = slice(None, None, 11)
# The lengths of sources. Positions of PEGASUS and T5 are not learned and go beyond
# those of config.json. BART reads fewer than it has learned.
LENGTHS = {"pegasus": 60, "t5": 60}


def rows(
    vocabulary: int, longest: int, *, pad: int, start: int | None = None
) -> dict[str, np.ndarray]:
    """Two sources int32 [2, S], the second padded; with `start`, targets int32 [2, 9]
    that begin with it.
    """
    rng = np.random.default_rng(5)
    source = rng.integers(3, vocabulary, (2, longest)).astype("int32")
    source[1, longest // 2 :] = pad
    if start is None:
        return {"source": source}
    target = rng.integers(3, vocabulary, (2, 9)).astype("int32")
    target[:, 0] = start
    return {"source": source, "target": target}


def with_literal_padding(source: np.ndarray, pad: int) -> np.ndarray:
    """Sources of `rows` with -1 at padding, and the padding token within a text.

    transformers masks by length, so it reads that token.
    """
    source = np.where(source == pad, -1, source)
    source[0, 3] = pad
    return source


def checkpoint_reference(folder: Path) -> dict[str, np.ndarray]:
    """The results of transformers, by name of the checkpoint and of the array."""
    arrays: dict[str, np.ndarray] = {}
    for kind, settings in small_checkpoint.KINDS.items():
        given = rows(
            small_checkpoint.VOCABULARY,
            LENGTHS.get(kind, 31),
            pad=settings["pad_token_id"],
            start=settings["decoder_start_token_id"],
        )
        given["source"] = with_literal_padding(
            given["source"], settings["pad_token_id"]
        )
        small_checkpoint.write_checkpoint(folder / kind, kind=kind)
        arrays |= {
            f"{kind}/{name}": array
            for name, array in (given | _run_writer(folder / kind, given)).items()
        }
    for kind, settings in small_encoder_checkpoint.SETTINGS.items():
        given = rows(
            small_encoder_checkpoint.VOCABULARY, 20, pad=settings["pad_token_id"]
        )
        given["source"] = with_literal_padding(
            given["source"], settings["pad_token_id"]
        )
        if kind == "roberta":  # It numbers positions without padding tokens.
            given["source"][0, 3] = 3
        small_encoder_checkpoint.write_encoder(folder / kind, kind)
        arrays |= {
            f"{kind}/{name}": array
            for name, array in (given | _run_encoder(folder / kind, given)).items()
        }
    return arrays


def _run_writer(folder: Path, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The states and the logits of an encoder-decoder of transformers."""
    import torch
    from transformers import AutoConfig, AutoModelForSeq2SeqLM

    config = AutoConfig.from_pretrained(folder)
    if config.model_type == "pegasus":  # Its table of positions ends there.
        config.max_position_embeddings = given["source"].shape[1]
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, config=config).eval()
    source = torch.tensor(given["source"]).long()
    with torch.no_grad():
        result = model(
            input_ids=torch.where(source < 0, config.pad_token_id, source),
            attention_mask=(source >= 0).long(),
            decoder_input_ids=torch.tensor(given["target"]).long(),
        )
    return {
        "states": result.encoder_last_hidden_state.numpy(),
        "logits": result.logits.numpy()[..., LOGITS],
    }


def _run_encoder(folder: Path, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The input of the first layer and the output of each, [layers + 1, 2, S, D]."""
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder).eval()
    source = torch.tensor(given["source"]).long()
    with torch.no_grad():
        result = model(
            input_ids=torch.where(source < 0, model.config.pad_token_id, source),
            attention_mask=(source >= 0).long(),
            output_hidden_states=True,
        )
    return {"states": torch.stack(result.hidden_states).numpy()}


# Articles as they are crawled.
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


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        if sys.argv[1] == "checkpoints":
            np.savez_compressed(
                DATA / "checkpoints.npz", **checkpoint_reference(Path(temporary))
            )
        else:
            summaries = reference_summaries(Path(temporary))
            content = json.dumps(summaries, indent=1, ensure_ascii=False)
            (DATA / "raw_articles.json").write_text(f"{content}\n")
