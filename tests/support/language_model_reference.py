"""Random language models of odd sizes and what `generate` of transformers writes with
them, one prompt at a time, in a process of its own:

    cd tests && python -m support.language_model_reference FOLDER

FOLDER/NAME/ is a checkpoint, with reference.npz (logits) and runs.json (sequences).
FOLDER/chat/ also has a tokenizer with a chat template, and prompts.json.
"""

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

VOCABULARY = 89
DOCUMENTS = 12
SOURCE_TOKENS, TARGET_TOKENS = 24, 7


class Case(NamedTuple):
    """A random checkpoint: its model_type, settings of its configuration, the searches,
    and whether config.json is as before transformers 5 and the weights in several
    files of bfloat16.
    """

    kind: str
    shape: Mapping[str, Any]
    runs: tuple[Mapping[str, Any], ...]
    ends: int = 1  # how many tokens end a summary
    is_old: bool = False


def search(beams: int, length: int, **settings: Any) -> dict[str, Any]:
    """The settings of a search of so many beams and tokens."""
    return {"num_beams": beams, "max_new_tokens": length, **settings}


def shape(width: int, heads: int, kv_heads: int, **settings: Any) -> dict[str, Any]:
    """The settings of two blocks."""
    return {
        "hidden_size": width,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": 3 * width // 2,
        "num_hidden_layers": 2,
        "max_position_embeddings": 300,
        **settings,
    }


GREEDY = search(1, 14, repetition_penalty=1.4, no_repeat_ngram_size=2)
NGRAMS = search(4, 12, no_repeat_ngram_size=1, min_new_tokens=4, early_stopping=True)
BEST = search(4, 17, num_return_sequences=3, length_penalty=0.4)
PENALTIES = search(3, 12, repetition_penalty=0.7, no_repeat_ngram_size=3)
NEVER = search(5, 15, early_stopping="never", length_penalty=2.0, suppress_tokens=[7])
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
TIED = {"tie_word_embeddings": True}
BIASES = {"attention_bias": True, "mlp_bias": True}
CASES: dict[str, Case] = {
    "smollm2": Case("llama", shape(36, 9, 3, **TIED), (GREEDY, NGRAMS, BEST)),
    "llama3": Case(
        *("llama", shape(40, 4, 1, head_dim=6, rope_parameters=LLAMA3)),
        runs=(PENALTIES, BEST, NEVER, search(1, 15)),
        ends=3,
        is_old=True,
    ),
    "biases": Case("llama", shape(24, 6, 6, **BIASES), (NEVER, GREEDY), is_old=True),
    "qwen2": Case("qwen2", shape(30, 5, 5, **TIED), (NGRAMS, PENALTIES), ends=2),
    "qwen3": Case("qwen3", shape(28, 6, 2, head_dim=10), (BEST, GREEDY)),
    "qwen3_tied": Case(
        *("qwen3", shape(32, 8, 4, head_dim=4, attention_bias=True, **TIED)),
        runs=(PENALTIES, NGRAMS),
        is_old=True,
    ),
    "chat": Case("llama", shape(24, 4, 2, vocab_size=320), (GREEDY,)),
}
# As SmolLM2 and Llama 3 write it.
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXTS = [
    "Rain fell.",
    "It rained in 3 towns, twice!\nA dog slept.",
    "Naïve 京 \U0001f600",
]


def make_model(case: Case, seed: int) -> Any:
    """A random network, in which all norms and biases are random, too."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(seed)
    config = AutoConfig.for_model(
        case.kind,
        **{"vocab_size": VOCABULARY, "initializer_range": 0.4, **case.shape},
    )
    model = AutoModelForCausalLM.from_config(config).eval()
    model.generation_config.update(eos_token_id=None, bos_token_id=1, pad_token_id=0)
    with torch.no_grad():
        for path, weight in model.named_parameters():
            if weight.ndim == 1:
                is_norm = path.endswith("norm.weight")
                weight.copy_(0.3 * torch.randn_like(weight) + is_norm)
    return model


def write_reference(folder: Path, case: Case, seed: int) -> None:
    """Saves a checkpoint and the results of transformers."""
    import torch
    from transformers import AutoModelForCausalLM

    model = make_model(case, seed)
    rng = np.random.default_rng(seed)
    source = np.full((DOCUMENTS, SOURCE_TOKENS), -1, "int64")
    for row in source:
        length = rng.integers(2, SOURCE_TOKENS + 1)
        # Few different tokens, so that rules of repetition apply.
        row[:length] = rng.choice(rng.integers(6, VOCABULARY, 12), length)
    target = rng.integers(3, VOCABULARY, (DOCUMENTS, TARGET_TOKENS))
    prompts = [row[row >= 0] for row in source]
    # Tokens that are often written, but not first, end a summary.
    rows = sum(_search(model, prompts, search(2, 9))["sequences"], [])
    later = Counter(token for row in rows for token in row[2:])
    ends = [token for token, _ in later.most_common(case.ends)]
    model.generation_config.eos_token_id = ends
    if case.is_old:
        model.to(torch.bfloat16)
    model.save_pretrained(folder, max_shard_size="20KB" if case.is_old else "1GB")
    if case.is_old:
        path = folder / "config.json"
        config = json.loads(path.read_text())
        rotary = config.pop("rope_parameters")
        config["rope_theta"] = rotary.pop("rope_theta")
        config["rope_scaling"] = rotary if rotary["rope_type"] != "default" else None
        path.write_text(json.dumps(config))
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        logits = [
            model(torch.tensor([[*prompt, *after]])).logits[0, len(prompt) - 1 :]
            for prompt, after in zip(prompts, target, strict=True)
        ]
        runs = [
            {"settings": settings, **_search(model, prompts, settings)}
            for settings in case.runs
        ]
    np.savez(
        folder / "reference.npz", source=source, target=target, logits=np.stack(logits)
    )
    (folder / "runs.json").write_text(json.dumps(runs))


def _search(model: Any, prompts: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The tokens behind each prompt and their scores, which greedy search lacks."""
    import torch

    sequences, scores = [], []
    for prompt in prompts:
        output = model.generate(
            input_ids=torch.tensor(prompt[None]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            do_sample=False,
            return_dict_in_generate=True,
            output_scores=True,
            **settings,
        )
        sequences.append(output.sequences[:, len(prompt) :].tolist())
        if "sequences_scores" in output:
            scores.append(output.sequences_scores.tolist())
    return {"sequences": sequences, "scores": scores}


def write_prompts(folder: Path) -> None:
    """Saves a tokenizer with a chat template into a checkpoint, and for each text the
    ids of its prompt, those that a beam search writes and their text.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    special = ["<|begin|>", "<|im_start|>", "<|im_end|>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=special,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator([*TEXTS, "Say it.\n\n"] * 3, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=special[0], eos_token=special[2]
    )
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    messages = [[{"role": "user", "content": f"Say it.\n\n{text}"}] for text in TEXTS]
    prompts = [
        fast.apply_chat_template(each, add_generation_prompt=True)["input_ids"]
        for each in messages
    ]
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    written = _search(model, map(np.array, prompts), search(2, 12))["sequences"]
    texts = [fast.decode(rows[0], skip_special_tokens=True) for rows in written]
    content = {"prompts": prompts, "texts": texts}
    (folder / "prompts.json").write_text(json.dumps(content))


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    output = Path(sys.argv[1])
    for number, (name, case) in enumerate(CASES.items()):
        write_reference(output / name, case, seed=number)
    write_prompts(output / "chat")
