"""`precis card`: bundle, and an evaluation of its summaries -> model card."""

from collections.abc import Iterable, Mapping
from typing import Any

from precis.model import files
from precis.model.bundle.card import CARD_FILE, CardChoices, card_text, stated_choices
from precis.model.bundle.card_text import cell
from precis.model.bundle.checksums import update_checksum
from precis.model.bundle.manifest import (
    ABSTRACTIVE,
    EXTRACTIVE,
    MANIFEST_FILE,
    SUMMARIZER,
    SUMMARIZER_PARTS,
    TAKEN_BY,
    open_bundle_config,
    read_manifest,
)
from precis.model.errors import UsageError
from precis.pipelines.corpus.placement import is_within, resolve
from precis.pipelines.flags.flags import read_flags
from precis.pipelines.options.bundles import CARD, CardOptions
from precis.pipelines.options.evaluate import EVALUATION_SUFFIX
from precis.pipelines.run.output_place import check_file_place

RESULT_FILE = "rouge.json"
_METRICS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeLsum": "ROUGE-Lsum"}
_WAY_OUT = "run `precis evaluate` again"
# The kind of a bundle that makes summaries -> where the manifest of a run has its id.
_MODEL_IDS = {ABSTRACTIVE: "model_id", EXTRACTIVE: "extractive_model_id"}


def card(**flags: Any) -> str:
    """The model card of a bundle; with `output` also writes it there.

    Args:
      **flags: the fields of `CardOptions`.

    Returns:
      The card, in Markdown.

    Raises:
      UsageError: no bundle, an output that is another file of it, no evaluation, one of
          another model's summaries, or one for a bundle that makes no summaries.
      DataError: a damaged bundle or evaluation.
    """
    (options,) = read_flags(CARD, flags)
    if options.output:
        _check_place(options)
    text = _text(options)
    if options.output:
        files.write_bytes(options.output, text.encode())
        if _is_of_bundle(options):
            update_checksum(options.bundle, CARD_FILE)
    return text


def _check_place(options: CardOptions) -> None:
    """Refuses a file of the bundle that is not its card."""
    check_file_place(options.output, flag="--output")
    if _is_of_bundle(options):
        return
    if is_within(resolve(options.output), resolve(options.bundle)):
        card_file = files.join(options.bundle, CARD_FILE)
        raise UsageError(
            f"--output {options.output} lies in the bundle, whose card is {card_file}; "
            "name that, or a file outside the bundle"
        )


def _is_of_bundle(options: CardOptions) -> bool:
    """Whether the card is written as that of its bundle."""
    card_file = files.join(options.bundle, CARD_FILE)
    return resolve(options.output) == resolve(card_file)


def _text(options: CardOptions) -> str:
    bundle = options.bundle
    manifest = read_manifest(bundle)
    config = open_bundle_config(bundle, *TAKEN_BY).config
    parts = bundle_parts(bundle, manifest)
    evaluation = ""
    if options.evaluation:
        ids = _ids_in_runs(bundle, manifest, parts)
        evaluation = read_evaluation(options.evaluation, ids)
    stated = stated_choices(bundle)
    choices = CardChoices(
        licence=options.license or stated.licence,
        language=options.language or stated.language,
        evaluation=evaluation,
    )
    return card_text(manifest, config, choices, parts=parts)


