package simulator

// Request is one generation. The first group is set by the caller and not changed afterwards, the
// second belongs to the engine.
type Request struct {
	ID      string
	Prompt  Prompt
	MaxNew  int     // tokens to generate (the model never stops early)
	Arrival float64 // simulated seconds
	Stream  bool    // the client reads the answer as it is made (metrics only)

	Out          int     // tokens generated so far
	Cached       int     // prompt tokens found in the cache at first admission, -1 before it
	FromHost     int     // of Cached, tokens that came from the host tier
	AdmittedAt   float64 // time of the first admission
	FirstAt      float64 // time of the first token
	LastAt       float64 // time of the latest token
	MaxGap       float64 // longest time between two tokens, seconds
	Retracted    int     // times it was thrown out of the batch
	Done         bool
	Aborted      bool
	committed    float64 // tokens the pacer holds for it, 0 when it is not in the batch
	sharedTokens int     // prompt tokens that others held already when it was admitted
	computed     int     // tokens of context in memory
	private      int     // of those, tokens outside the tree
	path         []int32 // locked blocks
	loaded       int     // tokens the last admission brought back from the host tier
	inserted     int     // leading blocks of the sequence that are in path
	waitingFor   int     // blocks of the prompt found when it was last looked up (lpm)
}

// Prompt is a prompt as the cache sees it: the hash of each whole block, each one covering all
// before it, then the state after the last token (tail) and how many tokens lie after the last whole block.
type Prompt struct {
	Len    int
	Blocks []uint64
	Tail   uint64 // chain state after the remainder; equals the last block's hash when Rest is 0
	Rest   int    // tokens after the last whole block
}

// Chain hash: token ids are folded one by one, and a block's hash is its state after a final mix, so
// that equal prefixes give equal hashes and nothing else does (2^64 space).
const (
	chainSeed  = 0x9E3779B97F4A7C15
	chainPrime = 0x9FB21C651E98DF25
)

func fold(h uint64, id uint32) uint64 { return (h ^ uint64(id+1)) * chainPrime }

func mix(h uint64) uint64 {
	h ^= h >> 32
	h *= 0xD6E8FEB86659FD93
	h ^= h >> 32
	return h
}

// NewPrompt hashes token ids.
func NewPrompt(ids []uint32) Prompt {
	p := Prompt{Len: len(ids), Blocks: make([]uint64, 0, len(ids)/blockTokens+1)}
	h := uint64(chainSeed)
	for len(ids) >= blockTokens {
		for _, id := range ids[:blockTokens] {
			h = fold(h, id)
		}
		h = mix(h)
		p.Blocks = append(p.Blocks, h)
		ids = ids[blockTokens:]
	}
	for _, id := range ids {
		h = fold(h, id)
	}
	p.Tail, p.Rest = h, len(ids)
	return p
}

// OutputID is the id of the i-th generated token of a prompt: one digit, the same for the same prompt,
// so that answers are short on the wire and a follow-up that quotes one finds it in the cache.
func (p Prompt) OutputID(i int) uint32 {
	return 1 + uint32(mix(p.Tail)>>(4*uint(i%16)))&7
}

// outputBlocks continues the chain over n generated tokens and returns the blocks they complete.
func (p Prompt) outputBlocks(n int) []uint64 {
	if p.Rest+n < blockTokens {
		return nil
	}
	blocks := make([]uint64, 0, (p.Rest+n)/blockTokens)
	h, k := p.Tail, p.Rest
	digits := mix(p.Tail)
	for i := range n {
		h = fold(h, 1+uint32(digits>>(4*uint(i%16)))&7)
		if k++; k == blockTokens {
			h, k = mix(h), 0
			blocks = append(blocks, h)
		}
	}
	return blocks
}
