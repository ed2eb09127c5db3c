"""Sources as token ids: lengths before and after the cut, by hand."""

import pytest
from support.small_checkpoint import SETTINGS, write_tokenizer
from support.small_encoder_checkpoint import BERT, PIECES, write_pieces

from precis.model.tokenization.checkpoint_files import read_tokenizer
from precis.model.tokenization.imported import ImportedTokenizer
from precis.model.tokenization.source import EncodedSource, encode_sources
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer

A, B = 4, 5
WORDPIECE = Tokenizer([*RESERVED_TOKENS, "▁a", "▁b"])
# [CLS] rain fell on mon ##day [SEP]
MONDAY = [3, 6, 7, 11, 12, 13, 4]


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> ImportedTokenizer:
    return read_tokenizer(write_pieces(tmp_path_factory.mktemp("bert")), BERT)


@pytest.fixture(scope="module")
def bart(tmp_path_factory) -> ImportedTokenizer:
    folder = write_tokenizer(tmp_path_factory.mktemp("bart"), as_definition=True)
    return read_tokenizer(folder, SETTINGS)


def as_lists(sources: list[EncodedSource]) -> list[tuple[list[int], int]]:
    return [(source.ids.tolist(), source.source_tokens) for source in sources]


def test_each_source_is_cut_at_the_limit():
    sources = encode_sources(WORDPIECE, ["a b b", "a b", "b"], max_source_tokens=2)
    assert as_lists(sources) == [([A, B], 3), ([A, B], 2), ([B], 1)]
    assert [source.is_truncated for source in sources] == [True, False, False]
    assert [str(source.ids.dtype) for source in sources] == ["int32"] * 3


def test_no_texts_give_no_sources(bert):
    assert encode_sources(WORDPIECE, [], max_source_tokens=2) == []
    assert encode_sources(bert, [], max_source_tokens=2) == []


@pytest.mark.parametrize(
    ("limit", "ids"),
    [
        (1, [4]),
        (2, [3, 4]),
        (4, [3, 6, 7, 4]),
        (6, [3, 6, 7, 11, 12, 4]),
        (7, MONDAY),
        (8, MONDAY),
    ],
)
def test_special_tokens_at_the_end_survive_the_cut(bert, limit, ids):
    assert [PIECES[token] for token in (3, 4)] == ["[CLS]", "[SEP]"]
    sources = encode_sources(
        bert, ["Rain fell on Monday", "rain"], max_source_tokens=limit
    )
    assert (sources[0].ids.tolist(), sources[0].source_tokens) == (ids, 7)
    assert sources[0].is_truncated == (limit < 7)
    assert sources[1].source_tokens == 3


def test_the_end_token_of_bart_survives_the_cut(bart):
    # No merge joins these letters: each is one token.
    (whole,) = encode_sources(bart, ["zqx"], max_source_tokens=5)
    (cut,) = encode_sources(bart, ["zqx"], max_source_tokens=3)
    start, first_letter, *_, end = whole.ids.tolist()
    assert (start, end, whole.source_tokens) == (0, 2, 5)
    assert as_lists([cut]) == [([0, first_letter, 2], 5)]
    assert cut.is_truncated and not whole.is_truncated


def test_a_tokenizer_without_special_tokens_keeps_only_the_beginning(bert):
    plain = ImportedTokenizer(bert._tokenizer.to_str())
    plain._tokenizer.post_processor = None
    sources = encode_sources(plain, ["rain fell on"], max_source_tokens=2)
    assert as_lists(sources) == [([6, 7], 3)]
