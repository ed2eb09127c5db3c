"""What transformers and keras-hub compute with tiny checkpoints and presets.

The results are kept in the repository, so that imported networks are compared with them
where neither library is installed. Written again, in an environment with the extra
`parity`, whenever `small_checkpoint`, `small_encoder_checkpoint` or this file changes:

    cd tests
    python -m support.frozen_reference checkpoints
    python -m support.frozen_reference presets
    python -m support.frozen_reference raw_articles

writes

    data/checkpoints.npz    inputs, states and logits of each checkpoint
    data/presets.npz        the same of each preset
    data/presets.json       config.json of each preset and the shapes of its weights
    data/raw_articles.json  summaries of the articles of `raw_articles`
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from support import small_checkpoint, small_encoder_checkpoint
from support.raw_articles import reference_summaries
from support.small_preset import fill_weights

DATA = Path(__file__).parent.parent / "data"
# Every eleventh logit is kept.
LOGITS = slice(None, None, 11)
# The lengths of sources. Positions of PEGASUS and T5 are not learned and go beyond
# those of config.json. BART reads fewer than it has learned.
LENGTHS = {"pegasus": 60, "t5": 60}
SHAPE = {
    "vocabulary_size": 30,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
}
LEARNED = {**SHAPE, "max_sequence_length": 24}
BACKBONES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("BertBackbone", LEARNED),
    "roberta": ("RobertaBackbone", LEARNED),
    "distilbert": ("DistilBertBackbone", LEARNED),
    "bart": ("BartBackbone", LEARNED),
    "t5": ("T5Backbone", {**SHAPE, "activation": "relu", "key_value_dim": 5}),
}


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


def preset_reference(
    folder: Path,
) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
    """The results of keras-hub, and the description of each preset."""
    import h5py
    import keras_hub

    arrays: dict[str, np.ndarray] = {}
    described: dict[str, dict[str, Any]] = {}
    for name, (kind, settings) in BACKBONES.items():
        made = getattr(keras_hub.models, kind)(**settings)
        made.save_to_preset(str(folder / name))
        shapes: dict[str, list[int]] = {}
        with h5py.File(folder / name / "model.weights.h5", "r+") as file:
            file.visititems(
                lambda path, item, shapes=shapes: (
                    shapes.update({path: list(item.shape)})
                    if isinstance(item, h5py.Dataset)
                    else None
                )
            )
            for path, values in fill_weights(shapes).items():
                file[path][...] = values
        config = json.loads((folder / name / "config.json").read_text())
        described[name] = {"config": config, "shapes": shapes}
        backbone = getattr(keras_hub.models, kind).from_preset(str(folder / name))
        arrays |= {
            f"{name}/{array_name}": array
            for array_name, array in _run_backbone(name, backbone).items()
        }
    return arrays, described


def _run_backbone(name: str, backbone: Any) -> dict[str, np.ndarray]:
    """The inputs, the states and, of an encoder-decoder, the logits of a backbone."""
    import keras_hub

    pad = 1 if name in ("roberta", "bart") else 0
    if name in ("bert", "roberta", "distilbert"):
        given = rows(SHAPE["vocabulary_size"], 20, pad=pad)
        source = given["source"]
        inputs = {"token_ids": source, "padding_mask": (source != pad).astype("int32")}
        if name == "bert":
            inputs["segment_ids"] = np.zeros_like(source)
        result = backbone(inputs, training=False)
        states = result["sequence_output"] if name == "bert" else result
        return {**given, "states": np.asarray(states)}
    given = rows(
        SHAPE["vocabulary_size"], 20, pad=pad, start=2 if name == "bart" else 0
    )
    source = given["source"]
    inputs = {
        "encoder_token_ids": source,
        "encoder_padding_mask": (source != pad).astype("int32"),
        "decoder_token_ids": given["target"],
        "decoder_padding_mask": np.ones_like(given["target"]),
    }
    task = {"bart": "BartSeq2SeqLM", "t5": "T5Seq2SeqLM"}[name]
    states = backbone(inputs, training=False)["encoder_sequence_output"]
    logits = getattr(keras_hub.models, task)(backbone)(inputs, training=False)
    return {**given, "states": np.asarray(states), "logits": np.asarray(logits)}


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        if sys.argv[1] == "checkpoints":
            np.savez_compressed(
                DATA / "checkpoints.npz", **checkpoint_reference(Path(temporary))
            )
        elif sys.argv[1] == "raw_articles":
            summaries = reference_summaries(Path(temporary))
            content = json.dumps(summaries, indent=1, ensure_ascii=False)
            (DATA / "raw_articles.json").write_text(f"{content}\n")
        else:
            results, presets = preset_reference(Path(temporary))
            np.savez_compressed(DATA / "presets.npz", **results)
            lines = [f'"{name}": {json.dumps(one)}' for name, one in presets.items()]
            content = ",\n".join(lines)
            (DATA / "presets.json").write_text(f"{{\n{content}\n}}\n")
