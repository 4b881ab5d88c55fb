#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trained_model_check.py [--steps N]: figures of heads against what their removal costs a model trained here.

Trains a GPT-2 of 3 layers of 8 heads, d = 64, on the characters of modules of Python's own library (needs torch,
transformers, pandas and the package), measures its heads on other modules, and removes them on others again:

  - a quarter of the heads by `prune` costs less than half the mean of 8 drawn quarters with the same refits;
  - exchange_error has a rank correlation with what it costs that head h attends as l does that is above 0.65 on average
    of the layers, and above that of total_variation;
  - spread_share and second_order, of labels drawn from the model, have one above 0.75 with what it costs to put a head's mean in its place.

Prints each figure and ends with 1 where one fails.
"""
import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch

import headlab as hl

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/python/examples"))
from train_checkpoint import HEADS, LAYERS, WIDTH, pages, sequences, trained  # noqa: E402


def rank_correlation(a, b):
    def ranks(x):
        return np.argsort(np.argsort(np.ravel(x))).astype(float)

    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def exchange_cost(model, losses, layer, h, l, before):
    """Nats a token that it costs that head h attends as head l does."""
    attention = model.transformer.h[layer].attn.c_attn
    weight, bias = attention.weight.detach(), attention.bias.detach()
    kept = weight.clone(), bias.clone()
    k = WIDTH // HEADS
    for part in (0, WIDTH):  # queries, keys
        to, of = slice(part + h * k, part + (h + 1) * k), slice(part + l * k, part + (l + 1) * k)
        weight[:, to], bias[to] = kept[0][:, of], kept[1][of]
    cost = (losses() - before).mean()
    weight.copy_(kept[0])
    bias.copy_(kept[1])
    return cost


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1500)
    steps = parser.parse_args().steps
    began = time.monotonic()
    # Pages of this tree would be other ones after the next change of one.
    train, held_out, size = pages(Path(argparse.__file__).parent.glob("*.py"))
    model = trained(train, size, steps)
    print(f"{len(train)} modules, {steps} steps, {time.monotonic() - began:.0f} s")

    half = len(held_out) // 2
    ids, document = sequences(held_out[:half])
    other, other_document = sequences(held_out[half:])
    m, of_drawn = (hl.heads.measure(model, ids.split(8), labels=labels, document=document, seed=1)
                   for labels in ("data", "model"))

    def losses():
        with torch.no_grad():
            logits = model(input_ids=other).logits[:, :-1].log_softmax(-1)
        return -logits.gather(-1, other[:, 1:, None])[..., 0].mean(1).double().numpy()

    before = losses()
    print(f"held-out loss {before.mean():.3f} nats a character, identity {m.identity[0]['total_variation_max']:.1e}")
    faults = 0

    def check(what, value, holds):
        nonlocal faults
        faults += not holds
        print(f"{'ok' if holds else 'FAULT'}  {what}: {value}")

    found = m.prune(0.25).evaluate(losses, document=other_document, random=8)
    cost, error, drawn = (float(found[name][0]) for name in ("cost", "cost_se", "random_mean"))
    check("a quarter by refit, and drawn", f"{cost:.4f} ± {error:.4f}, {drawn:.4f}", cost < drawn / 2)

    single = np.zeros((LAYERS, HEADS))
    for layer in range(LAYERS):
        for head in range(HEADS):
            with m.prune([(layer, head)], refit=False).applied():
                single[layer, head] = (losses() - before).mean()
    value = rank_correlation(m["spread_share"], single)
    check("spread_share and the cost of the head's mean", f"{value:.2f}", value > 0.75)
    for what, of in (("drawn labels", of_drawn), ("labels of the text", m)):
        value = rank_correlation(of["second_order"], single)
        check(f"second_order of {what} and the same", f"{value:.2f}", value > 0.75)
        ratios = np.sort((single / of["second_order"]).ravel())
        print(f"    true cost over it: {ratios[2]:.2f} to {ratios[-3]:.2f}, the two smallest and the two largest left out")

    found = {"exchange_error": [], "total_variation": []}
    for layer in range(LAYERS):
        pairs = [(h, l) for h in range(HEADS) for l in range(HEADS) if h != l]
        costs = [exchange_cost(model, losses, layer, h, l, before) for h, l in pairs]
        for figure, values in found.items():
            values.append(rank_correlation([m[figure][layer, h, l] for h, l in pairs], costs))
    means = {figure: np.mean(values) for figure, values in found.items()}
    for figure, values in found.items():
        print(f"    {figure} and the cost of exchange, layer by layer: {', '.join(f'{one:.2f}' for one in values)}")
    check("exchange_error on average, and total_variation", ", ".join(f"{one:.2f}" for one in means.values()),
          means["exchange_error"] > max(0.65, means["total_variation"]))
    print(f"{time.monotonic() - began:.0f} s")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
