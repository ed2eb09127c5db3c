"""Random encoder-decoder checkpoints and what transformers computes with them.

`test_checkpoint_parity.py` runs this program in a process of its own, because PyTorch
and TensorFlow cannot be loaded into one process everywhere:

    cd tests && python -m support.import_reference FOLDER

It writes these files:

    FOLDER/NAME/                 a checkpoint
    FOLDER/NAME/reference.npz    inputs, states and logits
    FOLDER/NAME/runs.json        the sequences and scores of each search
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from support import read_table

VOCABULARY, DOCUMENTS = 83, 24


class Case(NamedTuple):
    """A random checkpoint and how it is searched.

    Attributes:
      kind: its model_type.
      shape: settings of its configuration.
      generation: its generation settings.
      runs: the settings of each search. An empty run has those of the checkpoint. None
          means that a setting is absent.
      end: the amount added to the logit of the end token, so that some summaries end
          before the maximum length.
      source_tokens, target_tokens: the lengths of the inputs.
      bfloat16: whether it is saved in bfloat16.
      is_untied: whether the output layer is separate from the embedding table.
      files: changes to its config.json after it was saved.
    """

    kind: str
    shape: Mapping[str, Any]
    generation: Mapping[str, Any]
    runs: list[Mapping[str, Any]]
    end: float = 3.0
    source_tokens: int = 24
    target_tokens: int = 9
    bfloat16: bool = False
    is_untied: bool = False
    files: Mapping[str, Any] = {}


_READ = read_table("import_cases")
CHECKPOINTS = {name: Case(**fields) for name, fields in _READ["cases"].items()}
# A small T5, and how a FLAN-T5 differs from it.
T5_SHAPE, FLAN = _READ["shared"]["t5_shape"], _READ["shared"]["flan"]


def make_model(case: Case, seed: int) -> Any:
    """A random network, in which all norms and biases are random, too."""
    import torch
    from transformers import AutoConfig, AutoModelForSeq2SeqLM

    torch.manual_seed(seed)
    settings = dict(case.shape)
    # transformers ties T5 whatever its file says. A separate output layer of T5 is set
    # below.
    if not _is_t5(case):
        settings["tie_word_embeddings"] = not case.is_untied
        settings["init_std"] = 0.3 if case.kind == "bart" else 0.4
    config = AutoConfig.for_model(case.kind, vocab_size=VOCABULARY, **settings)
    config.decoder_start_token_id = 2 if case.kind == "bart" else 0
    model = AutoModelForSeq2SeqLM.from_config(config).eval()
    start = {"decoder_start_token_id": config.decoder_start_token_id}
    for key, value in {**case.generation, **start}.items():
        setattr(model.generation_config, key, value)
    with torch.no_grad():
        for path, weight in model.named_parameters():
            _change_weight(path, weight, case)
        if case.is_untied:
            _untie(model, case)
        _favour_the_end(model, case)
    return model


def _is_t5(case: Case) -> bool:
    return case.kind in ("t5", "mt5")


def _change_weight(path: str, weight: Any, case: Case) -> None:
    """Makes norms, biases and positions random, and the output depend on the source."""
    import torch

    if weight.ndim == 1:
        is_bias = path.endswith("bias")
        scale = 0.05 if case.kind == "pegasus" and is_bias else 0.3
        is_norm_scale = "norm" in path and path.endswith("weight")
        weight.copy_(scale * torch.randn_like(weight) + is_norm_scale)
    if "relative_attention_bias" in path:
        weight.copy_(torch.randn_like(weight))
    if "encoder_attn.out_proj" in path or "EncDecAttention.o" in path:
        weight.mul_(4.0)
    # Where the norm comes first, a tied output layer would repeat the last token.
    if (
        case.kind != "bart"
        and path.startswith(("model.decoder", "decoder"))
        and path.endswith(("fc2.weight", "wo.weight"))
    ):
        weight.mul_(8.0)
    if path == "shared.weight" and _is_t5(case) or "text_model.embed_tokens.w" in path:
        weight.mul_(3.0)  # So that there are few ties.


def _untie(model: Any, case: Case) -> None:
    """Separates the output layer from the embedding table."""
    import torch

    if _is_t5(case):
        output = torch.randn_like(model.lm_head.weight)
        model.lm_head.weight = torch.nn.Parameter(output)
        return
    # transformers then has a table for source and target each, a network here has one.
    table = model.model.encoder.embed_tokens.weight
    model.model.decoder.embed_tokens.weight.copy_(table)


def _favour_the_end(model: Any, case: Case) -> None:
    """Raises the logit of the end token, so that some summaries end early."""
    import torch

    if case.kind in ("bart", "pegasus"):
        model.final_logits_bias.copy_(torch.randn_like(model.final_logits_bias))
        model.final_logits_bias[0, model.config.eos_token_id] += case.end
        return
    # The others have no bias of the logits. A vector that all embeddings share is in
    # every state, and the output layer of the end token has more of it.
    table = model.get_input_embeddings().weight
    common = torch.randn(table.shape[1])
    table += common
    model.get_output_embeddings().weight[model.config.eos_token_id] += case.end * common


def inputs(
    case: Case, seed: int, *, pad: int, start: int, end: int
) -> tuple[np.ndarray, np.ndarray]:
    """Random inputs.

    Returns:
      Sources, int64 [B, S], of different lengths and filled up with -1, some with the
      padding token within the text; and targets, int64 [B, T], which begin with the
      start token.
    """
    rng = np.random.default_rng(seed)
    source = np.full((DOCUMENTS, case.source_tokens), -1, "int64")
    for number, row in enumerate(source):
        length = rng.integers(3, case.source_tokens + 1)
        first = [0] if case.kind == "bart" else []
        middle = rng.integers(3, VOCABULARY, length - 1 - len(first))
        row[:length] = [*first, *middle, end]
        if number % 3 == 0:
            row[1] = pad
    target = rng.integers(3, VOCABULARY, (DOCUMENTS, case.target_tokens))
    target[:, 0] = start
    return source, target


def write_reference(folder: Path, case: Case, seed: int) -> None:
    """Saves a checkpoint and the results of transformers."""
    import torch
    from transformers import AutoModelForSeq2SeqLM

    model = make_model(case, seed)
    if case.bfloat16:
        model.to(torch.bfloat16)
    # Every fourth checkpoint is split into several files.
    model.save_pretrained(folder, max_shard_size="40KB" if seed % 4 == 3 else "1GB")
    config = {**json.loads((folder / "config.json").read_text()), **case.files}
    (folder / "config.json").write_text(
        json.dumps({key: value for key, value in config.items() if value is not None})
    )
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = model.generation_config
    pad, start, end = ids.pad_token_id, ids.decoder_start_token_id, ids.eos_token_id
    source, target = inputs(case, seed, pad=pad, start=start, end=end)
    source_ids = torch.tensor(np.where(source < 0, pad, source))
    mask = torch.tensor(source >= 0).long()
    with torch.no_grad():
        targets = {"decoder_input_ids": torch.tensor(target)}
        whole = model(input_ids=source_ids, attention_mask=mask, **targets)
        runs = [
            _search(model, source_ids, mask, settings, case) for settings in case.runs
        ]
    results = {"states": whole.encoder_last_hidden_state, "logits": whole.logits}
    np.savez(folder / "reference.npz", source=source, target=target, **results)
    (folder / "runs.json").write_text(json.dumps(runs))


def _search(
    model: Any, source: Any, mask: Any, settings: Mapping[str, Any], case: Case
) -> dict[str, Any]:
    """Runs one search.

    Returns:
      The settings; the sequences, [B * N], without their start token; and their scores,
      or None for greedy search.
    """
    # `generate` takes None for the setting of the checkpoint. A None here removes the
    # setting from the checkpoint during the search.
    removed = [key for key, value in settings.items() if value is None]
    saved = {key: getattr(model.generation_config, key) for key in removed}
    for key in removed:
        setattr(model.generation_config, key, None)
    arguments = {key: value for key, value in settings.items() if value is not None}
    tasks = case.files.get("task_specific_params")
    if not settings and tasks:
        arguments = {**tasks["summarization"]}
        del arguments["prefix"]
    output = model.generate(
        input_ids=source,
        attention_mask=mask,
        **arguments,
        do_sample=False,
        return_dict_in_generate=True,
        output_scores=True,
    )
    for key, value in saved.items():
        setattr(model.generation_config, key, value)
    scores = output.sequences_scores.tolist() if "sequences_scores" in output else None
    return {
        "settings": settings,
        "sequences": output.sequences[:, 1:].tolist(),
        "scores": scores,
    }


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)  # Networks this small are slower on several threads.
    for number, (name, case) in enumerate(CHECKPOINTS.items()):
        write_reference(Path(sys.argv[1]) / name, case, seed=number)
