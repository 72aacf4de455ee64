package permit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"rnix/types"
)

// Scope is for whom an answer counts.
type Scope string

// The scopes.
const (
	ForCall    Scope = "call"    // for the call that was asked about, alone
	ForProcess Scope = "process" // for this process, over all its runs
	ForFamily  Scope = "family"  // for all that descend from the one that a person has started
)

// Grant lets calls pass that rules would ask about. Part of the on-disk format.
type Grant struct {
	Number uint64    `json:"number"` // of the ask with whose answer it was given, by which it is taken back
	Scope  Scope     `json:"scope"`
	Tool   string    `json:"tool"`            // its name
	Match  string    `json:"match,omitempty"` // a pattern, as in a rule; empty = Exact
	Exact  string    `json:"exact,omitempty"` // the same call: its command, its files, or its input
	Cwd    string    `json:"cwd,omitempty"`   // with Exact: in which directory the command is run, as the call says it
	Until  time.Time `json:"until,omitzero"`  // zero = it does not end by itself
}

// NewGrant returns what is granted with the answer to an ask about a call. match is a pattern, as in a rule, or empty: then the same call
// again, and nothing else. INVALID says what is wrong, such as a pattern that does not cover the call itself.
func NewGrant(number uint64, c *Call, scope Scope, match string, until time.Time) (Grant, error) {
	g := Grant{Number: number, Scope: scope, Tool: c.Tool, Match: strings.Join(strings.Fields(match), " "), Until: until}
	if name := c.unclear(); name != "" {
		return Grant{}, types.Errorf(types.ErrInvalid, "Allow", name, "the input has a field %q, which can be taken for another one: only this call itself can be allowed, or denied", cut(name))
	}
	if g.Match == "" {
		g.Exact, g.Cwd = sameAs(c), cwdOf(c)
		return g, nil
	}
	rule, err := Parse(g.rule())
	if err != nil {
		return Grant{}, err
	}
	if !rule.covers(c) {
		return Grant{}, types.Errorf(types.ErrInvalid, "Allow", strconv.FormatUint(number, 10), "%q does not cover what is asked about: %s %s", cut(match), c.Tool, cut(c.On()))
	}
	return g, nil
}

// maxExact is how long an input may be that is kept as it is, in bytes; of a longer one its SHA-256 is.
const maxExact = 200

// sameAs returns what calls have in common that are the same to a person: the command, the files, or where neither is known the input.
func sameAs(c *Call) string {
	if on := c.On(); on != "" || c.Shell() {
		return on
	}
	var b bytes.Buffer
	if json.Compact(&b, c.Input) != nil {
		b.Reset()
		b.Write(c.Input)
	}
	if b.Len() <= maxExact {
		return b.String()
	}
	sum := sha256.Sum256(b.Bytes())
	return "sha256:" + hex.EncodeToString(sum[:])
}

// cwdOf returns where a command is run, as the call says it.
func cwdOf(c *Call) string {
	if !c.Shell() {
		return ""
	}
	return c.field(cwdField)
}

func (g *Grant) rule() string { return g.Tool + " " + g.Match }

// Covers reports whether a call passes because of the grant, at a time.
func (g *Grant) Covers(c *Call, now time.Time) bool {
	switch {
	case g.Tool != c.Tool || c.unclear() != "" || !g.Until.IsZero() && !now.Before(g.Until):
		return false
	case g.Match == "":
		return g.Exact == sameAs(c) && g.Cwd == cwdOf(c)
	}
	rule, err := Parse(g.rule())
	return err == nil && rule.covers(c)
}

// String says what is granted.
func (g *Grant) String() string {
	switch {
	case g.Match != "":
		return g.rule()
	case g.Exact != "":
		return g.Tool + " " + g.Exact
	}
	return g.Tool
}
