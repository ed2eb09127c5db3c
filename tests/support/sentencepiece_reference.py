"""SentencePiece models and the token ids that transformers gives with them.

`test_sentencepiece_parity.py` runs this program in a process of its own, because
PyTorch and TensorFlow cannot be loaded into one process everywhere:

    cd tests && python -m support.sentencepiece_reference FOLDER

It trains a model for each of `MODELS` on FOLDER/training.json and encodes
FOLDER/texts.json. It writes these files:

    FOLDER/NAME/spiece.model    the model
    FOLDER/NAME/t5.json         token ids and decoded ids, as T5
    FOLDER/NAME/pegasus.json    the same as PEGASUS
    FOLDER/NAME/own.json        token ids of SentencePiece, without special tokens
"""

import json
import sys
from pathlib import Path
from typing import Any

# The training settings of each model. Settings that are not given here are those of the
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
# tokenizer_config.json of a model, where there is one.
SETTINGS: dict[str, dict[str, Any]] = {"identity": {"extra_ids": 7, "offset": 20}}


def write_reference(
    folder: Path,
    settings: dict[str, Any],
    training: list[str],
    texts: list[str],
    extra: dict[str, Any],
) -> None:
    """Trains a model and writes the results of transformers and SentencePiece."""
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
