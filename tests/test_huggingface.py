"""`precis export --format huggingface`: round trips, tokenizers, searches, refusals.

`test_huggingface_parity.py` loads the folders with transformers.
"""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from support.command_line import contents, exit_code
from support.huggingface_bundles import (
    read_folder,
    sample_bodies,
    sample_tokenizer,
    save_layout,
    write_small_checkpoint,
)
from support.small_checkpoint import KINDS
from support.small_network import config_of
from tokenizers import Tokenizer as Library

from precis.model.bundle.converters.generation import read_generation
from precis.model.bundle.exporters.architecture import checkpoint_config
from precis.model.bundle.exporters.generation import generation_settings
from precis.model.bundle.manifest import open_weights
from precis.model.errors import UsageError
from precis.model.network.architectures import LAYOUTS, named_network
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.text.normalization import normalise
from precis.model.tokenization.exported import definition_of
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.bundles.export import export
from precis.pipelines.bundles.import_checkpoint import import_checkpoint
from precis.pipelines.training.train import train

SPECIAL = SpecialTokens(start_id=2, end_id=3, pad_id=0, suppressed=(0, 1, 2))
FILES = {
    *("README.md", "config.json", "generation_config.json", "manifest.json"),
    *("model.safetensors", "tokenizer.json", "tokenizer_config.json"),
}


def write(bundle: str, output: Path, **flags) -> dict:
    return export(bundle=bundle, output=str(output), format="huggingface", **flags)


# Round trips.
@pytest.mark.parametrize("kind", KINDS)
def test_an_imported_network_becomes_the_checkpoint_it_came_from(kind, tmp_path):
    checkpoint = write_small_checkpoint(tmp_path / "checkpoint", kind)
    import_checkpoint(checkpoint=checkpoint, output=str(tmp_path / "bundle"))
    manifest = write(str(tmp_path / "bundle"), tmp_path / "out")
    assert set(contents(tmp_path / "out")) == FILES
    assert manifest["model_type"] == KINDS[kind]["model_type"]

    before = safetensors.numpy.load_file(tmp_path / "checkpoint" / "model.safetensors")
    after = safetensors.numpy.load_file(tmp_path / "out" / "model.safetensors")
    computed = {name for name in after if "embed_positions" in name}
    assert set(after) - set(before) == (computed if kind == "pegasus" else set())
    for name, values in before.items():
        if "embed_positions" in name:  # The rows that are never read.
            np.testing.assert_array_equal(after[name][2:], values[2:])
        else:
            np.testing.assert_array_equal(after[name], values)
    given = read_folder(checkpoint, "config.json")
    there = read_folder(tmp_path / "out", "config.json")
    for name in KINDS[kind]:
        if name not in ("bos_token_id", "dropout_rate"):
            assert there[name] == given[name], name


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_an_export_is_imported_as_the_same_bundle(kind, tmp_path):
    checkpoint = write_small_checkpoint(tmp_path / "checkpoint", kind)
    import_checkpoint(checkpoint=checkpoint, output=str(tmp_path / "bundle"))
    write(str(tmp_path / "bundle"), tmp_path / "out")
    import_checkpoint(checkpoint=str(tmp_path / "out"), output=str(tmp_path / "again"))
    first, second = (open_weights(str(tmp_path / name)) for name in ("bundle", "again"))
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_array_equal(second[name], values)
    first, second = (
        read_folder(tmp_path / name, "config.json") for name in ("bundle", "again")
    )
    assert second["decoding"] == first["decoding"]
    assert second["special"] == first["special"]
    free = {"dropout"} if kind == "bart" else {"dropout", "max_target_tokens"}
    for name in first["network"].keys() - free:
        assert second["network"][name] == first["network"][name], name


