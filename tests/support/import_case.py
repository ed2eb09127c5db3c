"""A random checkpoint of `import_reference.py` and how it is searched."""

from collections.abc import Mapping
from typing import Any, NamedTuple

VOCABULARY = 83


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
    runs: tuple[Mapping[str, Any], ...]
    end: float = 3.0
    source_tokens: int = 24
    target_tokens: int = 9
    bfloat16: bool = False
    is_untied: bool = False
    files: Mapping[str, Any] = {}


def sizes(
    encoder: tuple[int, int, int], decoder: tuple[int, int, int]
) -> dict[str, Any]:
    """The settings of BART and PEGASUS for the sizes of each side.

    Args:
      encoder, decoder: layers, feed-forward width and heads.
    """
    names = ("layers", "ffn_dim", "attention_heads")
    sides = {"encoder": encoder, "decoder": decoder}
    settings = {
        f"{side}_{name}": value
        for side, values in sides.items()
        for name, value in zip(names, values, strict=True)
    }
    return {"max_position_embeddings": 40, "d_model": 32, **settings}


# By default `generate` of BART forces the end token at the maximum length.
OPEN = {"forced_eos_token_id": None}
