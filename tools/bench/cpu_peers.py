# SPDX-License-Identifier: Apache-2.0
"""The peers on a CPU, for peers.py. Each is written as a user who cares for speed would write it, in
several variants of chunk size and layout, and takes part with the fastest of them.

A peer is a function of the work and a variant. It gives two functions of the number of a chunk of
replicates: the means [r][H][Q] from the training sets that are there, and the same from training sets
that it draws.
"""
import concurrent.futures
import importlib
import itertools
import math
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time

from common import (Failed, Stop, figures, find_bench, find_headlab, machine, processor_seconds, run_program, timed,
                    use_processors)

N, HEADS, QUERIES = 4096, 8, 64
MOST_ERROR = 1e-4  # float32 gives some 1e-6; what is beyond computes something else
INSTALL = "pip install -r tools/bench/requirements.txt"


class Work:
    """One d_k: float32 data in NumPy, and the means in float64 of the first replicate."""

    def __init__(self, np, k, replicates):
        self.k, self.d, self.replicates = k, max(32, k), replicates
        random = np.random.default_rng(1)
        self.bandwidth = 0.8 * math.sqrt(k)
        self.x = random.standard_normal((replicates, N, self.d), dtype=np.float32)
        self.y = random.standard_normal((replicates, N), dtype=np.float32)
        frames = np.linalg.qr(random.standard_normal((HEADS, self.d, k)))[0]
        self.points = 0.7 * random.standard_normal((QUERIES, self.d))
        queries = np.einsum("qd,hdk->hqk", self.points, frames)
        self.frames = frames.astype(np.float32)    # [H][d][k]
        self.queries = queries.astype(np.float32)  # [H][Q][k]
        self.weights = replicates * N * HEADS * QUERIES
        keys = np.einsum("nd,hdk->hnk", self.x[0].astype(float), self.frames.astype(float))
        exact = []
        for key, query in zip(keys, self.queries.astype(float)):
            square = (query ** 2).sum(-1)[:, None] - 2 * query @ key.T + (key ** 2).sum(-1)
            weight = np.exp(-square / (2 * self.bandwidth ** 2))
            exact.append(weight @ self.y[0] / weight.sum(-1))
        self.exact = np.array(exact)

    def augmented(self, np, width):
        """Queries [H][Q][width] and projections [H][d][width] so that query.key is the exponent, once
        column k of the key holds -|key|^2 / (2 b^2); the norm of the query is left out, or in column
        k + 1, where the key holds 1, if there is one."""
        query = np.zeros((HEADS, QUERIES, width), np.float32)
        query[..., :self.k] = self.queries / self.bandwidth ** 2
        query[..., self.k] = 1
        if width > self.k + 1:
            query[..., self.k + 1] = -(self.queries ** 2).sum(-1) / (2 * self.bandwidth ** 2)
        projection = np.zeros((HEADS, self.d, width), np.float32)
        projection[..., :self.k] = self.frames
        return query, projection


def grid(**choices):
    """Every combination, as dictionaries."""
    return [dict(zip(choices, values)) for values in itertools.product(*choices.values())]


def groups(size):
    """Heads, `size` at a time."""
    return [slice(first, first + size) for first in range(0, HEADS, size)]


# ---- PyTorch ----


def torch_peer(means_of):
    """`means_of(torch, work, variant)` gives the means from points x [r][n][d] and y [r][n]."""
    def make(work, variant):
        import torch
        r = variant["replicates"]
        means = torch.no_grad()(means_of(torch, work, variant))
        xs, ys = torch.from_numpy(work.x), torch.from_numpy(work.y)

        def given(i):
            return means(xs[i * r:(i + 1) * r], ys[i * r:(i + 1) * r])

        def whole(_):
            return means(torch.randn(r, N, work.d), torch.randn(r, N))
        return given, whole
    return make


