"""Reads generation_config.json as search settings and special tokens, and writes it.

The result is the search of `generate` in transformers, if the caller sets nothing.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from precis.model.errors import DataError, UsageError
from precis.model.search.config import SearchConfig, SpecialTokens

# Field of `SearchConfig`, name in the file, and the default of transformers.
_FIELDS: tuple[tuple[str, str, Any], ...] = (
    ("beam_width", "num_beams", 1),
    ("n_best", "num_return_sequences", 1),
    ("no_repeat_ngram", "no_repeat_ngram_size", 0),
    ("repetition_penalty", "repetition_penalty", 1.0),
    ("length_penalty", "length_penalty", 1.0),
)
# The value in a checkpoint -> `SearchConfig.early_stopping`.
_EARLY_STOPPING = {False: "bound", True: "first_k", "never": "never"}
DEFAULT_NEW_TOKENS = 20  # the default of transformers
# Settings of every search in transformers that differ from the defaults here.
DEFAULTS: Mapping[str, Any] = {
    "length_penalty_form": "average",
    "unfinished": "compete",
}
# Settings that are not supported. None, 0 and empty values turn them off; so does 1 for
# the last three.
UNKNOWN_HERE = """
    do_sample diversity_penalty encoder_no_repeat_ngram_size bad_words_ids max_time
    exponential_decay_length_penalty begin_suppress_tokens sequence_bias constraints
    force_words_ids penalty_alpha renormalize_logits stop_strings dola_layers
    prompt_lookup_num_tokens watermarking_config
    num_beam_groups encoder_repetition_penalty guidance_scale
""".split()


def task_settings(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings for summaries in a config.json: a prefix of the source, and
    generation settings, which override all others.

    Raises:
      DataError: the field is not a mapping of settings.
    """
    task: Any = (settings.get("task_specific_params") or {}).get("summarization") or {}
    if not isinstance(task, Mapping) or not isinstance(task.get("prefix") or "", str):
        raise DataError(
            f"config.json: task_specific_params.summarization is {task!r}, but must "
            "be an object whose prefix is a string; correct or remove it"
        )
    return task


def read_generation(
    settings: Mapping[str, Any],
    generation: Mapping[str, Any] | None,
    *,
    is_general: bool = False,
) -> tuple[SearchConfig, SpecialTokens]:
    """The search settings and the special tokens of a checkpoint.

    Args:
      settings: config.json: the special tokens that `generation` lacks, or all settings
          if there is no `generation`. Its `task_settings` override both.
      generation: generation_config.json, if there is one.
      is_general: whether it is a language model for many tasks. Then sampling is
          ignored, and the default length is long enough for summaries.

    Raises:
      DataError: a setting is not supported, or two settings contradict.
    """
    general = settings if generation is None else generation
    # The form of BART files of 2020.
    if generation is None and settings.get("force_bos_token_to_be_generated"):
        general = {**settings, "forced_bos_token_id": settings.get("bos_token_id")}
    values = {**general, **task_settings(settings)}
    values = {name: value for name, value in values.items() if value is not None}
    if is_general:
        values = _for_summaries(settings, values)
    for name in UNKNOWN_HERE:
        is_off = not values.get(name) or (
            name in UNKNOWN_HERE[-3:] and values[name] == 1
        )
        if not is_off:
            raise DataError(
                f"{name} is {values[name]!r}, which precis does not support; remove "
                "it from generation_config.json"
            )
    special = _special_tokens(settings, values, is_general=is_general)
    return _search_config(values), special


def _for_summaries(
    settings: Mapping[str, Any], values: Mapping[str, Any]
) -> dict[str, Any]:
    """The generation settings of a language model for many tasks. Without an encoder,
    the lengths in the file include the prompt. The default of transformers, 20 tokens,
    is too short for a summary.
    """
    counts_prompt = not settings.get("is_encoder_decoder")
    if counts_prompt and values.get("min_length"):
        raise DataError(
            f"min_length is {values['min_length']}, which includes the prompt; write "
            "min_new_tokens instead in generation_config.json"
        )
    longest = {"max_new_tokens": SearchConfig().max_summary_tokens}
    if "max_length" in values and not counts_prompt:
        longest = {}
    return {**longest, **values, "do_sample": False}


def _search_config(values: Mapping[str, Any]) -> SearchConfig:
    early_stopping = values.get("early_stopping", False)
    if early_stopping not in _EARLY_STOPPING:
        raise DataError(
            f"early_stopping is {early_stopping!r}, but must be one of "
            f"{', '.join(map(str, _EARLY_STOPPING))}; correct generation_config.json"
        )
    fields: dict[str, Any] = {}
    for here, there, default in _FIELDS:
        value = values.get(there, default)
        fields[here] = float(value) if isinstance(default, float) else value
    # `max_length` and `min_length` include the start token.
    longest = values.get("max_length", DEFAULT_NEW_TOKENS + 1) - 1
    longest = values.get("max_new_tokens", longest)
    shortest = max(0, values.get("min_new_tokens", values.get("min_length", 0) - 1))
    try:
        return SearchConfig(
            **fields,
            **DEFAULTS,
            max_summary_tokens=longest,
            # With a longer minimum, `generate` ends every summary at the maximum.
            min_summary_tokens=min(shortest, longest),
            # Greedy search applies the penalty before the softmax.
            repetition_penalty_form=(
                "logits" if fields["beam_width"] == 1 else "log_probs"
            ),
            early_stopping=_EARLY_STOPPING[early_stopping],
        )
    except UsageError as error:
        raise DataError(
            f"invalid generation settings: {error}; correct generation_config.json"
        ) from error


