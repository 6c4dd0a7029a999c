"""table.py RUNS: reads measure.py's lines (RUNS/1/results.jsonl, RUNS/2/...) and each client's own report, prints one table.

Every figure is the median over the rounds; ratios are formed within a round. Columns: README.md.
After it, where ours was run: what the mock's special modes must lead to, beside what our report says."""
import glob
import json
import os
import statistics
import sys

runs = sys.argv[1]


def lines(path):
    with open(path) as f:
        return [json.loads(x) for x in f if x.lstrip().startswith("{")]


def pct(v, p):
    v = sorted(v)
    k = p / 100 * (len(v) - 1)
    i = int(k)
    return v[i] + (v[min(i + 1, len(v) - 1)] - v[i]) * (k - i)


def pair(d):
    """p50, p99 of {"p50": .., "p99": ..} (docs/report.md) or [p50, p99] (the older form)"""
    return [d.get("p50"), d.get("p99")] if isinstance(d, dict) else [*(d or []), None, None][:2]


def report(base):
    """ttft50, ttft99, itl50, itl99, tpot50 in ms and tok/s as the client says"""
    kind = os.path.basename(base).split("-")[0]
    if kind in ("sgpy", "sgrust"):
        d = lines(base + ".jsonl")[-1]
        return [d["median_ttft_ms"], d["p99_ttft_ms"], d["median_itl_ms"], d["p99_itl_ms"], d["median_tpot_ms"], d["output_throughput"]]
    if kind in ("ours", "parse", "bound"):
        if kind == "ours":
            with open(base + ".json") as f:
                d = json.load(f)
        else:
            d = lines(base + ".log")[-1]
        tok = d["output_tok_s"] if "output_tok_s" in d else d["tok_s"]
        if kind == "bound":
            return [None] * 5 + [tok]
        return [*pair(d["ttft_ms"]), *pair(d["itl_ms"]), pair(d.get("tpot_ms"))[0] or None, tok]
    if kind == "aiperf":
        with open(base + ".art/profile_export_aiperf.json") as f:
            d = json.load(f)
        a, b = d["time_to_first_token"], d["inter_chunk_latency"]
        return [a["p50"], a["p99"], b["p50"], b["p99"], d["inter_token_latency"]["p50"], d["output_token_throughput"]["avg"]]
    if kind == "infperf":
        with open(base + ".inf/summary_lifecycle_metrics.json") as f:
            d = json.load(f)["successes"]
        lat = d["latency"]
        g = lambda k, p: lat[k][p] * 1e3
        return [g("time_to_first_token", "median"), g("time_to_first_token", "p99"), g("inter_token_latency", "median"),
                g("inter_token_latency", "p99"), g("time_per_output_token", "median"), d["throughput"]["output_tokens_per_sec"]]
    if kind == "evalscope":
        path = glob.glob(base + ".art/*/mock/*/benchmark_percentile.json")[0]
        with open(path) as f:
            d = {x["Percentiles"]: x for x in json.load(f)}
        with open(path.replace("percentile", "summary")) as f:
            s = json.load(f)
        return [d["50%"]["TTFT (ms)"], d["99%"]["TTFT (ms)"], d["50%"]["ITL (ms)"], d["99%"]["ITL (ms)"], d["50%"]["TPOT (ms)"], s["Output Throughput (tok/s)"]]
    if kind == "grill":  # its TTFT and TPOT are per request, ITL is not kept
        d = [x for x in lines(base + ".jsonl") if x["success"]]
        t, q = [x["ttft_s"] * 1e3 for x in d], [x["tpot_s"] * 1e3 for x in d]
        return [pct(t, 50), pct(t, 99), None, None, pct(q, 50), sum(x["completion_tokens"] for x in d) / max(x["e2e_latency_s"] for x in d)]
    if kind == "guidellm":  # its "inter token latency" is a per-request mean, that is, TPOT
        with open(base + ".json") as f:
            m = json.load(f)["benchmarks"][0]["metrics"]
        q = lambda k, p: m[k]["successful"]["percentiles"][p]
        return [q("time_to_first_token_ms", "p50"), q("time_to_first_token_ms", "p99"), None, None, q("inter_token_latency_ms", "p50"),
                m["output_tokens_per_second"]["successful"]["mean"]]
    raise KeyError(kind)


rounds = []  # one {label: row} a round
for path in sorted(glob.glob(os.path.join(runs, "*", "results.jsonl"))):
    rounds.append((os.path.dirname(path), {r["label"]: r for r in lines(path)}))
sub = lambda a, b: None if a is None or b is None else a - b
div = lambda a, b: None if not a or not b or a != a or b != b else a / b
num = lambda x, n=1: "-" if x is None or x != x else f"{x:.{n}f}"
split = lambda label: label.split("-", 1)


def tiny(rows, label):
    kind, load = split(label)
    return rows.get(kind + ("-gtiny" if load[0] == "g" else "-tiny"))


def cost(rows, label):
    """CPU seconds per 1M tokens without start-up; NaN: too short to tell from start-up; None: no such run"""
    r, t = rows.get(label), tiny(rows, label)
    if not r or not t or r["rc"] or r["tokens"] <= 1000:
        return None
    work = r["cpu_total"] - t["cpu_total"]
    if work < 0.15 * t["cpu_total"]:  # start-up varies by about that much: no figure
        return float("nan")
    return work / r["tokens"] * 1e6


def med(v):
    v = [x for x in v if x is not None and x == x]
    return statistics.median(v) if v else None


