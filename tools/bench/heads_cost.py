#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""heads_cost.py [--tokens T] [--sequences B] [--threads N] [--sizes H G K D]: what hl.heads.measure costs.

Times the figures of one causal layer of random numbers, by default in the shape of Llama 3 8B (32 heads in 8 groups,
k = e = 128, d = 4096), and in the same run PyTorch's seconds for weights by tiles of queries, their products over
pairs of heads, z and its second moments; then the same with 512 drawn queries, half of the tokens, and with two
sequences. Prints seconds, their ratios and the memory that came on top of the arrays. Needs torch and the package.
"""
import argparse
import resource
import time

import numpy as np
import torch

import headlab as hl


def arrays(random, sequences, tokens, sizes):
    heads, groups, k, d = sizes

    def normal(*shape):
        return random.standard_normal(shape, dtype=np.float32)

    return {"q": normal(sequences, heads, tokens, k), "k": normal(sequences, groups, tokens, k),
            "v": normal(sequences, groups, tokens, k), "W_O": normal(heads, k, d) / np.float32(d**0.5)}


def by_pytorch(given, tile=64):
    """Seconds of attention, overlap of heads and second moments of z."""
    q, k, v = (torch.from_numpy(given[name]) for name in "qkv")
    sequences, heads, tokens, size = q.shape
    sharing = heads // k.shape[1]
    began = time.process_time()
    overlap = torch.zeros(heads, heads)
    moments = torch.zeros(heads * size, heads * size)
    for b in range(sequences):
        keys, values = (one[b].repeat_interleave(sharing, 0) for one in (k, v))
        z = torch.empty(heads, tokens, size)
        for first in range(0, tokens, tile):
            end = first + tile
            logits = q[b, :, first:end] @ keys[:, :end].transpose(1, 2) * size**-0.5
            unseen = torch.ones(tile, end, dtype=torch.bool).triu(first + 1)
            weights = logits.masked_fill_(unseen, -torch.inf).softmax(-1)
            z[:, first:end] = weights @ values[:, :end]
            flat = weights.reshape(heads, -1)
            overlap += flat @ flat.T
        flat = z.transpose(0, 1).reshape(tokens, -1)
        moments += flat.T @ flat
    return time.process_time() - began, overlap / (sequences * tokens)


def by_headlab(given, threads, queries=None):
    acts = hl.heads.from_attention(**given)
    began = time.process_time()
    measured = hl.heads.measure(acts, queries=queries, threads=threads)
    return time.process_time() - began, measured


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--sequences", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sizes", type=int, nargs=4, default=[32, 8, 128, 4096])
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    random = np.random.default_rng(1)
    given = arrays(random, arguments.sequences, arguments.tokens, arguments.sizes)
    before = peak()
    seconds, measured = by_headlab(given, arguments.threads)
    memory = peak() - before
    heads, _, size, _ = arguments.sizes
    one = sum(given[name][0].nbytes for name in "qkv")
    allowed = 1.5 * one + 16 * (heads * size) ** 2
    print(f"all queries: {seconds:.1f} s, {memory / 2**20:.0f} MiB on top of the arrays, "
          f"{memory / allowed:.2f} of 1.5 sequences and two matrices [H e, H e]")
    drawn, _ = by_headlab(given, arguments.threads, queries=512)
    print(f"512 queries: {drawn:.1f} s, {seconds / drawn:.1f} times quicker")
    torch_seconds, overlap = by_pytorch(given)
    off = np.abs(measured["overlap"][0] - overlap.numpy()).max()
    print(f"PyTorch: {torch_seconds:.1f} s, {torch_seconds / seconds:.2f} of all queries, "
          f"{torch_seconds / drawn:.2f} of 512; overlap differs by {off:.1e}")
    half = {name: one[:, :, : arguments.tokens // 2] if name in "qkv" else one for name, one in given.items()}
    seconds_half, _ = by_headlab(half, arguments.threads)
    print(f"half of the tokens: {seconds_half:.1f} s, {seconds / seconds_half:.2f} times quicker")
    twice = {name: np.concatenate([one, one]) if name in "qkv" else one for name, one in half.items()}
    seconds_twice, _ = by_headlab(twice, arguments.threads)
    print(f"these twice: {seconds_twice:.1f} s, {seconds_twice / seconds_half:.2f} times slower")


if __name__ == "__main__":
    main()
