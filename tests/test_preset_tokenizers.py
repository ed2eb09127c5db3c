"""The tokenizers of presets."""

from pathlib import Path

from support.small_checkpoint import VOCABULARY as PAIRS
from support.small_checkpoint import write_tokenizer
from support.small_encoder_checkpoint import PIECES
from support.small_preset import write_assets

from precis.model.tokenization.checkpoint_files import read_tokenizer, tokenizer_files
from precis.model.tokenization.definitions import preset_tokenizer_settings


def test_the_word_pieces_of_a_preset(tmp_path):
    settings = {"model_type": "bert", "vocab_size": len(PIECES) + 2}
    pieces = [*PIECES, "##ss", "##σ"]
    vocabulary = {"vocabulary.txt": "".join(f"{piece}\n" for piece in pieces).encode()}
    write_assets(tmp_path, vocabulary)
    assert tokenizer_files(str(tmp_path)) == ["assets/tokenizer/vocabulary.txt"]
    texts = ["Rain fell", "aß café 東京", "rains!", "ｆａｌｌ aς"]

    def encode() -> list[str]:
        rows = read_tokenizer(str(tmp_path), settings).encode(texts)
        return [" ".join(pieces[token] for token in ids) for ids in rows]

    # The default of keras-hub leaves letters as they are.
    assert encode() == [
        "[CLS] [UNK] fell [SEP]",
        "[CLS] [UNK] [UNK] 東 京 [SEP]",
        "[CLS] rain ##s ! [SEP]",
        "[CLS] [UNK] [UNK] [SEP]",
    ]
    write_assets(
        tmp_path, vocabulary, lowercase=True, strip_accents=True, split_on_cjk=False
    )
    assert tokenizer_files(str(tmp_path)) == [
        "assets/tokenizer/vocabulary.txt",
        "tokenizer.json",
    ]
    assert encode() == [
        "[CLS] rain fell [SEP]",
        "[CLS] a ##ss cafe [UNK] [SEP]",
        "[CLS] rain ##s ! [SEP]",
        "[CLS] fall a ##σ [SEP]",
    ]
    write_assets(tmp_path, vocabulary, lowercase=True, oov_token="nobody")
    assert encode() == [
        "[CLS] rain fell [SEP]",
        "[CLS] a ##ss nobody 東 京 [SEP]",
        "[CLS] rain ##s ! [SEP]",
        "[CLS] fall a ##σ [SEP]",
    ]
    assert preset_tokenizer_settings({}) == preset_tokenizer_settings({"config": {}})


def test_the_byte_pairs_of_a_preset(tmp_path):
    folder = Path(write_tokenizer(tmp_path / "checkpoint", as_definition=False))
    content = {
        "vocabulary.json": (folder / "vocab.json").read_bytes(),
        "merges.txt": (folder / "merges.txt").read_bytes(),
    }
    write_assets(tmp_path, content, add_prefix_space=False)
    settings = {
        "model_type": "bart",
        "vocab_size": PAIRS,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "pad_token_id": 1,
    }
    tokenizer, expected = (
        read_tokenizer(str(tmp_path), settings),
        read_tokenizer(str(folder), settings),
    )
    assert tokenizer_files(str(tmp_path)) == [
        "assets/tokenizer/vocabulary.json",
        "assets/tokenizer/merges.txt",
    ]
    assert (
        tokenizer.fingerprint == expected.fingerprint
        and tokenizer.surrounding_ids
        == (
            (0,),
            (2,),
        )
    )


def test_the_sentencepiece_model_of_a_preset(tmp_path):
    from test_sentencepiece import IDS, spiece

    write_assets(tmp_path, {"vocabulary.spm": spiece()}, add_eos=False)
    tokenizer = read_tokenizer(
        str(tmp_path), {"model_type": "t5", "vocab_size": len(IDS)}
    )
    assert tokenizer.encode(["rain"])[0].tolist() == [
        IDS["▁rain"],
        1,
    ] and tokenizer.vocabulary_size == len(IDS)
