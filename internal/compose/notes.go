package compose

import "strings"

// Notes says what is right, and may not be meant: nodes that run although all that they wait for has failed, and nodes that do not see the
// work of those that they wait for.
func (f *File) Notes() (out []string) {
	for _, name := range f.Plan().Order {
		if of := f.blind(name); len(of) > 0 {
			out = append(out, name+" does not see the files of "+strings.Join(of, ", ")+", which are in work trees: give it worktree: true if it is to begin with them")
		}
	}
	return append(f.anyways(), out...)
}

// anyways says which nodes run although all that they wait for has failed.
func (f *File) anyways() []string {
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
