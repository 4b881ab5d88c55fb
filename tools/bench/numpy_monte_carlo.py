#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The decomposition of headlab in NumPy, as one would write it who cares for speed: float32, products of
matrices, exp in place, chunks that stay in cache, replicates dealt to threads.

tools/bench/numpy_monte_carlo.py [--replicates R] [--estimator plain|conditional] [--threads T] [--seed S]

`plain` draws the noise; `conditional` integrates it given the design, as headlab does by default. It is
what tools/bench/time_to_se.py compares headlab with, and prints the components of the mean squared
error of that problem with their standard errors.
"""
import argparse
import concurrent.futures
import math
import sys

import numpy as np
from threadpoolctl import threadpool_limits

from common import number


class Problem:
    """Cosines of a normal design, random subspaces, fixed queries; the scenario for headlab is the same."""

    def __init__(self, n=2048, d=16, heads=8, k=4, queries=16, sd=1.0):
        random = np.random.default_rng(2026)
        self.n, self.d, self.heads, self.k, self.sd = n, d, heads, k, sd
        self.amplitude = np.array([0.12, 0.06, 0.06, 0.03])
        self.frequency = random.standard_normal((4, d)) * np.array([[0.3], [0.5], [0.5], [0.7]])
        self.phase = random.uniform(0, 2 * math.pi, 4)
        self.frames = np.linalg.qr(random.standard_normal((heads, d, k)))[0]  # [H][d][k]
        self.points = random.standard_normal((queries, d))
        self.truth = self.regression(self.points)

    def regression(self, x):
        kind = x.dtype
        return np.cos(x @ self.frequency.T.astype(kind) + self.phase.astype(kind)) @ self.amplitude.astype(kind)

    def scenario(self, estimator, bandwidths):
        """TOML for headlab. A sweep where there are several bandwidths."""
        sweep = f"[sweep]\n\"heads.kernel.bandwidth\" = {bandwidths}\n" if len(bandwidths) > 1 else ""
        return f"""[scenario]
name = "time to a standard error"
[data]
n = {self.n}
design = {{ law = "normal", dim = {self.d} }}
noise = {{ law = "normal", sd = {self.sd} }}
[data.regression]
law = "cosines"
amplitude = {self.amplitude.tolist()}
frequency = {self.frequency.tolist()}
phase = {self.phase.tolist()}
[heads]
count = {self.heads}
dim = {self.k}
kernel = {{ law = "gaussian", bandwidth = {bandwidths[0]} }}
[heads.subspaces]
law = "explicit"
matrices = {self.frames.tolist()}
orthonormalise = true
[queries]
law = "points"
points = {self.points.tolist()}
[run]
estimator = "{estimator}"
replicates = 1000
{sweep}"""


class Simulation:
    """Replicates of a problem, for one or several bandwidths on the same draws."""

    def __init__(self, problem, estimator, bandwidths, threads, queries_at_once=4):
        self.problem, self.conditional, self.threads = problem, estimator == "conditional", threads
        p, k = problem, problem.k
        queries = np.einsum("qd,hdk->hqk", p.points, p.frames)
        # The exponent is one product: (q / b^2, 1, -|q|^2 / 2b^2) . (key, -|key|^2 / 2b^2, 1).
        self.scales, self.queries = [], []
        for b in bandwidths:
            augmented = np.concatenate([queries / b ** 2, np.ones_like(queries[..., :1]),
                                        -(queries ** 2).sum(-1, keepdims=True) / (2 * b ** 2)], -1)
            self.queries.append(augmented.astype(np.float32))
            self.scales.append(np.float32(-1 / (2 * b ** 2)))
        projection = np.zeros((p.heads, k + 2, p.d), np.float32)
        projection[:, :k] = p.frames.transpose(0, 2, 1)
        self.projection = projection.reshape(-1, p.d)
        self.groups = [slice(q, q + queries_at_once) for q in range(0, len(p.points), queries_at_once)]

    def buffers(self):
        """Large arrays are made once for each thread: fresh ones cost more than what is computed in them."""
        p, at_once = self.problem, self.groups[0].stop
        return [np.empty(shape, np.float32) for shape in
                ((p.n, p.d), (len(self.projection), p.n), (p.heads, at_once, p.n))] + [np.ones((p.n, 2), np.float32)]

    def replicate(self, random, buffers):
        """Estimates [condition][Q][H], and for the conditional estimator the noise's covariances [condition][Q][H][H]."""
        p, k = self.problem, self.problem.k
        x, keys, all_weights, values = buffers
        random.standard_normal(out=x, dtype=np.float32)
        values[:, 0] = p.regression(x)
        if not self.conditional:
            values[:, 0] += np.float32(p.sd) * random.standard_normal(p.n, dtype=np.float32)
        keys = np.matmul(self.projection, x.T, out=keys).reshape(p.heads, k + 2, p.n)
        squares = np.einsum("hkn,hkn->hn", keys[:, :k], keys[:, :k])
        keys[:, k + 1] = 1
        estimates = np.empty((len(self.scales), len(p.points), p.heads), np.float32)
        noise = np.empty((*estimates.shape, p.heads), np.float32) if self.conditional else None
        for c, (scale, query) in enumerate(zip(self.scales, self.queries)):
            np.multiply(squares, scale, out=keys[:, k])
            for g in self.groups:
                weights = all_weights[:, :query[:, g].shape[1]]
                np.matmul(query[:, g], keys, out=weights)  # [H][q][n]
                np.exp(weights, out=weights)
                sums = (weights @ values).transpose(1, 0, 2)  # [q][H][2]
                estimates[c, g] = sums[..., 0] / sums[..., 1]
                if self.conditional:
                    by_query = weights.transpose(1, 0, 2)
                    products = by_query @ by_query.transpose(0, 2, 1)
                    noise[c, g] = products / (sums[:, :, None, 1] * sums[:, None, :, 1])
        if self.conditional:
            noise *= np.float32(p.sd ** 2)
        return estimates, noise

    def run(self, replicates, seed):
        """Estimates [R][condition][Q][H] and noise covariances [R][condition][Q][H][H] or None, in float64."""
        def part(stream, count):
            random = np.random.default_rng(stream)
            buffers = self.buffers()
            return [self.replicate(random, buffers) for _ in range(count)]
        counts = [len(range(t, replicates, self.threads)) for t in range(self.threads)]
        streams = np.random.SeedSequence(seed).spawn(self.threads)
        with threadpool_limits(1, user_api="blas"), concurrent.futures.ThreadPoolExecutor(self.threads) as pool:
            done = [one for some in pool.map(part, streams, counts) for one in some]
        estimates = np.array([one for one, _ in done], float)
        return estimates, np.array([one for _, one in done], float) if self.conditional else None


