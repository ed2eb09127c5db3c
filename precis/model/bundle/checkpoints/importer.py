"""Reads a checkpoint in the layout of Hugging Face as a network or as an encoder.

config.json               the architecture and its sizes
generation_config.json    the search settings; optional
model.safetensors         the tensors, in a single file or in files that an index names
"""

import contextlib
import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from precis.model import files
from precis.model.bundle.checkpoints.bert import (
    BERT,
    DISTILBERT,
    ROBERTA,
    ROBERTA_CHECKER,
    read_checker,
)
from precis.model.bundle.checkpoints.encoder_decoder import BART, MT5, PEGASUS, T5
from precis.model.bundle.checkpoints.family import Family
from precis.model.bundle.checkpoints.generation import read_generation, task_settings
from precis.model.bundle.checkpoints.rotary import (
    CHAT_FILES,
    LLAMA,
    MODERNBERT,
    QWEN2,
    QWEN3,
    T5GEMMA2,
)
from precis.model.bundle.manifest import check_finite
from precis.model.errors import DataError, UsageError
from precis.model.network.config import DecoderOnlyConfig, TransformerConfig
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.tokenization.imported import TOKENIZER_FILE

CONFIG_FILE = "config.json"
GENERATION_FILE = "generation_config.json"
WEIGHTS_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
# The files of a checkpoint that are read, besides its weights.
DESCRIPTION_FILES = (
    CONFIG_FILE,
    GENERATION_FILE,
    TOKENIZER_FILE,
    INDEX_FILE,
    *CHAT_FILES,
)
# The families by model_type.
FAMILIES: Mapping[str, Family] = {
    "bart": BART,
    "pegasus": PEGASUS,
    "t5": T5,
    "mt5": MT5,
    "t5gemma2": T5GEMMA2,
    "llama": LLAMA,
    "qwen2": QWEN2,
    "qwen3": QWEN3,
    "bert": BERT,
    "roberta": ROBERTA,
    "distilbert": DISTILBERT,
    "modernbert": MODERNBERT,
}
_SERVE = "serve it with llama.cpp or vLLM: `bundle=openai://HOST:PORT/v1#MODEL`"
_QUANTIZED = (
    "Quantized weights (GPTQ, AWQ, GGUF) cannot be read; import the checkpoint they "
    f"were made from, or {_SERVE}"
)
# Advice for checkpoints of other types, by patterns of model_type.
_INSTEAD: Mapping[str, str] = {
    "led|longt5|bigbird_pegasus": (
        "for long documents use bart, pegasus or t5 with `long_documents=chunk_merge`, "
        "which reads the whole article"
    ),
    "marian|mbart|m2m_100|nllb-moe": (
        "for languages other than English use a checkpoint of type mt5"
    ),
    "": f"use one of these, or {_SERVE}",
}
_ADAPTER_FILE = "adapter_config.json"
# What DistributedDataParallel and torch.compile put before the names of all tensors.
_WRAPPERS = re.compile(r"((module|_orig_mod)\.)*")
# The number formats of safetensors that weights may have.
_FORMATS = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "BF16": "<u2"}
_WAY_OUT = "download the checkpoint again"


class Checkpoint(NamedTuple):
    """The network of a checkpoint, without its tokenizer.

    Attributes:
      network: the network, or the encoder, with the weights of the checkpoint.
      decoding: the search settings of a writer.
      special: the special tokens of a writer.
      task_prefix: the text that a writer expects before every document, or "".
    """

    network: Any
    decoding: SearchConfig | None = None
    special: SpecialTokens | None = None
    task_prefix: str = ""


def read_checkpoint_settings(folder: str) -> dict[str, Any]:
    """Reads the config.json of a checkpoint.

    Raises:
      UsageError: the folder is not a checkpoint, or its model_type is not supported.
      DataError: config.json is damaged.
    """
    if not files.exists(files.join(folder, CONFIG_FILE)):
        _refuse_adapter(folder)
        raise UsageError(
            f"{folder}: not a checkpoint (no {CONFIG_FILE}); name the folder of a "
            f"downloaded checkpoint. {_QUANTIZED}"
        )
    settings = files.read_object(files.join(folder, CONFIG_FILE), way_out=_WAY_OUT)
    model_type = settings.get("model_type")
    if model_type not in list(FAMILIES):  # a list, as it may not be hashable
        kinds = (kind for kind in _INSTEAD if re.fullmatch(kind, str(model_type)))
        instead = _INSTEAD[next(kinds, "")]
        writers = [name for name, family in FAMILIES.items() if family.class_name]
        readers = [name for name in FAMILIES if name not in writers]
        raise UsageError(
            f"{folder}: model_type is {model_type!r}, but must be one of "
            f"{', '.join(writers)}, which write summaries, or {', '.join(readers)}, "
            f"which are encoders; {instead} (docs/MODELS.md, Checkpoints of other "
            "projects)"
        )
    if "quantization_config" in settings:
        raise UsageError(
            f"{folder}: {CONFIG_FILE} holds a quantization_config. {_QUANTIZED}"
        )
    return settings