def _special_tokens(
    settings: Mapping[str, Any], values: Mapping[str, Any], *, is_general: bool
) -> SpecialTokens:
    """Reads the special tokens.

    Args:
      settings: config.json, for the tokens that `values` lacks.
      values: the generation settings without None.
      is_general: as for `read_generation`.
    """
    stated = {**settings, **values}
    ends: Any = stated.get("eos_token_id")
    ends = ends if isinstance(ends, list) and ends else [ends]
    stated["eos_token_id"] = ends[0]
    names = ("decoder_start_token_id", "eos_token_id", "pad_token_id")
    needed = {name: _single_token(stated, name) for name in names}
    if needed["decoder_start_token_id"] is None:
        needed["decoder_start_token_id"] = stated.get("bos_token_id")
    for name, token in needed.items():
        if token is None and is_general:  # not read after a prompt
            needed[name] = token = ends[0]
        if token is None:
            raise DataError(f"{name} is missing; add it to config.json")
    first = _single_token(values, "forced_bos_token_id")
    last = _single_token(values, "forced_eos_token_id")
    suppressed = tuple(values.get("suppress_tokens", ()))
    for token in (*needed.values(), *ends, first, last, *suppressed):
        if token is not None and not 0 <= token < settings["vocab_size"]:
            raise DataError(
                f"the special token {token} must be at least 0 and below vocab_size "
                f"({settings['vocab_size']}); correct generation_config.json"
            )
    start, end, pad = needed.values()
    return SpecialTokens(
        start_id=start,
        end_id=end,
        pad_id=pad,
        suppressed=suppressed,
        prefix=() if first is None else (first,),
        last_id=last,
        more_end_ids=tuple(ends[1:]),
    )


def _single_token(values: Mapping[str, Any], name: str) -> Any:
    """A token id, which may be given as a list of one id; None if it is missing."""
    value = values.get(name)
    if not isinstance(value, list):
        return value
    if len(value) != 1:
        raise DataError(
            f"{name} is {value}, but precis supports only one such token; keep one in "
            "generation_config.json"
        )
    return value[0]


def generation_settings(config: SearchConfig, special: SpecialTokens) -> dict[str, Any]:
    """The content of generation_config.json.

    Args:
      config: the search settings.
      special: the special tokens of the network.

    Raises:
      UsageError: transformers cannot do this search: the settings would be read back
          as other settings.
    """
    early_stopping = {here: there for there, here in _EARLY_STOPPING.items()}
    first = special.prefix[0] if special.prefix else None
    settings: dict[str, Any] = {
        **{there: getattr(config, here) for here, there, _ in _FIELDS},
        "decoder_start_token_id": special.start_id,
        "eos_token_id": [*special.end_ids] if special.more_end_ids else special.end_id,
        "pad_token_id": special.pad_id,
        "do_sample": False,
        "max_new_tokens": config.max_summary_tokens,
        "min_new_tokens": config.min_summary_tokens or None,
        "early_stopping": early_stopping[config.early_stopping],
        "forced_bos_token_id": first,
        "forced_eos_token_id": special.last_id,
        "suppress_tokens": list(special.suppressed) or None,
    }
    if config.length_penalty_form == "none":
        settings["length_penalty"] = 0.0
    if config.beam_width == 1:
        del settings["length_penalty"], settings["early_stopping"]
    settings = {name: value for name, value in settings.items() if value is not None}
    read, read_special = read_generation({"vocab_size": math.inf}, settings)
    here = {**_effects(config), "the first tokens": special.prefix}
    there = {**_effects(read), "the first tokens": read_special.prefix}
    for name, value in here.items():
        if value != there[name]:
            raise UsageError(
                f"transformers cannot search like this: {name} is {value} here, but "
                f"would be {there[name]} there; use that value, or `precis summarize`"
            )
    return settings


def _effects(config: SearchConfig) -> dict[str, Any]:
    """The settings of a search that have an effect."""
    settings = dataclasses.asdict(config)
    if config.length_penalty_form == "none":
        settings |= {"length_penalty_form": "average", "length_penalty": 0.0}
    if config.repetition_penalty == 1:
        del settings["repetition_penalty_form"]
    if config.beam_width == 1:
        for name in (*DEFAULTS, "length_penalty", "early_stopping"):
            del settings[name]
    return settings