def test_what_transformers_does_otherwise_is_written_out(tmp_path):
    bundle = save_layout(tmp_path / "bart", "bart", tied_output=False, decoder_layers=1)
    write(bundle, tmp_path / "out")
    tensors = safetensors.numpy.load_file(tmp_path / "out" / "model.safetensors")
    # Without a tied output, BART reads each input from a table of its own.
    for side in ("encoder", "decoder"):
        np.testing.assert_array_equal(
            tensors[f"model.{side}.embed_tokens.weight"], tensors["model.shared.weight"]
        )
    assert "lm_head.weight" in tensors
    assert read_folder(tmp_path / "out", "generation_config.json")["use_cache"] is True
    # Its cache of a T5 has as many layers as the encoder.
    bundle = save_layout(tmp_path / "t5", "t5", encoder_layers=1)
    write(bundle, tmp_path / "deep")
    for name in ("generation_config.json", "config.json"):
        assert read_folder(tmp_path / "deep", name)["use_cache"] is False


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if LAYOUTS[name]])
def test_every_layout_of_train_can_be_written(layout):
    config = named_network(
        "tiny", vocabulary_size=9, pad_id=0, pointer=False, **LAYOUTS[layout]
    )
    model_type, settings, network = checkpoint_config(config, SPECIAL)
    assert (model_type, network) == (layout, config)
    assert settings["decoder_start_token_id"] == 2
    assert settings["forced_eos_token_id"] is None


# Tokenizers.
@pytest.mark.parametrize("lower_case", [False, True])
def test_the_definition_gives_the_ids_of_the_tokenizer(lower_case):
    bodies = sample_bodies(30)
    tokenizer = Tokenizer(sample_tokenizer().vocabulary, lower_case=lower_case)
    library = Library.from_str(json.dumps(definition_of(tokenizer)))
    # What `split_special_tokens` of transformers sets.
    library.encode_special_tokens = True
    letters = (
        "ab Z.9$'\n\t\r▁␤\xa0\x85\x1f\x0c\u2028é\u0301ßİſ中文かไทย\u200b[PAD]#-—…“”€"
        "\U0001f600\x00\x1b،؟Σς^`~+=<>|"
    )
    rng = random.Random(4)
    texts = [
        "".join(rng.choice(letters) for _ in range(rng.randint(1, 40)))
        for _ in range(800)
    ]
    texts = [text for text in texts if normalise(text)] + bodies
    texts += ["[PAD] fell [START]", "##ing ## a", "  (CNN) --\r\n\r\n rain "]
    encoded = tokenizer.encode([normalise(text) for text in texts])
    for text, ids in zip(texts, encoded, strict=True):
        assert library.encode(text).ids == ids.tolist(), text
        if tokenizer.unknown_id not in ids:
            assert library.decode(ids.tolist()) == tokenizer.decode([ids])[0]
    assert len(texts) > 800


# Searches.
@pytest.mark.parametrize(
    "flags",
    [
        {},
        {"beam_width": 1, "repetition_penalty": 1.2},
        {"beam_width": 6, "n_best": 3, "length_penalty": 2.0},
        {"early_stopping": "bound", "min_summary_tokens": 5, "no_repeat_ngram": 0},
        {"early_stopping": "first_k", "max_summary_tokens": 40},
    ],
)
def test_a_search_is_read_again_as_it_was(flags):
    if flags.get("beam_width") == 1:
        flags = {**flags, "repetition_penalty_form": "logits"}
    config = SearchConfig(
        **{"length_penalty_form": "average", "unfinished": "compete", **flags}
    )
    special = SpecialTokens(
        start_id=2, end_id=3, pad_id=0, suppressed=(0, 1), prefix=(5,), last_id=3
    )
    settings = generation_settings(config, special)
    read, read_special = read_generation({"vocab_size": 9}, settings)
    assert read_special == special
    if config.beam_width > 1:
        assert read == config
    else:  # Greedy search has no use for the others.
        assert (read.beam_width, read.repetition_penalty) == (1, 1.2)


