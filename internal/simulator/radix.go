package simulator

// blockTokens is the granularity of prefix matching. SGLang's tree splits at any token; here a prompt
// is a chain of hashes over whole blocks of 64 tokens plus one for the remainder, so a shared prefix
// is found up to its last whole block, and an identical prompt to its last token but one.
const blockTokens = 64

// radix is the prefix cache: blocks on the device, in the host tier, or both, each tier with its own
// least-recently-used order. A path is always touched from its end to its beginning, so a block is
// never older than one that follows it and both tiers evict ends first.
type radix struct {
	nodes []node
	free  []int32
	index map[uint64]int32

	capacity int // device tokens, shared with what running requests hold privately
	private  int // device tokens held outside the tree
	device   int // device tokens in the tree, locked ones included
	locked   int // device tokens of locked blocks
	lru      list

	hostCapacity, host int // tokens; capacity 0 = no host tier
	hostLRU            list
	backups            int // tokens copied to the host since the last call of takeBackups
	evicted            int // device tokens evicted, all together
	threshold          uint8
}

// tier flags of a node.
const (
	onDevice = 1 << iota
	onHost
)

type node struct {
	hash       uint64
	alias      uint64 // a prompt's remainder that begins this block, 0 = none
	locks      int32
	tier, hits uint8
	link, host links
}

type links struct{ prev, next int32 }

// list is an intrusive LRU list over nodes; front is the most recent. Index 0 is no node.
type list struct{ front, back int32 }

func newRadix(capacity, hostCapacity int, selective bool) *radix {
	blocks := (capacity + hostCapacity) / blockTokens
	c := &radix{
		nodes: make([]node, 1, blocks+2), index: make(map[uint64]int32, blocks),
		capacity: capacity, hostCapacity: hostCapacity, threshold: 1,
	}
	if selective {
		c.threshold = 2
	}
	return c
}

// freeTokens is what can be allocated without evicting anything.
func (c *radix) freeTokens() int { return c.capacity - c.private - c.device }

// evictable is what eviction could add to freeTokens.
func (c *radix) evictable() int { return c.device - c.locked }

// used is what running requests hold: SGLang's "#token".
func (c *radix) used() int { return c.private + c.locked }

// match walks a prompt's chain and returns how many leading blocks are on the device and how many
// after them only on the host. A remainder that is known (see alias) counts as found.
func (c *radix) match(chain []uint64) (device, host int) {
	for i, h := range chain {
		n := c.index[h]
		if n == 0 {
			return device, host
		}
		switch {
		case c.nodes[n].tier&onDevice != 0 && host == 0:
			device = i + 1
		case c.nodes[n].tier&onHost != 0:
			host++
		default:
			return device, host
		}
	}
	return device, host
}

// matchPrompt is match over a prompt's blocks and then its remainder, which counts as one more block.
func (c *radix) matchPrompt(p *Prompt) (device, host int) {
	device, host = c.match(p.Blocks)
	if p.Rest == 0 || device+host < len(p.Blocks) {
		return device, host
	}
	switch n := c.index[p.Tail]; {
	case n == 0:
	case c.nodes[n].tier&onDevice != 0 && host == 0:
		device++
	case c.nodes[n].tier&onHost != 0:
		host++
	}
	return device, host
}

// unlockedIn counts the tokens of the first n blocks of a chain that are evictable now and would not
// be once locked.
func (c *radix) unlockedIn(chain []uint64, n int) int {
	tokens := 0
	for _, h := range chain[:n] {
		if i := c.index[h]; i != 0 && c.nodes[i].locks == 0 && c.nodes[i].tier&onDevice != 0 {
			tokens += blockTokens
		}
	}
	return tokens
}

// lock pins a block on the device.
func (c *radix) lock(i int32) {
	n := &c.nodes[i]
	if n.locks == 0 {
		c.unlinkDevice(i)
		c.locked += blockTokens
	}
	n.locks++
	n.hits = min(n.hits+1, 200)
	c.backup(i)
}

// unlock releases a path that lock pinned, end first.
func (c *radix) unlock(path []int32) {
	for k := len(path) - 1; k >= 0; k-- {
		n := &c.nodes[path[k]]
		n.locks--
		if n.locks == 0 {
			c.locked -= blockTokens
			c.pushDevice(path[k])
		}
		if n.tier&onHost != 0 {
			c.touchHost(path[k])
		}
	}
}

