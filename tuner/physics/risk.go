package physics

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Risk is the chance that prefill runs out of GPU memory under load. A load needs
//
//	need = n0 + n1*chunk/1024 + n2*running/1024 + n3*[host pool] + leak(choices)   GiB
//
// of what is free after graph capture, and fails with the logistic of (need - free)/scale in one full
// measuring time. The coefficients are learnt from survivals, failures and low-water marks of free
// memory, which show the need itself. Leaks belong to choices of unordered knobs; most have none.
//
// Sources: activations grow with the prefill chunk and are outside of SGLang's static budget (sgtune's
// reference on SGLang, section 2.4); the founding case's four starts give the scale of n0 and n1.
type Risk struct {
	l    *layout
	m    *Memory
	e    *ensemble
	seen []loaded
	tau  float64
	r    *rand.Rand
	use  []riskParticle
	x    excess

	pace  pace
	leaks []int // scratch
}

type loaded struct {
	point   Point
	free    float64
	got     float64 // need as the low-water mark shows it
	shown   bool    // there is such a mark
	frac    float64
	oom     bool
	chunk   float64
	running float64
	host    bool
	leaks   []int
}

type riskParticle struct {
	n0, n1, n2, n3, scale float64
	leak                  []float64
}

const (
	riskParticles = 240
	riskShown     = 80
	riskSweeps    = 14
	riskFixed     = 5 // parameters before the leaks
	leakSize      = 1.2
)

func newRisk(l *layout, m *Memory, r *rand.Rand) *Risk {
	k := &Risk{l: l, m: m, r: r, x: excess{k: newKernel(l)}}
	prior := []float64{math.Log(.4), math.Log(.16), math.Log(.4), math.Log(.13), math.Log(.14)}
	sd := []float64{.45, .6, .8, .4, .4}
	for range l.choices {
		prior, sd = append(prior, 0), append(sd, 1)
	}
	k.tau = quantile(1 - .45/math.Max(float64(l.choices), 1))
	k.e = newEnsemble(r, riskParticles, prior, sd)
	k.refresh()
	return k
}