def torch_attention(torch, work, variant):
    """Scaled dot-product attention. Keys and values have the same width there, so Y is padded with zeros."""
    numpy = importlib.import_module("numpy")
    k, r, size = work.k, variant["replicates"], variant["heads"]
    width = (k + variant["width of"]) // variant["width of"] * variant["width of"]
    query, projection = map(torch.from_numpy, work.augmented(numpy, width))
    query[..., k + 1:] = 0
    query = query.expand(r, HEADS, QUERIES, width)
    scale = -1 / (2 * work.bandwidth ** 2)
    parts = [(query[:, g].contiguous(), projection[g].permute(1, 0, 2).reshape(work.d, -1).contiguous()) for g in groups(size)]
    attention = torch.nn.functional.scaled_dot_product_attention
    mine = threading.local()

    def means(x, y):
        out = []
        if not hasattr(mine, "value"):
            mine.value = torch.zeros(r, 1, N, width)
        value = mine.value
        value[:, 0, :, 0] = y
        for q, p in parts:
            keys = (x @ p).view(r, N, size, width)
            keys[..., k] = keys[..., :k].square().sum(-1).mul_(scale)
            out.append(attention(q, keys.transpose(1, 2), value.expand(-1, size, -1, -1), scale=1.0)[..., 0])
        return torch.cat(out, 1)
    return means


def torch_gemm(torch, work, variant):
    """Exponents by a product of matrices; their softmax, or exp and the two sums by another product."""
    numpy = importlib.import_module("numpy")
    k, r, size, chunk = work.k, variant["replicates"], variant["heads"], variant["keys"]
    query, projection = map(torch.from_numpy, work.augmented(numpy, k + 2))
    scale = -1 / (2 * work.bandwidth ** 2)
    parts = [(query[g], projection[g].transpose(1, 2).reshape(-1, work.d).contiguous()) for g in groups(size)]

    def means(x, y):
        out = []
        value = torch.stack((y, torch.ones_like(y)), -1)[:, None]
        for q, p in parts:
            keys = (p @ x.transpose(1, 2)).view(r, size, k + 2, N)
            keys[:, :, k] = keys[:, :, :k].square().sum(2).mul_(scale)
            keys[:, :, k + 1] = 1
            if variant["form"] == "softmax":
                out.append((torch.softmax(q @ keys, -1) @ value[..., :1]).squeeze(-1))
                continue
            sums = 0
            for first in range(0, N, chunk):
                weight = (q @ keys[..., first:first + chunk]).exp_()
                sums = sums + weight @ value[:, :, first:first + chunk]
            out.append(sums[..., 0] / sums[..., 1])
        return torch.cat(out, 1)
    return means


def torch_cdist(torch, work, variant):
    r, size = variant["replicates"], variant["heads"]
    scale = -1 / (2 * work.bandwidth ** 2)
    frames = torch.from_numpy(work.frames)
    queries = torch.from_numpy(work.queries).expand(r, HEADS, QUERIES, work.k)
    parts = [(queries[:, g].contiguous(), frames[g].permute(1, 0, 2).reshape(work.d, -1).contiguous()) for g in groups(size)]

    def means(x, y):
        out = []
        value = torch.stack((y, torch.ones_like(y)), -1)[:, None]
        for q, p in parts:
            keys = (x @ p).view(r, N, size, work.k).transpose(1, 2).contiguous()
            sums = torch.cdist(q, keys).square_().mul_(scale).exp_() @ value
            out.append(sums[..., 0] / sums[..., 1])
        return torch.cat(out, 1)
    return means


def keops(torch, work, variant):
    from pykeops.torch import LazyTensor
    r, size = variant["replicates"], variant["heads"]
    root = math.sqrt(0.5) / work.bandwidth
    frames = torch.from_numpy(work.frames) * root
    queries = (torch.from_numpy(work.queries) * root).expand(r, HEADS, QUERIES, work.k)
    parts = [(queries[:, g, :, None].contiguous(), frames[g].permute(1, 0, 2).reshape(work.d, -1).contiguous()) for g in groups(size)]

    def means(x, y):
        out = []
        value = torch.stack((y, torch.ones_like(y)), -1)[:, None].expand(-1, size, -1, -1).contiguous()
        for q, p in parts:
            keys = (x @ p).view(r, N, size, work.k).transpose(1, 2)[:, :, None].contiguous()
            sums = (-LazyTensor(q).sqdist(LazyTensor(keys))).exp() @ value
            out.append(sums[..., 0] / sums[..., 1])
        return torch.cat(out, 1)
    return means


