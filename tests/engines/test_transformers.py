import random
import warnings
from typing import Any

import pytest
import torch

from sleuth.engines.base import Completion, Message, Request, Sampling
from sleuth.engines.decoding.slot_decoder import SlotDecoder
from sleuth.engines.transformers import TransformersEngine
from sleuth.errors import EngineError
from sleuth.training.policy import Policy
from support.models import LLAMA, TOKENIZER, build_model

GREEDY = Sampling(max_new_tokens=10, temperature=0)
BATCHED = ["llama", "qwen2", "qwen3", "mistral-wide", "mistral-window", "gemma3"]
SINGLE = ["lfm2"]


def slots(engine: TransformersEngine) -> SlotDecoder:
    assert is_batched(engine)
    decoder = engine._lanes.lanes[0].decoder
    assert isinstance(decoder, SlotDecoder)
    return decoder


def is_batched(engine: TransformersEngine) -> bool:
    """Whether the engine decodes in slots, which it decides when it is first used."""
    engine.generate([], GREEDY)
    return engine._is_batched


def reference(model: Any, context: list[int], count: int) -> list[int]:
    """Greedy tokens by transformers' own generate."""
    ids = torch.tensor([context])
    with torch.no_grad():
        out = model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, do_sample=False, pad_token_id=0
        )
    return out[0, len(context) :].tolist()  # type: ignore[no-any-return]


def contexts(seed: int, groups: int = 3, samples: int = 3) -> list[list[int]]:
    """Groups of equal contexts that all begin with the same 40 tokens."""
    rng = random.Random(seed)
    system = [rng.randrange(3, 400) for _ in range(40)]
    prompts = [system + [rng.randrange(3, 400) for _ in range(rng.randrange(1, 40))] for _ in range(groups)]
    return [list(prompt) for prompt in prompts for _ in range(samples)]


def texts(completions: list[Completion]) -> list[tuple[int, ...]]:
    return [c.tokens for c in completions]


@pytest.mark.parametrize("family", BATCHED + SINGLE)
@pytest.mark.filterwarnings("ignore:.*one sequence at a time")
def test_greedy_tokens_are_those_of_generate_over_several_turns(family: str) -> None:
    model = build_model(family)
    engine = TransformersEngine(model, TOKENIZER)
    assert is_batched(engine) == (family in BATCHED)
    rng = random.Random(1)
    growing = contexts(0)
    for _ in range(3):
        completions = engine.generate([Request(c) for c in growing], GREEDY)
        for context, completion in zip(growing, completions, strict=True):
            expected = reference(model, context, 10)
            eos = expected.index(2) + 1 if 2 in expected else 10
            assert list(completion.tokens) == expected[:eos]
            context += [
                *completion.tokens[: rng.randrange(1, 11)],
                *rng.choices(range(3, 400), k=rng.randrange(1, 20)),
            ]
        growing = [growing[i] for i in sorted(rng.sample(range(len(growing)), len(growing) - 1))]
        rng.shuffle(growing)


def test_recurrent_model_is_refused_in_one_line() -> None:
    with pytest.raises(EngineError, match="keeps no key-value cache"):
        TransformersEngine(build_model("mamba"), TOKENIZER, "m", context_length=64)


@pytest.mark.parametrize(
    ("family", "change", "reason"),
    [
        ("lfm2", {}, "conv layers"),
        ("llama", {"sliding_window": 8}, "sliding window of 8 is not known"),
        ("llama", {"_attn_implementation": "flash_attention_2"}, "flash_attention_2 attention"),
    ],
)
def test_slow_path_says_why(family: str, change: dict[str, Any], reason: str) -> None:
    model = build_model(family)
    for key, value in change.items():
        setattr(model.config, key, value)
    engine = TransformersEngine(model, TOKENIZER, "odd")
    with pytest.warns(UserWarning, match=f"odd: one sequence at a time.*{reason}"):
        assert not is_batched(engine)


def test_model_whose_logits_differ_through_the_cache_falls_back() -> None:
    model = build_model()
    plain = model.forward

    def ignores_positions(
        attention_mask: Any = None, position_ids: Any = None, past_key_values: Any = None, **rest: Any
    ) -> Any:
        return plain(attention_mask=attention_mask, past_key_values=past_key_values, **rest)

    model.forward = ignores_positions
    engine = TransformersEngine(model, TOKENIZER)
    with pytest.warns(UserWarning, match="one sequence at a time"):
        assert not is_batched(engine)