def _refuse_adapter(folder: str) -> None:
    if files.exists(files.join(folder, _ADAPTER_FILE)):
        raise UsageError(
            f"{folder}: {_ADAPTER_FILE} is of a LoRA adapter; merge it into its model, "
            "with peft: AutoPeftModelForSeq2SeqLM.from_pretrained(DIR)"
            ".merge_and_unload().save_pretrained(NEW)"
        )


def load_checkpoint(
    folder: str, *, precision: str = "float32", max_source_tokens: int = 0
) -> Checkpoint:
    """Reads the network of a checkpoint and its generation settings.

    Args:
      folder: the folder of the checkpoint; its tokenizer is not read.
      precision: the precision in which layers compute. The weights are always float32.
      max_source_tokens: the length at which sources are cut off; 0 takes the length in
          config.json.

    Raises:
      UsageError: the folder is not a checkpoint that can be imported, or it has too few
          positions for `max_source_tokens`.
      DataError: a file is damaged, a tensor is missing, unexpected or has another
          shape, or a setting is not supported.
    """
    settings = read_checkpoint_settings(folder)
    checker = read_checker(settings)
    family = ROBERTA_CHECKER if checker else FAMILIES[settings["model_type"]]
    is_writer = bool(family.class_name)
    with _naming(folder):
        has_sides = is_writer and family.config is TransformerConfig
        if has_sides and settings.get("is_encoder_decoder") is False:
            raise DataError(
                f"{CONFIG_FILE}: is_encoder_decoder is false, but summaries need both "
                "encoder and decoder; import the whole checkpoint"
            )
        with files.naming_damage(CONFIG_FILE, way_out=_WAY_OUT):
            config = family.network(settings)
        if checker:
            config = dataclasses.replace(config, labels=checker["labels"])
        search = [*_read_search(folder, settings, family)] if is_writer else []
        are_learned = config.positions == "learned"
        # The number of positions is not a limit, unless the prompt counts too.
        if has_sides and not are_learned:
            longest = max(config.max_target_tokens, search[0].max_summary_tokens)
            config = dataclasses.replace(config, max_target_tokens=longest)
    room = config.max_source_tokens if are_learned else max_source_tokens
    if family.config is DecoderOnlyConfig:  # the summary follows the source
        room = settings.get("max_position_embeddings", 2048) - config.max_target_tokens
    if max_source_tokens > room:
        raise UsageError(
            f"{folder}: `max_source_tokens=` is {max_source_tokens}, but this "
            f"checkpoint has only {room} positions for a source; set it to {room} or "
            "less"
        )
    tensors = read_tensors(folder, family)
    with _naming(folder):
        if max_source_tokens:
            if are_learned:
                _cut_positions(tensors, family, config, max_source_tokens)
            config = dataclasses.replace(config, max_source_tokens=max_source_tokens)
        if is_writer:
            is_apart = settings.get("tie_word_embeddings") is False
            config = _with_output(config, tensors, family, is_apart=is_apart)
        # After all checks, because TensorFlow takes seconds to import.
        from precis.model.network.build import build_network

        with files.naming_damage(CONFIG_FILE, way_out=_WAY_OUT):
            network = build_network(config, precision=precision)
        _assign(network, tensors, family)
    return Checkpoint(network, *search)


def _read_search(
    folder: str, settings: Mapping[str, Any], family: Family
) -> tuple[Any, ...]:
    """Reads the search settings, special tokens and task prefix of a checkpoint."""
    path = files.join(folder, GENERATION_FILE)
    generation, name = None, CONFIG_FILE
    if files.exists(path):
        generation, name = files.read_object(path, way_out=_WAY_OUT), GENERATION_FILE
    else:
        settings = {**family.defaults, **settings}
    with files.naming_damage(name, way_out=_WAY_OUT):
        search = read_generation(settings, generation, is_general=family.is_general)
        return *search, task_settings(settings).get("prefix") or ""


