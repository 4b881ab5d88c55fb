# SPDX-License-Identifier: Apache-2.0
"""Tables of docs/gpu.md from the report of tools/check/gpu-check: measured rates next to predicted ones."""
import json

from common import Stop

LANES, EXPONENTIALS = 128, 16  # issue slots and exponentials of a multiprocessor of compute capability 9.0 in a clock


def read_report(path):
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    except (OSError, ValueError) as error:
        raise Stop(f"{path}: no report of gpu-check can be read from it ({error})") from error
    if not isinstance(report, dict) or report.get("format") != 1 or not isinstance(report.get("stages"), dict):
        raise Stop(f"{path}: not a report of gpu-check")
    return report


def read_reports(paths):
    """One report, or those of the parts of one check, put together: later ones replace earlier stages."""
    together = read_report(paths[0])
    for path in paths[1:]:
        report = read_report(path)
        if report.get("commit") != together.get("commit"):
            raise Stop(f"{path}: of commit {report.get('commit')}, {paths[0]} of {together.get('commit')}")
        report["stages"] = {**together["stages"], **report["stages"]}
        together = report
    return together


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def tera(rate):
    return f"{rate / 1e12:.2f}" if rate is not None else "-"


def micro(seconds):
    return f"{1e6 * seconds:.1f}" if seconds is not None else "-"


def stage_rows(report, name):
    return report["stages"].get(name, {}).get("rows", [])


def predicted(report, kernels, row):
    """Weights a second where every slot is used and nothing waits; None where no slots are counted for the GPU."""
    slots = next((r["slots"] for r in report.get("slots", [])
                  if r["kind"] == row["estimator"] and r["form"] == row.get("form") and row["d_k"] in r["d_k"] and "keys" not in r),
                 None)
    if slots is None or kernels.get("capability") != 90:
        return None
    return kernels["multiprocessors"] * kernels["highest_clock_hz"] * min(EXPONENTIALS, LANES / slots)


def of_stages(report):
    rows = []
    for name, stage in report["stages"].items():
        clock = stage.get("clocks_seen", {}).get("sm_clock_mhz")
        rows.append([f"`{name}`", stage["status"], stage["seconds"], f"{clock['median']:.0f} ({clock['lowest']:.0f} to {clock['highest']:.0f})" if clock else "-",
                     stage.get("why", "")])
    return table(["stage", "status", "seconds", "SM clock [MHz], median (range)", "reason"], rows)


def of_accuracy(report):
    cases = report["stages"].get("agreement", {}).get("accuracy", {})
    rows = [[case, ", ".join(f"{name} {value}" for name, value in found.items())] for case, found in cases.items()]
    return ["Errors of the comparisons:", "", *table(["test", "errors"], rows)] if rows else []


def of_compared_kernels(report):
    rows = [[r["form"], r["keys"], r["sums"], r["passes"], r["compared"], r["queries"], r["unbounded_queries"], r["fallback_queries"], f"{r['error_over_tolerance']:.2g}",
             f"{r['relative_error']:.1e}", r["case"]] for r in report["stages"].get("agreement", {}).get("kernels", [])]
    if not rows:
        return []
    return ["Kernels that were compared with `reference`, replicate by replicate; the largest error in tolerances, which are bounds of rounding, "
            "and its case; and the largest error relative to the largest statistic of its kind:", "",
            *table(["form", "keys", "sums", "passes", "replicates", "queries", "without a bound", "on the slow path", "error / tolerance", "relative error", "case"], rows)]


def of_kernels(report):
    kernels, jobs = (report["stages"].get(name, {}) for name in ("kernels", "jobs"))
    one = kernels if kernels.get("rows") else jobs
    of_job = {(r["d_k"], r["estimator"], r["moments"]): r for r in stage_rows(report, "jobs")}
    steps = ("draw", "project", "weigh", "collect", "fallback", "moments")
    rows = []
    for row in stage_rows(report, "kernels") or list(of_job.values()):
        key = (row["d_k"], row["estimator"], row["moments"])
        job = of_job.get(key, {})
        rows.append([*key, row.get("form", "-"), tera(predicted(report, one, row)), tera(row.get("fused")),
                     f"{row['fused_percent']:.0f}" if "fused_percent" in row else "-", tera(job.get("job")),
                     f"{job['job_percent']:.0f}" if job else "-", tera(row["limit"]), row.get("binds", "-"),
                     *(micro(row.get(step + "_seconds")) for step in (*steps, "read"))])
    if not rows:
        return []
    return [f"n = {one['n']}, H = {one['heads']}, {one['queries']} queries, jobs of {one['replicates']} replicates; rates in 10^12 weights per "
            "second; predicted from counted slots; times of a batch in microseconds, the last of projection and fused kernel where keys are "
            "read though they could be projected as they are weighed:", "",
            *table(["d_k", "estimator", "moments", "form", "predicted", "fused", "% of limit", "job", "% of limit", "limit", "binds",
                    "draw", "projection", "fused", "collect", "fallback", "statistics", "keys read"], rows)]