@pytest.mark.parametrize("sampling", [Sampling(12), Sampling(12, 0.7, 0.8), GREEDY])
def test_a_sample_does_not_depend_on_its_neighbours(sampling: Sampling) -> None:
    requests = [Request(c, seed) for seed, c in enumerate(contexts(5, groups=4, samples=4))]
    # Some rows finish early, since "e" and the end token come at different steps.
    sampling = Sampling(sampling.max_new_tokens, sampling.temperature, sampling.top_p, stop=("e", "a"))
    together = TransformersEngine(LLAMA, TOKENIZER).generate(requests, sampling)
    assert len({len(c.tokens) for c in together}) > 2
    assert sampling.temperature == 0 or len(set(texts(together[:4]))) > 2, "seeds differ"
    shuffled = random.Random(0).sample(requests, len(requests))
    engine = TransformersEngine(LLAMA, TOKENIZER)
    by_seed = {r.seed: c for r, c in zip(shuffled, engine.generate(shuffled, sampling), strict=True)}
    assert [by_seed[r.seed].tokens for r in requests] == texts(together)
    alone = [TransformersEngine(LLAMA, TOKENIZER).generate([r], sampling)[0] for r in requests]
    assert texts(alone) == texts(together)
    for a, b in zip(alone, together, strict=True):
        assert a.logprobs == pytest.approx(b.logprobs, abs=1e-4)
        assert (a.text, a.ends, a.stop) == (b.text, b.ends, b.stop)


@pytest.mark.parametrize(
    ("model", "temperature", "top_p"),
    [(LLAMA, 0.0, 1.0), (LLAMA, 1.0, 1.0), (LLAMA, 0.6, 0.9), (build_model("lfm2"), 1.0, 1.0)],
)
@pytest.mark.filterwarnings("ignore:.*one sequence at a time")
def test_logprobs_are_those_of_a_plain_forward_pass(model: Any, temperature: float, top_p: float) -> None:
    requests = [Request(c, i) for i, c in enumerate(contexts(7))]
    completions = TransformersEngine(model, TOKENIZER).generate(requests, Sampling(9, temperature, top_p))
    for request, completion in zip(requests, completions, strict=True):
        context = list(request.tokens)
        with torch.no_grad():
            logits = model(torch.tensor([context + list(completion.tokens)])).logits[0].double()
        table = torch.log_softmax(logits / (temperature or 1.0), -1)
        expected = [float(table[len(context) - 1 + i, t]) for i, t in enumerate(completion.tokens)]
        assert completion.logprobs == pytest.approx(expected, abs=1e-4)


@pytest.mark.filterwarnings("ignore:.*one sequence at a time")
def test_slow_path_keeps_seeds_and_stops() -> None:
    engine = TransformersEngine(build_model("lfm2"), TOKENIZER)
    requests, sampling = [Request(c, i) for i, c in enumerate(contexts(3, 2, 2))], Sampling(8, stop=("e",))
    found = engine.generate(requests, sampling)
    assert texts(engine.generate(requests[::-1], sampling))[::-1] == texts(found)
    assert all("e" not in c.text[:-1] for c in found)


def test_shared_prefixes_are_computed_once() -> None:
    engine = TransformersEngine(LLAMA, TOKENIZER)
    computed = count_tokens(engine)
    groups = contexts(3, groups=3, samples=5)
    once = 40 + sum(len(c) - 40 for c in groups[::5])
    engine.generate([Request(c) for c in groups], Sampling(1))
    assert once <= sum(computed) <= once * 1.25 + 24


def test_a_later_turn_computes_only_what_is_new() -> None:
    engine = TransformersEngine(LLAMA, TOKENIZER)
    growing = contexts(4, groups=2, samples=2)
    done = engine.generate([Request(c, i) for i, c in enumerate(growing)], Sampling(5))
    for context, completion in zip(growing, done, strict=True):
        context += [*completion.tokens, *range(10, 20)]
    computed = count_tokens(engine)
    engine.generate([Request(c) for c in growing], Sampling(1))
    # The last token of a turn was drawn but never fed, so it comes with the ten new ones.
    assert sum(computed) == 4 * 11


def count_tokens(engine: TransformersEngine) -> list[int]:
    """The padded size of every forward pass from now on."""
    decoder = slots(engine)
    sizes: list[int] = []
    inner = decoder.forward

    def forward(ids: Any, *rest: Any) -> Any:
        sizes.append(ids.numel())
        return inner(ids, *rest)

    decoder.forward = forward
    return sizes