def test_no_more_tokens_are_asked_for_than_the_network_writes(tmp_path):
    bundle = save_layout(tmp_path / "bundle", "bart")  # of 24 target tokens
    write(bundle, tmp_path / "default")
    settings = read_folder(tmp_path / "default", "generation_config.json")
    assert settings["max_new_tokens"] == 24 and "min_new_tokens" not in settings
    write(bundle, tmp_path / "long", min_summary_tokens=30)
    settings = read_folder(tmp_path / "long", "generation_config.json")
    assert (settings["max_new_tokens"], settings["min_new_tokens"]) == (24, 23)
    write(bundle, tmp_path / "short", max_summary_tokens=9)
    settings = read_folder(tmp_path / "short", "generation_config.json")
    assert settings["max_new_tokens"] == 9


def test_no_length_penalty_is_an_exponent_of_zero():
    config = SearchConfig(length_penalty_form="none", unfinished="compete")
    assert generation_settings(config, SPECIAL)["length_penalty"] == 0.0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"length_penalty_form": "wu"}, "form wu is none of .*take --length_penalty_f"),
        ({"unfinished": "last"}, "--unfinished last is none.*take --unfinished compe"),
        ({"coverage_penalty": 0.2}, "--coverage_penalty 0.2 is no setting of `genera"),
        ({"supported": "names"}, "--supported names is no setting"),
        ({"common_pieces": 9}, "--common_pieces 9 is no setting"),
        ({"beam_groups": 2}, "--beam_groups 2 is no setting"),
        (
            {"repetition_penalty": 2.0, "repetition_penalty_form": "logits"},
            "--repetition_penalty_form logits: .*multiplies log_probs",
        ),
    ],
)
def test_a_search_that_transformers_does_not_have_is_refused(flags, message):
    known = {"length_penalty_form": "average", "unfinished": "compete"}
    with pytest.raises(UsageError, match=message):
        generation_settings(SearchConfig(**{**known, **flags}), SPECIAL)


def test_two_given_first_tokens_are_refused():
    special = SpecialTokens(start_id=2, end_id=3, pad_id=0, prefix=(4, 5))
    with pytest.raises(UsageError, match="begins with 2 given tokens"):
        generation_settings(SearchConfig(beam_width=1), special)


# Networks that transformers does not have.
@pytest.mark.parametrize(
    ("layout", "changes", "message"),
    [
        ("vaswani", {}, "BART, but .*positions is sinusoidal here and learned there"),
        ("bart", {"pointer": True}, "nearest is BART, but pointer is True here"),
        ("bart", {"convolutional_gate": True}, "BART, but convolutional_gate is True"),
        ("bart", {"norm_epsilon": 1e-6}, "norm_epsilon is 1e-06 here and 1e-05 there"),
        ("bart", {"gated_feed_forward": True}, "gated_feed_forward is True here"),
        ("t5", {"activation": "gelu", "gated_feed_forward": True}, "activation is gel"),
        ("t5", {"tied_output": False}, "separate output layer is scaled here"),
        ("pegasus", {"positions": "sinusoidal"}, "PEGASUS, but positions is sinus"),
    ],
)
def test_a_network_that_transformers_does_not_have_is_refused(layout, changes, message):
    fields = {"vocabulary_size": 9, "pad_id": 0, "pointer": False, **LAYOUTS[layout]}
    config = named_network("tiny", **{**fields, **changes})
    with pytest.raises(UsageError, match=message) as caught:
        checkpoint_config(config, SPECIAL)
    assert "--format saved_model" in str(caught.value)
    assert "--layout bart --no-pointer" in str(caught.value)


@pytest.mark.parametrize("name", ["gru", "decoder_only"])
def test_a_network_that_is_no_encoder_decoder_is_refused(name):
    with pytest.raises(UsageError, match="only an encoder-decoder Transformer can"):
        checkpoint_config(config_of(name), SPECIAL)


