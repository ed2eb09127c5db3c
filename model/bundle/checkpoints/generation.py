"""generation_config.json, which `generate` of transformers reads, as a search and
special tokens, and the other way round.

What is read is the search that transformers does with a checkpoint for summaries when
the caller sets nothing.
"""

from collections.abc import Mapping
from typing import Any

from precis.model.errors import DataError, UsageError
from precis.model.search.config import SearchConfig, SpecialTokens

# Field of `SearchConfig`, name in the file, and what holds where the file lacks it.
_FIELDS: tuple[tuple[str, str, Any], ...] = (
    ("beam_width", "num_beams", 1),
    ("n_best", "num_return_sequences", 1),
    ("no_repeat_ngram", "no_repeat_ngram_size", 0),
    ("repetition_penalty", "repetition_penalty", 1.0),
    ("length_penalty", "length_penalty", 1.0),
)
# The value in a checkpoint -> `SearchConfig.early_stopping`.
_EARLY_STOPPING = {False: "bound", True: "first_k", "never": "never"}
_DEFAULT_NEW_TOKENS = 20  # the default of transformers
# What every search of transformers does: the search of a bundle that states none, where
# the defaults here differ.
DEFAULTS: Mapping[str, Any] = {
    "length_penalty_form": "average",
    "unfinished": "compete",
}
# Settings that no search here supports, with the value that turns each of them off.
# None, 0 and empty values turn all of them off.
UNKNOWN_HERE: Mapping[str, Any] = {
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
# What no search of transformers has -> the value that turns it off.
_UNKNOWN_THERE: Mapping[str, Any] = {
    "supported": "",
    "common_pieces": 0,
}


def task_settings(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings for summaries in a config.json: a prefix of the source, and
    generation settings that override all others.

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
    values = _without_none({**general, **task_settings(settings)})
    for name, neutral in UNKNOWN_HERE.items():
        if values.get(name) and values[name] != neutral:
            raise DataError(
                f"{name} is {values[name]!r}, and no search here has it; "
                f"take it out of generation_config.json, or set {neutral!r}"
            )
    return _search_config(values), _special_tokens(settings, values)


def _without_none(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def _search_config(values: Mapping[str, Any]) -> SearchConfig:
    early_stopping = values.get("early_stopping", False)
    if early_stopping not in _EARLY_STOPPING:
        raise DataError(
            f"early_stopping is {early_stopping!r} and must be one of "
            f"{', '.join(map(str, _EARLY_STOPPING))}; correct generation_config.json"
        )
    fields: dict[str, Any] = {}
    for here, there, default in _FIELDS:
        value = values.get(there, default)
        fields[here] = float(value) if isinstance(default, float) else value
    # `max_length` and `min_length` include the start token.
    longest = values.get("max_length", _DEFAULT_NEW_TOKENS + 1) - 1
    shortest = values.get("min_length", 0) - 1
    try:
        return SearchConfig(
            **fields,
            **DEFAULTS,
            max_summary_tokens=values.get("max_new_tokens", longest),
            min_summary_tokens=max(0, values.get("min_new_tokens", shortest)),
            # Greedy search applies the penalty before the softmax.
            repetition_penalty_form=_penalty_form(fields["beam_width"]),
            early_stopping=_EARLY_STOPPING[early_stopping],
        )
    except UsageError as error:
        raise DataError(
            f"the generation settings cannot be: {error}; "
            "correct generation_config.json"
        ) from error


def _penalty_form(beam_width: int) -> str:
    return "logits" if beam_width == 1 else "log_probs"


def _special_tokens(
    settings: Mapping[str, Any], values: Mapping[str, Any]
) -> SpecialTokens:
    """The special tokens.

    Args:
      settings: config.json, for the tokens that `values` lacks.
      values: the generation settings without None.
    """
    both = {**_without_none(settings), **values}
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


def generation_settings(config: SearchConfig, special: SpecialTokens) -> dict[str, Any]:
    """The content of generation_config.json.

    Args:
      config: the search.
      special: the special tokens of the network.

    Raises:
      UsageError: transformers has no such search.
    """
    _check(config, special)
    settings: dict[str, Any] = {
        **{there: getattr(config, here) for here, there, _ in _FIELDS},
        "bos_token_id": special.start_id,
        "decoder_start_token_id": special.start_id,
        "eos_token_id": special.end_id,
        "pad_token_id": special.pad_id,
        "do_sample": False,
        "max_new_tokens": config.max_summary_tokens,
    }
    if config.length_penalty_form == "none":
        settings["length_penalty"] = 0.0
    if config.beam_width == 1:
        del settings["length_penalty"]
    else:
        names = {here: there for there, here in _EARLY_STOPPING.items()}
        settings["early_stopping"] = names[config.early_stopping]
    if config.min_summary_tokens:
        settings["min_new_tokens"] = config.min_summary_tokens
    if special.prefix:
        settings["forced_bos_token_id"] = special.prefix[0]
    if special.last_id is not None:
        settings["forced_eos_token_id"] = special.last_id
    if special.suppressed:
        settings["suppress_tokens"] = list(special.suppressed)
    return settings


def _check(config: SearchConfig, special: SpecialTokens) -> None:
    """Refuses a search that transformers does not have."""
    for name, neutral in _UNKNOWN_THERE.items():
        if getattr(config, name) != neutral:
            raise UsageError(
                f"{name} {getattr(config, name)} is no setting of `generate` of "
                "transformers; leave it out, or use `precis summarize`"
            )
    if len(special.prefix) > 1:
        raise UsageError(
            f"a summary begins with {len(special.prefix)} given tokens, and `generate` "
            "of transformers knows one; use `precis summarize`"
        )
    for name, value in DEFAULTS.items():
        is_off = name == "length_penalty_form" and config.length_penalty_form == "none"
        is_other = getattr(config, name) != value and not is_off
        if is_other and config.beam_width > 1:
            raise UsageError(
                f"{name} {getattr(config, name)} is none of `generate` of "
                f"transformers; take {name} {value}, with `precis summarize` "
                "too, for the same summaries"
            )
    form = _penalty_form(config.beam_width)
    if config.repetition_penalty != 1 and config.repetition_penalty_form != form:
        raise UsageError(
            f"repetition_penalty_form {config.repetition_penalty_form}: `generate` "
            f"of transformers multiplies {form} with --beam_width "
            f"{config.beam_width}; take that form"
        )