def test_small_budget_runs_in_waves_with_the_same_tokens() -> None:
    engine = TransformersEngine(LLAMA, TOKENIZER)
    decoder = slots(engine)
    growing = contexts(6, groups=4, samples=2)
    wide = TransformersEngine(LLAMA, TOKENIZER)
    for budget in (300, 200, 1, 500):
        decoder.budget = budget
        found = engine.generate([Request(c) for c in growing], GREEDY)
        assert texts(found) == texts(wide.generate([Request(c) for c in growing], GREEDY))
        longest = max(len(c) + 10 for c in growing)
        assert decoder.cache.slots * decoder.cache.capacity <= max(budget, longest)
        for context, completion in zip(growing, found, strict=True):
            context += [*completion.tokens, 5, 6]


def test_least_recently_used_context_goes_first() -> None:
    engine = TransformersEngine(LLAMA, TOKENIZER)
    decoder = slots(engine)
    a, b, c = ([first] * 20 for first in (11, 12, 13))
    engine.generate([Request(a), Request(b)], Sampling(1))
    engine.generate([Request(a)], Sampling(1))
    engine.generate([Request(c)], Sampling(1))
    assert decoder.cache.slots == 2
    assert sorted(tokens[0] for tokens in decoder.cache.tokens) == [11, 13]


def test_slots_grow_and_keep_what_they_hold() -> None:
    engine = TransformersEngine(LLAMA, TOKENIZER)
    computed = count_tokens(engine)
    first = contexts(8, groups=1, samples=1)[0]
    (done,) = engine.generate([Request(first)], GREEDY)
    grown = [*first, *done.tokens, *range(20, 120)]
    before = sum(computed)
    found = engine.generate([Request(grown), *map(Request, contexts(9))], Sampling(1, 0))
    assert slots(engine).cache.slots == 10
    assert sum(computed) - before < len(grown) + sum(map(len, contexts(9)[::3]))
    assert list(found[0].tokens) == reference(engine.model, grown, 1)


def test_long_prompt_is_computed_in_pieces() -> None:
    engine = TransformersEngine(LLAMA, TOKENIZER)
    decoder = slots(engine)
    decoder.prefill_tokens = 16
    computed = count_tokens(engine)
    found = engine.generate([Request(c) for c in contexts(10)], GREEDY)
    assert max(computed) <= 16
    for context, completion in zip(contexts(10), found, strict=True):
        assert list(completion.tokens) == reference(LLAMA, context, 10)[: len(completion.tokens)]


def test_a_weight_sync_makes_cached_contexts_unusable() -> None:
    model = build_model(seed=1)
    engine, policy = TransformersEngine(model, TOKENIZER), Policy(model, precision="float32")
    engine.sync(policy)
    requests = [Request(c) for c in contexts(11)]
    before = engine.generate(requests, GREEDY)
    engine.sync(policy)
    assert slots(engine).cache.keys, "equal weights keep the cache"
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0))
            parameter.add_(noise, alpha=0.1)
    engine.sync(policy)
    assert slots(engine).cache.keys == []
    after = engine.generate(requests, GREEDY)
    assert texts(after) == texts(TransformersEngine(model, TOKENIZER).generate(requests, GREEDY))
    assert texts(after) != texts(before)


def test_context_inside_another_context() -> None:
    long = contexts(13)[0]
    requests = [Request(long), Request(long[:30]), Request(long[:1]), Request(long)]
    found = TransformersEngine(LLAMA, TOKENIZER).generate(requests, GREEDY)
    for request, completion in zip(requests, found, strict=True):
        expected = reference(LLAMA, list(request.tokens), 10)
        assert list(completion.tokens) == expected[: len(completion.tokens)]


def test_context_limit() -> None:
    engine = TransformersEngine(LLAMA, TOKENIZER, context_length=50)
    lengths = (49, 50, 51, 45, 40)
    found = engine.generate([Request([7] * n) for n in lengths], Sampling(8, 0))
    assert [len(c.tokens) for c in found] == [1, 0, 0, 5, 8]
    assert [c.stop for c in found] == ["context"] * 4 + ["length"]
    assert found[1] == Completion((), (), "", (), "context")
    assert TransformersEngine(LLAMA, TOKENIZER).context_length == 256
    assert TransformersEngine(LLAMA, TOKENIZER, context_length=9999).context_length == 256
    with pytest.raises(EngineError, match="at least 1, not 0"):
        TransformersEngine(LLAMA, TOKENIZER, context_length=0)


