"""Tests of `--precision auto`."""

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from support.summarize_runs import settings_of

from precis.model.config import AUTO
from precis.model.errors import UsageError
from precis.model.inference import fastest_precision as module
from precis.pipelines.options.summarize import SummarizeOptions
from precis.pipelines.summarize import summary_settings as settings_module
from precis.pipelines.summarize.search_processes import check_precision


@pytest.mark.parametrize(
    ("vendor", "flags", "width", "expected"),
    [
        ("AuthenticAMD", "fpu avx512f", 768, "float32"),
        ("AuthenticAMD", "fpu avx512f avx512_bf16", 256, "mixed_bfloat16"),
        ("GenuineIntel", "fpu avx512f avx512_bf16", 768, "float32"),
        ("GenuineIntel", "fpu avx512_bf16 amx_bf16 amx_tile", 256, "float32"),
        ("GenuineIntel", "fpu avx512_bf16 amx_bf16 amx_tile", 768, "mixed_bfloat16"),
    ],
)
def test_the_chip_decides(tmp_path, monkeypatch, vendor, flags, width, expected):
    path = tmp_path / "cpuinfo"
    core = f"vendor_id\t: {vendor}\nmodel name\t: a: chip\nflags\t\t: {flags}\n\n"
    path.write_text(core * 2)
    monkeypatch.setattr(module, "_CPU_INFO", str(path))
    monkeypatch.setattr(module, "has_accelerator", lambda: False)
    assert module.fastest_precision(width) == expected


def test_what_was_not_measured_computes_in_float32(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "has_accelerator", lambda: True)
    assert module.fastest_precision(768) == "float32"
    monkeypatch.setattr(module, "has_accelerator", lambda: False)
    monkeypatch.setattr(module, "_CPU_INFO", str(tmp_path / "none"))
    assert module.fastest_precision(768) == "float32"


def test_this_machine_does_not_choose_for_workers_elsewhere():
    options = SummarizeOptions(output="summaries", precision=AUTO)
    check_precision(options, PipelineOptions(["--runner=DirectRunner"]))
    with pytest.raises(UsageError, match="DataflowRunner searches on others"):
        check_precision(options, PipelineOptions(["--runner=DataflowRunner"]))


def test_the_settings_name_what_was_chosen(bundle, monkeypatch):
    monkeypatch.setattr(settings_module, "fastest_precision", lambda _: "mixed_float16")
    chosen = settings_of(bundle=str(bundle), precision=AUTO)
    given = settings_of(bundle=str(bundle), precision="mixed_float16")
    assert chosen.search.precision == "mixed_float16"
    assert chosen.settings_id == given.settings_id