def figures(folder, rows, label):
    r, load = rows[label], split(label)[1]
    peer = "sgrust-" + load if rows.get("sgrust-" + load, {}).get("rc") == 0 else "bound-" + load
    ref = rows.get(peer) or {}
    try:
        c = report(os.path.join(folder, label))
    except Exception as e:  # a client that failed to report is shown, not hidden
        c = [None] * 6
        print(f"# {label}, round {os.path.basename(folder)}: no report ({e!r})", file=sys.stderr)
    tt, il, busy = r["true_ttft"], r["true_itl"], load in ("max", "gmax")
    err = [None] * 4 if busy else [sub(c[0], tt[0]), sub(c[1], tt[1]), sub(c[2], il[0]), sub(c[3], il[1])]
    mine = cost(rows, label)
    return [r["tokens"], mine, div(mine, cost(rows, peer)), tiny(rows, label)["cpu_total"], r["rss_mb"], r["server_tok_s"],
            div(r["server_tok_s"], ref.get("server_tok_s")), *err, None if busy else c[4],
            None if busy else il[1], None if busy else div(il[1], (ref.get("true_itl") or [0, 0])[1])]


head = ["run", "tokens", "cpu/Mtok", "x", "start_s", "rss_MB", "tok/s", "x_tok", "ttft50_err", "ttft99_err", "itl50_err", "itl99_err", "tpot50", "srv_itl99", "x_srv"]
places = [0, 2, 2, 2, 0, 0, 2, 1, 1, 1, 1, 2, 1, 2]
all_labels = sorted({x for _, rows in rounds for x in rows if not split(x)[1].startswith("x_") and not split(x)[1].endswith("tiny")})
order = lambda s: (s[0] == "g", "max" not in s, int(s.lstrip("gc") or 0) if s.lstrip("gc").isdigit() else 0)
print(f"median of {len(rounds)} round(s)")
print(" ".join(f"{h:>10}" if i else f"{h:<16}" for i, h in enumerate(head)))
for load in sorted({split(x)[1] for x in all_labels}, key=order):
    table = []
    for label in (x for x in all_labels if split(x)[1] == load):
        good = [figures(f, rows, label) for f, rows in rounds if cost(rows, label) is not None]
        lost = sum(1 for _, rows in rounds if label in rows) - len(good)
        if lost:
            print(f"# {label}: {lost} round(s) failed, see {label}.log and .mock", file=sys.stderr)
        if good:
            table.append((label, [med(v) for v in zip(*good)]))
    for label, v in sorted(table, key=lambda x: (x[1][1] is None, x[1][1] or 0)):
        print(" ".join([f"{label:<16}"] + [f"{num(x, p):>10}" for x, p in zip(v, places)]))
    print()


def at(d, *keys):
    for k in keys:
        d = d.get(k) if isinstance(d, dict) else None
    return d


def checks(folder, rows):
    for path in sorted(glob.glob(os.path.join(folder, "ours-x_*.expect"))):
        label = os.path.basename(path)[:-7]
        want, r = lines(path)[0], rows.get(label, {})
        try:
            with open(path[:-7] + ".json") as f:
                d = json.load(f)
        except (OSError, ValueError) as e:
            print(f"# {label}: no report ({e!r})", file=sys.stderr)
            d = {}
        lag = at(d, "client", "send_lag_ms", "p99")
        client = {"sent": at(d, "requests", "sent"), "ok": at(d, "requests", "ok"), "failed": at(d, "requests", "failed"), "tokens": at(d, "tokens", "got"),
                  "peak": at(d, "concurrency", "peak"), "itl_max": at(d, "itl_ms", "max"), "ttft_p99": at(d, "ttft_ms", "p99"), "send_lag_p99": lag, "rate": None}
        mock = {"sent": r.get("started"), "ok": r.get("requests"), "failed": r.get("injected"), "tokens": r.get("tokens"), "peak": r.get("peak_c"),
                "itl_max": r.get("true_itl_max"), "ttft_p99": (r.get("true_ttft") or [None] * 2)[1], "rate": r.get("req_s")}
        for k, w in want.items():
            c, m = client[k], mock.get(k)
            shown = w
            if k == "rate":  # a Poisson schedule of n requests lasts n/rate only on average; the bar is against the drawn one
                verdict = "a draw of 10,000 varies by 1%"
            elif c is None and not (k == "failed" and d):
                verdict = "missing"
            elif k in ("itl_max", "ttft_p99"):  # w: allowed difference to the mock's truth
                shown, verdict = f"mock +-{w} ms", "ok" if m is not None and abs(c - m) <= w else "DIFFERS"
            elif k == "send_lag_p99":
                shown, verdict = f"<= {w} ms", "ok" if c <= w else "TOO LATE"
            else:
                if k == "failed":
                    c = {x: n for x, n in (c or {}).items() if n}
                verdict = "ok" if c == w else "DIFFERS"
            cell = lambda x: "-" if x is None else json.dumps(x) if isinstance(x, dict) else f"{x:.2f}" if isinstance(x, float) else str(x)
            yield [label[7:], k, cell(shown), cell(c), cell(m), verdict]


got = [x for f, rows in rounds for x in checks(f, rows)]
if got:
    print("checks of ours: what the mock's modes must lead to, what our report says, what the mock counted")
    for row in [["check", "item", "expected", "ours", "mock", ""]] + got:
        print(" ".join(f"{x:<{w}}" for x, w in zip(row, (12, 14, 22, 22, 12, 8))).rstrip())
