"""Tests of options as flags, as keywords and as lines of a file."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from precis.model.config import (
    check_choices,
    describe_differences,
    flag,
    required,
)
from precis.model.errors import UsageError
from precis.pipelines.flags.command_parser import HelpText, command_parser
from precis.pipelines.flags.command_words import parse_words, read_command_line
from precis.pipelines.flags.config_file import read_config
from precis.pipelines.flags.flags import option_names, read_flags, recorded_flags


@dataclasses.dataclass(frozen=True, kw_only=True)
class Paint:
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
    layers: str = flag(
        "", "what lies over it", metavar="NAME,...", takes_list=True, is_common=True
    )

    def __post_init__(self):
        check_choices(self)
        if self.coats < 1:
            raise UsageError(f"--coats must be at least 1, not {self.coats}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wall:
    """Wall"""

    bricks: int = flag(0, "bricks", metavar="BRICKS", default_text="as many as fit")
    output: str = flag("", "where it stands", metavar="DIR")


@dataclasses.dataclass(frozen=True, kw_only=True)
class View:
    """View"""

    wall: str = required("the wall", is_positional=True, metavar="DIR")
    coats: int = flag(2, "how often")
    rest: str = flag("", "other words", takes_rest=True, metavar="WORD")


CONCERNS = (Paint, Wall)
TEXT = HelpText("Paint a wall.", ("precis paint --colour red",), uses_beam=True)


def parse(*argv: str) -> dict:
    """The flags that were given, without those that every command has."""
    values = vars(command_parser("paint", CONCERNS, TEXT).parse_args(argv))
    assert values.pop("verbose") is False
    return values


def shown(*argv: str, columns: int = 200) -> str:
    """The words of a help."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        parser = command_parser("paint", CONCERNS, TEXT, shows_all="all" in argv)
        return " ".join(parser.format_help().split())


def test_only_flags_that_were_given_have_a_value():
    assert parse("--coats", "3") == {"coats": 3} and parse() == {}


def test_a_flag_has_the_type_of_its_field():
    argv = "--colour 7 --coats 7 --litres 7 --brush round --primer 7 --bricks 7"
    values = parse(*argv.split())
    assert values == {
        "colour": "7",
        "coats": 7,
        "litres": 7.0,
        "brush": "round",
        "primer": "7",
        "bricks": 7,
    }
    assert [type(values[name]) for name in ("coats", "litres")] == [int, float]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("--colour red --colour red", "--colour"),
        ("--coats=1 --glossy --coats=2", "--coats"),
        ("--glossy --no-glossy", "--glossy"),
        ("--config a --config b", "--config"),
    ],
)
def test_a_second_value_does_not_replace_the_first(words, name, capsys):
    with pytest.raises(SystemExit, match="2"):
        parse(*words.split())
    assert capsys.readouterr().err == (
        f"precis paint: {name} is there twice; leave one of them out; "
        "see `precis paint --help`\n"
    )


def test_a_bool_is_a_pair_of_flags():
    assert parse("--glossy", "--no-safe") == {"glossy": True, "safe": False}


def test_a_value_of_another_type_is_refused_in_one_line(capsys):
    with pytest.raises(SystemExit, match="2"):
        parse("--coats", "many")
    assert capsys.readouterr().err == (
        "precis paint: argument --coats: invalid int value: 'many'; "
        "see `precis paint --help`\n"
    )


def test_the_help_shows_the_common_flags_and_says_where_the_others_are():
    text = shown()
    assert text.startswith(
        "usage: precis paint --colour NAME [FLAGS] Paint a wall. "
        "Paint of a wall: --colour NAME what it looks like "
        "--coats N how often (default: 2) "
        "--[no-]glossy whether it shines (default: off) "
        "--layers NAME,... what lies over it General: --config FILE "
    )
    assert "`precis paint --help all` shows all 10 flags." in text
    assert "example: precis paint --colour red" in text and "go to Beam" in text


def test_all_of_the_help_gives_meanings_and_defaults_in_words():
    text = shown("all")
    assert "--litres LITRES how much; 5% more if it rains (default: 0.5)" in text
    assert "--brush flat|round what with (default: flat)" in text
    assert "--primer NAME what lies under it --layers" in text
    assert "Wall: --bricks BRICKS bricks (default: as many as fit)" in text
    assert "This line is no heading" not in text and "--help all`" not in text


def test_keywords_become_the_dataclasses():
    paint, wall = read_flags(CONCERNS, {"colour": "red", "glossy": True, "bricks": 5})
    assert paint == Paint(colour="red", glossy=True) and wall == Wall(bricks=5)


def test_a_path_is_a_string_and_a_list_has_commas():
    (paint,) = read_flags((Paint,), {"colour": Path("a") / "b", "layers": ["x", "y"]})
    assert (paint.colour, paint.layers) == ("a/b", "x,y")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"colours": "red"}, "^unknown option 'colours'; did you mean colour[?]$"),
        ({"zzz": 1}, "^unknown option 'zzz'$"),
        ({}, "^--colour is needed: what it looks like$"),
        (
            {"colour": 3},
            "^colour takes a value of type str, not 3; write a text, in quotes$",
        ),
        ({"colour": "red", "coats": "2"}, "coats takes a value of type int, not '2'"),
        ({"colour": "red", "coats": True}, "coats takes a value of type int, not True"),
        ({"colour": "red", "glossy": 1}, "glossy takes a value of type bool, not 1"),
        ({"colour": ["a", "b"]}, "colour takes a value of type str, not "),
        ({"colour": "red", "coats": 0}, "--coats must be at least 1, not 0"),
        (
            {"colour": "red", "brush": "rund"},
            "--brush is one of flat, round, not 'rund'; did you mean round[?]$",
        ),
    ],
)
def test_a_keyword_that_cannot_be_is_refused(values, message):
    with pytest.raises(UsageError, match=message):
        read_flags((Paint,), values)