def test_stop_string_across_tokens_ends_at_the_token_that_completes_it() -> None:
    engine = TransformersEngine(LLAMA, TOKENIZER)
    context = contexts(14)[0]
    (free,) = engine.generate([Request(context, 3)], Sampling(30))
    middle = free.ends[4]
    stop = free.text[middle - 2 : middle + 1]
    (cut,) = engine.generate([Request(context, 3)], Sampling(30, stop=("never", stop)))
    position = free.text.index(stop) + len(stop)
    expected = next(i for i, end in enumerate(free.ends) if end >= position) + 1
    assert cut.tokens == free.tokens[:expected]
    assert cut.text == free.text[: cut.ends[-1]]
    assert (cut.stop, stop in cut.text) == ("stop", True)


def test_every_eos_id_ends_and_is_kept_although_it_is_the_pad_id() -> None:
    model = build_model(seed=3)
    context = contexts(15)[0]
    free = list(TransformersEngine(model, TOKENIZER).generate([Request(context)], GREEDY)[0].tokens)
    end = next(i for i, t in enumerate(free) if i > 1 and t not in free[:i])
    model.generation_config.eos_token_id = [free[end], 399]
    model.config.pad_token_id = free[end]
    (cut,) = TransformersEngine(model, TOKENIZER).generate([Request(context)], GREEDY)
    assert (list(cut.tokens), cut.stop) == (free[: end + 1], "eos")
    # Inside the context the same id is an ordinary token.
    (next_turn,) = TransformersEngine(model, TOKENIZER).generate(
        [Request([*context, *cut.tokens, 9])], GREEDY
    )
    expected = reference(model, [*context, *cut.tokens, 9], 10)
    assert list(next_turn.tokens) == expected[: len(next_turn.tokens)]


def test_bad_requests_are_one_line_errors() -> None:
    engine = TransformersEngine(LLAMA, TOKENIZER)
    for tokens, message in (([], "empty context"), ([1, 400], "token id 400"), ([-1], "token id -1")):
        with pytest.raises(EngineError, match=message):
            engine.generate([Request(tokens)], GREEDY)
    assert engine.generate([], GREEDY) == []


def test_weights_that_are_not_numbers_are_an_error() -> None:
    model = build_model()
    engine = TransformersEngine(model, TOKENIZER)
    assert is_batched(engine)
    with torch.no_grad():
        model.lm_head.weight.fill_(float("nan"))
    with pytest.raises(EngineError, match="not finite"):
        engine.generate([Request([5])], GREEDY)


def test_training_flags_and_gradients_are_left_as_they_were() -> None:
    model = build_model(attention_dropout=0.5).train()
    model.model.layers[0].mlp.eval()
    flags = [module.training for module in model.modules()]
    engine = TransformersEngine(model, TOKENIZER)
    first = engine.generate([Request(contexts(1)[0])], GREEDY)
    assert texts(first) == texts(
        TransformersEngine(model, TOKENIZER).generate([Request(contexts(1)[0])], GREEDY)
    )
    assert [module.training for module in model.modules()] == flags
    assert torch.is_grad_enabled()
    loss = model(torch.tensor([[5, 6, 7]]), labels=torch.tensor([[5, 6, 7]])).loss
    loss.backward()
    assert model.lm_head.weight.grad is not None


def test_half_precision_and_autocast() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for engine in (
            TransformersEngine(build_model().bfloat16(), TOKENIZER),
            TransformersEngine(build_model(), TOKENIZER, autocast=torch.bfloat16),
        ):
            assert slots(engine)
            found = engine.generate([Request(c) for c in contexts(1)], GREEDY)
            assert all(c.tokens for c in found)


def test_peft_model() -> None:
    import peft

    model = build_model()
    wrapped = peft.get_peft_model(
        model, peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False)
    )
    engine = TransformersEngine(wrapped, TOKENIZER)
    context = contexts(1)[0]
    (found,) = engine.generate([Request(context)], GREEDY)
    assert is_batched(engine)
    assert list(found.tokens) == reference(wrapped, context, 10)[: len(found.tokens)]


def test_local_folder_and_chat(tmp_path: Any) -> None:
    LLAMA.save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    engine = TransformersEngine.load(str(tmp_path), device="cpu", context_length=100)
    assert engine.name == str(tmp_path)
    tokens = engine.tokenizer.chat([Message("user", "hi")])
    (found,) = engine.generate([Request(tokens)], GREEDY)
    assert list(found.tokens) == reference(LLAMA, tokens, 10)[: len(found.tokens)]


def test_the_fingerprint_changes_with_the_weights_and_nothing_else() -> None:
    model = build_model()
    engine = TransformersEngine(model, TOKENIZER, "a")
    before = engine.fingerprint()
    assert TransformersEngine(build_model(), TOKENIZER, "b").fingerprint() == before
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.001)
    assert engine.fingerprint() != before