# ---- NumPy ----


def numpy_gemm(work, variant):
    """Exponents by a product of matrices, exp in place, the two sums by another product."""
    import numpy as np
    k, size, chunk = work.k, variant["heads"], variant["keys"]
    query, projection = work.augmented(np, k + 2)
    projection = np.ascontiguousarray(projection.transpose(0, 2, 1))  # [H][k + 2][d]
    scale = np.float32(-1 / (2 * work.bandwidth ** 2))
    mine = threading.local()

    def means(x, y):
        if not hasattr(mine, "weight"):
            mine.weight = np.empty((size, QUERIES, chunk), np.float32)
            mine.value = np.ones((N, 2), np.float32)
            mine.random = np.random.default_rng()
        mine.value[:, 0] = y
        out = np.empty((1, HEADS, QUERIES), np.float32)
        for g in groups(size):
            keys = (projection[g].reshape(-1, work.d) @ x.T).reshape(size, k + 2, N)
            keys[:, k] = np.einsum("hkn,hkn->hn", keys[:, :k], keys[:, :k]) * scale
            keys[:, k + 1] = 1
            sums = np.zeros((size, QUERIES, 2), np.float32)
            for first in range(0, N, chunk):
                np.matmul(query[g], keys[..., first:first + chunk], out=mine.weight)
                np.exp(mine.weight, out=mine.weight)
                sums += mine.weight @ mine.value[first:first + chunk]
            out[0, g] = sums[..., 0] / sums[..., 1]
        return out

    def given(i):
        return means(work.x[i], work.y[i])

    def whole(_):
        random = getattr(mine, "random", None) or np.random.default_rng()
        return means(random.standard_normal((N, work.d), dtype=np.float32), random.standard_normal(N, dtype=np.float32))
    return given, whole


# ---- JAX ----


def jax_gemm(work, variant):
    import jax
    import jax.numpy as jnp
    import numpy
    k, r, size = work.k, variant["replicates"], variant["heads"]
    query, projection = work.augmented(numpy, k + 2)
    scale = -1 / (2 * work.bandwidth ** 2)

    def means_of_one(x, y):
        out = []
        value = jnp.stack((y, jnp.ones_like(y)), -1)
        for g in groups(size):
            keys = jnp.einsum("hdk,nd->hkn", projection[g, :, :k], x)
            norms = scale * (keys * keys).sum(1)
            exponents = query[g][..., :k] @ keys + norms[:, None] + query[g][..., k + 1:]
            if variant["form"] == "softmax":
                out.append(jax.nn.softmax(exponents, -1) @ y)
            else:
                sums = jnp.exp(exponents) @ value
                out.append(sums[..., 0] / sums[..., 1])
        return jnp.concatenate(out)

    means = jax.jit(jax.vmap(means_of_one))

    @jax.jit
    def drawn(key):
        first, second = jax.random.split(key)
        return jax.vmap(means_of_one)(jax.random.normal(first, (r, N, work.d)), jax.random.normal(second, (r, N)))
    xs = [jax.device_put(work.x[i:i + r]) for i in range(0, work.replicates, r)]
    ys = [jax.device_put(work.y[i:i + r]) for i in range(0, work.replicates, r)]
    keys = jax.random.split(jax.random.key(1), work.replicates)
    return lambda i: means(xs[i], ys[i]).block_until_ready(), lambda i: drawn(keys[i]).block_until_ready()


# ---- headlab from Python ----


