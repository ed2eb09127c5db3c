"""Encoders of the BERT type.

These are BERT (Devlin et al. 2019), RoBERTa (Liu et al. 2019) and DistilBERT (Sanh et
al. 2019): post-norm Transformers with learned positions and a norm after the
embeddings. BERT and RoBERTa add a vector to each token for the first or the second text
of a pair. Here a row is always a single text, so the vector of the first text is added
to the position table.
"""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from precis.model.bundle.checkpoints.family import (
    BLOCK,
    HIDDEN,
    Family,
    Field,
    block_names,
)

_ROBERTA_PAD = 1
# Names of the label "the first text supports the second".
_SUPPORT = {"entailment", "aligned", "supported"}
# Heads for other tasks, and a table that is not trained.
_HEADS = (
    r"(pooler|cls|classifier|qa_outputs|lm_head|pre_classifier"
    r"|vocab_(transform|layer_norm|projector))\.|embeddings\.position_ids"
)
_POSITIONS = "embeddings.position_embeddings.weight"


def _read_roberta(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the number of positions. The first position of RoBERTa is the id of the
    padding plus 1, and the rows before it are never read.
    """
    return {"max_source_tokens": settings["max_position_embeddings"] - _ROBERTA_PAD - 1}


def read_checker(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Reads how a RoBERTa judges whether one text supports another.

    If the labels have no names, a checkpoint is read like the published checkpoints:

        MiniCheck-RoBERTa  0 and 1; 1 supports  <s> DOCUMENT </s> LINE </s>
        AlignScore         3, the first is      <s> DOCUMENT </s></s> LINE </s>
                           ALIGNED

    Args:
      settings: the config.json of the checkpoint.

    Returns:
      `labels`, the number of labels; `support`, the label for "supports"; and
      `pattern`, the input, with {} for document and line. {} if there is no such head.
    """
    stored = settings.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    is_labelled = settings.get("architectures") == ["RobertaForSequenceClassification"]
    if not is_labelled or not isinstance(stored, dict) or len(stored) not in (2, 3):
        return {}
    names = [str(stored.get(str(label))).lower() for label in range(len(stored))]
    named = [label for label, name in enumerate(names) if name in _SUPPORT]
    if not named and not all(re.fullmatch(r"(label_)?\d", name) for name in names):
        return {}
    support = named[0] if named else int(len(names) == 2)
    pattern = "{}</s>{}" if names == ["0", "1"] else "{}</s></s>{}"
    return {"labels": len(names), "support": support, "pattern": pattern}


_INPUT = {
    "embedding/table": "embeddings.word_embeddings.weight",
    "source_input/positions": _POSITIONS,
    "source_input/norm": "embeddings.LayerNorm",
}
_NAMES = (
    "attention.{self.query,self.key,self.value,output.dense} "
    "attention.output.LayerNorm {intermediate,output}.dense output.LayerNorm"
)
_DISTILBERT = (
    "attention.{q,k,v,out}_lin sa_layer_norm ffn.{lin1,lin2} output_layer_norm"
)


BERT = Family(
    title="BERT",
    fields=(
        Field("pad_id", "pad_token_id", 0),
        *HIDDEN,
        Field("encoder_layers", "num_hidden_layers"),
        Field("dropout", "hidden_dropout_prob", 0.1),
        Field("max_source_tokens", "max_position_embeddings"),
        Field("activation", "hidden_act", "gelu"),
        Field("norm_epsilon", "layer_norm_eps", 1e-12),
    ),
    fixed={"positions": "learned", "scaled_embedding": False, "embedding_norm": True},
    known={"position_embedding_type": ("absolute",), "is_decoder": (False,)},
    names={**_INPUT, **block_names("encoder_#/", "encoder.layer.#.", BLOCK, _NAMES)},
    prefix="bert.",
    ignored=_HEADS,
    added={_POSITIONS: "embeddings.token_type_embeddings.weight"},
    older={"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"},
)

ROBERTA = dataclasses.replace(
    BERT,
    title="RoBERTa",
    fields=BERT.fields[1:],
    fixed={**BERT.fixed, "pad_id": _ROBERTA_PAD},
    known={**BERT.known, "pad_token_id": (_ROBERTA_PAD,)},
    read=_read_roberta,
    prefix="roberta.",
    first_position=_ROBERTA_PAD + 1,
)

# With the head that `read_checker` describes.
ROBERTA_CHECKER = dataclasses.replace(
    ROBERTA,
    names={
        **ROBERTA.names,
        **{"label_inner": "classifier.dense", "label_outer": "classifier.out_proj"},
    },
    ignored=_HEADS.replace("|classifier", ""),
)

DISTILBERT = Family(
    title="DistilBERT",
    fields=(
        Field("pad_id", "pad_token_id", 0),
        Field("vocabulary_size", "vocab_size"),
        Field("encoder_layers", "n_layers"),
        Field("width", "dim"),
        Field("feed_forward", "hidden_dim"),
        Field("heads", "n_heads"),
        Field("dropout", "dropout", 0.1),
        Field("max_source_tokens", "max_position_embeddings"),
        Field("activation", "activation", "gelu"),
    ),
    fixed={**BERT.fixed, "norm_epsilon": 1e-12},
    known=BERT.known,
    names={
        **_INPUT,
        **block_names("encoder_#/", "transformer.layer.#.", BLOCK, _DISTILBERT),
    },
    prefix="distilbert.",
    ignored=_HEADS,
)