def test_an_integer_may_stand_for_a_float_and_none_for_what_is_optional():
    (paint,) = read_flags((Paint,), {"colour": "red", "litres": 1, "primer": None})
    assert paint == Paint(colour="red", litres=1)


def test_every_flag_but_the_output_is_recorded_and_read_back(tmp_path):
    settings = read_flags(CONCERNS, {"colour": "red", "layers": ["x"], "output": "o"})
    recorded = recorded_flags(settings)
    assert set(recorded) == set(option_names(CONCERNS)) - {"output"}
    manifest = {"provenance": {"command": "paint", "flags": recorded}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    flags = config(tmp_path / "manifest.json").flags
    assert read_flags(CONCERNS, {**flags, "output": "o"}) == settings


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--wall", "w"], "there is no flag --wall; write DIR without one, as in `pre"),
        (["--rest", "x"], "there is no flag --rest; write WORD without one"),
        (["--res", "x"], "there is no flag --res; `precis view --help all` shows"),
        (["--coat", "x"], "there is no flag --coat; did you mean --coats[?]"),
        (["--hlp"], "there is no flag --hlp; did you mean --help[?]"),
    ],
)
def test_an_unknown_flag_is_not_taken_for_an_argument_without_one(words, message):
    text = TEXT._replace(uses_beam=False)
    parsed = parse_words("view", [View], text, words)
    with pytest.raises(UsageError, match=message):
        read_command_line("view", [View], text, parsed)


def config(path: Path, uses_beam: bool = True, command: str = "paint"):
    return read_config(
        str(path), command=command, concerns=CONCERNS, uses_beam=uses_beam
    )


def test_a_file_holds_flags_of_precis_and_of_beam(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(
        "colour: red\nlayers: [x, y]\nlitres: 1e-1\nglossy: yes\nprimer:\n"
        "runner: DataflowRunner\nexperiments: [a, b]\nstreaming: true\n"
        "save: false\ntemp:\n"
    )
    values = config(path)
    assert values.flags == {
        "colour": "red",
        "layers": "x,y",
        "litres": 0.1,
        "glossy": True,
    }
    assert values.beam_args == [
        "--runner=DataflowRunner",
        "--experiments=a",
        "--experiments=b",
        "--streaming",
    ]
    (tmp_path / "run.json").write_text('{"coats": 3}')
    assert config(tmp_path / "run.json").flags == {"coats": 3}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.yaml", "colours: red", "has no flag 'colours'; did you mean colour[?]"),
        ("a.yaml", "verbose: true", "verbose is a flag for the command line alone"),
        ("a.yaml", "zzz: 1", "precis paint has no flag 'zzz'; take it out"),
        (
            "a.yaml",
            "a: [",
            "a.yaml cannot be read as YAML or JSON: .*; correct the file",
        ),
        ("a.json", "{", "a.json cannot be read as YAML or JSON: .*; correct the file"),
        ("a.json", '{"coats": "x"}', "a.json: coats takes .* int, not 'x'; write a wh"),
        ("a.json", '{"colour": ["x"]}', "takes .* str, not .'x'.; write a text, in q"),
        ("a.json", '{"layers": [true]}', "write a text, in quotes, or a list of such"),
        ("a.json", '{"coats": 1, "coats": 2}', "coats is there twice; take one out"),
        ("a.yaml", "coats: 1\ncoats: 2", "coats is there twice; .* line 2"),
        ("a.yaml", "? [a]\n: b", "a.yaml cannot be read as YAML or JSON: .*unhashable"),
        ("a.yaml", "coats: !!bool x", "a.yaml cannot be read as YAML or JSON: 'x'"),
        ("a.yaml", "[" * 999, "a.yaml cannot be read as YAML or JSON: maximum recurs"),
        ("a.yaml", "a: &a [x]\nb: [*a]", "[*]a is an alias; write the value in its pl"),
        ("a.yaml", "red", "a.yaml holds no names with values; write lines such as"),
        ("a.yaml", b"\xff\xfe\xfa", "a.yaml cannot be read as YAML or JSON"),
        (
            "a.yaml",
            "command: train\nflags: {}",
            "was written by `precis train`, and its flags are not those of `precis "
            "paint`; name another file",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UsageError, match=message):
        config(path, uses_beam=False)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(UsageError, match="there is no such file; name one in YAML"):
        config(tmp_path / "none.yaml")
    with pytest.raises(UsageError, match="is a folder; name a file .* manifest.json"):
        config(tmp_path)


def differences(present: dict, labels: Sequence[tuple[str, str]] = ()) -> str:
    earlier = {"width": 4, "names": ["a"], "sha": "00", "more": 1}
    return describe_differences(earlier, present, labels=dict(labels))


def test_differences_are_named_with_both_values():
    assert differences({"width": 4, "names": ("a",), "sha": "00"}) == ""
    assert differences({"width": 2}) == "width is 4 there and 2 here"
    assert differences({"sha": "11"}, [("sha", "the files")]) == "the files differ"
    assert differences({"a": "1"}, [("a", "the weights")]) == (
        "the weights are here alone"
    )
    many = differences({str(number): number for number in range(7)})
    assert many.endswith("3 is None there and 3 here; 3 more settings differ")
