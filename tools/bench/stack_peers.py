#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stack of attention layers in NumPy and in PyTorch, as a user who cares for speed would write it, next to headlab's.

tools/bench/stack_peers.py [--replicates R] [--rounds N] [--program FILE]

n = d = 32, H = 4, d_k = d_v = 8, 8 layers, softmax, Gaussian maps, skip 1, rms pre norm; float64, one thread,
tokens and weights drawn. The peers take replicates in batches, all heads in one product, plain arithmetic, and
take part with the fastest of their variants: batches of 8, 32 or 128, normals drawn in float32 or float64.
Programs take turns; medians of the processor time of a replicate. "state" is the tokens of the last layer;
"metrics" adds the metrics of every layer that headlab gives by default.

Exit status: 0 measured, 1 a program of headlab's failed, 2 nothing to measure with.
"""
import argparse
import importlib
import json
import math
import statistics
import sys
import time

from common import Failed, ended, find_program, machine, number, run_program

N, D, HEADS, K, LAYERS = 32, 32, 4, 8, 8
BATCHES = (8, 32, 128)


class NumpyStack:
    name = "NumPy"

    def __init__(self):
        self.np = importlib.import_module("numpy")
        self.threads = importlib.import_module("threadpoolctl").threadpool_limits(1)
        self.random = self.np.random.default_rng(1)

    def variants(self):
        return [(batch, kind) for batch in BATCHES for kind in (self.np.float32, self.np.float64)]

    def draw(self, shape, variance, kind):
        x = self.random.standard_normal(shape, dtype=kind)
        return x.astype(float, copy=False) * math.sqrt(variance)

    def run(self, variant, metrics):
        """The last tokens [batch][n][d]."""
        np, (batch, kind) = self.np, variant
        x = self.draw((batch, N, D), 1, kind)
        rollout = np.broadcast_to(np.eye(N), (batch, N, N))
        sink = np.zeros((batch, N))
        if metrics:
            self.token_metrics(x)
        for _ in range(LAYERS):
            z = x / np.sqrt(np.mean(x * x, -1, keepdims=True))
            w = self.draw((batch, D, 3 * HEADS * K), 1 / D, kind)
            output = self.draw((batch, HEADS * K, D), 1 / (HEADS * K), kind)
            q, k, v = (z @ w).reshape(batch, N, 3, HEADS, K).transpose(2, 0, 3, 1, 4)
            score = q @ k.transpose(0, 1, 3, 2)
            score *= 1 / math.sqrt(K)
            score -= score.max(-1, keepdims=True)
            np.exp(score, out=score)
            score /= score.sum(-1, keepdims=True)
            x = x + (score @ v).transpose(0, 2, 1, 3).reshape(batch, N, HEADS * K) @ output
            if not metrics:
                continue
            self.token_metrics(x)
            self.attention_metrics(score)
            rollout = (rollout + score.mean(1) @ rollout) / 2
            self.dobrushin(rollout)
            sink = np.maximum(sink, rollout[:, -1])
            sink[:, :-1].min(-1)
        return x

    def token_metrics(self, x):
        np = self.np
        mean = x.mean(-2, keepdims=True)
        r = x - mean
        squared = np.einsum("bnd,bnd->b", r, r)
        mean_squared = np.einsum("bnd,bnd->b", mean, mean)
        sizes = np.einsum("bnd,bnd->bn", x, x)
        size = np.abs(r)
        gram = x @ x.transpose(0, 2, 1)
        inner = r @ r.transpose(0, 2, 1)
        own = np.einsum("bnn->bn", inner)
        unit = x / np.sqrt(sizes)[..., None]
        direction = unit.sum(-2)
        return (np.log(squared) / 2, squared, mean_squared, squared / (squared + N * mean_squared),
                np.sqrt((own[:, :, None] + own[:, None] - 2 * inner).max((-2, -1))),
                np.sqrt(size.sum(-2).max(-1) * size.sum(-1).max(-1)),
                ((direction ** 2).sum(-1) - N) / (N * (N - 1)),
                sizes.sum(-1) ** 2 / np.einsum("bij,bij->b", gram, gram))

    def dobrushin(self, a):
        """[...][n][n], by shifts of the rows: each pair once, in memory that stays in cache."""
        np = self.np
        largest = 0
        for shift in range(1, N // 2 + 1):
            difference = a - np.roll(a, shift, -2)
            np.abs(difference, out=difference)
            largest = np.maximum(largest, difference.sum(-1).max(-1))
        return largest / 2

    def attention_metrics(self, a):
        np = self.np
        rest = a - a.mean(-2, keepdims=True)
        return (-(a * np.log(a)).sum(-1).mean((-2, -1)), self.dobrushin(a).mean(-1),
                np.einsum("bhij,bhij->b", rest, rest) / (HEADS * (N - 1)), np.einsum("bhii->b", a) / (HEADS * N))


class TorchStack:
    name = "PyTorch"

    def __init__(self):
        self.torch = importlib.import_module("torch")
        self.torch.set_num_threads(1)
        self.torch.set_grad_enabled(False)
        self.random = self.torch.Generator().manual_seed(1)

    def variants(self):
        return [(batch, kind) for batch in BATCHES for kind in (self.torch.float32, self.torch.float64)]

    def draw(self, shape, variance, kind):
        x = self.torch.randn(shape, dtype=kind, generator=self.random)
        return x.to(self.torch.float64).mul_(math.sqrt(variance))

    def run(self, variant, metrics):
        torch, (batch, kind) = self.torch, variant
        x = self.draw((batch, N, D), 1, kind)
        rollout = torch.eye(N, dtype=torch.float64).expand(batch, N, N)
        sink = torch.zeros((batch, N), dtype=torch.float64)
        if metrics:
            self.token_metrics(x)
        for _ in range(LAYERS):
            z = x * torch.rsqrt(torch.mean(x * x, -1, keepdim=True))
            w = self.draw((batch, D, 3 * HEADS * K), 1 / D, kind)
            output = self.draw((batch, HEADS * K, D), 1 / (HEADS * K), kind)
            q, k, v = torch.bmm(z, w).view(batch, N, 3, HEADS, K).permute(2, 0, 3, 1, 4)
            score = torch.softmax(torch.matmul(q, k.transpose(-2, -1)).mul_(1 / math.sqrt(K)), -1)
            values = torch.matmul(score, v).transpose(1, 2).reshape(batch, N, HEADS * K)
            x = torch.baddbmm(x, values, output)
            if not metrics:
                continue
            self.token_metrics(x)
            self.attention_metrics(score)
            rollout = (rollout + torch.bmm(score.mean(1), rollout)) / 2
            torch.cdist(rollout, rollout, p=1.0).amax((-2, -1)) / 2
            sink = torch.maximum(sink, rollout[:, -1])
            sink[:, :-1].amin(-1)
        return x.numpy()

    def token_metrics(self, x):
        torch = self.torch
        mean = x.mean(-2, keepdim=True)
        r = x - mean
        squared = (r * r).sum((-2, -1))
        mean_squared = (mean * mean).sum((-2, -1))
        sizes = (x * x).sum(-1)
        size = r.abs()
        gram = torch.bmm(x, x.transpose(-2, -1))
        inner = torch.bmm(r, r.transpose(-2, -1))
        own = torch.diagonal(inner, dim1=-2, dim2=-1)
        direction = (x * torch.rsqrt(sizes)[..., None]).sum(-2)
        return (torch.log(squared) / 2, squared, mean_squared, squared / (squared + N * mean_squared),
                torch.sqrt((own[:, :, None] + own[:, None] - 2 * inner).amax((-2, -1))),
                torch.sqrt(size.sum(-2).amax(-1) * size.sum(-1).amax(-1)),
                ((direction ** 2).sum(-1) - N) / (N * (N - 1)),
                sizes.sum(-1) ** 2 / (gram * gram).sum((-2, -1)))

    def attention_metrics(self, a):
        torch = self.torch
        rest = a - a.mean(-2, keepdim=True)
        return (-torch.special.xlogy(a, a).sum(-1).mean((-2, -1)), (torch.cdist(a, a, p=1.0).amax((-2, -1)) / 2).mean(-1),
                (rest * rest).sum((-3, -2, -1)) / (HEADS * (N - 1)),
                torch.diagonal(a, dim1=-2, dim2=-1).sum((-2, -1)) / (HEADS * N))


def microseconds(peer, variant, metrics, replicates):
    """Of a replicate."""
    calls = max(1, round(replicates / variant[0]))
    peer.run(variant, metrics)
    begin = time.process_time()
    for _ in range(calls):
        peer.run(variant, metrics)
    return 1e6 * (time.process_time() - begin) / (calls * variant[0])


def fastest(peer, metrics, replicates):
    return min(peer.variants(), key=lambda variant: microseconds(peer, variant, metrics, replicates))


def check(peer, rate):
    """The mean of log |R|_F in the last layer is headlab's, within five standard errors."""
    last = [x - x.mean(0) for _ in range(4) for x in peer.run(peer.variants()[-1], True)]
    logs = [math.log((r ** 2).sum()) / 2 for r in last]
    error = math.hypot(statistics.stdev(logs) / math.sqrt(len(logs)), rate["log_residual_mcse"])
    if not abs(statistics.fmean(logs) - rate["log_residual"]) <= 5 * error:
        raise Failed(f"{peer.name}: log |R| is {statistics.fmean(logs)} and not {rate['log_residual']} +- {error}")


