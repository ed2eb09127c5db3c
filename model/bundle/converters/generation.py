"""The generation settings of a checkpoint as a `SearchConfig` and special tokens.

The result is the search that transformers does with a checkpoint for summaries when the
caller sets nothing.
"""

from collections.abc import Mapping
from typing import Any

from precis.model.errors import DataError, UsageError
from precis.model.search.config import SearchConfig, SpecialTokens

# Settings that no search here supports, with the value that turns each of them off.
# None, 0 and empty values turn all of them off.
UNSUPPORTED: Mapping[str, Any] = {
    "do_sample": False,
    "num_beam_groups": 1,
    "diversity_penalty": 0.0,
    "encoder_no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1.0,
    "exponential_decay_length_penalty": None,
    "bad_words_ids": None,
    "begin_suppress_tokens": None,
    "sequence_bias": None,
    "constraints": None,
    "force_words_ids": None,
    "guidance_scale": 1.0,
    "penalty_alpha": None,
    "renormalize_logits": False,
    "stop_strings": None,
    "max_time": None,
    "dola_layers": None,
    "prompt_lookup_num_tokens": None,
    "watermarking_config": None,
}
# The value in a checkpoint -> `SearchConfig.early_stopping`.
EARLY_STOPPING = {False: "bound", True: "first_k", "never": "never"}
DEFAULT_NEW_TOKENS = 20  # the default of transformers


def task_settings(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings for summaries in a config.json.

    They are a prefix of the source and generation settings that override all others.

    Raises:
      DataError: the field does not hold settings.
    """
    task: Any = (settings.get("task_specific_params") or {}).get("summarization") or {}
    if not isinstance(task, Mapping) or not isinstance(task.get("prefix") or "", str):
        raise DataError(
            f"config.json: task_specific_params.summarization is {task!r}, and must be "
            "settings by name with a text as the prefix; correct it, or take it out"
        )
    return task


def read_generation(
    settings: Mapping[str, Any], generation: Mapping[str, Any] | None
) -> tuple[SearchConfig, SpecialTokens]:
    """The search settings and the special tokens of a checkpoint.

    Args:
      settings: config.json. It gives the special tokens that `generation` lacks, and
          all settings where there is no `generation`. Its `task_settings` override
          both.
      generation: generation_config.json, if there is one.

    Raises:
      DataError: no search here supports a setting, or two settings contradict.
    """
    general = settings if generation is None else generation
    merged = {**general, **task_settings(settings)}
    values = {name: value for name, value in merged.items() if value is not None}
    for name, neutral in UNSUPPORTED.items():
        if values.get(name) and values[name] != neutral:
            raise DataError(
                f"{name} is {values[name]!r}, and no search here has it; "
                f"take it out of generation_config.json, or set {neutral!r}"
            )
    return _search_config(values), _special_tokens(settings, values)


def _search_config(values: Mapping[str, Any]) -> SearchConfig:
    early_stopping = values.get("early_stopping", False)
    if early_stopping not in EARLY_STOPPING:
        raise DataError(
            f"early_stopping is {early_stopping!r} and must be one of "
            f"{', '.join(map(str, EARLY_STOPPING))}; correct generation_config.json"
        )
    # The lengths of transformers include the start token; those of new tokens do not.
    if "max_new_tokens" in values:
        longest = values["max_new_tokens"]
    else:
        longest = values.get("max_length", DEFAULT_NEW_TOKENS + 1) - 1
    if "min_new_tokens" in values:
        shortest = values["min_new_tokens"]
    else:
        shortest = values.get("min_length", 0) - 1
    beam_width = values.get("num_beams", 1)
    try:
        return SearchConfig(
            beam_width=beam_width,
            n_best=values.get("num_return_sequences", 1),
            length_penalty=float(values.get("length_penalty", 1.0)),
            length_penalty_form="average",
            min_summary_tokens=max(0, shortest),
            max_summary_tokens=longest,
            no_repeat_ngram=values.get("no_repeat_ngram_size", 0),
            repetition_penalty=float(values.get("repetition_penalty", 1.0)),
            # Greedy search applies the penalty before the softmax.
            repetition_penalty_form="logits" if beam_width == 1 else "log_probs",
            early_stopping=EARLY_STOPPING[early_stopping],
            unfinished="compete",
        )
    except UsageError as error:
        raise DataError(
            f"the generation settings cannot be: {error}; "
            "correct generation_config.json"
        ) from error


def _special_tokens(
    settings: Mapping[str, Any], values: Mapping[str, Any]
) -> SpecialTokens:
    """The special tokens.

    Args:
      settings: config.json, for the tokens that `values` lacks.
      values: the generation settings without None.
    """
    general = {name: value for name, value in settings.items() if value is not None}
    both = {**general, **values}
    needed = {
        "decoder_start_token_id": both.get(
            "decoder_start_token_id", both.get("bos_token_id")
        ),
        "eos_token_id": _single_token(both, "eos_token_id"),
        "pad_token_id": both.get("pad_token_id"),
    }
    for name, token in needed.items():
        if token is None:
            raise DataError(f"{name} is missing; add it to config.json")
    first = _single_token(values, "forced_bos_token_id")
    last = _single_token(values, "forced_eos_token_id")
    suppressed = tuple(values.get("suppress_tokens", ()))
    for token in (*needed.values(), first, last, *suppressed):
        if token is not None and not 0 <= token < settings["vocab_size"]:
            raise DataError(
                f"the special token {token} is none of the {settings['vocab_size']} "
                "of vocab_size; correct generation_config.json"
            )
    return SpecialTokens(
        start_id=needed["decoder_start_token_id"],
        end_id=needed["eos_token_id"],
        pad_id=needed["pad_token_id"],
        suppressed=suppressed,
        prefix=() if first is None else (first,),
        last_id=last,
    )


def _single_token(values: Mapping[str, Any], name: str) -> Any:
    """A token id, which may be given as a list of one id; None where there is none."""
    value = values.get(name)
    if not isinstance(value, list):
        return value
    if len(value) != 1:
        raise DataError(
            f"{name} is {value}, and a search here knows one such token; "
            "leave one in generation_config.json"
        )
    return value[0]
