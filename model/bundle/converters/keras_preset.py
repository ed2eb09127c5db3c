"""The config.json of a keras-hub preset, translated to that of a checkpoint.

A preset is the folder that `save_to_preset` of keras-hub writes:

    config.json           the class of the backbone and its arguments
    model.weights.h5      the weights by the paths of their layers, or
                          model.weights.json and several such files
    tokenizer.json        the arguments of the tokenizer
    assets/tokenizer/     the vocabulary of the tokenizer

The result has the fields that config.json of a checkpoint of Hugging Face has for the
same network. `preset_tensors` translates the weights.
"""

from collections.abc import Callable, Mapping
from typing import Any

from precis.model.errors import DataError
from precis.model.search.config import SearchConfig

# A preset has no search settings. Its network is searched with the defaults, as if it
# had been trained here.
_SEARCH = {
    "num_beams": SearchConfig().beam_width,
    "no_repeat_ngram_size": SearchConfig().no_repeat_ngram,
}
_NEW_TOKENS = SearchConfig().max_summary_tokens


def is_preset(config: Mapping[str, Any]) -> bool:
    """Whether a config.json is that of a preset."""
    return "registered_name" in config


def preset_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that config.json of a checkpoint has for the same network.

    Args:
      config: config.json of a preset.

    Returns:
      The settings; for an unknown backbone only its name as the model_type.

    Raises:
      DataError: a field is missing, or has a value that no such checkpoint has.
    """
    # As in keras_hub>BertBackbone, or keras_nlp>BertBackbone in older presets.
    name = str(config["registered_name"])
    backbone = name.rpartition(">")[2]
    if backbone not in _SETTINGS:
        return {"model_type": name}
    try:
        return _SETTINGS[backbone](config["config"])
    except (KeyError, TypeError) as error:
        raise DataError(
            f"config.json: no settings of a {backbone} ({error!r}); "
            "save the preset again"
        ) from error


def _bert(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model_type": "bert",
        "vocab_size": config["vocabulary_size"],
        "num_hidden_layers": config["num_layers"],
        "num_attention_heads": config["num_heads"],
        "hidden_size": config["hidden_dim"],
        "intermediate_size": config["intermediate_dim"],
        "hidden_dropout_prob": config["dropout"],
        "max_position_embeddings": config["max_sequence_length"],
        "hidden_act": "gelu_new",
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
    }


def _roberta(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_bert(config),
        "model_type": "roberta",
        # A preset leaves out the two rows that are never read.
        "max_position_embeddings": config["max_sequence_length"] + 2,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-5,
        "pad_token_id": 1,
    }


def _distilbert(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model_type": "distilbert",
        "vocab_size": config["vocabulary_size"],
        "n_layers": config["num_layers"],
        "n_heads": config["num_heads"],
        "dim": config["hidden_dim"],
        "hidden_dim": config["intermediate_dim"],
        "dropout": config["dropout"],
        "max_position_embeddings": config["max_sequence_length"],
        "activation": "gelu",
        "pad_token_id": 0,
    }


def _bart(config: Mapping[str, Any]) -> dict[str, Any]:
    positions = config["max_sequence_length"]
    return {
        "model_type": "bart",
        "vocab_size": config["vocabulary_size"],
        "d_model": config["hidden_dim"],
        "encoder_layers": config["num_layers"],
        "decoder_layers": config["num_layers"],
        "encoder_attention_heads": config["num_heads"],
        "decoder_attention_heads": config["num_heads"],
        "encoder_ffn_dim": config["intermediate_dim"],
        "decoder_ffn_dim": config["intermediate_dim"],
        "dropout": config["dropout"],
        "max_position_embeddings": positions,
        "activation_function": "gelu",
        # A target begins with the end token and the start token.
        "bos_token_id": 0,
        "pad_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 2,
        "forced_bos_token_id": 0,
        **_SEARCH,
        "max_new_tokens": min(_NEW_TOKENS, positions - 1),
    }


def _t5(config: Mapping[str, Any]) -> dict[str, Any]:
    is_gated = config["use_gated_activation"]
    is_tied = config["tie_embedding_weights"]
    return {
        "model_type": "t5",
        "vocab_size": config["vocabulary_size"],
        "num_layers": config["num_layers"],
        "num_heads": config["num_heads"],
        "d_model": config["hidden_dim"],
        "d_ff": config["intermediate_dim"],
        "d_kv": config["key_value_dim"] or config["hidden_dim"] // config["num_heads"],
        "dropout_rate": config["dropout"],
        "layer_norm_epsilon": config["layer_norm_epsilon"],
        "feed_forward_proj": _t5_activation(config["activation"], is_gated=is_gated),
        "tie_word_embeddings": is_tied,
        "scale_decoder_outputs": is_tied,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "decoder_start_token_id": 0,
        **_SEARCH,
        "max_new_tokens": _NEW_TOKENS,
    }


def _t5_activation(activation: Any, *, is_gated: bool) -> str:
    """The activation in the form of a T5 checkpoint.

    Args:
      activation: a name, or a function as Keras serializes it.
      is_gated: whether the feed-forward layer has a gate.
    """
    described = activation["config"] if isinstance(activation, dict) else activation
    name = str(described).rpartition(">")[2]
    if name == "gelu" and is_gated:
        raise DataError(
            "config.json: activation is 'gelu' with a gate, and what T5 has there is "
            "its approximation; it cannot be imported"
        )
    name = "gelu_new" if name == "gelu_approximate" else name
    return f"gated-{name}" if is_gated else name


_SETTINGS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "BartBackbone": _bart,
    "BertBackbone": _bert,
    "DistilBertBackbone": _distilbert,
    "RobertaBackbone": _roberta,
    "T5Backbone": _t5,
}
