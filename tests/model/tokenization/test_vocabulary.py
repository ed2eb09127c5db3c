"""Counting words as tensorflow-text cuts them, and learning vocabularies."""

import random
import re
from collections import Counter

import pytest
import tensorflow as tf
import tensorflow_text
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib

from precis.model.errors import UsageError
from precis.model.tokenization import vocabulary as vocabulary_module
from precis.model.tokenization.vocabulary import count_words, learn, pieces_above
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer
from precis.pipelines.corpus.sample import generator

ASCII = "".join(map(chr, range(33, 127)))
TEXTS = [
    "The mayor paid $4.5m for the bridge.\nThe bridge, she said, was 'a bargain'.",
    "The bridge reopened; the mayor walked over the bridge twice.",
    "Nobody else walked. Nobody, the mayor said, had been told.",
    "A walker's dog -- unpaid -- walked the bridge at 5:30 (again).",
]


@pytest.fixture(scope="module")
def counts() -> Counter[str]:
    return count_words(TEXTS)


def test_words_by_hand():
    expected = {"▁He": 2, "▁paid": 2, "▁": 1, "$": 1, "4": 1, ".": 3, "5m": 1, "▁␤": 1}
    assert count_words(["He paid $4.5m.\nHe paid."]) == expected
    assert count_words(["HE ÉTÉ he"], lower_case=True) == {"▁he": 2, "▁été": 1}
    assert count_words([""]) == {}
    clause = {"▁" + "ก" * 37: 1, "##" + "ก" * 23: 1, "▁" + "a" * 60: 1}
    assert count_words(["ก" * 60 + " " + "a" * 60]) == clause


def awkward_text() -> str:
    """Random text of ASCII characters and the marks, symbols and scripts of news."""
    chance = random.Random(3)
    characters = ASCII + "  \n“”‘’–—…€£°é×½©™漢字かなΩжش\u0e01한🙂\u0301"
    characters += "\u3400\ufa0e\U00020000\U0002a700\U0002f800"
    words = ["".join(chance.choices(characters, k=40)) for _ in range(400)]
    return " ".join([*words, "co-op's U.S. 3.5% @home #1 a_b C++ <b> ~x^y|z`"])


def visible(text: str) -> bytes:
    """Normalised text with "▁" for a space and "␤" for a line break."""
    return ("▁" + re.sub(" +", " ▁", text.replace("\n", " ␤ "))).encode()


def test_words_are_those_of_tensorflow_text():
    """An independent route: with the one piece "x", the tokenizer of tensorflow-text
    returns each word as one unknown token with offsets.
    """
    text = " ".join(awkward_text().split())
    tokenizer = tensorflow_text.FastWordpieceTokenizer(
        ["[UNK]", "x"], token_out_type=tf.int32, max_bytes_per_word=1000
    )
    _, starts, ends = tokenizer.tokenize_with_offsets([visible(text)])
    flat = (each.flat_values.numpy().tolist() for each in (starts, ends))
    expected = Counter(visible(text)[i:j].decode() for i, j in zip(*flat, strict=True))
    assert len(expected) > 2000
    assert count_words([text]) == expected


@pytest.mark.parametrize("lower_case", [False, True])
def test_tokens_are_those_of_tensorflow_text(lower_case):
    news = [generator.document(n).article for n in range(300)]
    text = " ".join(awkward_text().split())
    texts = [*news, text, "", "ΑΣ İSTANBUL ΣΑΣ", "ก" * 900]
    vocabulary = learn(count_words([*news[:50], text], lower_case=lower_case), size=900)
    peer = tensorflow_text.FastWordpieceTokenizer(
        vocabulary, token_out_type=tf.int32, max_bytes_per_word=1 << 16
    )
    batch = tf.constant(list(map(visible, texts)))
    if lower_case:
        batch = tf.strings.lower(batch, encoding="utf-8")
    expected = peer.tokenize(batch).to_list()
    assert any(Tokenizer.unknown_id in row for row in expected)
    rows = Tokenizer(vocabulary, lower_case=lower_case).encode(texts)
    assert [row.tolist() for row in rows] == expected


def test_the_vocabulary_does_not_depend_on_the_order_of_counting(counts, monkeypatch):
    # Cuts between words that are equally frequent.
    monkeypatch.setattr(vocabulary_module, "MAX_WORDS", 30)
    counts = Counter(counts) + Counter(counts)
    vocabulary = learn(counts, size=220)
    shuffled = list(counts.items())
    for seed in range(3):
        random.Random(seed).shuffle(shuffled)
        assert learn(dict(shuffled), size=220) == vocabulary


def test_characters_go_from_frequent_to_rare_and_ties_by_code():
    counts = {"▁ы": 5, "▁э": 9, "▁ь": 5, "▁я": 5, "▁x": 100}
    in_order = ["э", "##э", "ы", "##ы", "ь", "##ь", "я", "##я"]
    for words in (counts, dict(reversed(counts.items()))):
        vocabulary = learn(words, size=200)
        learned = ["▁x", "▁э", "▁ы", "▁ь", "▁я"]
        assert vocabulary[162:] == [*in_order, *learned]