// insert makes one block of tokens that a request holds privately part of the tree and locks it. If the
// tree already has it on the device the request's own copy is freed.
func (c *radix) insert(h uint64) int32 {
	c.private -= blockTokens
	i := c.index[h]
	if i == 0 {
		i = c.alloc(h)
	}
	n := &c.nodes[i]
	if n.tier&onDevice == 0 {
		n.tier |= onDevice
		c.device += blockTokens
		c.pushDevice(i)
	}
	c.lock(i)
	return i
}

// loadBack brings a host block onto the device and locks it; the room must have been made before.
func (c *radix) loadBack(i int32) {
	n := &c.nodes[i]
	n.tier |= onDevice
	c.device += blockTokens
	c.pushDevice(i)
	c.lock(i)
}

// name lets a prompt's remainder be found inside block i, of which it is the beginning.
func (c *radix) name(remainder uint64, i int32) {
	if c.index[remainder] != 0 || c.nodes[i].alias != 0 {
		return
	}
	c.nodes[i].alias = remainder
	c.index[remainder] = i
}

// evict frees device tokens until n are free; false when that cannot be done.
func (c *radix) evict(n int) bool {
	for c.freeTokens() < n && c.lru.back != 0 {
		i := c.lru.back
		c.unlinkDevice(i)
		c.device -= blockTokens
		c.evicted += blockTokens
		c.nodes[i].tier &^= onDevice
		c.dropIfGone(i)
	}
	return c.freeTokens() >= n
}

// flush forgets both tiers; nothing may be locked.
func (c *radix) flush() {
	evicted := c.evicted
	*c = *newRadix(c.capacity, c.hostCapacity, c.threshold > 1)
	c.evicted = evicted
}

// takeBackups returns the tokens written to the host tier since the last call.
func (c *radix) takeBackups() int {
	n := c.backups
	c.backups = 0
	return n
}

// backup is write-through: a block is copied once it was seen often enough.
func (c *radix) backup(i int32) {
	n := &c.nodes[i]
	if c.hostCapacity < blockTokens || n.tier&onHost != 0 || n.hits < c.threshold {
		return
	}
	for c.host+blockTokens > c.hostCapacity && c.hostLRU.back != 0 {
		old := c.hostLRU.back
		c.unlinkHost(old)
		c.host -= blockTokens
		c.nodes[old].tier &^= onHost
		c.dropIfGone(old)
	}
	n.tier |= onHost
	c.host += blockTokens
	c.backups += blockTokens
	c.pushHost(i)
}

func (c *radix) dropIfGone(i int32) {
	n := &c.nodes[i]
	if n.tier != 0 {
		return
	}
	delete(c.index, n.hash)
	if n.alias != 0 {
		delete(c.index, n.alias)
	}
	*n = node{}
	c.free = append(c.free, i)
}

func (c *radix) alloc(h uint64) int32 {
	var i int32
	if k := len(c.free); k > 0 {
		i = c.free[k-1]
		c.free = c.free[:k-1]
	} else {
		c.nodes = append(c.nodes, node{})
		i = int32(len(c.nodes) - 1)
	}
	c.nodes[i] = node{hash: h}
	c.index[h] = i
	return i
}

func (c *radix) pushDevice(i int32) {
	c.nodes[i].link = links{0, c.lru.front}
	if c.lru.front != 0 {
		c.nodes[c.lru.front].link.prev = i
	} else {
		c.lru.back = i
	}
	c.lru.front = i
}

func (c *radix) unlinkDevice(i int32) {
	l := c.nodes[i].link
	if l.prev != 0 {
		c.nodes[l.prev].link.next = l.next
	} else {
		c.lru.front = l.next
	}
	if l.next != 0 {
		c.nodes[l.next].link.prev = l.prev
	} else {
		c.lru.back = l.prev
	}
	c.nodes[i].link = links{}
}

func (c *radix) touchHost(i int32) {
	c.unlinkHost(i)
	c.pushHost(i)
}

func (c *radix) pushHost(i int32) {
	c.nodes[i].host = links{0, c.hostLRU.front}
	if c.hostLRU.front != 0 {
		c.nodes[c.hostLRU.front].host.prev = i
	} else {
		c.hostLRU.back = i
	}
	c.hostLRU.front = i
}

func (c *radix) unlinkHost(i int32) {
	l := c.nodes[i].host
	if l.prev != 0 {
		c.nodes[l.prev].host.next = l.next
	} else {
		c.hostLRU.front = l.next
	}
	if l.next != 0 {
		c.nodes[l.next].host.prev = l.prev
	} else {
		c.hostLRU.back = l.prev
	}
	c.nodes[i].host = links{}
}
