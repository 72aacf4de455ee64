package recovery

// Finished reports whether the run has ended but for the record of it: its model has given the last answer, and
// nobody has said anything since.
func Finished(s *State) bool {
	return s.Ending != nil && s.Open == nil && len(s.Inputs) == 0 && len(s.Mail) == 0
}
