"""Tiny encoder-decoder checkpoints in the layout of Hugging Face, written by hand.

Names and shapes of tensors are those that transformers writes.
"""

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from support import read_table

WIDTH, INNER, VOCABULARY, POSITIONS = 8, (12, 20), 300, 40
_READ = read_table("small_checkpoints")
# config.json of each kind.
KINDS: dict[str, dict[str, Any]] = _READ["writers"]
SETTINGS = KINDS["bart"]
GENERATION: dict[str, Any] = _READ["generation"]
_IDS = {name: KINDS["t5"][name] for name in KINDS["t5"] if name.endswith("_token_id")}
TEXTS = [
    "Rain fell on Monday in the old town.",
    "Nobody came, it was cold.",
    "The café closed at noon; the rain went on and on.",
]


def tensors(kind: str = "bart", seed: int = 1) -> dict[str, np.ndarray]:
    """The tensors of a network, with different random numbers in each."""
    rng = np.random.default_rng(seed)
    shapes = (
        _t5_shapes(KINDS[kind]) if kind in ("t5", "flan", "mt5") else _bart_shapes(kind)
    )
    made = {
        name: rng.normal(size=shape).astype("float32") for name, shape in shapes.items()
    }
    for name, tensor in made.items():
        # Norms near the identity.
        if "norm" in name:
            tensor *= 0.1
            tensor += name.endswith("weight")
        # A strong cross-attention, so that the output depends on the source.
        if name.endswith(("encoder_attn.out_proj.weight", "EncDecAttention.o.weight")):
            tensor *= 5
        if name.endswith("Attention.q.weight"):  # The scores of T5 are not scaled.
            tensor *= 0.3
    if "final_logits_bias" in made:
        # The tokens before 98 are single ASCII letters.
        made["final_logits_bias"][0, 98:] -= 20
    return made


def _bart_shapes(kind: str) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "final_logits_bias": (1, VOCABULARY),
        "model.shared.weight": (VOCABULARY, WIDTH),
    }

    def add(name: str, *weight: int) -> None:
        shapes.update({f"{name}.weight": weight, f"{name}.bias": weight[:1]})

    for side, layers, inner in (("encoder", 2, INNER[0]), ("decoder", 1, INNER[1])):
        here = f"model.{side}"
        if kind == "bart":
            shapes[f"{here}.embed_positions.weight"] = (POSITIONS + 2, WIDTH)
        add(f"{here}.layer{'norm_embedding' if kind == 'bart' else '_norm'}", WIDTH)
        for layer in range(layers):
            block = f"{here}.layers.{layer}"
            for attention in ("self_attn", "encoder_attn")[: 1 + (side == "decoder")]:
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    add(f"{block}.{attention}.{part}", WIDTH, WIDTH)
                add(f"{block}.{attention}_layer_norm", WIDTH)
            add(f"{block}.fc1", inner, WIDTH)
            add(f"{block}.fc2", WIDTH, inner)
            add(f"{block}.final_layer_norm", WIDTH)
    return shapes


