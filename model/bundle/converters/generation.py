"""How a checkpoint wants to be searched: generation_config.json as a `SearchConfig`
and the ids of special tokens.
"""

from collections.abc import Mapping
from typing import Any

from precis.model.errors import DataError, UsageError
from precis.model.search.config import SearchConfig, SpecialTokens

# Settings that no search here has, and the value that changes nothing where it is not
# "nothing" or zero.
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
EARLY_STOPPING = {False: "bound", True: "first_k", "never": "never"}
DEFAULT_NEW_TOKENS = 20


def task_settings(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a config.json sets for summaries: a prefix of the source, and generation
    settings that come before all others.

    Raises:
      DataError: something else stands there.
    """
    found: Any = (settings.get("task_specific_params") or {}).get("summarization") or {}
    if not isinstance(found, Mapping) or not isinstance(found.get("prefix") or "", str):
        raise DataError(
            f"config.json: task_specific_params.summarization is {found!r}, and must be settings by name with a text as the prefix; "
            "correct it, or take it out"
        )
    return found


def read_generation(
    settings: Mapping[str, Any], generation: Mapping[str, Any] | None
) -> tuple[SearchConfig, SpecialTokens]:
    """What transformers does with a checkpoint that is to summarize if it is told
    nothing more.

    Args:
      settings: config.json; gives the special tokens that `generation` does not,
        everything where there is no `generation`, and what `task_settings` finds, which
        comes before either.
      generation: generation_config.json, if there is one.

    Raises:
      DataError: a setting that no search here has, or that contradicts another.
    """
    general = settings if generation is None else generation
    own = {
        name: value
        for name, value in {**general, **task_settings(settings)}.items()
        if value is not None
    }
    for name, neutral in UNSUPPORTED.items():
        if own.get(name) and own[name] != neutral:
            raise DataError(
                f"{name} is {own[name]!r}, and no search here has it; take it out of generation_config.json, or set {neutral!r}"
            )
    width, early = own.get("num_beams", 1), own.get("early_stopping", False)
    if early not in EARLY_STOPPING:
        raise DataError(
            f"early_stopping is {early!r} and must be one of {', '.join(map(str, EARLY_STOPPING))}; correct generation_config.json"
        )
    longest = (
        own["max_new_tokens"]
        if "max_new_tokens" in own
        else own.get("max_length", DEFAULT_NEW_TOKENS + 1) - 1
    )
    shortest = (
        own["min_new_tokens"]
        if "min_new_tokens" in own
        else own.get("min_length", 0) - 1
    )
    try:
        decoding = SearchConfig(
            beam_width=width,
            n_best=own.get("num_return_sequences", 1),
            length_penalty=float(own.get("length_penalty", 1.0)),
            length_penalty_form="average",
            min_summary_tokens=max(0, shortest),
            max_summary_tokens=longest,
            no_repeat_ngram=own.get("no_repeat_ngram_size", 0),
            repetition_penalty=float(own.get("repetition_penalty", 1.0)),
            repetition_penalty_form="logits"
            if width == 1
            else "log_probs",  # greedy search is told before the softmax
            early_stopping=EARLY_STOPPING[early],
            unfinished="compete",
        )
    except UsageError as error:
        raise DataError(
            f"the generation settings cannot be: {error}; correct generation_config.json"
        ) from error
    return decoding, _special_tokens(settings, own)


def _special_tokens(
    settings: Mapping[str, Any], own: Mapping[str, Any]
) -> SpecialTokens:
    both = {
        **{name: value for name, value in settings.items() if value is not None},
        **own,
    }
    start = both.get("decoder_start_token_id", both.get("bos_token_id"))
    needed = {
        "decoder_start_token_id": start,
        "eos_token_id": _one(both, "eos_token_id"),
        "pad_token_id": both.get("pad_token_id"),
    }
    for name, token in needed.items():
        if token is None:
            raise DataError(f"{name} is missing; add it to config.json")
    forced = [
        _one(own, name) for name in ("forced_bos_token_id", "forced_eos_token_id")
    ]
    suppressed = tuple(own.get("suppress_tokens", ()))
    for token in (*needed.values(), *forced, *suppressed):
        if token is not None and not 0 <= token < settings["vocab_size"]:
            raise DataError(
                f"the special token {token} is none of the {settings['vocab_size']} of vocab_size; correct generation_config.json"
            )
    start_id, end_id, pad_id = needed.values()
    prefix = () if forced[0] is None else (forced[0],)
    return SpecialTokens(
        start_id=start_id,
        end_id=end_id,
        pad_id=pad_id,
        suppressed=suppressed,
        prefix=prefix,
        last_id=forced[1],
    )


def _one(values: Mapping[str, Any], name: str) -> Any:
    """A token id that may be given as a list of one; None where there is none."""
    value = values.get(name)
    if not isinstance(value, list):
        return value
    if len(value) != 1:
        raise DataError(
            f"{name} is {value}, and a search here knows one such token; leave one in generation_config.json"
        )
    return value[0]
