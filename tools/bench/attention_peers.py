#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times hl.nw with scalar and vector responses, hl.attention and their gradients beside PyTorch's attention.

attention_peers.py [--rounds R] [--each SECONDS]: one thread, float32, processor time of the shortest call of
every round in turns, as other work on a machine counts less in it. Exit status 2 where headlab or PyTorch is missing.
"""
import argparse
import sys
import time

try:
    import headlab
    import numpy as np
    import torch
except ImportError as error:
    print(f"attention_peers: {error}", file=sys.stderr)
    sys.exit(2)

N, D, K, P, HEADS = 4096, 64, 64, 64, 8


def shortest(call, seconds):
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def normal(*shape):
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


def backward(values, upstream, inputs):
    return lambda: torch.autograd.grad(values, inputs, upstream, retain_graph=True)


def responses(queries):
    """{name: call} of hl.nw at d_k 64."""
    x, at, w = normal(N, D), normal(queries, D), normal(HEADS, D, K) / D**0.5
    calls = {}
    for kernel in ({"law": "softmax", "temperature": 8.0}, {"law": "gaussian", "bandwidth": 8.0}):
        for name, y in (("Y [n]", normal(N)), ("Y [n, 64]", normal(N, P))):
            calls[f"{kernel['law']}, {name}"] = lambda y=y, kernel=kernel: headlab.nw(x, y, at, w, kernel, threads=1)
    return calls


def derivatives(queries):
    """{name: call} of hl.nw with tensors, and of its gradients by all of them."""
    arrays = [torch.from_numpy(one) for one in (normal(N, D), normal(N, P), normal(queries, D), normal(HEADS, D, K) / D**0.5)]
    calls = {}
    for kernel in ({"law": "softmax", "temperature": 8.0}, {"law": "gaussian", "bandwidth": 8.0}):
        for name, y in (("Y [n]", arrays[1][:, 0].contiguous()), ("Y [n, 64]", arrays[1])):
            inputs = [one.clone().requires_grad_() for one in (arrays[0], y, *arrays[2:])]
            call = lambda inputs=inputs, kernel=kernel: headlab.nw(*inputs, kernel, threads=1)  # noqa: E731
            calls[f"{kernel['law']}, {name}"] = call
            calls[f"{kernel['law']}, {name}, gradients"] = backward(call(), torch.ones_like(call()), inputs)
    return calls


def attention(tokens, causal, **options):
    """{name: call} of forward and backward passes, ours and PyTorch's."""
    q, k, v, upstream = (torch.from_numpy(normal(HEADS, tokens, K) * (1 + i)) for i in range(4))
    inputs = [one.requires_grad_() for one in (q, k, v)]
    ours = lambda: headlab.attention(*inputs, mask="causal" if causal else None, threads=1, **options)  # noqa: E731
    theirs = lambda: torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=causal)  # noqa: E731
    return {
        "hl.attention": ours, "its gradients": backward(ours(), upstream, inputs),
        "PyTorch's attention": theirs, "its gradients ": backward(theirs(), upstream, inputs),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--each", type=float, default=1.0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for heading, calls in (
        (f"hl.nw: n {N}, d {D}, d_k {K}, H {HEADS}, 64 queries", responses(64)),
        (f"hl.nw: n {N}, d {D}, d_k {K}, H {HEADS}, 1024 queries", responses(1024)),
        (f"hl.nw of tensors with gradients: n {N}, d {D}, d_k {K}, H {HEADS}, 1024 queries", derivatives(1024)),
        (f"attention: T 1024, k {K}, H {HEADS}", attention(1024, False)),
        (f"attention: T 1024, k {K}, H {HEADS}, causal", attention(1024, True)),
        (f"attention with a soft cap, which PyTorch's has not: T 1024, k {K}, H {HEADS}", attention(1024, False, softcap=30.0)),
    ):
        best = dict.fromkeys(calls, float("inf"))
        for _ in range(options.rounds):
            for name, call in calls.items():
                best[name] = min(best[name], shortest(call, options.each))
        print(heading)
        for name, seconds in best.items():
            print(f"  {name:32}{1000 * seconds:9.2f} ms")


if __name__ == "__main__":
    main()