def _t5_shapes(settings: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    heads, width = settings["num_heads"], settings["d_ff"]
    inner = heads * settings["d_kv"]
    buckets = settings["relative_attention_num_buckets"]
    is_gated = settings["feed_forward_proj"].startswith("gated")
    shapes: dict[str, tuple[int, ...]] = {"shared.weight": (VOCABULARY, WIDTH)}
    if not settings.get("tie_word_embeddings", True):
        shapes["lm_head.weight"] = (VOCABULARY, WIDTH)
    for side, layers in (
        ("encoder", settings["num_layers"]),
        ("decoder", settings["num_decoder_layers"]),
    ):
        attentions = ("SelfAttention", "EncDecAttention")[: 1 + (side == "decoder")]
        first = f"{side}.block.0.layer.0.SelfAttention"
        shapes[f"{first}.relative_attention_bias.weight"] = (buckets, heads)
        shapes[f"{side}.final_layer_norm.weight"] = (WIDTH,)
        for layer in range(layers):
            block = f"{side}.block.{layer}.layer"
            for place, attention in enumerate(attentions):
                for part in "qkv":
                    shapes[f"{block}.{place}.{attention}.{part}.weight"] = (
                        inner,
                        WIDTH,
                    )
                shapes[f"{block}.{place}.{attention}.o.weight"] = (WIDTH, inner)
            dense = f"{block}.{len(attentions)}.DenseReluDense"
            for part in ("wi_0", "wi_1") if is_gated else ("wi",):
                shapes[f"{dense}.{part}.weight"] = (width, WIDTH)
            shapes[f"{dense}.wo.weight"] = (WIDTH, width)
            for place in range(len(attentions) + 1):
                shapes[f"{block}.{place}.layer_norm.weight"] = (WIDTH,)
    return shapes


def write_checkpoint(
    folder: Path,
    weights: dict[str, np.ndarray] | None = None,
    *,
    kind: str = "bart",
    settings: dict[str, Any] | None = None,
    generation: dict[str, Any] | None = GENERATION,
) -> str:
    """Writes a checkpoint without a tokenizer; `settings` change its config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**KINDS[kind], **(settings or {})}))
    if generation is not None:
        ids = (
            {}
            if kind == "bart"
            else {**_IDS, "forced_bos_token_id": None, "forced_eos_token_id": 1}
        )
        (folder / "generation_config.json").write_text(
            json.dumps({**generation, **ids})
        )
    safetensors.numpy.save_file(
        tensors(kind) if weights is None else weights, folder / "model.safetensors"
    )
    return str(folder)


def write_tokenizer(folder: Path) -> str:
    """Trains a byte-level BPE and writes tokenizer.json into a checkpoint."""
    from tokenizers import ByteLevelBPETokenizer
    from tokenizers.processors import RobertaProcessing

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer.train_from_iterator(
        TEXTS * 3,
        vocab_size=VOCABULARY - 1,
        min_frequency=1,
        special_tokens=special,
        show_progress=False,
    )
    tokenizer._tokenizer.post_processor = RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=False
    )
    # Some definitions state lengths, which must have no effect.
    tokenizer.enable_truncation(6)
    tokenizer.enable_padding(length=9)
    tokenizer.save(str(folder / "tokenizer.json"))
    return str(folder)


def write_sentencepiece(folder: Path, kind: str, texts: Iterable[str] = TEXTS) -> str:
    """Trains SentencePiece and writes tokenizer.json as transformers converts it, of
    "t5" or "pegasus", with the map of characters of the published ones.
    """
    import sentencepiece.sentencepiece_model_pb2
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
    from tokenizers.pre_tokenizers import Metaspace, Sequence, WhitespaceSplit
    from tokenizers.processors import TemplateProcessing

    written = io.BytesIO()
    trainer: Any = sentencepiece.SentencePieceTrainer
    trainer.train(
        sentence_iterator=iter(texts),
        model_writer=written,
        vocab_size=VOCABULARY - 20,
        hard_vocab_limit=False,
        character_coverage=0.999,
        normalization_rule_name="nmt_nfkc",
        user_defined_symbols=["<n>"],
        **{"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1, "minloglevel": 2},
    )
    messages: Any = sentencepiece.sentencepiece_model_pb2
    proto = messages.ModelProto.FromString(written.getvalue())
    pieces = [(each.piece, each.score) for each in proto.pieces]
    special = ["<pad>", "</s>", "<unk>"]
    if kind == "t5":
        extra = [f"<extra_id_{n}>" for n in (3, 2, 1, 0)]
        pieces += [(each, 0.0) for each in extra]
    else:
        extra = ["<mask_1>", "<mask_2>", *(f"<unk_{n}>" for n in range(2, 9))]
        pieces[2:2] = [(each, -100.0 * ("unk" in each)) for each in extra]
    unknown = [piece for piece, _ in pieces].index("<unk>")
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=unknown, byte_fallback=False))
    steps = [normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)]
    tokenizer.pre_tokenizer = Sequence([WhitespaceSplit(), Metaspace()])
    if kind == "t5":
        steps += [
            normalizers.Strip(left=False),
            normalizers.Replace(Regex(" {2,}"), "▁"),
        ]
        tokenizer.pre_tokenizer = Metaspace()
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = TemplateProcessing(
        single=["$A", "</s>"], special_tokens=[("</s>", 1)]
    )
    tokenizer.add_special_tokens(
        [AddedToken(each, normalized=False) for each in special]
        + [AddedToken(each, lstrip=True, rstrip=True) for each in extra]
    )
    tokenizer.add_tokens([AddedToken("<n>", normalized=True)])
    tokenizer.save(str(folder / "tokenizer.json"))
    return str(folder)
