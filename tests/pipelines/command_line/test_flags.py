"""Tests of options as flags, as keywords and as lines of a file."""

import dataclasses
import functools
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from support import read_table

from precis.model.config import OUTPUT, Options, describe_differences, flag, required
from precis.model.errors import UsageError
from precis.model.quality.flags import MIN_TAKEN_CONFIDENCE
from precis.pipelines.command_line import parser
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.run import options
from precis.pipelines.run.options import read_flags
from precis.pipelines.training.train_summarizer import steps_for


@dataclasses.dataclass(frozen=True, kw_only=True)
class Paint(Options):
    """Paint of a wall.

    This line is no heading.
    """

    colour: str = required("what it looks like", metavar="NAME", is_common=True)
    coats: int = flag(2, "how often", is_common=True)
    litres: float = flag(0.5, "how much; 5% more if it rains", metavar="LITRES")
    glossy: bool = flag(False, "whether it shines", is_common=True)
    safe: bool = flag(True, "whether it may be eaten")
    brush: str = flag("flat", "what with", choices=("flat", "round"))
    primer: str | None = flag(None, "what lies under it", metavar="NAME")
    layers: str = flag("", "over it", metavar="NAME,...", takes_list=True)

    def __post_init__(self):
        super().__post_init__()
        if self.coats < 1:
            raise UsageError(f"--coats must be at least 1, not {self.coats}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wall(Options):
    """Wall"""

    bricks: int = flag(0, "bricks", metavar="BRICKS", default_text="as many as fit")
    output: str = flag("", "where it stands", metavar="DIR", place=OUTPUT)
    place: str = flag("", "the place", is_positional=True, metavar="PLACE")


GROUPS = (Paint, Wall)
EXAMPLE = ("--colour red",)
PAINT = parser.Command("Paint a wall.", GROUPS, print, EXAMPLE, uses_beam=True)


def read(words: str, command: parser.Command = PAINT):
    return parser.read_arguments("paint", command, words.split())


def test_flags_have_the_types_of_their_fields_and_only_those_that_are_given():
    line = "there --colour 7 --coats 7 --litres 7 --primer 7 --layers a,b --layers c"
    flags, beam_args, is_verbose = read(f"{line} --glossy --no-safe --runner=x")
    assert flags == {
        **{"place": "there", "colour": "7", "coats": 7, "litres": 7.0, "primer": "7"},
        **{"layers": "a,b,c", "glossy": True, "safe": False},
    }
    assert [type(flags[name]) for name in ("coats", "litres")] == [int, float]
    assert (beam_args, is_verbose) == (["--runner=x"], False)
    assert read("--verbose") == ({}, [], True)


@pytest.mark.parametrize(("words", "message"), read_table("refusals")["words"])
def test_words_that_cannot_be_are_refused(words, message):
    with pytest.raises(UsageError, match=message):
        read(words, PAINT._replace(uses_beam=False))


COMMON = """
    usage: precis paint --colour NAME [PLACE] [FLAGS] Paint a wall.
    Paint of a wall: --colour NAME what it looks like --coats N how often (default: 2)
    --glossy, --no-glossy whether it shines (default: off) General:
"""
ALL = """
    --safe, --no-safe whether it may be eaten (default: on)
    --brush flat|round what with (default: flat)
    --primer NAME what lies under it --layers
"""


def test_the_help_gives_meanings_and_defaults_in_words(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    make = functools.partial(parser.command_parser, "paint", PAINT)
    helps = make(shows_all=False).format_help(), make(shows_all=True).format_help()
    common, every = (" ".join(each.split()) for each in helps)
    assert common.startswith(" ".join(COMMON.split()))
    assert "`precis paint --help all` shows all 11 flags." in common
    assert "example: precis paint --colour red" in common and "go to Beam" in common
    assert " ".join(ALL.split()) in every and "--help all`" not in every
    assert "--bricks BRICKS bricks (default: as many as fit)" in every
    assert "--litres LITRES how much; 5% more if it rains (default: 0.5)" in every
    assert "This line is no heading" not in common + every


def test_keywords_become_the_dataclasses():
    given = {"colour": Path("a") / "b", "layers": ["x", "y"], "litres": 1}
    paint, wall = read_flags(GROUPS, {**given, "primer": None, "bricks": 5})
    assert paint == Paint(colour="a/b", layers="x,y", litres=1)
    assert wall == Wall(bricks=5)


@pytest.mark.parametrize(("values", "message"), read_table("refusals")["keywords"])
def test_a_keyword_that_cannot_be_is_refused(values, message):
    with pytest.raises(UsageError, match=message):
        read_flags((Paint,), values)


def config(path: Path, uses_beam: bool = True):
    paint = PAINT._replace(uses_beam=uses_beam)
    return parser.read_config_file(str(path), "paint", paint)


def test_every_flag_but_the_output_is_recorded_and_read_back(tmp_path):
    settings = read_flags(GROUPS, {"colour": "red", "layers": ["x"], "output": "o"})
    recorded = options.recorded_flags(settings)
    assert set(recorded) == set(options.option_names(GROUPS)) - {"output"}
    flags = {**recorded, "redact": ""}  # It was a flag once.
    manifest = {"provenance": {"command": "paint", "flags": flags}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    flags, _ = config(tmp_path / "manifest.json")
    assert read_flags(GROUPS, {**flags, "output": "o"}) == settings


def test_a_file_holds_flags_of_precis_and_of_beam_and_those_beside_it_win(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(
        "colour: red\nlayers: [x, y]\nlitres: 1e-1\nglossy: yes\nprimer:\n"
        "runner: DataflowRunner\nexperiments: [a, b]\nstreaming: true\n"
        "save: false\ntemp:\n"
    )
    line = read(f"--config {path} --colour blue --runner=x")
    flags = {"colour": "blue", "layers": "x,y", "litres": 0.1, "glossy": True}
    assert line.flags == flags
    assert line.beam_args == [
        *("--runner=DataflowRunner", "--experiments=a", "--experiments=b"),
        *("--streaming", "--runner=x"),
    ]
    (tmp_path / "run.json").write_text('{"coats": 3}')
    assert config(tmp_path / "run.json") == ({"coats": 3}, [])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.yaml", "colours: red", "has no flag 'colours'; did you mean colour[?]"),
        ("a.yaml", "null: NA", "has no flag 'null'"),
        ("a.yaml", "verbose: true", "has no flag 'verbose'; remove it"),
        ("a.yaml", "a: [", "a.yaml cannot be read as YAML or JSON: .*; correct the f"),
        ("a.json", "{", "a.json cannot be read as YAML or JSON: .*; correct the file"),
        ("a.json", '{"coats": "x"}', "json: `coats=` must be a whole number, not 'x'"),
        ("a.yaml", "coats: 1\ncoats: 2", "coats is given twice; remove one"),
        ("a.yaml", "? [a]\n: b", "a.yaml cannot be read as YAML or JSON: .*unhashable"),
        ("a.yaml", "coats: !!bool x", "a.yaml cannot be read as YAML or JSON: 'x'"),
        ("a.yaml", "[" * 999, "a.yaml cannot be read as YAML or JSON: maximum recurs"),
        ("a.yaml", "red", "a.yaml cannot be read as YAML or JSON: it must hold lines"),
        ("a.yaml", b"\xff\xfe\xfa", "a.yaml cannot be read as YAML or JSON"),
        ("a.yaml", "command: x\nflags: {}", "holds flags of `precis x`, not of"),
        ("b.yaml", "", "b.yaml: no such file; name a YAML or JSON file"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path, name, content, message):
    if content:
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError, match=message):
        config(tmp_path / name, uses_beam=False)


def differences(present: dict, labels: Sequence[tuple[str, str]] = ()) -> str:
    earlier = {"width": 4, "names": ["a"], "sha": "00", "more": 1}
    return describe_differences(earlier, present, labels=dict(labels))


def test_differences_are_named_with_both_values():
    assert differences({"width": 4, "names": ("a",), "sha": "00"}) == ""
    assert differences({"width": 2}) == "width is 4 there, 2 here"
    assert differences({"sha": "11"}, [("sha", "the files")]) == "the files differ"
    width = dataclasses.fields(Wall)[0]
    for there, here, text in (
        (4, 4, ""),
        (4, 3, "`bricks=4` there, 3 here"),
        (4, 0, "`bricks=4` there, not given here"),
        (0, 5, "`bricks=5` here, not given there"),
    ):
        found = describe_differences({"b": there}, {"b": here}, fields={"b": width})
        assert found == text
    many = differences({str(number): number for number in range(7)})
    assert many.endswith("3 is None there, 3 here; 3 more settings differ")


def test_the_pages_have_the_defaults():
    pages = [Path("README.md"), *Path("docs").glob("*.md")]
    texts = {path.name: path.read_text(encoding="utf-8") for path in pages}
    flags = {
        field.name: field
        for command in COMMANDS.values()
        for field in options.flag_fields(command.option_groups)
    }
    quoted = re.findall(r"`--(\w+)` \(([\d.,]+)( %)?\)", "".join(texts.values()))
    assert len(quoted) > 5
    for name, value, percent in quoted:
        number = float(value.replace(",", "")) / (100 if percent else 1)
        assert number == flags[name].default, name
    of_confidence = str(flags["min_confidence"].metadata)
    assert f"below {MIN_TAKEN_CONFIDENCE} are only" in of_confidence
    for page in ("QUALITY.md", "LANGUAGES.md"):
        assert f"at least {MIN_TAKEN_CONFIDENCE}" in texts[page]
    most = f"{steps_for(10**9):,}"
    for text in (str(flags["writer_steps"].metadata), texts["MODELS.md"]):
        assert f"at most {most}" in text or f"{most} at most" in text
