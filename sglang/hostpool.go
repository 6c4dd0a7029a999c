package sglang

import "fmt"

// hostCheckReserve is what SGLang's own check keeps back: 10 GiB in every version.
const hostCheckReserve = 10 * GiB

// HostPool is the hierarchical cache of one rank.
type HostPool struct {
	Tokens     int
	Bytes      float64 // the pool that --hicache-size or --hicache-ratio measures
	ExtraBytes float64 // index and draft pools beside it, as many tokens
}

// Total is what the rank takes of the host's memory.
func (p HostPool) Total() float64 { return p.Bytes + p.ExtraBytes }

// HostPool sizes the host pool of one rank for a device pool of deviceTokens. The zero pool means
// that the hierarchical cache is off.
func (c Cell) HostPool(cfg Config, l Layout, deviceTokens int) HostPool {
	var want float64
	gb, ratio := hicacheGB(cfg), hicacheRatio(cfg)
	switch {
	case c.HostBytes <= 0:
		return HostPool{}
	case gb > 0:
		want = gb * GB / c.HostBytes
	case ratio > 0:
		want = float64(max(0, deviceTokens)) * ratio
	default:
		return HostPool{}
	}
	tokens := HostPages(want, l.PageSize, l.Version)
	return HostPool{Tokens: tokens, Bytes: float64(tokens) * c.HostBytes, ExtraBytes: float64(tokens) * c.ExtraHost}
}

// hicacheRatio is --hicache-ratio in force: 0 when the cache is off or sized otherwise.
func hicacheRatio(cfg Config) float64 {
	r, given := cfg.Float("hicache-ratio")
	if size, sized := cfg.Float("hicache-size"); sized && (size > 0 || !given) {
		return 0 // a size wins; size 0 alone means the cache is off
	}
	if on, _ := cfg["enable-hierarchical-cache"].(bool); !on {
		return 0
	}
	if r > 0 {
		return r
	}
	return DefaultHicacheRatio
}

// HostPages floors a wish for tokens to whole pages. From 0.5.5 on SGLang adds a page, always
// (mem_cache/memory_pool_host.py and pool_host/base.py; up to 0.5.4 it only floors).
func HostPages(tokens float64, pageSize int, v Version) int {
	const most = 1 << 50
	page := max(1, pageSize)
	pages := int(min(max(tokens, 0), most)) / page
	if v == (Version{}) || v.Compare(mem0505) >= 0 {
		pages++
	}
	return pages * page
}

// HostView is one host as SGLang's own check of a host pool sees it.
type HostView struct {
	AvailableBytes float64 // MemAvailable
	CgroupBytes    float64 // headroom below the cgroup's limit, 0 when there is none or it is unknown
	Ranks          int     // ranks on this host
}

// Free is the memory that one rank compares its request with. Up to 0.5.18 every rank alone looks at
// the whole host, so all may pass and die together; from 0.5.20 on each looks at its share, and
// 0.5.23 also at the cgroup (mem_cache/pool_host/base.py, host_memory_budget_bytes).
func (h HostView) Free(v Version) float64 {
	newest := v == Version{}
	available := h.AvailableBytes
	if (newest || v.Compare(mem0523) >= 0) && h.CgroupBytes > 0 {
		available = min(available, h.CgroupBytes)
	}
	free := available - hostCheckReserve
	if newest || v.Compare(mem0520) >= 0 {
		free /= float64(max(1, h.Ranks))
	}
	return free
}

// Check is nil when SGLang's own check lets a pool of requestBytes a rank through, else what it will
// say. Passing it is no proof that the pools of all ranks fit: HostRAM is.
func (h HostView) Check(v Version, requestBytes float64) error {
	free := h.Free(v)
	if requestBytes <= free {
		return nil
	}
	return fmt.Errorf("SGLang's own check refuses a host pool of %.2f GB a rank: it sees %.2f GB free", requestBytes/GB, max(0, free)/GB)
}

// HostPoolTooSmall says what SGLang makes of a host pool that is not larger than the device pool: an
// error up to 0.5.12, a warning from 0.5.15 on. small is false when the pool is larger.
func HostPoolTooSmall(v Version, hostTokens, deviceTokens int) (small, refused bool) {
	small = hostTokens > 0 && hostTokens <= deviceTokens
	return small, small && v != (Version{}) && v.Compare(mem0515) < 0
}
