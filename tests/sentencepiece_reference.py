"""What transformers makes of models of SentencePiece, for
`test_sentencepiece_parity.py`.

It is a program of its own: PyTorch and TensorFlow cannot be loaded into one process
    everywhere.

    python tests/sentencepiece_reference.py FOLDER

trains a model for each of `MODELS` on the sentences of FOLDER/training.json and writes
it as FOLDER/NAME/spiece.model; beside it, by model_type, the ids and the decoded ids of
FOLDER/texts.json in `t5.json` and `pegasus.json`, and in `own.json` the ids that
SentencePiece itself gives, without special tokens.
"""

import json
import sys
from pathlib import Path
from typing import Any

# How they are trained, and how many pieces they have; what is not given is as in the
# models of T5 and PEGASUS.
MODELS: dict[str, dict[str, Any]] = {
    "plain": {"vocab_size": 1200},
    "symbols": {
        "vocab_size": 600,
        "user_defined_symbols": ["<n>", "town"],
        "control_symbols": ["<ctl>"],
    },
    "case_folded": {"vocab_size": 500, "normalization_rule_name": "nmt_nfkc_cf"},
    "identity": {"vocab_size": 900, "normalization_rule_name": "identity"},
    "bytes": {"vocab_size": 700, "byte_fallback": True},
}
# What tokenizer_config.json says, where there is one.
SETTINGS: dict[str, dict[str, Any]] = {"identity": {"extra_ids": 7, "offset": 20}}


def write_reference(
    folder: Path,
    settings: dict[str, Any],
    training: list[str],
    texts: list[str],
    extra: dict[str, Any],
) -> None:
    """Trains a model and writes what transformers and SentencePiece make of the texts
    with it.
    """
    import sentencepiece
    from transformers import PegasusTokenizerFast, T5TokenizerFast

    folder.mkdir()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(training),
        model_prefix=str(folder / "spiece"),
        minloglevel=2,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        **settings,
    )
    if extra:
        (folder / "tokenizer_config.json").write_text(json.dumps(extra))
    for name, kind in (("t5", T5TokenizerFast), ("pegasus", PegasusTokenizerFast)):
        tokenizer = kind.from_pretrained(folder)
        ids = tokenizer(texts)["input_ids"]
        decoded = tokenizer.batch_decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        (folder / f"{name}.json").write_text(
            json.dumps({"ids": ids, "decoded": decoded})
        )
    own = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))
    (folder / "own.json").write_text(json.dumps(own.encode(texts)))


if __name__ == "__main__":
    root = Path(sys.argv[1])
    sentences, rows = (
        json.loads((root / name).read_text())
        for name in ("training.json", "texts.json")
    )
    for model, shape in MODELS.items():
        write_reference(root / model, shape, sentences, rows, SETTINGS.get(model, {}))
