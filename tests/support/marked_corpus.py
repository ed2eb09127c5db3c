"""Documents of several languages whose summaries can be learned, and not from their
beginnings.

Of ten sentences of random words, one at a random place begins with the word for
"result" and quotes three words. The reference is the quotation and what follows it.

    article      Река мост город. Итог: «снег школа врач» зима поле. Лес окно ...
    highlights   снег школа врач зима поле.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any

from support import read_table

SENTENCES = 10


_WRITINGS = read_table("marked_words")
LANGUAGES = tuple(_WRITINGS)


def marked_documents(counts: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Documents with highlights, by the number of documents of each language."""
    generator = random.Random(5)
    for language, count in counts.items():
        for number in range(count):
            article, highlights = _document(_WRITINGS[language], generator)
            name = f"{language}-{number}"
            yield {"id": name, "article": article, "highlights": highlights}


def _document(writing: Mapping[str, str], generator: random.Random) -> tuple[str, str]:
    """An article and its highlights."""
    space, end, listed = writing["space"], writing["end"], writing["words"].split()

    def draw(count: int) -> str:
        return space.join(generator.sample(listed, count))

    lines = [draw(generator.randint(6, 9)) for _ in range(SENTENCES)]
    quoted, rest = draw(3), draw(4)
    opening, closing = writing["quotes"]
    begin = f"{writing['result']}{writing['colon']}{opening}"
    result = f"{begin}{quoted}{closing}{space}{rest}"
    lines[generator.randrange(SENTENCES)] = result
    article = "".join(line[:1].upper() + line[1:] + end for line in lines)
    return article.strip(), f"{quoted}{space}{rest}{end.strip()}"
