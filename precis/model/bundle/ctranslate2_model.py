"""The network of a bundle in the format of CTranslate2, in float32 or int8.

    BUNDLE              a bundle that `precis export` writes
    BUNDLE.ctranslate2/
      MODEL_ID-VERSION-int8/
        model.bin, config.json, shared_vocabulary.json

The first search makes the folder, and later searches read it; each version of precis
makes a separate folder. The vocabulary of CTranslate2 consists of texts: here they are
the decimal digits of token ids.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from filelock import FileLock

from precis.model import files
from precis.model.bundle.checkpoints.exporter import checkpoint_settings
from precis.model.bundle.manifest import open_stored
from precis.model.bundle.network_bundle import Bundle
from precis.model.config import installed_version
from precis.model.errors import UsageError
from precis.model.network.config import StackConfig
from precis.model.search.special import special_tokens

# Activations here -> in CTranslate2.
_ACTIVATIONS = dict(relu="RELU", gelu="GELU", gelu_tanh="GELUTanh", silu="SWISH")
# Weights of a layer here -> in CTranslate2.
_LEAVES = dict(kernel="weight", bias="bias", scale="gamma", gamma="gamma", beta="beta")
# Layers of a block in CTranslate2 -> layers here. Encoders have no `attention`.
_LAYERS = {
    "self_attention/linear_0": "self_attention/query self_attention/key "
    "self_attention/value",
    "self_attention/linear_1": "self_attention/output",
    "self_attention/layer_norm": "self_residual/norm",
    "attention/linear_0": "cross_attention/query",
    "attention/linear_1": "cross_attention/key cross_attention/value",
    "attention/linear_2": "cross_attention/output",
    "attention/layer_norm": "cross_residual/norm",
    "ffn/linear_0": "feed_forward/inner",
    "ffn/linear_0_noact": "feed_forward/gate",
    "ffn/linear_1": "feed_forward/outer",
    "ffn/layer_norm": "feed_forward_residual/norm",
}


def check_network(bundle: Bundle) -> None:
    """Refuses a network that does not compute BART, PEGASUS or T5.

    Raises:
      UsageError: the network differs; the message names the differences.
    """
    if reason := network_difference(bundle):
        raise UsageError(
            "`engine=ctranslate2` runs only networks that `precis export` can write: "
            f"{reason}; leave out `engine=`, or train with `layout=bart` "
            "`pointer=False`"
        )


def network_difference(bundle: Bundle) -> str:
    """How a network differs from BART, PEGASUS and T5; empty if it computes one."""
    try:
        special = special_tokens(bundle.tokenizer, bundle.special)
        checkpoint_settings(bundle.config, special)
    except UsageError as error:
        return str(error).rpartition("; ")[0] or str(error)
    return ""


@contextlib.contextmanager
def converted_bundle(folder: str, bundle: Bundle, precision: str) -> Iterator[str]:
    """Yields the folder of a bundle's network in the format of CTranslate2.

    The first of several processes makes the folder. If the folder next to the bundle is
    not writable, each process makes a temporary one, removed when the block ends.

    Args:
      folder: the folder of the bundle.
      bundle: the content of the bundle, without weights.
      precision: float32, or int8, which takes a quarter of the size.

    Raises:
      DataError: the weights differ from the manifest.
    """
    place = f"{os.path.abspath(folder)}.ctranslate2"
    name = f"{bundle.model_id}-{installed_version()}-{precision}"
    converted = os.path.join(place, name)
    with contextlib.ExitStack() as stack:
        if not os.path.isdir(converted):
            if files.is_local(folder) and os.access(os.path.dirname(place), os.W_OK):
                os.makedirs(place, exist_ok=True)
                stack.enter_context(FileLock(f"{converted}.lock"))
            else:
                place = stack.enter_context(tempfile.TemporaryDirectory())
                converted = os.path.join(place, name)
        if not os.path.isdir(converted):
            aside = f"{converted}{files.ASIDE}"
            shutil.rmtree(aside, ignore_errors=True)  # of a process that was killed
            os.makedirs(aside)
            spec = _describe(open_stored(folder).read_weights(), bundle)
            spec.validate()
            spec.optimize(quantization=None if precision == "float32" else precision)
            spec.save(aside)
            os.replace(aside, converted)
        yield converted


def _describe(stored: Mapping[str, np.ndarray], bundle: Bundle) -> Any:
    """Builds the specification of a network for CTranslate2.

    Args:
      stored: the weights of the bundle, by path.
      bundle: the content of the bundle; its network passed `check_network`.
    """
    from ctranslate2.specs import transformer_spec as specs  # pyright: ignore[reportMissingImports]  # Not in the lock.

    config: Any = bundle.config
    weights = {path.split("/", 1)[1]: stored[path] for path in stored}
    for path in list(weights):  # under the names that a decoder has
        name = path.replace("/attention/", "/self_attention/")
        name = name.replace("/attention_residual/", "/self_residual/")
        weights[name] = weights[path]
    encoder: Any = specs.TransformerEncoderSpec(config.encoder_layers, **_shape(config))
    shape = _shape(config.decoder)
    decoder: Any = specs.TransformerDecoderSpec(config.decoder_layers, **shape)
    _fill_side(encoder, "encoder", weights, config, config.max_source_tokens)
    # The target begins with the start token.
    longest = config.max_target_tokens + 1
    _fill_side(decoder, "decoder", weights, config.decoder, longest)
    table = weights["embedding/table"]
    encoder.embeddings[0].weight = decoder.embeddings.weight = table
    decoder.projection.weight = table
    if "embedding/logits_bias" in weights:
        decoder.projection.bias = weights["embedding/logits_bias"]
    _fill(decoder.projection, weights, "output_layer")
    if config.scaled_output:
        decoder.scale_outputs = config.width**-0.5
    spec: Any = specs.TransformerSpec(encoder, decoder)
    tokens = list(map(str, range(config.vocabulary_size)))
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    special = special_tokens(bundle.tokenizer, bundle.special)
    spec.config.layer_norm_epsilon = config.norm_epsilon
    spec.config.decoder_start_token = spec.config.bos_token = str(special.start_id)
    spec.config.eos_token = str(special.end_id)
    spec.config.unk_token = str(special.pad_id)  # No token is unknown.
    return spec


def _shape(stack: StackConfig) -> dict[str, Any]:
    """The arguments of the specification of an encoder or decoder."""
    from ctranslate2.specs.common_spec import Activation  # pyright: ignore[reportMissingImports]  # Not in the lock.

    return {
        "num_heads": stack.heads,
        "head_dim": stack.width_of_head,
        "pre_norm": stack.norm_first,
        "activation": Activation[_ACTIVATIONS[stack.activation]],
        "layernorm_embedding": stack.embedding_norm,
        "relative_attention_bias": stack.positions == "relative",
        "ffn_glu": stack.gated_feed_forward,
        "rms_norm": stack.rms_norm,
    }


def _fill_side(
    spec: Any,
    side: str,
    weights: Mapping[str, np.ndarray],
    stack: StackConfig,
    longest: int,
) -> None:
    """Fills the specification of the encoder or the decoder.

    Args:
      spec: the specification.
      side: encoder or decoder.
      weights: the weights of the network, by path.
      stack: the configuration of the side.
      longest: the maximum number of tokens that the side reads.
    """
    from ctranslate2.specs.model_spec import index_spec  # pyright: ignore[reportMissingImports]  # Not in the lock.

    of_input = "source_input" if side == "encoder" else "target_input"
    spec.scale_embeddings = stack.scaled_embedding
    if stack.positions == "sinusoidal_halves":
        from precis.model.network.positions import sinusoidal_positions

        codes = sinusoidal_positions(longest, stack.width, in_halves=True)
        spec.position_encodings.encodings = codes
    elif stack.positions == "learned":
        spec.position_encodings.encodings = weights[f"{of_input}/positions"]
    if stack.embedding_norm:
        _fill(spec.layernorm_embedding, weights, f"{of_input}/norm")
    if stack.norm_first:
        _fill(spec.layer_norm, weights, f"{side}_norm")
    for number, layer in enumerate(spec.layer):
        for there, names in _LAYERS.items():
            paths = [f"{side}_{number}/{name}" for name in names.split()]
            if any(path.startswith(f"{paths[0]}/") for path in weights):
                _fill(index_spec(layer, there), weights, *paths)
        if not stack.scaled_scores:
            layer.self_attention.queries_scale = 1.0
            if hasattr(layer, "attention"):
                layer.attention.queries_scale = 1.0
        if stack.positions == "relative":
            attention = layer.self_attention
            attention.relative_attention_bias = weights[f"{side}_positions/table"]
            distance = np.int32(stack.relative_distance)
            attention.relative_attention_max_distance = distance


def _fill(spec: Any, weights: Mapping[str, np.ndarray], *paths: str) -> None:
    """Fills a layer with the layers at `paths`, whose outputs are concatenated."""
    for leaf, name in _LEAVES.items():
        # CTranslate2 stores linear layers as [out, in].
        present = [f"{path}/{leaf}" for path in paths if f"{path}/{leaf}" in weights]
        if parts := [weights[path].T for path in present]:
            setattr(spec, name, np.concatenate(parts))