def test_a_flag_of_the_graph_is_refused(tmp_path, capsys):
    for flags in (["--clean", "none"], ["--no-strip_boilerplate"]):
        argv = ["export", "b", "--output", str(tmp_path / "o"), *flags]
        assert exit_code(*argv, "--format", "huggingface") == 2
        assert "is of the graph in a SavedModel" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            {"layout": "bart", "architecture": "recurrent"},
            "--layout bart is of the architecture transformer, not of recurrent",
        ),
        (
            {"layout": "t5", "encoder": "e"},
            "--layout is the encoder's own with --encoder",
        ),
    ],
)
def test_a_layout_without_a_use_is_refused(flags, message, records_folder, tmp_path):
    with pytest.raises(UsageError, match=message):
        train(records=records_folder, output=str(tmp_path / "b"), **flags)


# The folder.
def test_an_export_is_left_as_it_is_the_second_time(tmp_path, capsys):
    bundle = save_layout(tmp_path / "bundle", "bart")
    argv = ("export", bundle, "--format", "huggingface", "--output", "OUT")
    argv = tuple(str(tmp_path / "out") if word == "OUT" else word for word in argv)
    assert exit_code(*argv) == 0
    assert "AutoModelForSeq2SeqLM.from_pretrained" in capsys.readouterr().out
    first = contents(tmp_path / "out")
    assert exit_code(*argv) == 0
    assert contents(tmp_path / "out") == first
    assert exit_code(*argv, "--beam_width", "2") == 2
    assert "holds something else than this export" in capsys.readouterr().err
    card = first["README.md"].decode()
    assert "library_name: transformers" in card and "AutoTokenizer" in card
    settings = read_folder(tmp_path / "out", "tokenizer_config.json")
    assert settings["model_max_length"] == 60
    assert (settings["pad_token"], settings["eos_token"]) == ("[PAD]", "[END]")


def test_the_card_of_an_export_may_be_edited(tmp_path):
    bundle = save_layout(tmp_path / "bundle", "bart")
    manifest = write(bundle, tmp_path / "out")
    assert set(manifest["sha256"]) == FILES - {"README.md", "manifest.json"}
    (tmp_path / "out" / "README.md").write_text("other words")
    assert write(bundle, tmp_path / "out") == manifest
    assert (tmp_path / "out" / "README.md").read_text() == "other words"
    (tmp_path / "out" / "tokenizer.json").write_text("{}")
    with pytest.raises(UsageError, match="holds something else than this export"):
        write(bundle, tmp_path / "out")


@pytest.mark.parametrize(
    ("front", "licence", "language"),
    [
        ('---\nlanguage: "de"\nlicense: "apache-2.0"\n---\n', "apache-2.0", "de"),
        ("---\nlicense: mit\nlanguage:\n- en\n---\n", "mit", ""),
        ("---\r\nlicense: mit\r\n---\r\nlicense: none\r\n", "mit", ""),
        ("A card.\n\nlicense: gpl-3.0\n", "unknown", ""),
        (None, "unknown", ""),
    ],
)
def test_an_export_has_the_licence_of_the_card_of_its_bundle(
    front, licence, language, tmp_path
):
    bundle = save_layout(tmp_path / "bundle", "bart")
    card = tmp_path / "bundle" / "README.md"
    card.unlink() if front is None else card.write_bytes(front.encode())
    write(bundle, tmp_path / "out")
    text = (tmp_path / "out" / "README.md").read_text()
    assert f'\nlicense: "{licence}"\n' in text
    assert (f'\nlanguage: "{language}"\n' in text) == bool(language)
    assert ("as its user states it: " in text) == (licence != "unknown")


def test_a_task_prefix_is_written_and_read_again(tmp_path):
    bundle = save_layout(tmp_path / "bundle", "t5")
    write(bundle, tmp_path / "out")
    config = read_folder(tmp_path / "out", "config.json")
    task = config["task_specific_params"]
    assert task == {"summarization": {"prefix": "summarize: "}}
    assert "'summarize: ' + article" in (tmp_path / "out" / "README.md").read_text()
