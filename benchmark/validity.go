package benchmark

import (
	"fmt"
	"math"
	"time"
)

// Why a report is not to be believed, in the words of the trial's verdicts.
const (
	InvalidClientLimited  = "client_limited"
	InvalidFailedRequests = "failed_requests"
	InvalidWrongTokens    = "wrong_token_count"
	InvalidClientHung     = "client_hung"
)

// The limits of design 6: beyond them the client measures itself.
const (
	mostCPUShare  = 0.80
	mostLagOfE2E  = 0.02 // p99 send lag over median E2E
	mostLagRealMs = 10.0 // and in real time
	mostFailed    = 0.05 // share of requests
)

// leastBusy is the shortest measured part, in real time, whose CPU share means anything: in a shorter one the
// requests themselves are most of it, whatever the server does.
const leastBusy = 200 * time.Millisecond

// judge sets Valid, and otherwise what is wrong and what to do. Failures come before the client's limits: a
// client that waits for a broken server has no fault of its own; one that stood still has made them. held is how
// many requests waited for others because no more were allowed in flight.
func (r *Report) judge(scale float64, stood time.Duration, held int) {
	r.Invalid, r.Advice, r.StoodS = "", "", stood.Seconds()
	lag := r.Client.SendLagMs.P99
	failed := r.Requests.Sent - r.Requests.OK
	wrong := r.Requests.Failed[failedWrongTokens]
	limit := mostFailed * float64(r.Requests.Sent)
	switch {
	case stood > 0:
		r.Invalid = InvalidClientHung
		r.Advice = fmt.Sprintf("the load generator stood still for %s of real time (stopped, suspended, or without CPU); measure again",
			time.Duration(float64(stood)/scale).Round(10*time.Millisecond))
	case float64(failed-wrong) > limit:
		r.Invalid = InvalidFailedRequests
		r.Advice = fmt.Sprintf("%d of %d requests failed; look at the first errors and the server's log", failed, r.Requests.Sent)
	case float64(failed) > limit:
		r.Invalid = InvalidWrongTokens
		r.Advice = fmt.Sprintf("%d of %d answers had another length than asked for; does the server honour ignore_eos, is its context long enough?", wrong, r.Requests.Sent)
	case r.OutputTokS == 0:
		r.Invalid = InvalidClientHung
		r.Advice = "not one token came in the measured part; is the server alive, are the windows long enough for its first token?"
	case r.Client.CPUShare > mostCPUShare && r.Seconds/scale >= leastBusy.Seconds():
		r.Invalid = InvalidClientLimited
		r.Advice = fmt.Sprintf("the load generator used %.0f%% of its cores; give it more of them or fewer clients%s", 100*r.Client.CPUShare, slower(scale))
	case r.E2Ems != nil && lag > mostLagOfE2E*r.E2Ems.P50 && lag/scale > mostLagRealMs:
		r.Invalid = InvalidClientLimited
		r.Advice = fmt.Sprintf("one request in a hundred left %.0f ms late or more; %s", lag/scale, lagAdvice(scale, held))
	}
	r.Valid = r.Invalid == ""
}

func lagAdvice(scale float64, held int) string {
	if held > 0 {
		return fmt.Sprintf("%d waited because no more were allowed in flight: raise that limit or lower the rate", held)
	}
	return "the load generator needs CPU that something else takes" + slower(scale)
}

// slower is the advice that only a simulated host can follow.
func slower(scale float64) string {
	if scale > 1 {
		return fmt.Sprintf(", or a time_scale below %.0f", scale)
	}
	return ""
}

const (
	disagreement     = 0.05 // of client's and server's throughput, flagged
	promptDifference = 0.01 // of prompt tokens wanted and got, flagged
)

// differs reports whether got is away from want by more than a share of it.
func differs(got, want int64, share float64) bool {
	return math.Abs(float64(got-want)) > share*float64(want)
}

// SetServer notes the server's own output tok/s for the measured part and flags a difference above 5%.
func (r *Report) SetServer(tokS float64) {
	r.ServerTokS = tokS
	if tokS <= 0 || r.OutputTokS <= 0 {
		return
	}
	if d := tokS/r.OutputTokS - 1; math.Abs(d) > disagreement {
		r.note("server disagrees by %.0f%%", 100*math.Abs(d))
	}
}
