#!/usr/bin/env python3
"""Check an optimizer over the line protocol on a few fresh seeds: strict replies, and loose bars on what it finds.
usage: check.py --cmd "sgtune suggest" [--scn FOLDER] [--seeds 2] [--seed0 1000] [--max-regret 9] [--max-crash 2] [--max-cpu 0.1]

Stricter than runner.py, which snaps and ignores what it can: here every line on stdout is one JSON object, every
configuration has exactly the knobs of the space with values of their types, ranges and steps, the host budget is
kept by every proposal and recommendation, and a reply comes within a minute. The same problem is asked again at the end and
must get the same answers; each scenario runs once more behind disguise.py. Standard library only.
Exit 0: all bars are met; 1: one is not, or a reply is malformed; 2: no scenario found."""
import argparse, json, os, shlex, subprocess, sys, threading, time
from concurrent.futures import ThreadPoolExecutor

import runner
import score
from physics import Surface

HERE = os.path.dirname(os.path.abspath(__file__))
REPLY_S = 60
DISGUISE_POINTS = 3      # points of regret that the disguise may cost (docs/performance.md)


class Strict(runner.Proc):
    """An optimizer whose replies are held to the protocol's letter; runner.Failed says what is wrong."""

    def call(self, msg):
        if msg["op"] == "init":
            self.space, self.facts = {p["name"]: p for p in msg["space"]}, msg["facts"]
        late = threading.Timer(REPLY_S, self.p.kill)
        late.start()
        try:
            self.p.stdin.write(json.dumps(msg) + "\n")
            self.p.stdin.flush()
            line = self.p.stdout.readline()
        except OSError:
            line = ""
        finally:
            late.cancel()
        if not line:
            raise runner.Failed("%s: no reply (the optimizer ended, or took longer than %d s)" % (msg["op"], REPLY_S))
        try:
            reply = json.loads(line)
        except ValueError:
            reply = None
        if not isinstance(reply, dict):
            raise runner.Failed("%s: a line of stdout is no JSON object: %r" % (msg["op"], line[:200]))
        if "error" in reply:
            raise runner.Failed("%s: %s" % (msg["op"], reply["error"]))
        wrong = self.wrong(msg["op"], reply)
        if wrong:
            raise runner.Failed("%s: %s" % (msg["op"], wrong))
        return reply

    def wrong(self, op, r):
        """What breaks the protocol in the reply to op, or None."""
        if op in ("init", "observe", "exit"):
            return None if r.get("ok") is True else "the reply is %r, not {\"ok\":true}" % r
        if op == "suggest" and r.get("stop") is True:
            return None
        if op == "recommend" and "config" in r and r["config"] is None:
            return None
        if not isinstance(r.get("config"), dict):
            return "no config in %r" % r
        for k, low in (("measure_frac", 0.1), ("abort_frac", 0.1), ("abort_below", 0.0)):
            v = r.get(k, low)
            if not number(v) or v < 0 or k != "abort_below" and v > 1 or (0 < v < low):
                return "%s is %r" % (k, v)
        return self.wrong_config(r["config"])

    def wrong_config(self, c):
        if set(c) != set(self.space):
            return "knobs missing: %s; unknown: %s" % (sorted(set(self.space) - set(c)), sorted(set(c) - set(self.space)))
        for name, p in self.space.items():
            if not fits(p, c[name]):
                return "%s = %r does not fit %s" % (name, c[name], json.dumps(p))
        if c.get("hicache_size", 0) * self.facts["tp"] > self.facts["host_budget_gb"]:
            return "hicache_size %r x %d ranks breaks the host budget of %r GB" % (c["hicache_size"], self.facts["tp"], self.facts["host_budget_gb"])
        return None


def number(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool)


def fits(p, v):
    """Whether v is a value of the knob p: its type, range and step."""
    if p["type"] in ("cat", "cat_ord"):
        return any(v == c and isinstance(v, bool) == isinstance(c, bool) for c in p["choices"])
    if not number(v) or not p["low"] - 1e-6 <= v <= p["high"] + 1e-6:
        return False
    steps = (v - p["low"]) / p["step"] if p["type"] == "float" else float(v)
    return abs(steps - round(steps)) < 1e-3


