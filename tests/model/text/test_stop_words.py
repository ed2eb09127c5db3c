"""Tests of the stop words of languages."""

import tomllib
import unicodedata
from pathlib import Path

import pytest

from precis.model.text import stop_words as module
from precis.model.text.stop_words import STOP_WORDS, stop_words
from precis.model.text.words import words

LISTS = tomllib.loads(Path(module.__file__).with_suffix(".toml").read_text("utf-8"))
# Function words that a text of the language can hardly do without, and words of content
# that other lists have.
EXAMPLES = {
    "af": ("die en nie", ""),
    **dict.fromkeys(("ary", "arz"), ("في من التي", "مليون")),
    "ar": ("في من التي", "مليون سنة قوة"),
    "be": ("і што не", ""),
    "bg": ("и на не се", "юмрук"),
    "bn": ("এবং এই না", "কোটি বক্তব্য"),
    "bs": ("i je da", ""),
    "ca": ("el i no amb", "treball"),
    "cs": ("a v že se", "článek stránka"),
    "da": ("og det ikke", "folk"),
    "de": ("der und nicht wurde", "jahr mensch menschen zeit"),
    "el": ("και το δεν", "αλήθεια"),
    "es": ("el y no que", "trabajo país"),
    "et": ("ja ei see", ""),
    "fa": ("و در است می‌شود", "میلیون مردم"),
    "fi": ("ja ei se", "asia vuosi"),
    "fr": ("le et ne qu c'est", "personnes mot"),
    "gl": ("o e non", ""),
    "he": ("של את לא", "סיבה"),
    "hi": ("का और नहीं", "घर वर्ग"),
    "hr": ("i je da", ""),
    "hu": ("a az és nem", "év cikk"),
    "id": ("yang dan tidak", "tahun bulan"),
    "is": ("og að ekki", ""),
    "it": ("il e non dell", "lavoro governo"),
    "ja": ("の は です", "人 会社"),
    "ko": ("그 이 및", "년 월"),
    "lt": ("ir kad ne šis", ""),
    "lv": ("un ka nav", ""),
    "mk": ("и на не се", ""),
    "ms": ("yang dan tidak", "malaysia menteri"),
    "nb": ("og det ikke", "folk tid"),
    "nl": ("de en niet", "jaar tijd"),
    "nn": ("og det ikkje", "folk tid"),
    "no": ("og det ikke", "folk tid"),
    "pl": ("i w nie się", "lat pani"),
    "pt": ("o e não", "trabalho tempo"),
    "ro": ("și şi nu să", "timp"),
    "ru": ("и в не что", "россия москва год"),
    "sh": ("i je da", ""),
    "sk": ("a v že sa", ""),
    "sl": ("in je da", "leto nedelja"),
    "sr": ("i je и је", ""),
    "sv": ("och det inte", "tack"),
    "ta": ("ஒரு மற்றும் இந்த", "இடம்"),
    "th": ("ที่ และ ของ", "วัน"),
    "tr": ("ve bir için", "milyon"),
    "uk": ("і в не що", ""),
    "ur": ("اور کا نہیں", "سال"),
    "vi": ("và của là", "năm ngày nhà"),
    **dict.fromkeys(("wuu", "yue"), ("的 了", "年")),
    "zh": ("的 了 是 這", "年 月"),
}


def test_every_language_has_its_function_words_and_no_words_of_content():
    assert {code for codes in LISTS for code in codes.split()} == set(EXAMPLES)
    for language, (function, content) in EXAMPLES.items():
        found = stop_words(language)
        assert not {*words(function.casefold())} - found, language
        assert not set(content.split()) & found, language


@pytest.mark.parametrize("languages", LISTS)
def test_stop_words_are_words_as_a_text_has_them(languages):
    listed = LISTS[languages].split()
    assert len(listed) == len(set(listed))
    assert len(listed) >= 60
    for word in listed:
        assert unicodedata.normalize("NFC", word).lower() == word
        assert not any(map(str.isdigit, word))
        assert "".join(words(word)) == word.replace("\u200c", "")


def test_english_and_unknown_languages():
    assert stop_words("en") is stop_words(None) is STOP_WORDS
    assert stop_words("xx") == frozenset()