// quantile is the standard normal's, by bisection: it is asked once.
func quantile(p float64) float64 {
	low, high := -8.0, 8.0
	for range 60 {
		if mid := (low + high) / 2; normalCDF(mid) < p {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// Observe learns from a trial that was under load.
func (k *Risk) Observe(o Observation) {
	free := o.AfterGraphGiB
	if !known(free) {
		_, free, _ = k.m.Predict(o.Point)
	}
	if !known(free) || (o.Status != OK && o.Status != Pruned && o.Status != LoadOOM && o.Status != Worthless) {
		return
	}
	d := loaded{
		point: o.Point, free: bounded(free), frac: clamp(o.Frac, 0.05, 1), oom: o.Status == LoadOOM,
		chunk: k.l.chunk(o.Point) / 1024, running: k.running(o.Point), host: k.l.pool(o.Point) > 0,
	}
	if known(o.LowWaterGiB) && o.LowWaterGiB > 0 {
		d.got, d.shown = bounded(free-o.LowWaterGiB), true
	}
	k.l.eachChoice(o.Point, func(f int) { d.leaks = append(d.leaks, f) })
	k.seen = append(k.seen, d)
	if len(k.seen) > mostRows {
		safest := leastOf(func(i, j int) bool { return k.seen[i].oom && !k.seen[j].oom })
		k.seen = slices.Delete(k.seen, safest, safest+1)
	}
	k.x.observe(o)
	if due := k.pace.due(); !k.l.later {
		k.learn(due || d.oom)
	}
}

// learn fits what was observed: the excess, and where that is due the ensemble.
func (k *Risk) learn(all bool) {
	if all && len(k.seen) > 0 {
		k.e.move(k.r, riskSweeps, k.logp)
		k.refresh()
	}
	k.x.fit(k.expect, k.jitter())
}

// running is max-running-requests in units of 1024; what is allowed beyond 512 is hardly used.
func (k *Risk) running(p Point) float64 {
	return math.Min(k.l.or(p, RoleMaxRunning, usualRunning), 512) / 1024
}

func (k *Risk) leak(z float64) float64 { return leakSize * math.Max(0, z-k.tau) }

func (k *Risk) logp(x []float64) float64 {
	sum := k.e.logPrior(x)
	n0, n1, n2, n3, scale := math.Exp(x[0]), math.Exp(x[1]), math.Exp(x[2]), math.Exp(x[3]), math.Exp(x[4])
	sd := math.Sqrt(.36*scale*scale + .03*.03)
	logSD := math.Log(sd)
	for i := range k.seen {
		d := &k.seen[i]
		need := n0 + n1*d.chunk + n2*d.running
		if d.host {
			need += n3
		}
		for _, f := range d.leaks {
			need += k.leak(x[riskFixed+f])
		}
		survive := 0.0 // log of the chance to survive
		if z := (need - d.free) / scale; z > -14 {
			survive = -(.4 + .6*d.frac) * math.Log1p(math.Exp(math.Min(z, 40)))
		}
		if d.oom {
			sum += math.Log(math.Max(-math.Expm1(survive), 1e-5))
			continue
		}
		sum += math.Max(survive, -12)
		if d.shown {
			sum -= huber((need-d.got)/sd) + logSD
		}
	}
	return sum
}

// huber is a squared error that grows no more than linearly beyond 2 standard deviations, so that one
// odd figure does not rule (Huber 1964, Robust estimation of a location parameter).
func huber(z float64) float64 {
	if z = math.Abs(z); z > 2 {
		return 2*z - 2
	}
	return .5 * z * z
}

func clamp(v, low, high float64) float64 { return math.Max(low, math.Min(high, v)) }

// refresh lays out the part of the ensemble that predictions use.
func (k *Risk) refresh() {
	k.use = k.use[:0]
	stride := len(k.e.x) / riskShown
	for i := range riskShown {
		x := k.e.x[i*stride]
		u := riskParticle{n0: math.Exp(x[0]), n1: math.Exp(x[1]), n2: math.Exp(x[2]), n3: math.Exp(x[3]), scale: math.Exp(x[4])}
		for _, z := range x[riskFixed:] {
			u.leak = append(u.leak, k.leak(z))
		}
		k.use = append(k.use, u)
	}
}

// Predict is the chance to survive so many full measuring times under load with free memory of the
// given mean and spread (GiB), and the spread of that chance over what is not known.
func (k *Risk) Predict(p Point, freeGiB, sdGiB, windows float64) (survive, spread float64) {
	if !known(freeGiB) {
		return 0.97, 0.1
	}
	freeGiB -= k.x.at(p)
	load := k.load(p)
	sum, square := 0.0, 0.0
	for i := range k.use {
		u := &k.use[i]
		z := (freeGiB - u.need(&load)) / math.Sqrt(u.scale*u.scale+.36*sdGiB*sdGiB)
		s := 1.0
		if z < 14 {
			s = 1 / (1 + math.Exp(-math.Max(z, -40)))
			switch windows {
			case 1:
			case 2:
				s *= s
			case 4:
				s *= s
				s *= s
			default:
				s = math.Pow(s, windows)
			}
		}
		sum += s
		square += s * s
	}
	n := float64(len(k.use))
	survive = sum / n
	return survive, math.Sqrt(math.Max(0, square/n-survive*survive))
}

// load is what a point's need depends on.
type load struct {
	chunk, running, host float64
	leaks                []int
}

func (k *Risk) load(p Point) load {
	d := load{chunk: k.l.chunk(p) / 1024, running: k.running(p), leaks: k.leaks[:0]}
	if k.l.pool(p) > 0 {
		d.host = 1
	}
	k.l.eachChoice(p, func(f int) { d.leaks = append(d.leaks, f) })
	k.leaks = d.leaks
	return d
}

// need is the memory that a load takes, GiB.
func (u *riskParticle) need(d *load) float64 {
	sum := u.n0 + u.n1*d.chunk + u.n2*d.running + u.n3*d.host
	for _, f := range d.leaks {
		sum += u.leak[f]
	}
	return sum
}

// expect is the low-water mark that arithmetic and the learnt need expect at p, GiB.
func (k *Risk) expect(p Point) float64 {
	_, free, _ := k.m.Predict(p)
	d, sum := k.load(p), 0.0
	for i := range k.use {
		sum += k.use[i].need(&d)
	}
	return free - sum/float64(len(k.use))
}

// jitter is how far one launch's low-water mark may lie from its point's own, GiB.
func (k *Risk) jitter() float64 {
	sum := 0.0
	for i := range k.use {
		sum += k.use[i].scale
	}
	return math.Hypot(.6*sum/float64(len(k.use)), .04)
}
