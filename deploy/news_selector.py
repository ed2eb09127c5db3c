"""Makes the selector that comes with the package again.

    python deploy/news_selector.py --corpus 'jsonl:news/*.jsonl.gz' --output selector

prepares the records of the corpus, trains `selector/trained` and writes a compact copy
to precis/model/bundle/builtin/news-en: the weights as float16, and of the importance of
words the entries that tell most. The texts are not part of it: it knows single words,
pairs of words and how often each stood in articles and their references.
"""

import argparse
from pathlib import Path

import numpy as np

import precis
from precis.model.bundle.address import BUILTIN_SELECTOR, bundle_folder
from precis.model.bundle.card import CARD_FILE
from precis.model.bundle.manifest import open_stored
from precis.model.extractive.importance import ImportanceNetwork, Lexicon
from precis.model.inference.selector_bundle import load_selector, save_selector

# What --corpus was.
CORPUS = (
    "CNN/DailyMail (Hermann et al. 2015): 39,986 articles of CNN in cased form and "
    "38,429 of both, most of the Daily Mail, lower-cased and tokenised"
)
LICENCE = """## Licence

The weights are part of precis, Apache-2.0. The texts that they were learned from belong
to their publishers and are no part of it.
"""
SHUFFLED_SHARE = 0.3
EPOCHS = 4
# Articles that an entry stood in, at least.
LEAST_OF_WORDS, LEAST_OF_PAIRS = 8, 20


def make_news_selector(corpus: str, output: str) -> None:
    """Trains the selector and writes its compact copy into the package."""
    records, trained = f"{output}/records", f"{output}/trained"
    precis.prepare(
        corpus=corpus, output=records, oracle_sentences=5, validation_share=0.02
    )
    precis.train_selector(
        records=records,
        output=trained,
        epochs=EPOCHS,
        shuffled_share=SHUFFLED_SHARE,
    )
    write_compact(trained, bundle_folder(BUILTIN_SELECTOR))


def write_compact(trained: str, folder: str) -> None:
    """Writes a compact copy of a selector."""
    selector = load_selector(trained)
    weights = {
        name: each.astype(np.float16) for name, each in selector.network.weights.items()
    }
    importance = selector.importance
    assert importance is not None
    importance = importance._replace(
        words=_halved(importance.words),
        pairs=_halved(importance.pairs),
        word_lexicon=_cut(importance.word_lexicon, LEAST_OF_WORDS),
        pair_lexicon=_cut(importance.pair_lexicon, LEAST_OF_PAIRS),
    )
    made = dict(open_stored(trained).manifest["provenance"])
    made["data"] = [{**facts, "corpus": CORPUS} for facts in made["data"]]
    names = ("command", "data", "records_fingerprint", "step", "validation", "training")
    save_selector(
        folder,
        network=selector.network._replace(weights=weights),
        provenance={name: made[name] for name in names if name in made},
        importance=importance,
    )
    card = Path(folder, CARD_FILE)
    text = card.read_text().replace('license: "unknown"', 'license: "apache-2.0"')
    text = text.replace("_bundle BUNDLE", f"_bundle {BUILTIN_SELECTOR}")
    card.write_text(text.partition("## Licence")[0] + LICENCE)


def _halved(network: ImportanceNetwork) -> ImportanceNetwork:
    """The network in numbers of half the size."""
    return ImportanceNetwork(
        mean=network.mean.astype(np.float16),
        scale=network.scale.astype(np.float16),
        kernels=tuple(each.astype(np.float16) for each in network.kernels),
        biases=tuple(each.astype(np.float16) for each in network.biases),
    )


def _cut(lexicon: Lexicon, least: int) -> Lexicon:
    """The entries that stood in at least so many articles."""
    counts = {
        gram: counts for gram, counts in lexicon.counts.items() if counts[0] >= least
    }
    return lexicon._replace(counts=counts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", required=True, help="articles with references")
    parser.add_argument("--output", required=True, help="folder for what is trained")
    given = parser.parse_args()
    make_news_selector(given.corpus, given.output)
