// Package weigh bounds the tokens of prompts by what the vendors of models have counted of earlier ones: what stands between a budget in dollars and a prompt of
// any text. It knows no process, no request and no price.
package weigh

import (
	"hash/maphash"
	"strings"
	"sync"
)

// Part is a piece of a prompt, such as a message or a tool. A prompt has no more tokens than one that was counted and the parts that are not in that together.
type Part struct {
	Sum  uint64 // of its bytes, another one in each run of the program
	Most int    // tokens, at most: a token has one byte at least
}

// Room is what a vendor may add to a prompt, such as what it tells the model of its tools, in tokens. Anthropic says some 700 at most.
const Room = 1024

var sums = sync.OnceValue(maphash.MakeSeed)

// Of is a part of these bytes.
func Of(b []byte) Part { return Part{maphash.Bytes(sums(), b), len(b)} }

// Added is the part that each prompt has, beside what is sent: see Room.
func Added() Part { return Part{Most: Room} }

// Both is one part in the place of two.
func Both(a, b Part) Part {
	return Part{maphash.Comparable(sums(), [2]uint64{a.Sum, b.Sum}), a.Most + b.Most}
}

// maxParagraphs bounds the parts of a text, of which the last has the rest.
const maxParagraphs = 64

// Text returns the paragraphs of a text as parts, so that one with another last paragraph is known but for that.
func Text(s string) (parts []Part) {
	for p := range strings.SplitSeq(s, "\n\n") {
		part := Of([]byte(p))
		part.Most += len("\n\n")
		if n := len(parts); n == maxParagraphs {
			parts[n-1] = Both(parts[n-1], part)
			continue
		}
		parts = append(parts, part)
	}
	return parts
}

// Same reports whether a vendor that was asked for a model has answered with it, or with a dated name of it: another model counts in another way. "" is not said. The
// latest of a model, and a way of serving it (model:free), are that model.
func Same(asked, answered string) bool {
	asked, _, _ = strings.Cut(asked, ":")
	asked = strings.TrimSuffix(asked, "-latest")
	return answered == "" || strings.HasPrefix(answered, asked) || strings.HasPrefix(answered, asked[strings.LastIndex(asked, "/")+1:])
}