# ---- Components and their standard errors ----


class Sums:
    """Sums over groups of replicates, about a centre: counts [G], first [G][Q][H], second [G][Q][H][H],
    noise [G][Q][H][H]. All that the components are made of."""

    def __init__(self, counts, centre, first, second, noise):
        self.counts, self.centre, self.first, self.second, self.noise = counts, centre, first, second, noise

    @classmethod
    def of(cls, estimates, noise, groups=250):
        """Of replicates [R][Q][H], in at most so many groups."""
        edges = np.linspace(0, len(estimates), min(groups, len(estimates)) + 1).astype(int)[:-1]
        centre = estimates.mean(0)
        off = estimates - centre
        second = np.einsum("rqh,rql->rqhl", off, off)
        return cls(np.diff([*edges, len(estimates)]).astype(float), centre, np.add.reduceat(off, edges),
                   np.add.reduceat(second, edges), np.add.reduceat(np.zeros_like(second) if noise is None else noise, edges))

    def left_out(self):
        """Totals without one group each, and the totals in front: [G + 1][...]."""
        return [np.concatenate([total[None], total - part]) for part in (self.counts, self.first, self.second, self.noise)
                for total in [part.sum(0)]]


def components(sums, truth):
    """Each a row of 1 + G numbers: from all replicates, then without one group each. Head weights are 1/H."""
    count, first, second, noise = sums.left_out()
    r = count[:, None, None, None]
    between = (second - np.einsum("gqh,gql->gqhl", first, first) / r) / (r - 1)
    covariance = between + noise / r
    mean = (first / r[..., 0] + sums.centre).mean(-1)
    variance = covariance.mean((-1, -2))
    bias_squared = (mean - truth) ** 2 - between.mean((-1, -2)) / count[:, None]
    heads = covariance.shape[-1]
    own = np.einsum("gqhh->gq", covariance)
    pairs = heads * (heads - 1) if heads > 1 else math.nan
    values = {"mse": bias_squared + variance, "bias_squared": bias_squared, "head_variance_mean": own / heads,
              "head_covariance_mean": (covariance.sum((-1, -2)) - own) / pairs}
    return {name: value.mean(-1) for name, value in values.items()}


def jackknife(counts, figures):
    """Standard error from a row of components(): delete-one jackknife over groups of any size (Busing,
    Meijer and van der Leeden 1999)."""
    full, without = figures[0], figures[1:]
    h = counts.sum() / counts
    centre = len(counts) * full - ((1 - 1 / h) * without).sum()
    pseudo = h * full - (h - 1) * without
    return math.sqrt(((pseudo - centre) ** 2 / (h - 1)).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=number(int, 8), default=1000)
    parser.add_argument("--estimator", choices=("plain", "conditional"), default="conditional")
    parser.add_argument("--bandwidth", type=number(float, 1e-3), default=0.5)
    parser.add_argument("--threads", type=number(int, 1), default=2)
    parser.add_argument("--seed", type=number(int, 0), default=1)
    arguments = parser.parse_args()
    problem = Problem()
    simulation = Simulation(problem, arguments.estimator, [arguments.bandwidth], arguments.threads)
    estimates, noise = simulation.run(arguments.replicates, arguments.seed)
    sums = Sums.of(estimates[:, 0], None if noise is None else noise[:, 0])
    for name, row in components(sums, problem.truth).items():
        print(f"{name:22} {row[0]:.6f} ± {jackknife(sums.counts, row):.6f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
