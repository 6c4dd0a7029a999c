package benchmark

import "strconv"

// chatRoots follows the chains of a Qwen-Bailian trace, in which a row names the row before it: a
// session is called after the first row of its chain.
type chatRoots struct {
	roots map[int64]int64 // chat to the first of its chain, for all but those first ones
	full  bool
}

// maxChats bounds the memory of chains: about 100 MB. Later chains are named after the row before.
const maxChats = 4 << 20

func (c *chatRoots) add(e *entry) {
	if !e.chat.set || e.chat.parent < 0 {
		return
	}
	if len(c.roots) >= maxChats {
		c.full = true
		return
	}
	if c.roots == nil {
		c.roots = map[int64]int64{}
	}
	c.roots[e.chat.id] = c.root(e.chat)
}

func (c *chatRoots) root(l chatLink) int64 {
	if root, ok := c.roots[l.id]; ok {
		return root
	}
	if l.parent < 0 {
		return l.id
	}
	if root, ok := c.roots[l.parent]; ok {
		return root
	}
	return l.parent
}

// session is the JSON text of a row's session.
func (c *chatRoots) session(l chatLink) string { return strconv.FormatInt(c.root(l), 10) }
