package physics

// plausible returns o without the figures that no server can have shown: a broken counter or a
// misread line must not take the models to where they can't come back from.
func (o Observation) plausible() Observation {
	const mostGiB, mostTokens, most = 4096, 1e10, 1e12
	keep := func(v *float64, low, high float64) {
		if !(*v >= low && *v <= high) { // also when it is not a number
			*v = Unknown
		}
	}
	keep(&o.Value, 1/most, most)
	keep(&o.RelSD, 0, 10)
	for _, v := range []*float64{&o.BeforeLoadGiB, &o.AfterLoadGiB, &o.KVGiB, &o.LowWaterGiB} {
		keep(v, 0, mostGiB)
	}
	for _, v := range []*float64{&o.AfterKVGiB, &o.AfterGraphGiB} {
		keep(v, -mostGiB, mostGiB)
	}
	keep(&o.Tokens, 1, mostTokens)
	if known(o.KVGiB) && known(o.Tokens) {
		if cell := o.KVGiB * (1 << 30) / o.Tokens; !(cell >= 1 && cell <= 1<<30) { // bytes of a token on one rank
			o.KVGiB, o.Tokens = Unknown, Unknown
		}
	}
	keep(&o.Running, 0, 1e6)
	keep(&o.HitRatio, 0, 1)
	keep(&o.StartupMin, 0, 1e4)
	keep(&o.CostMin, 0, 1e5)
	return o
}
