package benchmark

import "math/bits"

// Bucket is what the requests of one range of prompt lengths saw.
type Bucket struct {
	From     int           `json:"input_from"` // prompt tokens as the server counted
	To       int           `json:"input_to"`   // the first length that is too long
	Requests int           `json:"requests"`   // complete ones
	TTFTms   *Distribution `json:"ttft_ms"`
	TPOTms   *Distribution `json:"tpot_ms,omitempty"` // absent where no answer had a second token
	E2Ems    *Distribution `json:"e2e_ms"`
}

// firstBucket is where the first range ends; each further one is twice as long.
const firstBucket = 1024

// latencies are those of complete requests, in milliseconds.
type latencies struct {
	ttft, tpot, e2e []float64
}

func (l *latencies) add(r *record) {
	l.ttft = append(l.ttft, ms(r.ttft))
	l.e2e = append(l.e2e, ms(r.e2e))
	if r.output > 1 {
		l.tpot = append(l.tpot, ms(r.e2e-r.ttft)/float64(r.output-1))
	}
}

// byLength are latencies by prompt length: below 1,024 tokens, below 2,048, below 4,096 and so on.
type byLength []latencies

func (b *byLength) add(r *record) {
	k := bits.Len32(uint32(r.prompt) / firstBucket)
	for len(*b) <= k {
		*b = append(*b, latencies{})
	}
	(*b)[k].add(r)
}

// buckets are the ranges that hold any request; nil unless there are two of them.
func (b byLength) buckets() []Bucket {
	var out []Bucket
	for k, l := range b {
		if len(l.e2e) == 0 {
			continue
		}
		from := 0
		if k > 0 {
			from = firstBucket << (k - 1)
		}
		out = append(out, Bucket{
			From: from, To: firstBucket << k, Requests: len(l.e2e),
			TTFTms: distribute(l.ttft), TPOTms: distribute(l.tpot), E2Ems: distribute(l.e2e),
		})
	}
	if len(out) < 2 {
		return nil
	}
	return out
}
