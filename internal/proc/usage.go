package proc

// Resident returns the resident memory in bytes of each living child of a manager, by pid, with that of its descendants; what
// processes share counts for each. It reads the process table once, whatever there is to be added up: who calls it often
// waits between the calls. Where there is no process table the map is empty.
func Resident(m *Manager) map[int]int64 {
	m.mu.Lock()
	out := make(map[int]int64, len(m.children))
	for pid := range m.children {
		out[pid] = 0
	}
	m.mu.Unlock()
	if len(out) == 0 {
		return out
	}
	table := processTable()
	parent := make(map[int]int, len(table))
	for i := range table {
		parent[table[i].PID] = table[i].parent
	}
	for i := range table {
		// At most as many steps as there are processes: the table is not of one moment.
		for pid, left := table[i].PID, len(table); pid > 1 && left > 0; pid, left = parent[pid], left-1 {
			if sum, ours := out[pid]; ours {
				out[pid] = sum + table[i].resident
				break
			}
		}
	}
	return out
}
