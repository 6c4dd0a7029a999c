package physics

import "math"

// recommendWindows is how many full measuring times an exported configuration has to survive to be
// worth its speed.
const recommendWindows = 4

// marginPower weighs that chance: what fails in the service costs more than the speed it brought.
const marginPower = 2.0

// Recommend is the configuration to export now: one that was measured and not given up early, by its
// posterior and not by its luck, that keeps its distance from the learnt memory line, and is better than
// the start with some confidence; else the start itself. Where the start has no value or would hardly
// survive, it is the best of the others. ok is false when no trial was measured to its end.
func (s *Search) Recommend() (p Point, ok bool) {
	best, value := -1, math.Inf(-1)
	points := s.measured(true)
	home := -1
	for i, p := range points {
		v := s.predict(p, 1).logMean + marginPower*math.Log(s.holds(p))
		if p.Equal(s.l.home) {
			home = i
		}
		if v > value {
			best, value = i, v
		}
	}
	if best < 0 {
		return nil, false
	}
	if home >= 0 && best != home && s.holds(points[home]) > searchAlive {
		if mean, sd := s.residual.Difference(points[best], points[home]); mean < confidence*sd {
			best = home
		}
	}
	return points[best], true
}

// holds is the chance that a point which ran once will survive in service, on the careful side of what
// is not known.
func (s *Search) holds(p Point) float64 {
	_, free, sd := s.memory.Predict(p)
	survive, spread := s.risk.Predict(p, free, sd, recommendWindows)
	return math.Max(s.failures.Predict(p, clamp(survive-spread, 0.001, 1)), 0.001)
}

// confidence is by how many standard deviations of their difference a configuration must be expected
// to beat what runs today (1.5 = a chance of 93%; several are looked at).
const confidence = 1.5
