package cli

import "rnix/types"

// labelFlag is the value of --label: KEY=VALUE. The flag may be repeated.
type labelFlag struct{ labels *types.Labels }

// String returns the flag's value.
func (f labelFlag) String() string {
	if f.labels == nil {
		return ""
	}
	return f.labels.String()
}

// Type names the kind of value in the help.
func (f labelFlag) Type() string { return "KEY=VALUE" }

// Set adds a label.
func (f labelFlag) Set(text string) error {
	if *f.labels == nil {
		*f.labels = types.Labels{}
	}
	return f.labels.Set(text)
}