def headlab_nw(work, variant):
    """The same kernels through the package: what a call from Python adds."""
    import headlab
    import numpy as np
    kernel = {"law": "gaussian", "bandwidth": work.bandwidth}
    threads = len(os.sched_getaffinity(0))

    def means(x, y):
        return headlab.nw(x, y, work.points, work.frames, kernel, threads=threads)[None]
    random = np.random.default_rng()
    return (lambda i: means(work.x[i], work.y[i]),
            lambda _: means(random.standard_normal((N, work.d), dtype=np.float32), random.standard_normal(N, dtype=np.float32)))


# Name, what it imports, what makes it, variants. "pool": replicates go to threads of Python's, each
# computing with one; else the library uses the threads.
PEERS = [
    ("PyTorch attention", ("torch", "numpy"), torch_peer(torch_attention),
     grid(**{"replicates": (1,), "heads": (1, 2, 8), "width of": (1, 8), "pool": (False, True)})
     + grid(**{"replicates": (4,), "heads": (8,), "width of": (8,), "pool": (False,)})),
    ("PyTorch GEMM", ("torch", "numpy"), torch_peer(torch_gemm),
     grid(form=("exp",), replicates=(1,), heads=(1, 8), keys=(512, N), pool=(False, True))
     + grid(form=("softmax",), replicates=(1,), heads=(1, 8), keys=(N,), pool=(False, True))),
    ("PyTorch cdist", ("torch", "numpy"), torch_peer(torch_cdist), grid(replicates=(1,), heads=(1, 8), pool=(False, True))),
    ("NumPy GEMM", ("numpy", "threadpoolctl"), numpy_gemm,
     grid(replicates=(1,), heads=(1, 8), keys=(512, 1024, N), pool=(False, True))),
    ("KeOps", ("torch", "numpy", "pykeops"), torch_peer(keops), grid(replicates=(1, 4), heads=(HEADS,), pool=(False,))),
    ("headlab.nw", ("headlab", "numpy"), headlab_nw, grid(replicates=(1,), pool=(False,))),
    ("JAX", ("jax", "numpy"), jax_gemm, grid(form=("exp", "softmax"), replicates=(1,), heads=(1, 8), pool=(False,))),
]


class Runner:
    """A variant of a peer, ready to be timed."""

    def __init__(self, make, work, variant, threads):
        self.given, self.whole = make(work, variant)
        self.chunks = work.replicates // variant["replicates"]
        self.pool = None
        if variant["pool"]:
            self.pool = concurrent.futures.ThreadPoolExecutor(threads, initializer=one_thread)

    def run(self, what):
        """All replicates, from what is there (`given`) or drawn (`whole`); the means of the first chunk."""
        function = getattr(self, what)
        if self.pool is None:
            return [function(i) for i in range(self.chunks)][0]
        from threadpoolctl import threadpool_limits
        with threadpool_limits(1, user_api="blas"):
            return list(self.pool.map(function, range(self.chunks)))[0]

    def close(self):
        if self.pool is not None:
            self.pool.shutdown()


def one_thread():
    """In a thread of a pool: PyTorch is to use no further ones."""
    try:
        import torch
        torch.set_num_threads(1)
    except ImportError:
        pass


def reason_of(error):
    text = " ".join(str(error).split())[:160]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def error_of(np, work, means):
    got = np.asarray(means, dtype=float)[0].reshape(HEADS, QUERIES)
    value = np.abs(got - work.exact).max() / np.abs(work.exact).max()
    return float(value) if np.isfinite(value) else math.inf


def tuned(np, make, variants, work, threads, seconds, timer):
    """The fastest variant from given X, and its error. Throws what the last one threw where all fail."""
    best, trouble = None, None
    for variant in variants:
        if variant["pool"] and threads == 1:
            continue
        try:
            runner = Runner(make, work, variant, threads)
            error = error_of(np, work, runner.run("given"))
            if not error < MOST_ERROR:
                raise ValueError(f"relative error {error:.1g}")
            time_taken = timer(lambda: runner.run("given"), seconds)
        except Exception as error_seen:  # a variant that cannot do a shape
            trouble = error_seen
            continue
        if best is None or time_taken < best[0]:
            if best is not None:
                best[1].close()
            best = (time_taken, runner, variant, error)
        else:
            runner.close()
    if best is None:
        raise trouble
    return best[1:]


