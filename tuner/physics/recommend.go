package physics

import "math"

// recommendWindows is how many full measuring times an exported configuration has to survive to be
// worth its speed.
const recommendWindows = 4

// marginPower weighs that chance: what fails in the service costs more than the speed it brought.
const marginPower = 2.0

// Recommend is the configuration to export now: one that was measured in full, by its posterior and
// not by its luck, that keeps its distance from the learnt memory line, and is better than the start
// with some confidence; else the start itself. ok is false when nothing has a value.
func (s *Search) Recommend() (p Point, ok bool) {
	best, value := -1, math.Inf(-1)
	points := s.measured(true)
	home := -1
	for i, p := range points {
		at := s.predict(p, recommendWindows)
		v := at.logMean + marginPower*math.Log(math.Max(at.Survive, 1e-3))
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
	if home >= 0 && best != home && s.predict(points[home], recommendWindows).Survive > searchAlive {
		if mean, sd := s.residual.Difference(points[best], points[home]); mean < confidence*sd {
			best = home
		}
	}
	return points[best], true
}

// confidence is by how many standard deviations of their difference a configuration must be expected
// to beat what runs today (1.5 = a chance of 93%; several are looked at).
const confidence = 1.5
