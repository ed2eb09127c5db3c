"""Documents of several languages whose summaries can be learned, and not from their
beginnings.

Of ten sentences of random words, one at a random place begins with the word for
"result" and quotes three words. The reference is the quotation and what follows it.

    article      Река мост город. Итог: «снег школа врач» зима поле. Лес окно ...
    highlights   снег школа врач зима поле.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

SENTENCES = 10


class _Writing(NamedTuple):
    """How a language writes; the words are separated by spaces.

    Attributes:
      words: words that no stop word list has.
      result: the word for "result".
      colon, quotes, end: marks; `quotes` are an opening and a closing mark.
      spaces: whether spaces separate words.
    """

    words: str
    result: str
    colon: str = ": "
    quotes: str = "«»"
    end: str = ". "
    spaces: bool = True


_WRITINGS = {
    "ru": _Writing(
        "река мост город снег школа врач зима поле лес окно дорога поезд хлеб учитель "
        "музыка корабль театр картина письмо солнце завод рабочий берег остров птица "
        "собака лошадь дерево камень огонь ветер дождь облако звезда книга газета",
        "итог",
    ),
    "de": _Writing(
        "Brücke Fluss Stadt Schule Winter Straße Fenster Lehrer Musik Schiff Theater "
        "Zeitung Sonne Fabrik Arbeiter Ufer Insel Vogel Hund Pferd Baum Stein Feuer "
        "Regen Wolke Stern Wald Bahnhof Brot Arzt Gemälde Garten Küche Bürgermeister",
        "Ergebnis",
        quotes="„“",
    ),
    "en": _Writing(
        "bridge river town school winter road window teacher music ship theatre paper "
        "sunlight factory worker shore island bird horse tree stone fire rain cloud "
        "star forest station bread doctor painting garden kitchen mayor valley",
        "the result of this",
        quotes="“”",
    ),
    "hi": _Writing(
        "नदी पुल शहर बर्फ़ विद्यालय चिकित्सक सर्दी मैदान जंगल खिड़की सड़क रेलगाड़ी रोटी शिक्षक "
        "संगीत जहाज़ चित्र सूरज कारखाना मज़दूर किनारा द्वीप पक्षी कुत्ता घोड़ा पेड़ पत्थर आग हवा "
        "बारिश बादल तारा किताब अख़बार",
        "परिणाम",
        quotes="“”",
        end="। ",
    ),
    "th": _Writing(
        "แม่น้ำ สะพาน เมือง หิมะ โรงเรียน แพทย์ ฤดูหนาว ทุ่งนา ป่า หน้าต่าง ถนน รถไฟ ขนมปัง "
        "ครู ดนตรี เรือ โรงละคร ภาพวาด จดหมาย ดวงอาทิตย์ โรงงาน คนงาน ชายฝั่ง เกาะ นก "
        "สุนัข ม้า ต้นไม้ ก้อนหิน ไฟ ลม ฝน เมฆ ดาว หนังสือ",
        "ผลลัพธ์",
        quotes="“”",
        end="\n",
        spaces=False,
    ),
    "zh": _Writing(
        "河流 桥梁 城市 雪花 学校 医生 冬天 田野 森林 窗户 道路 火车 面包 教师 "
        "音乐 轮船 剧院 图画 信件 太阳 工厂 工人 海岸 岛屿 飞鸟 小狗 马匹 树木 "
        "石头 火焰 大风 雨水 云彩 星星 书籍 报纸",
        "结果",
        colon="：",
        quotes="「」",
        end="。",
        spaces=False,
    ),
}
LANGUAGES = tuple(_WRITINGS)


def marked_documents(counts: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Documents with highlights, by the number of documents of each language."""
    generator = random.Random(5)
    for language, count in counts.items():
        for number in range(count):
            article, highlights = _document(_WRITINGS[language], generator)
            name = f"{language}-{number}"
            yield {"id": name, "article": article, "highlights": highlights}


def _document(writing: _Writing, generator: random.Random) -> tuple[str, str]:
    """An article and its highlights."""
    space = " " if writing.spaces else ""
    listed = writing.words.split()

    def draw(count: int) -> str:
        return space.join(generator.sample(listed, count))

    lines = [draw(generator.randint(6, 9)) for _ in range(SENTENCES)]
    quoted, rest = draw(3), draw(4)
    opening, closing = writing.quotes
    result = f"{writing.result}{writing.colon}{opening}{quoted}{closing}{space}{rest}"
    lines[generator.randrange(SENTENCES)] = result
    article = "".join(line[:1].upper() + line[1:] + writing.end for line in lines)
    return article.strip(), f"{quoted}{space}{rest}{writing.end.strip()}"
