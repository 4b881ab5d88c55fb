#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cluster_model.py: what a large study takes on a large cluster, by formula and by simulation.

Prints the tables of docs/measured/clusters.md: for shards the mean and the longest time of a shard on nodes that are
preempted, for MPI the efficiency of ranks that one process deals blocks to. Exit code 1 where formula and simulation
differ by more than they may. With --wrong the formulas get wrong constants, and the check has to fail.

Constants were measured on one machine (docs/measured/clusters.md).
"""
import argparse
import heapq
import math
import random
import sys

START = 0.03  # s, start of a shard
MERGE = 0.0046  # s, of each shard of 0.6 MB
CHECKPOINT = 0.05  # s, to write a shard of 2.6 MB
INTERVAL = 60.0  # s, between checkpoints
DEAL = 20e-6  # s, of rank 0 for a block of 2 heads and one query
RATE = 0.28e9  # kernel weights a second and thread
THREADS = 64  # of a node
BYTES = 589824  # of a shard


def shard_mean(work, rate, restart):
    """Mean time of a shard of `work` seconds, preempted at `rate` a second, back after `restart` seconds."""
    alone = START + work * (1 + CHECKPOINT / INTERVAL)
    # A preemption costs what came after the last checkpoint, half an interval, and the way back.
    return alone * (1 + rate * (min(INTERVAL, work) / 2 + restart + START))


def most_preemptions(mean, shards):
    """The number that less than one of the shards is expected to exceed: Poisson."""
    tail, term, most = 1 - math.exp(-mean), math.exp(-mean), 0
    while shards * tail > 1:
        most += 1
        term *= mean / most
        tail -= term
    return most


def shard_bound(work, rate, restart, shards):
    """A time that no shard is expected to exceed."""
    alone = START + work * (1 + CHECKPOINT / INTERVAL)
    mean = shard_mean(work, rate, restart)
    return alone + most_preemptions(rate * mean, shards) * (min(INTERVAL, work) + restart + START)


def simulate_shard(work, rate, restart, draw):
    """Time of one shard, checkpoint after checkpoint."""
    time, done = START, 0.0
    while True:
        step = min(INTERVAL, work - done)
        write = CHECKPOINT if done + step < work else 0
        failure = draw.expovariate(rate) if rate > 0 else math.inf
        if failure >= step + write:
            time += step + write
            done += step
            if done >= work - 1e-9:
                return time
        else:
            time += failure + restart + START


def deal_efficiency(workers, block):
    return min(1.0, block / (DEAL * workers))


def simulate_deal(workers, block, blocks_each, deal):
    """Share of the time that workers, each with two blocks at once, are busy; rank 0 takes `deal` for a block."""
    free = [0.0] * workers  # when a worker has done what it has
    returned = [(block * (1 + i / workers), i) for i in range(workers)]  # (moment, worker)
    heapq.heapify(returned)
    left, dealer, busy = workers * blocks_each, 0.0, 0.0
    for i in range(workers):
        free[i] = returned[0][0]
    for moment, i in returned:
        free[i] = moment + block  # the second block
        busy += 2 * block
    while left > 0 and returned:
        moment, i = heapq.heappop(returned)
        dealer = max(dealer, moment) + deal
        left -= 1
        begin = max(free[i], dealer)
        heapq.heappush(returned, (free[i], i))  # the block under way returns
        free[i] = begin + block
        busy += block
    return busy / (workers * max(free))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--wrong", action="store_true")
    wrong = parser.parse_args().wrong
    draw = random.Random(1)
    faults = 0

    print("shards: 10^9 replicates of 10^9 kernel weights on 10^4 nodes of 64 threads")
    print("| shards | work [s] | preempted | mean [s] | simulated | bound of the longest [s] | simulated | merge [s] |"
          " files [GB] |")
    print("|---|---|---|---|---|---|---|---|---|")
    total = 1e9 * 1e9 / (RATE * THREADS)  # seconds of one node
    for shards, hours in ((10000, math.inf), (10000, 100), (10000, 1), (100000, 1)):
        work, rate, restart = total / shards, (0 if hours == math.inf else 1 / (3600 * hours)), 30.0
        mean = shard_mean(work, 0 if wrong else rate, restart)
        bound = shard_bound(work, rate, restart, shards)
        times = [simulate_shard(work, rate, restart, draw) for _ in range(shards)]
        seen = sum(times) / shards
        faults += abs(seen / mean - 1) > 0.01
        faults += max(times) > 1.05 * bound
        often = "never" if hours == math.inf else f"every {hours} h"
        print(f"| {shards} | {work:.1f} | {often} | {mean:.1f} | {seen:.1f} | {bound:.0f} | {max(times):.0f} |"
              f" {shards * MERGE:.0f} | {shards * BYTES / 1e9:.1f} |")

    print("\nMPI: ranks that rank 0 deals blocks to, a block of 7 ms or of 1 s on one thread")
    print("| threads on other ranks | block [s] | efficiency | simulated |")
    print("|---|---|---|---|")
    for workers, block in ((16, 0.007), (64, 0.007), (256, 0.007), (1024, 0.007), (1024, 1.0), (16384, 1.0)):
        formula = deal_efficiency(workers, 2 * block if wrong else block)
        seen = simulate_deal(workers, block, 60, DEAL)
        faults += abs(seen - formula) > 0.05
        print(f"| {workers} | {block} | {formula:.2f} | {seen:.2f} |")
    print(f"\n{faults} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
