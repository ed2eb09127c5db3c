"""The tokenizers in a folder: one or two, of either kind; and the ids of targets."""

import pytest
from support.small_checkpoint import SETTINGS, write_tokenizer
from support.small_encoder_checkpoint import BERT, write_pieces

from precis.model.errors import DataError
from precis.model.tokenization.checkpoint_files import read_tokenizer
from precis.model.tokenization.folder import (
    TokenizerPair,
    holds_tokenizer,
    load_tokenizer,
    load_tokenizers,
    save_tokenizers,
)
from precis.model.tokenization.imported import ImportedTokenizer
from precis.model.tokenization.target import encode_targets
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer

WORDPIECE = Tokenizer([*RESERVED_TOKENS, "▁a", "▁b"])


@pytest.fixture(scope="module")
def bart(tmp_path_factory) -> ImportedTokenizer:
    return read_tokenizer(
        write_tokenizer(tmp_path_factory.mktemp("bart"), as_definition=True), SETTINGS
    )


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> ImportedTokenizer:
    return read_tokenizer(write_pieces(tmp_path_factory.mktemp("bert")), BERT)


def names(folder):
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
    )


def test_wordpiece_adds_no_special_tokens():
    assert WORDPIECE.surrounding_ids == ((), ())
    bare, (whole,) = WORDPIECE.encode_bare(["a b", "b"]), WORDPIECE.encode(["a b b"])
    assert [ids.tolist() for ids in bare] == [[4, 5], [5]]
    assert WORDPIECE.cut(whole, 2).tolist() == [4, 5]


def test_two_tokenizers_come_back(bert, tmp_path):
    save_tokenizers(str(tmp_path), TokenizerPair(source=bert, target=WORDPIECE))
    assert names(tmp_path) == [
        "source_tokenizer/tokenizers.json",
        "tokenizer/tokenizer.json",
        "tokenizer/vocab.txt",
    ]
    loaded = load_tokenizers(str(tmp_path))
    assert isinstance(loaded.source, ImportedTokenizer) and isinstance(
        loaded.target, Tokenizer
    )
    assert (loaded.source.fingerprint, loaded.target.fingerprint) == (
        bert.fingerprint,
        WORDPIECE.fingerprint,
    )


def test_one_tokenizer_for_source_and_target_comes_back(bart, tmp_path):
    save_tokenizers(str(tmp_path), TokenizerPair(bart, bart))
    assert names(tmp_path) == ["tokenizer/tokenizers.json"]
    loaded = load_tokenizers(str(tmp_path))
    assert (
        loaded.source is loaded.target and loaded.target.fingerprint == bart.fingerprint
    )


def test_a_folder_holds_a_tokenizer_of_either_kind_or_none(bart, tmp_path):
    assert not holds_tokenizer(str(tmp_path)) and not holds_tokenizer(
        str(tmp_path / "absent")
    )
    WORDPIECE.save(str(tmp_path / "own"))
    bart.save(str(tmp_path / "bart"))
    assert holds_tokenizer(str(tmp_path / "own")) and holds_tokenizer(
        str(tmp_path / "bart")
    )


def test_targets_have_no_special_tokens_at_their_end(bart, bert):
    texts = ["Rain fell.", "Nobody came, it was cold."]
    for tokenizer, before, behind in ((bart, [0], [2]), (bert, [3], [4])):
        targets, whole = encode_targets(tokenizer, texts), tokenizer.encode(texts)
        assert [[*ids, *behind] for ids in targets] == [ids.tolist() for ids in whole]
        assert all(
            ids.dtype == "int32" and ids[0] == before[0] and ids[-1] != behind[0]
            for ids in targets
        )
    assert [ids.tolist() for ids in encode_targets(WORDPIECE, ["a b", "b"])] == [
        [4, 5],
        [5],
    ]  # nothing to leave out


def test_the_tokenizer_of_another_project_must_be_imported(tmp_path):
    write_tokenizer(tmp_path, as_definition=True)
    with pytest.raises(
        DataError,
        match=(
            r"tokenizer.json: kind is None and must be 'wordpiece-visible-space'; "
            r"import a checkpoint with `precis"
        ),
    ):
        load_tokenizer(str(tmp_path))
