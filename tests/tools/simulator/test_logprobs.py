"""Parity is real here: what would move a model's outputs moves these, and nothing else does."""

import random
import statistics

from servewright.tools.simulator.config import resolve
from servewright.tools.simulator.logprobs import lossy, prompt_logprobs
from servewright.tools.simulator.tokens import Answer, encode, pack, word

PROMPT = pack(random.Random(2).sample(range(1000, 20000), 300))


def values(noise, **args):
    return prompt_logprobs(PROMPT, resolve(args, "llama-3.1-8b", "h100-sxm", 1, 0), random.Random(noise))


def distance(here, there):
    return statistics.mean(abs(a - b) for a, b in zip(here, there, strict=True))


def test_lossless_changes_stay_within_summation_noise_and_lossy_ones_do_not():
    base = values(1)
    assert len(base) == 299 and all(value < 0 for value in base)
    same = distance(base, values(2, max_num_seqs=8, enable_prefix_caching=False, enforce_eager=True))
    assert 0 < same < 0.003
    assert 0.02 < distance(base, values(3, quantization="fp8")) < 0.045
    assert 0.007 < distance(base, values(4, kv_cache_dtype="fp8")) < 0.02
    assert distance(values(5, quantization="fp8"), values(6, quantization="fp8")) < 0.003


def test_answers_turn_where_precision_is_lost():
    vocab = 128256
    config = resolve({"quantization": "fp8"}, "llama-3.1-8b", "h100-sxm", 1, 0)
    exact, other = Answer(PROMPT, "llama-3.1-8b", "", vocab), Answer(PROMPT, "llama-3.1-8b", lossy(config), vocab)
    same = [exact.chunk(i) == other.chunk(i) for i in range(12)]
    assert same[0] and not same[-1] and same == sorted(same, reverse=True)


def test_answers_read_back_as_the_tokens_they_were():
    answer = Answer(PROMPT, "m", "", 128256)
    tokens = [token for number in range(40) for token in answer.chunk(number)]
    assert encode(b"".join(map(word, tokens)).decode(), 128256) == tokens