def batch_of(variant):
    return "" if variant is None else f", batches of {variant[0]}, normals in {'float32' if '32' in str(variant[1]) else 'float64'}"


def measure(arguments):
    program = find_program(arguments.program, "headlab_stack_rate", ("build/release",),
                           "cmake --preset release && cmake --build --preset release --target headlab_stack_rate")
    peers = []
    for kind in (NumpyStack, TorchStack):
        try:
            peers.append(kind())
        except ImportError as error:
            print(f"{kind.name}: left out ({error})")
    print(machine())
    times, chosen = {}, {}
    rate = json.loads(run_program(program, str(arguments.replicates)))
    for peer in peers:
        check(peer, rate)
        for metrics in (False, True):
            chosen[peer.name, metrics] = fastest(peer, metrics, arguments.replicates)
    for _ in range(arguments.rounds):
        rate = json.loads(run_program(program, str(arguments.replicates)))
        times.setdefault(("headlab", False), []).append(rate["state"])
        times.setdefault(("headlab", True), []).append(rate["metrics"])
        for peer in peers:
            for metrics in (False, True):
                times.setdefault((peer.name, metrics), []).append(
                    microseconds(peer, chosen[peer.name, metrics], metrics, arguments.replicates))
    print(json.dumps(rate, indent=1))
    medians = {what: statistics.median(all_of) for what, all_of in times.items()}
    for (name, metrics), median in medians.items():
        against = median / medians["headlab", metrics]
        low, high = min(times[name, metrics]), max(times[name, metrics])
        print(f"{name:8} {'metrics' if metrics else 'state':8} {median:8.1f} us a replicate ({low:.1f} to {high:.1f}), "
              f"x {against:.2f}{batch_of(chosen.get((name, metrics)))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=number(int, 2), default=512, metavar="R", help="of one timing (512)")
    parser.add_argument("--rounds", type=number(int, 1), default=5, metavar="N", help="turns of the programs (5)")
    parser.add_argument("--program", metavar="FILE", help="headlab_stack_rate")
    return ended("stack_peers.py", measure, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