def headlab_given_x(program, k, threads, seconds, scratch, timer):
    """Weights a second from given X, of wall time or of processor time."""
    file = os.path.join(scratch, "given-x.json")
    run_program(program, f"--benchmark_filter=^cpu_given_x/k:{k}/.*threads:{threads}$", f"--benchmark_min_time={seconds}",
                f"--benchmark_out={file}", "--benchmark_out_format=json")
    row = figures(program, file, lambda report: report["benchmarks"][0])
    return row["weights/s"] * (row["real_time"] / row["cpu_time"] if timer is processor_seconds else 1)


def headlab_whole_job(program, work, threads, replicates, scratch):
    scenario, out = os.path.join(scratch, "peers.toml"), os.path.join(scratch, "out")
    with open(scenario, "w", encoding="utf-8") as file:
        file.write(f"""[scenario]
name = "peers"
[data]
n = {N}
design = {{ law = "normal", dim = {work.d} }}
regression = {{ law = "zero" }}
noise = {{ law = "normal", sd = 1 }}
[heads]
count = {HEADS}
dim = {work.k}
subspaces = {{ law = "haar" }}
kernel = {{ law = "gaussian", bandwidth = {work.bandwidth} }}
[queries]
law = "design"
count = {QUERIES}
[run]
replicates = {replicates}
estimator = "plain"
moments = "aggregate"
""")
    run_program(program, "run", scenario, "--backend", "cpu", "--threads", str(threads), "--out", out)
    rate = figures(program, os.path.join(out, "summary.json"), lambda summary: summary["conditions"][0]["weights_per_second"])
    shutil.rmtree(out)
    return rate


TABLES = {"given_x": "given", "whole_job": "whole"}


