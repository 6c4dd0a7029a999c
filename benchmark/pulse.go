package benchmark

import (
	"sync"
	"time"
)

// pulseBeat is the real time between two beats.
const pulseBeat = 10 * time.Millisecond

// pulse is a heartbeat of the load generator. What a beat is late, a token that came meanwhile was read late
// too: of a client without CPU no latency is known better than that.
type pulse struct {
	meter *CPUMeter
	done  chan struct{}
	gone  sync.WaitGroup

	late histogram // milliseconds; read after stop
}

// startPulse begins to beat.
func startPulse() *pulse {
	p := &pulse{meter: NewCPUMeter(), done: make(chan struct{})}
	p.gone.Go(p.beat)
	return p
}

// stop ends it.
func (p *pulse) stop() {
	close(p.done)
	p.gone.Wait()
}

func (p *pulse) beat() {
	timer := time.NewTimer(pulseBeat)
	defer timer.Stop()
	due := time.Now().Add(pulseBeat)
	for {
		select {
		case <-p.done:
			return
		case <-timer.C:
		}
		p.meter.Sample()
		now := time.Now()
		for ; !due.After(now); due = due.Add(pulseBeat) { // the beats that were missed were late as well
			p.late.add(float32(ms(now.Sub(due))), 1)
		}
		timer.Reset(due.Sub(now))
	}
}