def test_the_vocabulary_begins_with_reserved_tokens_and_ascii(counts):
    vocabulary = learn(counts, size=400)
    assert vocabulary[:6] == [*RESERVED_TOKENS, "▁", "▁␤"]
    characters = {*ASCII, *(f"##{each}" for each in ASCII if each.isalnum())}
    assert characters <= {*vocabulary[: 6 + len(characters)]}
    assert len(set(vocabulary)) == len(vocabulary)


def test_pieces_occur_at_least_twice_and_may_be_rarer_than_characters():
    letters = {letter: 3 for letter in ASCII if letter.isalpha()}
    vocabulary = learn({**letters, "▁twice": 2, "▁once": 1}, size=200)
    assert vocabulary[162:] == ["▁twice"]


def test_size_is_a_maximum_that_a_large_corpus_reaches():
    chance = random.Random(5)
    lengths = [chance.randint(2, 7) for _ in range(2000)]
    words = ["".join(chance.choices("abcdefghij", k=length)) for length in lengths]
    counts = count_words(" ".join(words[:count]) for count in (2000, 700, 200))
    sizes = [170, 300, 900]
    assert [len(learn(counts, size=size)) for size in sizes] == sizes
    assert len(learn(count_words(TEXTS), size=5000)) < 400


def test_ordinary_text_and_characters_of_the_corpus_are_never_unknown():
    counts = count_words(["Zoë œuvre — “née” 漢字", *["a\nb"] * 9, *TEXTS])
    vocabulary = learn(counts, size=400)
    assert vocabulary.count("▁␤") == 1  # It is frequent, too.
    # Neither letter nor mark: it is part of a word, as in "5°C".
    assert {"°", "##°"} <= set(learn(count_words(["5°C"]), size=400))
    tokenizer = Tokenizer(vocabulary)
    texts = [f"{ASCII} {ASCII[::-1]}\nzebra QUIZ", "œZëo ë“é字漢”—née"]
    texts.append(" ".join(f"{character}{ASCII}" for character in ASCII))
    encoded = tokenizer.encode(texts)
    assert all(tokenizer.unknown_id not in tokens for tokens in encoded)
    assert tokenizer.decode(encoded) == texts


def test_rare_characters_do_not_crowd_out_words():
    scripts = " ".join(chr(code) for code in range(0x0400, 0x0600))
    texts = [*TEXTS, *TEXTS]
    vocabulary = learn(count_words([*texts, scripts, "жж ж"]), size=300)
    alone = learn(count_words(texts), size=300)
    assert {"ж", "##ж", "▁bridge", *alone} <= {*vocabulary}
    assert len(vocabulary) == 300


def test_a_lower_case_vocabulary_has_no_capitals():
    vocabulary = learn(count_words(TEXTS, lower_case=True), size=300, lower_case=True)
    capitals = {piece for piece in vocabulary if piece != piece.lower()}
    assert capitals == {*RESERVED_TOKENS} and "▁the" in vocabulary


def test_too_small_a_size_is_refused(counts):
    # 4 reserved tokens, ▁ and ▁␤, 94 characters, 62 of them also within words.
    message = "a vocabulary of 161 pieces has no room .* ASCII; use at least 162"
    with pytest.raises(UsageError, match=message):
        learn(counts, size=161)
    assert len(learn(counts, size=162)) == 162


def test_the_characters_of_all_words_stand_for_words_that_were_left_out():
    words = {"▁rain": 9, "▁fell": 8, "▁ñu": 1, "▁øl": 1}
    frequent = {word: words[word] for word in ("▁rain", "▁fell")}
    characters = Counter(9 * "▁rain" + 8 * "▁fell" + "▁ñu▁øl")
    pieces = learn(frequent, size=400, characters=characters)
    assert {"ñ", "##ñ", "ø"} <= set(pieces) and "ñ" not in learn(frequent, size=400)
    assert pieces == learn(words, size=400)


# Scripts of many characters or without spaces.
CHINESE, HANGUL = (
    list(map(chr, range(start, start + 1800))) for start in (19968, 44032)
)
THAI = "กิน ข้าว น้ำ ตลาด แม่ ไป บ้าน โรงเรียน เด็ก ฝน ตก เมื่อวาน นายก สะพาน จ่าย เงิน".split()
HINDI = "मुख्यमंत्री ने नया पुल खोला और बारिश में बच्चे विद्यालय गए क्योंकि नदी ऊँची थी".split()


def sentences(words: list[str], *, between: str, length: int) -> list[str]:
    """Sentences of random words, in which the n-th word is as frequent as 1 / n."""
    chance = random.Random(8)
    weights = [1 / n for n in range(1, len(words) + 1)]
    picks = (chance.choices(words, weights, k=length) for _ in range(900))
    return [between.join(words) + "।" for words in picks]


def syllables() -> list[str]:
    """Words of three syllables."""
    chance = random.Random(9)
    return ["".join(chance.choices(HANGUL, k=3)) for _ in range(3000)] + HANGUL


