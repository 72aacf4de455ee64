package types

// MaxDenials is how many denials are kept of a process: the first ones.
const MaxDenials = 50

// Denial is a call that was not made, because a rule or a person has refused it. Part of the on-disk and of the wire format.
type Denial struct {
	Tool string `json:"tool"`
	Text string `json:"text"` // the call in a line
	Why  string `json:"why"`  // the rule, or what the person has said
	// Unasked says that a person should have been asked about it, and none was there.
	Unasked bool `json:"unasked,omitempty"`
}

// Denials are the calls of a process that were refused.
type Denials struct {
	Denied  int      `json:"denied,omitempty"`  // how many
	Denials []Denial `json:"denials,omitempty"` // the first MaxDenials of them
}

// Add returns denials with one more. It does not change those that it is called on.
func (d Denials) Add(one Denial) Denials {
	d.Denied++
	if len(d.Denials) < MaxDenials {
		d.Denials = append(d.Denials[:len(d.Denials):len(d.Denials)], one)
	}
	return d
}
