"""Token ids of SentencePiece models are those of transformers.

The checkpoints are those of T5 and PEGASUS with spiece.model alone.
`sentencepiece_reference.py` trains the models and makes the expected results, in a
process of its own.
"""

import importlib.util
import itertools
import json
import random
from pathlib import Path

import pytest
from support.command_line import run_reference
from support.sentencepiece_reference import MODELS, SETTINGS

from precis.model.text.article import Article
from precis.model.tokenization.checkpoint_files import read_tokenizer
from precis.pipelines.corpus.sample.generator import document, hand_written

ABSENT = [
    name
    for name in ("sentencepiece", "transformers")
    if importlib.util.find_spec(name) is None
]
pytestmark = [
    pytest.mark.parity,
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(ABSENT),
        reason=f"needs {' and '.join(ABSENT)}; `make test-slow` installs it",
    ),
]
SENTENCES, SPOILT = 250, 150
# Texts of kinds that are rare in the built-in corpus.
ODD = (
    "| |  |\n|\t \n| a|a |  two  spaces   here  |a\nline\r\nbreak\tand\x0bmore\u2028|"
    "ﬁne ½ ① Ⅳ ㎏ ｆｕｌｌ\u3000ｗｉｄｔｈ|Naïve café-goers’ £3.50—\xad…|"
    "e\u0301 o\u0308 İstanbul STRASSE ß|东京 タワー 한국어 ไทย עברית|"
    "😀👨\u200d👩 flags 🇫🇷|"
    "zero\u200bwidth \ufeffbom \xa0nbsp\u3000wide|\x00null \x7fdel \x01|"
    "▁visible ▁▁ spaces▁|$1,000.50 (5%) <n> [x] {y} \\ ` ~|"
    "the town<n>of the old town <ctl> fell|</s><pad><unk> in <text>|<unk>|"
    "<mask_1> fell <mask_2>.<unk_2> <unk_102><unk_9>|"
    "<extra_id_0> rain<extra_id_99>fell <extra_id_3>.|<0x41> A|"
    "word\u0301\u0302\u0303|\ud7a3\u1100\u1161|ǅ ŉ ſ K Å|١٢٣ ٫ ۴|x²y³ H₂O|"
    "\u202eright\u202c to left|"
    "“Quoted,” he said: ‘no’"
).split("|")
ODD.append("a" * 300)


@pytest.fixture(scope="module")
def corpus() -> list[str]:
    """Sentences of the built-in corpus, all different."""
    first = len(hand_written())
    generated = (document(first + index) for index in range(400))
    documents = itertools.chain(hand_written(), generated)
    articles = (Article.from_text(each.article) for each in documents)
    return list(dict.fromkeys(each.text for one in articles for each in one.sentences))


@pytest.fixture(scope="module")
def texts(corpus) -> list[str]:
    """Unusual texts, sentences, and sentences with unusual characters and spaces."""
    rng = random.Random(5)
    characters = [*dict.fromkeys("".join(ODD)), "  ", "   ", " \n", "<n>"]
    spoilt = corpus[SENTENCES : SENTENCES + SPOILT]
    for number, text in enumerate(spoilt):
        for _ in range(rng.randint(1, 5)):
            place = rng.randint(0, len(text))
            text = text[:place] + rng.choice(characters) + text[place:]
        spoilt[number] = text
    return [*ODD, *corpus[:SENTENCES], *spoilt]


@pytest.fixture(scope="module")
def folder(corpus, texts, tmp_path_factory) -> Path:
    """All models with the results of transformers and SentencePiece."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "training.json").write_text(json.dumps(corpus))
    (folder / "texts.json").write_text(json.dumps(texts))
    run_reference("sentencepiece_reference", folder)
    return folder


@pytest.mark.parametrize("model_type", ["t5", "pegasus"])
@pytest.mark.parametrize("name", MODELS)
def test_token_ids_are_those_of_transformers(name, model_type, folder, texts):
    expected = json.loads((folder / name / f"{model_type}.json").read_text())
    config = {"model_type": model_type, "vocab_size": 2000}
    tokenizer = read_tokenizer(str(folder / name), config)
    encoded = tokenizer.encode(texts)
    assert len(encoded) == len(ODD) + SENTENCES + SPOILT
    assert [ids.tolist() for ids in encoded] == expected["ids"]
    assert tokenizer.decode(encoded) == expected["decoded"]
    extra = SETTINGS.get(name, {"extra_ids": 100, "offset": 103})
    extra = extra["extra_ids" if model_type == "t5" else "offset"]
    assert tokenizer.vocabulary_size == MODELS[name]["vocab_size"] + extra


# The other models have tokens that SentencePiece lacks, or keep spaces.
@pytest.mark.parametrize("name", ["plain", "case_folded"])
def test_pieces_are_those_of_sentencepiece(name, folder, texts):
    part = slice(len(ODD), len(ODD) + SENTENCES)
    expected = json.loads((folder / name / "own.json").read_text())[part]
    config = {"model_type": "t5", "vocab_size": 2000}
    encoded = read_tokenizer(str(folder / name), config).encode(texts[part])
    assert [ids[:-1].tolist() for ids in encoded] == expected
    assert max(map(len, expected)) > 40