@pytest.mark.parametrize(
    ("words", "between", "size"),
    [(CHINESE, "", 2000), (syllables(), " ", 6000), (THAI, "", 600), (HINDI, " ", 600)],
)
def test_few_tokens_of_any_script_are_unknown(words, between, size):
    texts = sentences(words, between=between, length=40)
    tokenizer = Tokenizer(learn(count_words(texts), size=size))
    frequent = Counter("".join(texts).replace(" ", "")).most_common()
    # The characters that have a place whatever the words are.
    known = {*ASCII, *(each for each, _ in frequent[: min(1000, size // 8)])}
    lost = sum(count for each, count in frequent if each not in known)
    is_large = len(frequent) > 1000
    assert (lost / sum(count for _, count in frequent) > 0.03) == is_large
    tokens = [token for row in tokenizer.encode(texts) for token in row.tolist()]
    assert tokens.count(tokenizer.unknown_id) < 0.01 * len(tokens)
    kept = {*tokenizer.vocabulary}
    readable = [text for text in texts if kept.issuperset(text.replace(" ", ""))]
    assert len(readable) > 500
    assert tokenizer.decode(tokenizer.encode(readable)) == readable


def test_pieces_of_long_clauses_are_learned():
    """Of clauses of 150 letters, none of which recurs."""
    texts = sentences(THAI, between="", length=40)
    counts = count_words(texts)
    letters = sum(map(len, texts))
    assert sum(len(word.strip("▁#")) * n for word, n in counts.items()) == letters
    assert max(map(len, counts)) == 40 < min(map(len, texts))
    tokenizer = Tokenizer(learn(counts, size=600))
    assert letters / sum(map(len, tokenizer.encode(texts))) > 2.5


def test_a_part_of_a_clause_is_counted_with_equal_ends_of_words():
    counts = [("##abbb", 2), ("▁bbb", 1)]
    expected = {"##bbb": 3, "##bb": 3}
    assert vocabulary_module.pieces_above(3, counts, set("▁#ab")) == expected


def test_an_unknown_character_is_lost_alone_unless_its_word_is_european():
    texts = ["แม่ไปตลาด ฝนตก", "सड़क पुल", "다리가 열렸다", "国会は橋を開いた", "bridge 5"]
    tokenizer = Tokenizer(learn(count_words(texts * 3), size=400))
    for text, expected in (
        ("แม่🙂ไปตลาด🙂 🙂ฝนตก", "แม่\ufffdไปตลาด\ufffd \ufffdฝนตก"),
        ("แม่🙂🙂ไป \ufffdตก", "แม่\ufffd\ufffdไป \ufffdตก"),
        ("सड़कழ पुल", "सड़क\ufffd पुल"),
        ("다쫓리가 쫓열렸다", "다\ufffd리가 \ufffd열렸다"),
        ("国会議は,議橋を議.議会", "国会\ufffdは,\ufffd橋を\ufffd.\ufffd会"),
        ("bridgeż 5🙂 ழழ", "\ufffd \ufffd \ufffd"),
    ):
        assert tokenizer.decode(tokenizer.encode([text])) == [expected]
    (ids,) = tokenizer.encode(["แม่🙂ไป"])
    assert ids.tolist().count(tokenizer.unknown_id) == 1


# Pieces of words, compared with the learner of tensorflow-text.
WORDS = st.text(st.sampled_from("▁aabcdé"), min_size=1, max_size=9)


def check_pieces(threshold: int, counts: dict[str, int]) -> int:
    """Compares the pieces with those of tensorflow-text; returns how many there are."""
    settings = {
        **{"vocab_size": len(counts), "reserved_tokens": []},
        **{"upper_thresh": threshold, "lower_thresh": threshold},
        "num_iterations": vocabulary_module._ITERATIONS,
        "max_token_length": vocabulary_module._MAX_PIECE_CHARACTERS,
    }
    learner = wordpiece_tokenizer_learner_lib
    expected = learner.learn(list(counts.items()), **settings)
    pieces = pieces_above(threshold, counts.items(), set("".join(counts)))
    in_order = [piece for piece, _ in vocabulary_module._by_frequency(pieces)]
    assert in_order == [each for each in expected if len(each.removeprefix("##")) > 1]
    return len(pieces)


@settings(max_examples=200, deadline=None)
@given(
    counts=st.dictionaries(WORDS, st.integers(1, 9), min_size=1, max_size=30),
    share=st.floats(0, 1),
)
def test_pieces_of_any_words_are_those_of_tensorflow_text(counts, share):
    check_pieces(max(1, round(share * max(counts.values()))), counts)


@pytest.mark.parametrize("threshold", [2, 40])
def test_pieces_of_news_are_those_of_tensorflow_text(threshold):
    counts = count_words(generator.document(n).article for n in range(300))
    assert check_pieces(threshold, counts) > 200
    words = {"▁paid": 3, "▁payé": 5, "▁" + "a" * 40: 7}
    assert pieces_above(3, words.items(), set("▁paid")) == {"▁paid": 3}
