"""A language model of random weights writes summaries; what it is not for."""

import numpy as np
import pytest
import safetensors.numpy
from support import read_table
from support.small_checkpoint import write_tokenizer

import precis
from precis.model import files
from precis.model.bundle.checkpoints.generation import read_generation
from precis.model.bundle.checkpoints.importer import load_checkpoint
from precis.model.bundle.checkpoints.rotary import LLAMA, QWEN3
from precis.model.bundle.network_bundle import save_bundle
from precis.model.errors import DataError, UsageError
from precis.model.network.build import build_network
from precis.model.tokenization.imported import ImportedTokenizer
from precis.pipelines.bundles.attention import attention

SETTINGS = {"vocab_size": 300, "hidden_size": 12, "intermediate_size": 16}
SETTINGS |= {"num_attention_heads": 3, "num_key_value_heads": 1, "num_hidden_layers": 1}
SETTINGS |= {"max_position_embeddings": 160, "eos_token_id": [2, 7]}
ARTICLE = "Rain fell on the hills. A dog slept in the sun all day. " * 6


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = write_tokenizer(tmp_path_factory.mktemp("tokenizer"))
    tokenizer = ImportedTokenizer(open(f"{folder}/tokenizer.json").read())
    decoding, special = read_generation(
        SETTINGS, {"do_sample": True, "max_new_tokens": 8}, is_general=True
    )
    assert (special.end_ids, special.pad_id) == ((2, 7), 2)
    # As T5Gemma 2 is published.
    sides = {**SETTINGS, "is_encoder_decoder": True}
    for drawn, most in (({}, 128), ({"max_length": 9, "min_length": 3}, 8)):
        drawn["do_sample"] = True
        search, _ = read_generation(sides, drawn, is_general=True)
        assert (search.max_summary_tokens, search.beam_width) == (most, 1)
    output = str(tmp_path_factory.mktemp("bundle"))
    saved = {"network": build_network(LLAMA.network(SETTINGS)), "tokenizer": tokenizer}
    saved |= {"decoding": decoding, "special": special, "chat": {}}
    save_bundle(output, provenance={}, **saved)
    return output


@pytest.mark.slow
def test_a_long_article_is_read_in_passages_that_end_in_the_instruction(bundle):
    rows = [
        precis.summarize_text(ARTICLE, bundle=bundle, instruction="Say it.", **flags)
        for flags in ({}, {"long_documents": "head"}, {"max_words": 30})
    ]
    assert rows[0]["chunks"] > 1 and not rows[0]["truncated"]
    assert (rows[1]["chunks"], rows[1]["seen_tokens"]) == (1, 80)
    assert rows[1]["truncated"]
    assert len({row["settings_id"] for row in rows}) == 3
    assert all(np.isfinite(row["abstractive"][0]["score"]) for row in rows)


def test_what_a_language_model_is_not_for(bundle, tmp_path):
    with pytest.raises(UsageError, match=r"takes \d+ tokens .* 80 .*; shorten it, or"):
        precis.summarize_text(ARTICLE, bundle=bundle, instruction="Say it. " * 15)
    (tmp_path / "text").write_text(ARTICLE)
    with pytest.raises(UsageError, match="attention .*; name an encoder-decoder"):
        attention(bundle=bundle, text=str(tmp_path / "text"), output="picture.png")


def test_a_prompt_and_what_is_written_fit_the_positions(tmp_path):
    sides = {"q": (12, 12), "k": (4, 12), "v": (4, 12), "o": (12, 12)}
    shapes = {f"self_attn.{name}_proj": shape for name, shape in sides.items()}
    shapes |= {"mlp.gate_proj": (16, 12), "mlp.up_proj": (16, 12)}
    shapes |= {"mlp.down_proj": (12, 16), "input_layernorm": (12,)}
    shapes["post_attention_layernorm"] = (12,)
    shapes = {f"model.layers.0.{name}": shape for name, shape in shapes.items()}
    shapes |= {"model.norm": (12,), "lm_head": (300, 12)}
    shapes["model.embed_tokens"] = (300, 12)
    tensors = {f"{key}.weight": np.ones(of, "float32") for key, of in shapes.items()}
    safetensors.numpy.save_file(tensors, tmp_path / "model.safetensors")
    files.write_json(f"{tmp_path}/config.json", SETTINGS | {"model_type": "llama"})
    generation = {"eos_token_id": 2, "max_new_tokens": 150}
    files.write_json(f"{tmp_path}/generation_config.json", generation)
    config = load_checkpoint(str(tmp_path), max_source_tokens=80).network.config
    assert (config.max_source_tokens, config.max_target_tokens) == (80, 80)
    with pytest.raises(UsageError, match="is 81, but .* has only 80 positions for a"):
        load_checkpoint(str(tmp_path), max_source_tokens=81)


FAMILIES = {"llama": LLAMA, "qwen3": QWEN3}
REFUSED = read_table("refusals")["language models"]


@pytest.mark.parametrize(("family", "settings", "words"), REFUSED)
def test_networks_that_are_not_computed_are_refused(family, settings, words):
    with pytest.raises(DataError, match=words):
        FAMILIES[family].network({**SETTINGS, **settings})


def test_a_minimum_length_with_the_prompt_is_refused():
    with pytest.raises(DataError, match="min_length is 9, .*; write min_new_tokens"):
        read_generation(SETTINGS, {"min_length": 9}, is_general=True)
