package benchmark

// Point is one second of a load level, in host time.
type Point struct {
	T          float64 `json:"t_s"` // start of the second, from the level's start
	OutputTokS float64 `json:"output_tok_s"`
	PromptTokS float64 `json:"prompt_tok_s"` // prompts count when their first token comes
	InFlight   float64 `json:"in_flight"`    // time average
	Started    int     `json:"started"`      // requests; where they are tried again, tries
	Ended      int     `json:"ended"`
	Failed     int     `json:"failed"` // of those that ended
}

// series is every second that something was booked in. The last is seldom whole; its figures are of a whole
// second all the same.
func (l *ledger) series() []Point {
	l.gather()
	l.mu.Lock()
	defer l.mu.Unlock()
	points := make([]Point, len(l.seconds.slots))
	for k, s := range l.seconds.slots {
		points[k] = Point{
			T:          float64(k),
			OutputTokS: float64(s.output),
			PromptTokS: float64(s.prompt),
			InFlight:   s.busy.Seconds(),
			Started:    int(s.started),
			Ended:      int(s.ended),
			Failed:     int(s.failed),
		}
	}
	return points
}