def runs(cmd, problems, budget, note=""):
    """The runs of one optimizer process over (scenario, seed) pairs, as runner.py stores them."""
    proc, out = Strict(cmd), []
    try:
        for scn, seed in problems:
            try:
                d = runner.one(proc, scn, seed, budget, Surface)
            except (runner.Failed, KeyError, TypeError, ValueError) as e:
                raise runner.Failed("%s, seed %d: %s" % (scn["name"], seed, e))
            d["opt"] = cmd
            out.append(d)
            print("%-24s seed %-5d regret %5.1f %%, %d crashed, %.1f h, %.3f s CPU a suggestion%s"
                  % (scn["name"], seed, 100 * score.regret(d), d["crash"], score.hours(d), (d["cpu_s"] or 0) / d["suggests"],
                     note), flush=True)
    finally:
        proc.close()
    return out


def broken(a, plain, hidden, again):
    """The bars that are not met, in words."""
    m, out = score.metrics(plain), []
    if m["host"]:
        out.append("%d host OOMs: hicache_size x tp must stay within host_budget_gb" % m["host"])
    if any(score.bad(d) for d in plain + hidden):
        out.append("recommendations that fail: %s" % ", ".join("%s seed %d" % (d["scn"], d["seed"]) for d in plain + hidden if score.bad(d)))
    if m["r30"] > a.max_regret:
        out.append("mean regret after %d trials %.1f %%, allowed %.1f" % (a.budget, m["r30"], a.max_regret))
    if m["crash"] > a.max_crash:
        out.append("%.1f crashed trials a run, allowed %.1f" % (m["crash"], a.max_crash))
    if m["cpu"] > a.max_cpu:
        out.append("%.3f CPU s a suggestion, allowed %.3f" % (m["cpu"], a.max_cpu))
    h = score.metrics(hidden)
    if h["r30"] > a.max_regret + DISGUISE_POINTS:
        out.append("mean regret behind the disguise %.1f %%, allowed %.1f" % (h["r30"], a.max_regret + DISGUISE_POINTS))
    if again["rows"] != plain[0]["rows"]:
        out.append("%s seed %d asked twice got other answers the second time" % (again["scn"], again["seed"]))
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cmd", required=True)
    p.add_argument("--scn", default=os.path.join(HERE, "scenarios"))
    p.add_argument("--seeds", type=int, default=2)
    p.add_argument("--seed0", type=int, default=1000)
    p.add_argument("--budget", type=int, default=30)
    p.add_argument("--max-regret", type=float, default=9)
    p.add_argument("--max-crash", type=float, default=2)
    p.add_argument("--max-cpu", type=float, default=0.1)
    a = p.parse_args()
    start, scns = time.time(), runner.scenarios(a.scn)
    plain = [(s, k) for k in range(a.seed0, a.seed0 + a.seeds) for s in scns]
    behind = "%s %s --seed 1 --cmd %s" % (shlex.quote(sys.executable), shlex.quote(os.path.join(HERE, "disguise.py")), shlex.quote(a.cmd))
    try:
        with ThreadPoolExecutor(2) as pool:
            x = pool.submit(runs, a.cmd, plain + plain[:1], a.budget)
            y = pool.submit(runs, behind, [(s, a.seed0) for s in scns], a.budget, " (disguised)")
            (*open_, again), hidden = x.result(), y.result()
    except (runner.Failed, OSError, subprocess.SubprocessError) as e:
        print("check: %s" % e, file=sys.stderr)
        return 1
    m, h = score.metrics(open_), score.metrics(hidden)
    print("check: %d runs, mean regret %.1f %% (disguised %.1f), %.1f crashed a run, %d host OOMs, %.3f CPU s a suggestion; %.0f s"
          % (m["runs"], m["r30"], h["r30"], m["crash"], m["host"], m["cpu"], time.time() - start))
    wrong = broken(a, open_, hidden, again)
    for w in wrong:
        print("check: %s" % w, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
