"""check.py finds what is wrong with an optimizer. usage: check_test.py (the first part of `make test-search`)"""
import argparse, os, sys, tempfile, unittest

import check
import runner

SPACE = [
    {"name": "mem_fraction_static", "type": "float", "low": 0.8, "high": 0.95, "step": 0.005},
    {"name": "hicache_size", "type": "int", "low": 0, "high": 300, "step": 1},
    {"name": "page_size", "type": "cat_ord", "choices": [1, 16]},
    {"name": "enable_mixed_chunk", "type": "cat", "choices": [False, True]},
]
GOOD = {"mem_fraction_static": 0.885, "hicache_size": 50, "page_size": 1, "enable_mixed_chunk": False}
FACTS = {"tp": 4, "host_budget_gb": 200}

# answers what it is told to in its argument, one line a request, whatever the request is
ECHO = "import sys\nfor line in sys.stdin:\n    print(sys.argv[1] if 'init' not in line else '{\"ok\":true}', flush=True)\n"


class Replies(unittest.TestCase):
    def setUp(self):
        self.p = check.Strict.__new__(check.Strict)
        self.p.space, self.p.facts = {p["name"]: p for p in SPACE}, FACTS

    def test_good(self):
        for op, reply in (
            ("init", {"ok": True}),
            ("suggest", {"config": GOOD}),
            ("suggest", {"config": GOOD, "measure_frac": 0, "abort_below": 12.5, "abort_frac": 0.3}),
            ("suggest", {"stop": True}),
            ("recommend", {"config": GOOD}),
            ("recommend", {"config": None}),
        ):
            self.assertIsNone(self.p.wrong(op, reply), (op, reply))

    def test_malformed(self):
        for name, op, reply in (
            ("not acknowledged", "observe", {}),
            ("nothing proposed", "suggest", {"config": None}),
            ("no recommendation at all", "recommend", {}),
            ("a knob missing", "suggest", {"config": {k: v for k, v in GOOD.items() if k != "page_size"}}),
            ("a knob of its own", "suggest", {"config": dict(GOOD, tp_size=8)}),
            ("dashes", "suggest", {"config": {k.replace("_", "-"): v for k, v in GOOD.items()}}),
            ("above the range", "suggest", {"config": dict(GOOD, mem_fraction_static=0.96)}),
            ("between two steps", "suggest", {"config": dict(GOOD, mem_fraction_static=0.8825)}),
            ("a fraction of a whole number", "suggest", {"config": dict(GOOD, hicache_size=10.5)}),
            ("text for a number", "suggest", {"config": dict(GOOD, hicache_size="50")}),
            ("no choice", "suggest", {"config": dict(GOOD, page_size=8)}),
            ("a number for a boolean", "suggest", {"config": dict(GOOD, enable_mixed_chunk=0)}),
            ("a boolean for a number", "suggest", {"config": dict(GOOD, page_size=True)}),
            ("above the host budget", "suggest", {"config": dict(GOOD, hicache_size=51)}),
            ("an export above the host budget", "recommend", {"config": dict(GOOD, hicache_size=51)}),
            ("a window above 1", "suggest", {"config": GOOD, "measure_frac": 1.5}),
            ("a window below a tenth", "suggest", {"config": GOOD, "measure_frac": 0.05}),
            ("a negative bound", "suggest", {"config": GOOD, "abort_below": -1}),
        ):
            self.assertIsNotNone(self.p.wrong(op, reply), name)


class Processes(unittest.TestCase):
    def ask(self, answer):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "echo.py")
            with open(path, "w") as f:
                f.write(ECHO)
            p = check.Strict("'%s' '%s' '%s'" % (sys.executable, path, answer))
            try:
                p.call({"op": "init", "space": SPACE, "facts": FACTS})
                return p.call({"op": "observe", "obs": {}})
            finally:
                p.close()
                p.p.stdout.close()

    def test_answers(self):
        self.assertEqual(self.ask('{"ok":true}'), {"ok": True})

    def test_other_lines_are_refused(self):
        for answer in ("starting", "", '{"ok":true', "[]", '{"error":"no"}'):
            with self.assertRaises(runner.Failed, msg=answer):
                self.ask(answer)


class Bars(unittest.TestCase):
    def run_of(self, regret=0.02, **more):
        d = {"scn": "a", "seed": 1, "rows": [["ok", 10.0, regret, 0.9]], "suggests": 1, "cpu_s": 0.01, "crash": 0, "host_oom": 0, "rec_stage": "ok", "rec_p_oom": 0.0}
        return dict(d, **more)

    def broken(self, plain, hidden=None, again=None):
        a = argparse.Namespace(max_regret=9, max_crash=2, max_cpu=0.1, budget=30)
        return check.broken(a, [plain], [hidden or self.run_of()], again or plain)

    def test_all_met(self):
        self.assertEqual(self.broken(self.run_of()), [])

    def test_each(self):
        for name, args in (
            ("regret", (self.run_of(0.10),)),
            ("host", (self.run_of(host_oom=1),)),
            ("fails to start", (self.run_of(rec_stage="graph_oom"),)),
            ("fails under load", (self.run_of(rec_p_oom=0.03),)),
            ("crashes", (self.run_of(crash=3),)),
            ("cpu", (self.run_of(cpu_s=0.2),)),
            ("disguised regret", (self.run_of(), self.run_of(0.13))),
            ("disguised failure", (self.run_of(), self.run_of(rec_p_oom=0.03))),
            ("not repeatable", (self.run_of(), None, self.run_of(0.03))),
        ):
            self.assertEqual(len(self.broken(*args)), 1, name)


if __name__ == "__main__":
    unittest.main()
