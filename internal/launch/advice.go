package launch

import (
	"math"
	"slices"
	"strings"

	"sgtune/sglang"
)

// advise warns of what is odd or dangerous about a launch as a whole. What a single flag's note says
// is warned of already.
func (p *Plan) advise() {
	c := p.config()
	for _, e := range p.Left {
		switch e.Name {
		case "skip-server-warmup":
			p.warn("--skip-server-warmup is left out: %s.", e.Comment)
		case "log-level":
			p.warn("--log-level %s is left out: %s.", sglang.FormatValue(e.Value), e.Comment)
		}
	}
	p.adviseNodes(c)
	p.advisePages(c)
	if on, _ := c["disable-radix-cache"].(bool); on && c["enable-hierarchical-cache"] == true {
		p.warn("SGLang refuses --enable-hierarchical-cache beside --disable-radix-cache: take one out.")
	}
	if mode, _ := c["disaggregation-mode"].(string); mode != "" && mode != "null" {
		p.warn("The server is one half of a prefill/decode pair (--disaggregation-mode %s): alone it serves no requests. Tune a whole server instead.", mode)
	}
	for i, e := range p.Flags {
		if sglang.Lossy(e.Name, e.Value) {
			p.Flags[i].Comment = joinComment(e.Comment, "may change answers")
			if e.Name == "kv-cache-dtype" {
				p.warn("The KV cache is %s: the baseline runs that way, every other trial with bf16, as the rule quality: bf16-only says.", sglang.FormatValue(e.Value))
			}
		}
	}
	if p.resolved {
		p.warn("This server does not tell what was typed: values it resolved itself, like mem-fraction-static, look like chosen ones.")
	}
	for _, note := range p.Launch.Notes {
		p.warn("%s", note)
	}
	if p.Assumed {
		p.warn("The version of SGLang is not known; defaults and names are those of %s, the newest known. Say yours with --sglang-version.", p.Version)
	}
}

func joinComment(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

func (p *Plan) adviseNodes(c sglang.Config) {
	nodes, _ := c.Float("nnodes")
	leftNodes := slices.ContainsFunc(p.Left, func(e Entry) bool { return e.Name == "nnodes" })
	if nodes <= 1 && !leftNodes {
		return
	}
	p.warn("The server spans several nodes (--nnodes): sgtune starts the process of this node only, so start the other ranks yourself before each trial, or tune on one node.")
	if rank, _ := c.Float("node-rank"); rank > 0 {
		p.warn("This is node %s; only node 0 answers requests: run sgtune there.", sglang.FormatValue(rank))
	}
}

func (p *Plan) advisePages(c sglang.Config) {
	page, hasPage := c.Float("page-size")
	chunk, hasChunk := c.Float("chunked-prefill-size")
	if hasPage && hasChunk && page > 1 && chunk > 0 && math.Mod(chunk, page) != 0 {
		p.warn("SGLang refuses a chunked-prefill-size (%s) that is no multiple of page-size (%s).", sglang.FormatValue(chunk), sglang.FormatValue(page))
	}
}
