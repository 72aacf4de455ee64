package compose

import "strings"

// Notes says what is right, and may not be meant: nodes that run although all that they wait for has failed.
func (f *File) Notes() []string {
	var names []string
	for _, name := range f.Plan().Order {
		if d := f.Agents[name].DependsOn; d != nil && anyway(d.On) {
			names = append(names, name)
		}
	}
	switch len(names) {
	case 0:
		return nil
	case 1:
		return []string{names[0] + " runs even if all that it waits for fails: each of its conditions is completed"}
	}
	return []string{strings.Join(names, ", ") + " run even if all that they wait for fails: each of their conditions is completed"}
}

// anyway reports whether nothing stops a node that waits.
func anyway(on map[string]Condition) bool {
	for _, c := range on {
		if c != OnCompleted {
			return false
		}
	}
	return len(on) > 0
}