def _cut_positions(
    tensors: dict[str, np.ndarray], family: Family, config: Any, max_source_tokens: int
) -> None:
    """Cuts the table of learned positions after `max_source_tokens` tokens.

    A table whose number of rows differs from config.json is left, and refused later.
    """
    name, first = family.names["source_input/positions"], family.first_position
    if len(tensors.get(name, ())) == config.max_source_tokens + first:
        tensors[name] = tensors[name][: max_source_tokens + first]


def weight_files(folder: str) -> list[str]:
    """The names of the files that hold the weights of a checkpoint.

    Raises:
      UsageError: there are no such files, or only a pickle.
      DataError: a file that the index names is outside the folder.
    """
    if files.exists(files.join(folder, WEIGHTS_FILE)):
        return [WEIGHTS_FILE]
    path = files.join(folder, INDEX_FILE)
    if files.exists(path):
        content = files.read_object(path, way_out=_WAY_OUT, fields={"weight_map": dict})
        with files.naming_damage(path, way_out=_WAY_OUT):
            shards = sorted(set(content["weight_map"].values()))
        for name in shards:
            files.path_within(folder, name, listed_in=path)
        return shards
    _refuse_adapter(folder)
    raise UsageError(
        f"{folder}: there is no {WEIGHTS_FILE} or {INDEX_FILE}. A pickle "
        "(pytorch_model.bin) is not read, as it may run any program. If you trust it, "
        "convert it once: CLASS.from_pretrained(DIR).save_pretrained(NEW, "
        "safe_serialization=True), where CLASS is AutoModelForSeq2SeqLM of "
        "transformers, AutoModel for an encoder, or "
        f"AutoModelForSequenceClassification for a claim checker. {_QUANTIZED}"
    )


def read_tensors(folder: str, family: Family) -> dict[str, np.ndarray]:
    """Reads the tensors that a network may need, float32, by current name.

    Raises:
      UsageError: there is no file of weights that can be read.
      DataError: a file is missing or damaged, or a weight is not finite or has another
          number format.
    """
    from safetensors import SafetensorError, deserialize

    tensors: dict[str, np.ndarray] = {}
    for file in weight_files(folder):
        path = files.join(folder, file)
        with files.naming_damage(path, way_out=_WAY_OUT):
            try:
                entries = deserialize(files.read_bytes(path))
            except SafetensorError as error:
                raise ValueError(error) from error
        for stored_name, entry in entries:
            name = family.current_name(_WRAPPERS.sub("", stored_name, count=1))
            if re.match(family.ignored, name):
                continue
            if entry["dtype"] not in _FORMATS:
                raise DataError(
                    f"{path}: {name} has the number format {entry['dtype']}, but only "
                    "floating-point weights of 16, 32 or 64 bits can be read; "
                    "download the checkpoint in such a format"
                )
            values = np.frombuffer(entry["data"], _FORMATS[entry["dtype"]])
            if entry["dtype"] == "BF16":  # the upper half of a float32
                values = (values.astype("<u4") << 16).view("<f4")
            values = values.reshape(entry["shape"]).astype("float32", copy=False)
            check_finite(path, [(stored_name, values)], way_out=_WAY_OUT)
            tensors |= family.parts(name, values)
    return tensors


def _with_output(
    config: Any, tensors: dict[str, np.ndarray], family: Family, *, is_apart: bool
) -> Any:
    """Returns the configuration, with a separate output layer if the tensors have one.

    The embedding table in `tensors` gets its first name, and its copies are removed.

    Args:
      config: the configuration of the network.
      tensors: the tensors of the checkpoint, by current name.
      family: the family of the checkpoint.
      is_apart: whether config.json says that the output layer is not the embedding
          table. Then neither replaces the other if it is missing.

    Raises:
      DataError: the copies of the table differ, or a separate output would be scaled.
    """
    table, *inputs, output = family.embedding
    is_tied = config.tied_output
    if is_tied and (is_apart or output in tensors):
        stored = [tensors[name] for name in (table, *inputs) if name in tensors]
        written = tensors.get(output)
        is_tied = (
            written is not None
            and bool(stored or not is_apart)
            and all(np.array_equal(written, each) for each in stored)
        )
    # With a separate output, the table itself is not read if it has copies.
    copies = [
        name for name in (family.embedding if is_tied else inputs) if name in tensors
    ]
    for name in copies:
        if not np.array_equal(tensors[name], tensors[copies[0]]):
            raise DataError(
                f"{copies[0]} and {name} differ, but precis needs one embedding for "
                "source and target; the checkpoint cannot be imported"
            )
    if copies:
        values = [tensors.pop(name) for name in copies]
        tensors[table] = values[0]
    if is_tied == config.tied_output:
        return config
    if isinstance(config, DecoderOnlyConfig):
        return dataclasses.replace(config, tied_output=is_tied)
    if config.scaled_output:
        raise DataError(
            f"{output} differs from the embedding table, but {CONFIG_FILE} scales the "
            "output as if they were equal; if it was trained separately, set "
            "tie_word_embeddings to false there"
        )
    # A separate output layer brings a bias.
    return dataclasses.replace(config, tied_output=is_tied, logits_bias=False)


