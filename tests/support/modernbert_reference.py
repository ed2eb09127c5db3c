"""Random ModernBERTs, and what transformers computes with them, for
`test_checkpoint_parity.py`.

    cd tests && python -m support.modernbert_reference FOLDER

reads FOLDER/texts.json and writes the checkpoints FOLDER/NAME with a byte-level BPE,
FOLDER/NAME/reference.npz with random sources and their states, and FOLDER/ids.json with
the token ids of the texts.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

VOCABULARY, PAD = 421, 3
_SHAPE = {"hidden_size": 36, "num_hidden_layers": 5, "num_attention_heads": 3}
_SHAPE |= {"intermediate_size": 22, "pad_token_id": PAD, "vocab_size": VOCABULARY}
_MIXED = ["sliding_attention", "full_attention", "sliding_attention"]
# Each checkpoint: its settings, and the lengths of its sources.
CASES: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "narrow": ({**_SHAPE, "local_attention": 6}, (5, 41, 23, 1)),
    "wider_than_the_text": ({**_SHAPE, "hidden_size": 42}, (19, 8, 30)),
    # The published file of 4.48 has other fields.
    "of_4.48": (
        {
            **_SHAPE,
            "local_attention": 11,
            "global_attn_every_n_layers": 2,
            "global_rope_theta": 900.0,
            "local_rope_theta": 50.0,
        },
        (300, 7, 129),
    ),
    "of_two_chunks": (
        {
            **_SHAPE,
            "num_hidden_layers": 3,
            "layer_types": _MIXED,
            "local_attention": 40,
            "norm_bias": True,
            "attention_bias": True,
            "mlp_bias": True,
            "hidden_activation": "silu",
            "norm_eps": 0.01,
            "rope_parameters": {
                "full_attention": {"rope_type": "default", "rope_theta": 77.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 12.0},
            },
        },
        (256, 255, 3),
    ),
}


def write_case(folder: Path, name: str, seed: int) -> None:
    """Writes a checkpoint and what it computes of sources of several lengths."""
    import torch
    from transformers import ModernBertConfig, ModernBertForMaskedLM

    settings, lengths = CASES[name]
    torch.manual_seed(seed)
    model = ModernBertForMaskedLM(ModernBertConfig(**settings)).eval()
    with torch.no_grad():
        for path, weight in model.named_parameters():
            is_norm = "norm" in path and path.endswith("weight")
            weight.copy_(0.3 * torch.randn_like(weight) + is_norm)
    model.save_pretrained(folder / name)
    if name == "of_4.48":
        path = folder / name / "config.json"
        stored = {**json.loads(path.read_text()), **settings}
        for field in ("layer_types", "rope_parameters"):
            del stored[field]
        path.write_text(json.dumps(stored))
    rng = np.random.default_rng(seed)
    source = rng.integers(0, VOCABULARY, (len(lengths), max(lengths)))
    mask = np.arange(source.shape[1]) < np.array(lengths)[:, None]
    with torch.no_grad():
        states = model.model(
            torch.tensor(source), attention_mask=torch.tensor(mask.astype("int64"))
        )[0]
    source[~mask] = -1
    np.savez(folder / name / "reference.npz", source=source, states=states)


def write_ids(folder: Path, texts: list[str]) -> None:
    """Writes a byte-level BPE with [CLS] and [SEP] into each checkpoint, and the ids of
    texts as transformers reads it.
    """
    from tokenizers import (
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
        trainers,
    )
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - 20,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    names = {f"{each[1:-1].lower()}_token": each for each in special}
    whole = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    for name in CASES:
        whole.save_pretrained(folder / name)
    read = AutoTokenizer.from_pretrained(folder / name)
    (folder / "ids.json").write_text(json.dumps(read(texts)["input_ids"]))


if __name__ == "__main__":
    root = Path(sys.argv[1])
    for seed, name in enumerate(CASES):
        write_case(root, name, seed)
    write_ids(root, json.loads((root / "texts.json").read_text()))
