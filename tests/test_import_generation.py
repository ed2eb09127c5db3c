"""The generation settings of checkpoints as search settings and special tokens."""

import dataclasses

import pytest
from support.small_checkpoint import SETTINGS, write_checkpoint

from precis.model.bundle.converters.checkpoint import load_checkpoint
from precis.model.bundle.converters.generation import UNSUPPORTED, read_generation
from precis.model.errors import DataError
from precis.model.search.config import SearchConfig, SpecialTokens


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> str:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"))


def test_generation_settings_are_those_of_the_checkpoint(checkpoint):
    loaded = load_checkpoint(checkpoint)
    assert loaded.decoding == SearchConfig(
        beam_width=3,
        length_penalty=2.0,
        length_penalty_form="average",
        # the start token, which is no piece of a summary, counts there
        min_summary_tokens=3,
        max_summary_tokens=10,
        no_repeat_ngram=3,
        early_stopping="first_k",
        unfinished="compete",
    )
    assert loaded.special == SpecialTokens(
        start_id=2, end_id=2, pad_id=1, prefix=(0,), last_id=2
    )


PLAIN = SearchConfig(
    beam_width=1,
    length_penalty_form="average",
    max_summary_tokens=20,
    no_repeat_ngram=0,
    early_stopping="bound",
    unfinished="compete",
    repetition_penalty_form="logits",
)


@pytest.mark.parametrize(
    ("generation", "expected"),
    [
        ({}, {}),
        (
            {"max_length": None, "num_beams": 2},
            {"beam_width": 2, "repetition_penalty_form": "log_probs"},
        ),
        ({"max_length": 30, "min_length": 1}, {"max_summary_tokens": 29}),
        (
            {
                "max_length": 30,
                "max_new_tokens": 7,
                "min_length": 3,
                "min_new_tokens": 5,
            },
            {"max_summary_tokens": 7, "min_summary_tokens": 5},
        ),
        ({"num_beams": 1, "repetition_penalty": 2}, {"repetition_penalty": 2.0}),
        ({"early_stopping": "never"}, {"early_stopping": "never"}),
        (
            {
                "do_sample": False,
                "num_beam_groups": 1,
                "bad_words_ids": [],
                "encoder_repetition_penalty": 1.0,
            },
            {},
        ),
    ],
)
def test_generation_settings_become_fields(generation, expected):
    assert read_generation(SETTINGS, generation)[0] == dataclasses.replace(
        PLAIN, **expected
    )


def test_several_summaries_are_kept():
    decoding, _ = read_generation(SETTINGS, {"num_beams": 4, "num_return_sequences": 3})
    assert (decoding.beam_width, decoding.n_best) == (4, 3)


def test_generation_settings_of_config_json_are_used_without_another_file(
    tmp_path,
):
    write_checkpoint(
        tmp_path, settings={"num_beams": 2, "forced_bos_token_id": 5}, generation=None
    )
    loaded = load_checkpoint(str(tmp_path))
    assert (loaded.decoding.beam_width, loaded.special.prefix) == (2, (5,))
    write_checkpoint(
        tmp_path,
        settings={"num_beams": 2, "forced_bos_token_id": 5},
        generation={"no_repeat_ngram_size": 2},
    )
    loaded = load_checkpoint(str(tmp_path))
    assert (
        loaded.decoding.beam_width,
        loaded.decoding.no_repeat_ngram,
        loaded.special.prefix,
    ) == (1, 2, ())


def test_special_tokens_come_from_either_file():
    assert read_generation(
        SETTINGS,
        {"eos_token_id": [7], "suppress_tokens": [4, 9], "forced_eos_token_id": [8]},
    )[1] == SpecialTokens(start_id=2, end_id=7, pad_id=1, suppressed=(4, 9), last_id=8)
    assert (
        read_generation({**SETTINGS, "decoder_start_token_id": None}, {})[1].start_id
        == 0
    )  # then it is bos_token_id


@pytest.mark.parametrize(
    ("generation", "message"),
    [
        (
            {"eos_token_id": [2, 5]},
            (
                r"eos_token_id is \[2, 5\], and a search here knows one such token; "
                r"leave one in generation_config.json"
            ),
        ),
        (
            {"forced_bos_token_id": 300},
            (
                r"the special token 300 is none of the 300 of vocab_size; "
                r"correct generation_config.json"
            ),
        ),
        ({"suppress_tokens": [-1]}, r"the special token -1 is none of the 300"),
        (
            {"early_stopping": "soon"},
            (
                r"early_stopping is 'soon' and must be one of False, True, never; "
                r"correct generation_config.json"
            ),
        ),
        (
            {"min_length": 9, "max_length": 8},
            r"the generation settings cannot be: --min_summary_tokens \(8\) must be",
        ),
    ],
)
def test_unsupported_generation_settings_are_refused(generation, message):
    with pytest.raises(DataError, match=message):
        read_generation(SETTINGS, generation)


def test_every_setting_that_no_search_has_is_refused():
    for name in UNSUPPORTED:
        message = f"{name} is 3, and no search here has it; take it out"
        with pytest.raises(DataError, match=message):
            read_generation(SETTINGS, {name: 3})
