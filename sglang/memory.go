package sglang

import (
	"fmt"
	"math"
	"strings"
)

const (
	// GiB is 2^30 bytes: what SGLang's GPU figures mean when they print "GB".
	GiB = 1 << 30
	// GB is 10^9 bytes: the unit of --hicache-size and of host-pool lines.
	GB = 1e9
	// HostReserveBytes is what must stay free of host RAM beside the pools: SGLang's own check keeps
	// 10 GiB back (mem_cache/pool_host), rounded up as the founding case was.
	HostReserveBytes = 10.7e9
	// HostOwnBytesPerRank is the server's own host memory a rank, assumed before the first launch
	// has been watched.
	HostOwnBytesPerRank = 2 * GB
	// DefaultHicacheRatio is the host pool in device pools when the hierarchical cache is on and
	// neither size nor ratio is given (0.5.15 on: None means 2.0).
	DefaultHicacheRatio = 2.0
)

// KVTokens is SGLang's KV pool size, the same arithmetic in every version from 0.4.6 to 0.5.23
// (kv_cache_configurator.py, _profile_available_bytes):
//
//	rest   = afterLoad - beforeLoad*(1-fraction)
//	tokens = floor(rest*2^30 / cell), floored to a multiple of the page
//
// beforeLoadGiB (T) and afterLoadGiB (A) are free GPU memory around the weight load on the smallest
// rank, cellBytes one token's bytes on one rank. Zero or negative means the launch fails: the
// fraction is too low for the weights.
func KVTokens(beforeLoadGiB, afterLoadGiB, fraction, cellBytes float64, pageSize int) int {
	rest := math.Trunc((afterLoadGiB - beforeLoadGiB*(1-fraction)) * GiB)
	return floorTokens(rest/cellBytes, pageSize)
}

// floorTokens floors a token count to whole tokens and then to whole pages.
func floorTokens(tokens float64, pageSize int) int {
	if math.IsNaN(tokens) || math.IsInf(tokens, 0) {
		return 0
	}
	n := int(math.Floor(tokens))
	if pageSize > 1 {
		n = int(math.Floor(float64(n)/float64(pageSize))) * pageSize
	}
	return n
}

// LowestFraction is the mem-fraction-static at which the KV pool is empty, 1 - A/T. Every workable
// fraction lies above it.
func LowestFraction(beforeLoadGiB, afterLoadGiB float64) float64 {
	return 1 - afterLoadGiB/beforeLoadGiB
}

// CellBytesMLA is one token's KV bytes on one rank for multi-head latent attention (DeepSeek, Kimi):
// every tensor-parallel rank holds the full copy.
func CellBytesMLA(kvLoraRank, qkRopeHeadDim, layers int, dtypeBytes float64) float64 {
	return float64((kvLoraRank+qkRopeHeadDim)*layers) * dtypeBytes
}

// CellBytesMHA is one token's KV bytes on one rank for multi-head and grouped-query attention. Heads
// are split over the attention ranks; a rank never holds less than one.
func CellBytesMHA(kvHeads, headDim, vHeadDim, layers, attentionTP int, dtypeBytes float64) float64 {
	heads := max(1, kvHeads/max(1, attentionTP))
	return float64(heads*(headDim+vHeadDim)*layers) * dtypeBytes
}

// DtypeBytes is the size of one KV element for a --kv-cache-dtype value ("bf16", "fp8_e4m3") or a
// torch name as a log prints it ("torch.bfloat16"). Formats with block scales include them. ok is
// false for "auto", "" and names it does not know.
func DtypeBytes(dtype string) (bytes float64, ok bool) {
	switch strings.TrimPrefix(dtype, "torch.") {
	case "bf16", "bfloat16", "fp16", "float16", "half":
		return 2, true
	case "fp8_e4m3", "fp8_e5m2", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "uint8":
		return 1, true
	case "float32", "float":
		return 4, true
	case "mxfp8":
		return 1 + 1.0/32, true
	case "nvfp4", "fp4_mx_block16", "fp4_e2m1", "float4_e2m1fn_x2":
		return 0.5 + 1.0/16, true
	}
	return 0, false
}

// HostPoolTokens is the host KV pool of one rank for --hicache-size (decimal GB a rank):
// whole pages, and always one more than fits (pool_host/base.py). 0 for no size.
func HostPoolTokens(gb, cellBytes float64, pageSize int) int {
	if gb <= 0 || cellBytes <= 0 {
		return 0
	}
	page := max(1, pageSize)
	return (int(gb*GB/cellBytes)/page + 1) * page
}

// HostPoolsBytes is the host RAM the hierarchical caches of one host take: ranks on it times
// --hicache-size (decimal GB, a rank). MLA ranks store full copies too. A pool sized by ratio is not
// known here: its size follows from the device pool, see Calibration.Predict.
func HostPoolsBytes(cfg Config, ranks int) float64 {
	return float64(ranks) * hicacheGB(cfg) * GB
}

// hicacheGB is --hicache-size in force: 0 when absent, off or not a number.
func hicacheGB(cfg Config) float64 {
	gb, _ := cfg.Float("hicache-size")
	return max(gb, 0)
}

// HostRAM is one host's memory in front of a launch, for the second rule of admission: pools plus
// the server's own must leave HostReserveBytes of what is available.
type HostRAM struct {
	AvailableBytes float64 // MemAvailable before launch, or the cgroup's or Slurm's headroom if less
	OwnBytes       float64 // server's own: largest fall seen before the host pool; 0 = not yet seen
	Ranks          int     // ranks on this host
}

// Own is the server's own memory: as seen, or HostOwnBytesPerRank a rank before anything was.
func (h HostRAM) Own() float64 {
	if h.OwnBytes > 0 {
		return h.OwnBytes
	}
	return float64(h.Ranks) * HostOwnBytesPerRank
}

// Limit is the most the host pools may take, in bytes.
func (h HostRAM) Limit() float64 { return h.AvailableBytes - HostReserveBytes - h.Own() }

// Fits returns nil when pools of poolsBytes fit, else an error with both numbers.
func (h HostRAM) Fits(poolsBytes float64) error {
	if poolsBytes <= h.Limit() || poolsBytes == 0 {
		return nil
	}
	return fmt.Errorf("host RAM: pools of %.1f GB + %.1f GB for the server itself need %.1f GB, but %.1f GB are available and %.1f GB must stay free: at most %.1f GB for pools",
		poolsBytes/GB, h.Own()/GB, (poolsBytes+h.Own())/GB, h.AvailableBytes/GB, HostReserveBytes/GB, max(0, h.Limit())/GB)
}