def bundle_parts(folder: str, manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The manifests of the bundles that a bundle consists of, by folder."""
    if manifest.get("kind") != SUMMARIZER:
        return {}
    names = SUMMARIZER_PARTS.values()
    return {name: read_manifest(files.join(folder, name)) for name in names}


def _ids_in_runs(
    bundle: str, manifest: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]
) -> dict[str, str]:
    """The ids in the manifest of a run whose summaries a bundle made, by their fields.

    Raises:
      UsageError: bundles of this kind make no summaries.
    """
    if parts:
        return {
            _MODEL_IDS[kind]: str(parts[name]["model_id"])
            for kind, name in SUMMARIZER_PARTS.items()
        }
    kind = str(manifest.get("kind", ABSTRACTIVE))
    if kind not in _MODEL_IDS:
        raise UsageError(
            f"{bundle} is of the kind {kind}, which makes no summaries that `precis "
            "evaluate` could score; leave --evaluation out"
        )
    return {_MODEL_IDS[kind]: str(manifest["model_id"])}


def read_evaluation(folder: str, model_ids: Mapping[str, str]) -> str:
    """The scores of an evaluation as Markdown.

    Args:
      folder: the output of `precis evaluate`.
      model_ids: what the manifest of its run has to hold.

    Raises:
      UsageError: there is no evaluation, or the run is of other models.
      DataError: rouge.json is damaged.
    """
    path = files.join(folder, RESULT_FILE)
    if not files.exists(path):
        raise UsageError(
            f"{folder}: there is no evaluation here (no {RESULT_FILE}); name the "
            "folder that `precis evaluate` wrote"
        )
    result = files.read_object(
        path, way_out=_WAY_OUT, fields={"systems": list, "differences": list}
    )
    with files.naming_damage(path, way_out=_WAY_OUT):
        run = str(result["provenance"]["flags"]["input"])
        text = "\n\n".join(_evaluation_paragraphs(result))
    return f"{text}\n\n{_check_run(run, folder, model_ids)}"


def _evaluation_paragraphs(result: Mapping[str, Any]) -> Iterable[str]:
    """The tables of an evaluation."""
    percent = f"{100 * result['confidence']:g}"
    yield (
        f"{result['rows_scored']:,} documents with a reference; {result['variant']}; "
        f"x100, with the {percent} % interval of {result['resamples']:,} bootstrap "
        "samples."
    )
    yield _table("system", result["systems"], sign="")
    if result["differences"]:
        yield (
            f"Minus {cell(result['baseline'])}, with the interval of the paired "
            "bootstrap; * does not touch zero."
        )
        yield _table(f"minus {result['baseline']}", result["differences"], sign="+")


def _table(title: str, rows: Iterable[Mapping[str, Any]], *, sign: str) -> str:
    """A table of systems with the interval of each metric."""
    head = [title, "rows", *_METRICS.values()]
    lines = [head, ["---", "---:", *("---" for _ in _METRICS)]]
    for row in rows:
        figures = [_figure(row[metric], sign) for metric in _METRICS]
        lines.append([cell(row["system"]), cell(row["rows"]), *figures])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _figure(figure: Mapping[str, Any], sign: str) -> str:
    mean, low, high = (
        f"{100 * figure[name]:{sign}.1f}" for name in ("mean", "low", "high")
    )
    return f"{mean} [{low}, {high}]" + " *" * (figure.get("touches_zero") is False)


def _check_run(run: str, folder: str, model_ids: Mapping[str, str]) -> str:
    """Says that a run is of a model, or that it cannot be said.

    Args:
      run: the folder of the run, as `precis evaluate` was given it.
      folder: of the evaluation, which by default lies beside the run.
      model_ids: of the model, by the fields of the manifest of a run.

    Raises:
      UsageError: the run is of other models.
    """
    beside = folder.rstrip("/").removesuffix(EVALUATION_SUFFIX)
    for place in (run, beside):
        path = files.join(place, MANIFEST_FILE)
        if not files.exists(path):
            continue
        manifest = files.read_object(path, way_out="name another evaluation")
        if any(manifest.get(name) != model_ids[name] for name in model_ids):
            ids = ", ".join(f"{name} {model_ids[name]}" for name in model_ids)
            raise UsageError(
                f"{folder}: its summaries are of the run {place}, which this model did "
                f"not write ({ids}); name an evaluation of its summaries"
            )
        corpus = manifest.get("corpus")
        split = manifest.get("split")
        return (
            f"Corpus: `{cell(corpus)}`"
            + f", split `{cell(split)}`" * bool(split)
            + f"; settings of the search: `{cell(manifest.get('decode_id'))}`. Whether "
            "the model learned from these documents is not checked here."
        )
    return (
        "The run that was evaluated is not there any more, so that it was of this "
        "model is not checked."
    )
