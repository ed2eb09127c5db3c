"""ModernBERT (Warner et al. 2024), and the encoders of Ettin (Weller et al. 2025).

Pre-norm Transformers with rotary positions and a gated feed-forward network, without
biases. In the published ones every third block attends to the whole text, the others to
64 tokens on either side. The attention of the first block reads the norm of the
embeddings.
"""

from collections.abc import Mapping
from typing import Any

from precis.model.bundle.checkpoints.family import Family, Field, attention_names
from precis.model.errors import DataError

GLOBAL, LOCAL = "full_attention", "sliding_attention"
_LETTERS = {GLOBAL: "g", LOCAL: "l"}
_QKV = ("Wqkv.query", "Wqkv.key", "Wqkv.value")
_GATED = ("Wi.input", "Wi.gate")


def _read(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as transformers 4.48 wrote them and as version 5 does."""
    layers = settings["num_hidden_layers"]
    of_whole = range(0, layers, settings.get("global_attn_every_n_layers", 3))
    reach = reach_of(
        settings, [GLOBAL if layer in of_whole else LOCAL for layer in range(layers)]
    )
    of_global = theta_of(settings, GLOBAL, "global_rope_theta", 160_000.0)
    return {
        "reach": reach,
        "window": settings.get("local_attention", 128) // 2 * 2 + 1,
        "rotary_base": float(of_global),
        # Null was that of the other layers.
        "local_rotary_base": float(
            theta_of(settings, LOCAL, "local_rope_theta", 10_000.0) or of_global
        ),
    }


def reach_of(settings: Mapping[str, Any], default: list[str]) -> str:
    """The letters of the layers, as in `StackConfig`; `default` are the kinds of those
    where no file names them.
    """
    kinds = settings.get("layer_types") or default
    if len(kinds) != len(default) or not {*kinds} <= {*_LETTERS}:
        raise DataError(
            f"config.json: layer_types must name {GLOBAL} or {LOCAL} for each of the "
            f"{len(default)} layers, and is {kinds}; download it again"
        )
    return "".join(_LETTERS[kind] for kind in kinds)


def theta_of(
    settings: Mapping[str, Any], kind: str, older: str, default: float
) -> float:
    """The theta of the layers of a kind; `older` is its field before version 5."""
    rotary = (settings.get("rope_parameters") or {}).get(kind) or {}
    scaling = settings.get("rope_scaling") or rotary
    rope_type = scaling.get("rope_type", scaling.get("type", "default"))
    if rope_type != "default":
        raise DataError(
            f"config.json: rope_type is {rope_type!r}, and only rotary positions that "
            "are not scaled (default) can be imported"
        )
    return rotary.get("rope_theta", settings.get(older, default))


MODERNBERT = Family(
    title="ModernBERT",
    fields=(
        Field("pad_id", "pad_token_id", 50283),
        Field("vocabulary_size", "vocab_size"),
        Field("encoder_layers", "num_hidden_layers"),
        Field("width", "hidden_size"),
        Field("feed_forward", "intermediate_size"),
        Field("heads", "num_attention_heads"),
        Field("dropout", "mlp_dropout", 0.0),
        Field("max_source_tokens", "max_position_embeddings"),
        Field("activation", "hidden_activation", "gelu"),
        Field("norm_epsilon", "norm_eps", 1e-5),
        Field("norm_bias", "norm_bias", False),
        # Biases in all linear layers or in none; others are missing or unexpected.
        Field("biases", "attention_bias", False),
    ),
    fixed={
        "positions": "rotary",
        "norm_first": True,
        "first_norm": False,
        "embedding_norm": True,
        "scaled_embedding": False,
        "gated_feed_forward": True,
    },
    read=_read,
    names={
        "embedding/table": "embeddings.tok_embeddings.weight",
        "source_input/norm": "embeddings.norm",
        **attention_names("encoder_#/attention", "layers.#.attn", *_QKV, "Wo"),
        "encoder_#/attention_residual/norm": "layers.#.attn_norm",
        "encoder_#/feed_forward/inner": "layers.#.mlp.Wi.input",
        "encoder_#/feed_forward/gate": "layers.#.mlp.Wi.gate",
        "encoder_#/feed_forward/outer": "layers.#.mlp.Wo",
        "encoder_#/feed_forward_residual/norm": "layers.#.mlp_norm",
        "encoder_norm": "final_norm",
    },
    prefix="model.",
    ignored=r"(head|decoder|classifier)\.",
    joined={"Wqkv": _QKV, "Wi": _GATED},
)