def measure_threads(arguments, threads, bench, headlab, seconds, parent):
    """Everything with one number of threads, in a process of its own: libraries read theirs once."""
    begin = time.monotonic()
    timer, typical = (processor_seconds, max) if arguments.processor_time else (timed, statistics.median)
    tables = {"given_x": "given"} if arguments.processor_time else TABLES

    def alive():
        if os.getppid() != parent:
            raise Stop("its parent is gone")
    left_out, versions = {}, {}
    peers = []
    for peer in PEERS:
        try:
            for module in peer[1]:
                versions[module] = importlib.import_module(module).__version__
            peers.append(peer)
        except Exception as error:  # an installation that is broken is left out as well
            left_out[peer[0]] = reason_of(error)
    if not peers:
        raise Stop(f"no peer is installed ({'; '.join(sorted(set(left_out.values())))}): {INSTALL}")
    import numpy as np
    if "torch" in versions:
        importlib.import_module("torch").set_num_threads(threads)
    if "pykeops" in versions:
        importlib.import_module("pykeops").set_verbose(False)
    rows, variants = [], {name: choices for name, _, _, choices in peers}
    with tempfile.TemporaryDirectory(prefix="peers.") as scratch:
        for position, k in enumerate(arguments.dims):
            work = Work(np, k, (arguments.replicates or 4) // 4 * 4 or 4)
            runners = {}
            print(f"peers.py: {threads} threads, d_k {k}", file=sys.stderr, flush=True)
            for peer in peers:
                alive()
                try:
                    runners[peer[0]] = tuned(np, peer[2], variants[peer[0]], work, threads, min(0.1, arguments.each / 2), timer)
                    if arguments.quick:  # what is fastest for the first d_k has to do for the others
                        variants[peer[0]] = [runners[peer[0]][1]]
                except Exception as error:  # named, and the others go on
                    left_out[f"{peer[0]}, d_k {k}"] = reason_of(error)
            samples = {table: {name: [] for name in ["headlab", *runners]} for table in tables}
            for round_number in range(arguments.rounds):
                alive()
                started = time.monotonic()
                for table, what in tables.items():
                    samples[table]["headlab"].append(
                        headlab_given_x(bench, k, threads, arguments.each, scratch, timer) if table == "given_x" else
                        headlab_whole_job(headlab, work, threads, 128 if arguments.quick else 512, scratch))
                    for name, (runner, _, _) in runners.items():
                        samples[table][name].append(work.weights / timer(lambda: runner.run(what), arguments.each))
                # Another round only if the dimensions to come get as much.
                spent, share = time.monotonic() - begin, seconds * (position + 1) / len(arguments.dims)
                if spent + time.monotonic() - started > share:
                    break
            for table in tables:
                mine = typical(samples[table]["headlab"])
                row = {"table": table, "threads": threads, "d_k": k, "rounds": round_number + 1, "headlab": mine, "peers": []}
                for name, (_, variant, error) in runners.items():
                    rate = typical(samples[table][name])
                    row["peers"].append({"name": name, "rate": rate, "headlab_times": mine / rate, "relative_error": error,
                                         "variant": variant})
                row["times_best_peer"] = min((p["headlab_times"] for p in row["peers"] if p["name"] != "headlab.nw"), default=None)
                rows.append(row)
            for runner, _, _ in runners.values():
                runner.close()
    return rows, left_out, versions


def measure(arguments):
    if arguments.processor_time and arguments.threads != [1]:
        raise Stop("--processor-time is of one thread: write --threads 1")
    bench, headlab = find_bench(arguments.bench), find_headlab(arguments.headlab)
    report = {"machine": machine(), "dims": arguments.dims, "threads": arguments.threads, "versions": {}, "left_out": {}, "rows": []}
    use_processors(max(arguments.threads))  # or it stops here
    for threads in arguments.threads:
        use_processors(threads)
        # A fresh process, not a fork: it reads the number of threads from its environment.
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            try:
                rows, left_out, versions = process.submit(measure_threads, arguments, threads, bench, headlab,
                                                          arguments.seconds / len(arguments.threads), os.getpid()).result()
            except concurrent.futures.process.BrokenProcessPool as error:
                raise Failed(f"the process with {threads} threads died") from error
        report["rows"] += rows
        report["versions"] = versions
        for name, why in left_out.items():
            report["left_out"][f"{name}, {threads} threads"] = why
    report["table"] = table_of(report)
    return report


def table_of(report):
    """For each number of threads: rates by peer and d_k, and by how much headlab is faster."""
    titles = {"given_x": "projection and means from given X", "whole_job": "whole jobs, plain estimator, drawing X and Y too"}
    lines = [f"{report['machine']['processor']}; " + ", ".join(f"{name} {version}" for name, version in report["versions"].items()),
             "1e9 weights/s, and in parentheses how many times as fast headlab is"]
    for table, title in titles.items():
        for threads in report["threads"]:
            rows = {row["d_k"]: row for row in report["rows"] if row["table"] == table and row["threads"] == threads}
            if not rows:
                continue
            lines += ["", f"{title}, {threads} thread{'s' if threads > 1 else ''}",
                      f"{'d_k':20}" + "".join(f"{k:17}" for k in rows) + "   error"]
            lines.append(f"{'headlab':20}" + "".join(f"{row['headlab'] / 1e9:8.3f}         " for row in rows.values()))
            for name, *_ in PEERS:
                found = {k: peer for k, row in rows.items() for peer in row["peers"] if peer["name"] == name}
                if found:
                    cells = (f"{found[k]['rate'] / 1e9:8.3f} ({found[k]['headlab_times']:5.2f})" if k in found else f"{'-':>8}        "
                             for k in rows)
                    lines.append(f"{name:20}" + " ".join(cells) + f"   {max(p['relative_error'] for p in found.values()):.0e}")
            best = (f"{row['times_best_peer']:15.2f} x" if row["times_best_peer"] else f"{'-':>17}" for row in rows.values())
            lines.append(f"{'fastest peer':18}" + "".join(best))
    return lines + [f"left out: {name}: {why}" for name, why in report["left_out"].items()]
