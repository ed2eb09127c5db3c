"""The bundle of a network: tokenizers, task prefixes and search settings."""

import dataclasses
import json

import pytest

from precis.model.bundle.manifest import (
    has_source_tokenizer,
)
from precis.model.bundle.network_bundle import (
    check_prefix,
    load_bundle,
    open_bundle,
    read_decoding,
    save_bundle,
)
from precis.model.errors import DataError, UsageError
from precis.model.network.build import build_network
from precis.model.network.config import TransformerConfig
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.tokenization.wordpiece import Tokenizer


@pytest.fixture(scope="module")
def tokenizer(records_folder) -> Tokenizer:
    return Tokenizer.load(f"{records_folder}/tokenizer")


@pytest.fixture(scope="module")
def network(tokenizer):
    config = TransformerConfig(
        vocabulary_size=tokenizer.vocabulary_size,
        pad_id=0,
        encoder_layers=2,
        decoder_layers=1,
        width=16,
        feed_forward=24,
        heads=2,
        dropout=0.25,
    )
    return build_network(config, seed=4)


def test_sources_may_have_a_separate_tokenizer(network, tokenizer, tmp_path):
    other, folder = Tokenizer(tokenizer.vocabulary, lower_case=True), str(tmp_path)
    shared_id = save_bundle(folder, network=network, tokenizer=tokenizer, provenance={})
    loaded = load_bundle(folder)
    assert loaded.source_tokenizer is loaded.tokenizer and not has_source_tokenizer(
        folder
    )
    own_id = save_bundle(
        folder,
        network=network,
        tokenizer=tokenizer,
        source_tokenizer=other,
        provenance={},
    )
    loaded = load_bundle(folder)
    assert (loaded.tokenizer.fingerprint, loaded.source_tokenizer.fingerprint) == (
        tokenizer.fingerprint,
        other.fingerprint,
    )
    assert has_source_tokenizer(folder) and loaded.model_id == own_id != shared_id
    assert open_bundle(folder).source_tokenizer.fingerprint == other.fingerprint
    tokenizer.save(str(tmp_path / "source_tokenizer"))
    with pytest.raises(
        DataError,
        match=(
            "source_tokenizer: not the tokenizer that manifest.json names; "
            "copy the bundle again"
        ),
    ):
        load_bundle(folder)
    assert (
        save_bundle(folder, network=network, tokenizer=tokenizer, provenance={})
        == shared_id
    )
    assert (
        not has_source_tokenizer(folder)
        and not (tmp_path / "source_tokenizer").exists()
    )


def test_task_prefixes_come_back_and_others_are_refused(network, tokenizer, tmp_path):
    folder, plain = str(tmp_path / "b"), str(tmp_path / "plain")
    prefixes = ("summarize: ", "headline: ")
    first = save_bundle(
        folder,
        network=network,
        tokenizer=tokenizer,
        provenance={},
        task_prefixes=prefixes,
    )
    assert (
        load_bundle(folder).task_prefixes
        == open_bundle(folder).task_prefixes
        == prefixes
    )
    assert read_decoding(folder) == {"task_prefix": "summarize: "}
    for prefix in prefixes:
        check_prefix(prefix, open_bundle(folder))
    for prefix in ("", "translate: "):
        with pytest.raises(
            UsageError,
            match=(
                f"--task_prefix '{prefix}' is not one .* trained with; "
                f"it knows 'summarize: ', 'headline: '"
            ),
        ):
            check_prefix(prefix, open_bundle(folder))
    assert (
        save_bundle(
            plain,
            network=network,
            tokenizer=tokenizer,
            provenance={},
            task_prefixes=("",),
        )
        != first
    )
    assert "task_prefixes" not in json.loads(
        (tmp_path / "plain" / "config.json").read_text()
    )  # as a bundle that was given none
    assert open_bundle(plain).task_prefixes == () and read_decoding(plain) == {}
    check_prefix("", open_bundle(plain))
    with pytest.raises(
        UsageError,
        match=(
            "--task_prefix 'summarize: ' is not one that the network was trained with; "
            "it knows none"
        ),
    ):
        check_prefix("summarize: ", open_bundle(plain))


def test_an_imported_network_has_search_settings_and_takes_any_prefix(
    network, tokenizer, tmp_path
):
    special = SpecialTokens(
        start_id=2, end_id=1, pad_id=0, suppressed=(0, 5), prefix=(7,), last_id=1
    )
    decoding = SearchConfig(beam_width=5, length_penalty_form="average")
    settings = {
        "decoding": decoding,
        "special": special,
        "task_prefixes": ("summarize: ",),
    }
    save_bundle(
        str(tmp_path), network=network, tokenizer=tokenizer, provenance={}, **settings
    )
    assert load_bundle(str(tmp_path)).special == special
    assert read_decoding(str(tmp_path)) == {
        **dataclasses.asdict(decoding),
        "task_prefix": "summarize: ",
    }
    check_prefix("translate English to German: ", open_bundle(str(tmp_path)))