def _assign(network: Any, tensors: Mapping[str, np.ndarray], family: Family) -> None:
    """Sets all weights of a network from the tensors of a checkpoint, by current name.

    Raises:
      DataError: a tensor is missing, unexpected or has another shape.
    """
    names = {weight.path: family.tensor_name(weight.path) for weight in network.weights}
    needed = {*names.values(), *family.added.values()}
    missing = needed - tensors.keys() - {*family.optional}
    missing = {name for name in missing if not re.fullmatch(family.omitted, name)}
    if missing:
        _refuse_wrapped(min(missing), tensors)
        raise DataError(
            f"the checkpoint lacks {_listed(missing)}, which {CONFIG_FILE} requires; "
            "download both again"
        )
    unexpected = tensors.keys() - needed - {*family.optional}
    if unexpected:
        raise DataError(
            f"the checkpoint holds {_listed(unexpected)}, which this architecture "
            "does not have; import a checkpoint of the standard architecture"
        )
    for weight in network.weights:
        name = names[weight.path]
        if name in tensors:
            weight.assign(_weight_values(weight, name, tensors, family))
        else:
            weight.assign(np.zeros(weight.shape, "float32"))


def _refuse_wrapped(missing: str, names: Iterable[str]) -> None:
    """Refuses a checkpoint whose tensors have other names because of what is around the
    network: PEFT, or a module of PyTorch Lightning.
    """
    if any(".lora_" in name for name in names):
        raise DataError(
            "the checkpoint holds the layers of a LoRA adapter; merge them before it "
            "is saved: MODEL.merge_and_unload().save_pretrained(NEW)"
        )
    wrapped = next((name for name in names if name.endswith(f".{missing}")), "")
    if wrapped:
        raise DataError(
            f"the names of its tensors begin with {wrapped.removesuffix(missing)!r}; "
            "save the model inside the wrapper: MODEL.save_pretrained(NEW)"
        )


def _weight_values(
    weight: Any, name: str, tensors: Mapping[str, np.ndarray], family: Family
) -> np.ndarray:
    """The values of a weight, float32, in the shape of the weight.

    A checkpoint stores linear layers as [out, in], and its position tables may begin
    with rows that are never read.
    """
    leaf = weight.path.rsplit("/", 1)[1]
    shape = expected = tuple(weight.shape)
    skipped = family.first_position if leaf == "positions" else 0
    if leaf == "kernel":
        expected = shape[::-1]
    elif leaf == "positions":
        expected = (shape[0] + skipped, shape[1])
    elif name in family.optional:
        expected = (1, *shape)
    values = tensors[name]
    _check_shape(name, values, expected)
    if name in family.added:
        other = family.added[name]
        _check_shape(other, tensors[other], (len(tensors[other]), *expected[1:]))
        values = values + tensors[other][0]
    if leaf == "scale":
        values = values + family.norm_offset
    return values.T if leaf == "kernel" else values[skipped:].reshape(shape)


def _check_shape(name: str, values: np.ndarray, expected: tuple[int, ...]) -> None:
    if values.shape != expected:
        raise DataError(
            f"{name} has the shape {list(values.shape)}, but {CONFIG_FILE} requires "
            f"{list(expected)}; download both again"
        )


def _listed(names: Iterable[str]) -> str:
    """At most five of the names, and the number of the others."""
    ordered = sorted(names)
    text = ", ".join(ordered[:5])
    return f"{text} and {len(ordered) - 5} more" if len(ordered) > 5 else text


@contextlib.contextmanager
def _naming(folder: str) -> Iterator[None]:
    """Adds the folder to the beginning of error messages."""
    try:
        yield
    except (DataError, UsageError) as error:
        raise DataError(f"{folder}: {error}") from error