def of_jobs(report):
    jobs = report["stages"].get("jobs", {})
    lines = []
    rows = [[s["n"], s["queries"], s["d_k"], s["estimator"], s["replicates"], f"{s['job_seconds']:.3f}", f"{s['job'] / 1e12:.3f}"]
            for s in jobs.get("shapes", [])]
    if rows:
        lines += ["Jobs of other sizes:", "", *table(["n", "queries", "d_k", "estimator", "replicates", "seconds", "10^12/s"], rows)]
    sweep = jobs.get("sweep")
    if sweep:
        lines += ["", f"A sweep of {sweep['conditions']} small conditions (n = {sweep['n']}, {sweep['queries']} queries, {sweep['replicates']} "
                  f"replicates) took {sweep['seconds']:.3f} s, {1e3 * sweep['seconds'] / sweep['conditions']:.2f} ms each."]
    fit = jobs.get("fit")
    if fit:
        lines += ["", f"Learned heads: {fit['steps']} steps of {fit['batch']} queries (n = {fit['n']}, d = {fit['d']}, H = {fit['heads']}, "
                  f"d_k = {fit['d_k']}) took {fit['seconds']:.3f} s."]
    return lines


def of_peers(report):
    peers = report["stages"].get("peers", {})
    rows = []
    for row in stage_rows(report, "peers"):
        for peer in row["peers"]:
            took = f" (took {' or '.join(peer['backend'])})" if peer.get("backend") else ""
            rows.append([row["estimator"], row["d_k"], tera(row["headlab"]), peer["name"] + took, f"{peer['rate'] / 1e12:.4f}", f"{peer['headlab_times']:.1f}",
                         f"{peer['relative_error']:.0e}"])
    if not rows:
        return []
    return [f"Given X ({peers['headlab_work']}), PyTorch {peers['torch']}, {peers['rounds']} rounds, 10^12 weights per second:", "",
            *table(["estimator", "d_k", "headlab", "peer", "peer's rate", "headlab is faster by", "peer's error"], rows),
            *(["", *(f"- left out: {why}" for why in peers["left_out"])] if peers.get("left_out") else [])]


def of_stack(report):
    rows = stage_rows(report, "stack")
    if "stack" not in report["stages"].get("stack", {}):
        return []
    ours = rows[0]["replicates_per_second"]
    lines = [[row["backend"], row.get("threads", "-"), "a whole run" if row.get("run") else "warm",
              f"{row['replicates_per_second']:.0f}", f"{ours / row['replicates_per_second']:.1f}"] for row in rows]
    sizes = report["stages"]["stack"]["stack"]
    return [f"A stack of {sizes['layers']} layers with metrics (n = {sizes['n']}, d = {sizes['d']}, H = {sizes['heads']}, d_k = {sizes['d_k']}):", "",
            *table(["backend", "threads", "timed", "replicates a second", "warm cuda is faster by"], lines),
            *(f"\nLeft out: {why}." for why in report["stages"]["stack"].get("left_out", []))]


def of_counters(report):
    rows = []
    for row in stage_rows(report, "counters"):
        if row["status"] == "passed":
            pipes = ", ".join(f"{pipe} {100 * share:.0f}" for pipe, share in row["pipes"].items())
            rows.append([row["kind"], row["d_k"], row.get("form", "-"), row.get("counted_slots", "-"), row["slots"],
                         row.get("dram_bytes_per_weight", "-"), pipes or "-"])
    if not rows:
        return []
    return ["Counters of one launch, per weight and lane:", "",
            *table(["kind", "d_k", "form", "slots in the machine code", "slots issued", "DRAM bytes", "share of issued instructions by pipe [%]"], rows)]


def gpu_tables(report):
    """Lines of the page. A stage without figures has no table."""
    try:
        devices = report["machine"]["devices"]
        driver = ", driver " + devices[0]["driver"] if isinstance(devices, list) else ""
        parts = [[f"{report['started'][:10]}, commit {report['commit']}, {report['devices_used']}{driver}."], of_stages(report),
                 of_kernels(report), of_jobs(report), of_stack(report), of_counters(report), of_peers(report), of_accuracy(report),
                 of_compared_kernels(report)]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise Stop(f"the report of gpu-check is damaged ({type(error).__name__}: {error})") from error
    lines = []
    for part in filter(None, parts):
        lines += ["", *part] if lines else part
    return lines
