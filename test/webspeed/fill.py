"""fill.py DB < TRIALS

Writes an Optuna storage with one study of the trials on standard input, one JSON object a line:
  number, state ("complete", "fail", "pruned"), value or null, start and end (seconds since 1970)
  knobs   {name: value}; one that is not set gets the value SGLang takes then, so that all trials have all parameters
  series  ten throughput windows, which become intermediate values
  facts   what sgtune's list of trials shows, as user attributes
Optuna stores a trial at a time: 10,000 take minutes."""
import datetime
import json
import os
import sys

import optuna
import sqlalchemy
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

SPACE = {
    "mem-fraction-static": FloatDistribution(0.80, 0.95, step=0.01),
    "hicache-size": IntDistribution(0, 48, step=8),
    "chunked-prefill-size": IntDistribution(2048, 16384, log=True),
    "max-running-requests": IntDistribution(64, 256, log=True),
    "cuda-graph-max-bs": IntDistribution(64, 256, log=True),
    "schedule-conservativeness": FloatDistribution(0.3, 1.3, step=0.1),
    "schedule-policy": CategoricalDistribution(["fcfs", "lpm"]),
    "hicache-write-policy": CategoricalDistribution(["write_through", "write_back"]),
}
UNSET = {
    "mem-fraction-static": 0.85, "hicache-size": 0, "chunked-prefill-size": 8192, "max-running-requests": 128,
    "cuda-graph-max-bs": 128, "schedule-conservativeness": 1.0, "schedule-policy": "fcfs", "hicache-write-policy": "write_through",
}
STATES = {"complete": TrialState.COMPLETE, "fail": TrialState.FAIL, "pruned": TrialState.PRUNED}


def utc(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).replace(tzinfo=None)


def trial(t):
    knobs = {name: t["knobs"].get(name, value) for name, value in UNSET.items()}
    for name, space in SPACE.items():
        if isinstance(space, IntDistribution):
            knobs[name] = int(knobs[name])
    return FrozenTrial(
        number=t["number"], trial_id=t["number"], state=STATES[t["state"]], value=t["value"], datetime_start=utc(t["start"]),
        datetime_complete=utc(t["end"]), params=knobs, distributions=SPACE, user_attrs=t["facts"], system_attrs={},
        intermediate_values={10 * (i + 1): v for i, v in enumerate(t["series"])},
    )


@sqlalchemy.event.listens_for(sqlalchemy.engine.Engine, "connect")
def unsafe(connection, _):
    connection.execute("PRAGMA synchronous = OFF")  # a file that is not finished is thrown away
    connection.execute("PRAGMA journal_mode = MEMORY")


path = sys.argv[1]
optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(storage=f"sqlite:///{path}.part", study_name="night", direction="maximize")
study.set_metric_names(["output_tok_s"])
study.add_trials([trial(json.loads(line)) for line in sys.stdin])
os.rename(path + ".part", path)
