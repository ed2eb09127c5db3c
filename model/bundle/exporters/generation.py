"""A search as generation_config.json, which `generate` of transformers reads."""

from collections.abc import Mapping
from typing import Any

from precis.model.bundle.converters.generation import EARLY_STOPPING
from precis.model.errors import UsageError
from precis.model.search.config import SearchConfig, SpecialTokens

# The search of a bundle that states none, where transformers has not what is the
# default here.
DEFAULTS: Mapping[str, Any] = {
    "length_penalty_form": "average",
    "unfinished": "compete",
}
# What no search of transformers has -> the value that turns it off.
_UNKNOWN_THERE: Mapping[str, Any] = {
    "coverage_penalty": 0.0,
    "supported": "",
    "common_pieces": 0,
    "beam_groups": 1,
    "diversity_penalty": 0.0,
}


def generation_settings(config: SearchConfig, special: SpecialTokens) -> dict[str, Any]:
    """The content of generation_config.json.

    Args:
      config: the search.
      special: the special tokens of the network.

    Raises:
      UsageError: transformers has no such search.
    """
    _check(config, special)
    penalty = 0.0 if config.length_penalty_form == "none" else config.length_penalty
    names = {value: name for name, value in EARLY_STOPPING.items()}
    settings: dict[str, Any] = {
        "bos_token_id": special.start_id,
        "decoder_start_token_id": special.start_id,
        "eos_token_id": special.end_id,
        "pad_token_id": special.pad_id,
        "do_sample": False,
        "num_beams": config.beam_width,
        "num_return_sequences": config.n_best,
        "max_new_tokens": config.max_summary_tokens,
        "no_repeat_ngram_size": config.no_repeat_ngram,
        "repetition_penalty": config.repetition_penalty,
    }
    if config.beam_width > 1:
        settings["length_penalty"] = penalty
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
                f"--{name} {getattr(config, name)} is no setting of `generate` of "
                "transformers; leave it out, or write a SavedModel"
            )
    if len(special.prefix) > 1:
        raise UsageError(
            f"a summary begins with {len(special.prefix)} given tokens, and `generate` "
            "of transformers knows one; write a SavedModel"
        )
    _check_penalties(config)


def _check_penalties(config: SearchConfig) -> None:
    is_greedy = config.beam_width == 1
    if not is_greedy:
        for name, value in DEFAULTS.items():
            allowed = (value, "none") if name == "length_penalty_form" else (value,)
            if getattr(config, name) not in allowed:
                raise UsageError(
                    f"--{name} {getattr(config, name)} is none of `generate` of "
                    f"transformers; take --{name} {value}, with `precis summarize` "
                    "too, for the same summaries"
                )
    form = "logits" if is_greedy else "log_probs"
    if config.repetition_penalty != 1 and config.repetition_penalty_form != form:
        raise UsageError(
            f"--repetition_penalty_form {config.repetition_penalty_form}: `generate` "
            f"of transformers multiplies {form} with --beam_width "
            f"{config.beam_width}; take that form"
        )
