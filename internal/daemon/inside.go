package daemon

import (
	"os"
	"strconv"
	"strings"

	"rnix/ipc"
	"rnix/types"
)

// agentOf returns the process inside which a caller runs: the owner of the OS child that the caller
// is, or descends from. A caller whose ancestry cannot be read is taken for the user: it has the
// user's uid, and no more than the user's rights.
func (d *Daemon) agentOf(peer *ipc.Peer) (types.PID, bool) {
	if peer == nil || peer.PID <= 0 {
		return 0, false
	}
	owners := map[int]types.PID{}
	for _, c := range d.procs.All() {
		if c.Owner != 0 {
			owners[c.PID] = c.Owner
		}
	}
	if len(owners) == 0 {
		return 0, false
	}
	self := os.Getpid()
	for pid, n := peer.PID, 0; pid > 1 && pid != self && n < maxAncestors; n++ {
		ppid, session, ok := parentAndSession(pid)
		for _, id := range []int{pid, session} {
			if owner, inside := owners[id]; inside {
				return owner, true
			}
		}
		if !ok {
			break
		}
		pid = ppid
	}
	return 0, false
}

const maxAncestors = 64

// parentAndSession reads fields 4 and 6 of /proc/<pid>/stat (proc(5)).
func parentAndSession(pid int) (ppid, session int, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	s := string(b)
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:]) // the name in parentheses may hold anything
	if len(fields) < 4 {
		return 0, 0, false
	}
	ppid, err1 := strconv.Atoi(fields[1])
	session, err2 := strconv.Atoi(fields[3])
	return ppid, session, err1 == nil && err2 == nil
}

// mayTouch refuses a caller inside an agent that acts on a process outside that agent's subtree.
func (d *Daemon) mayTouch(peer *ipc.Peer, op string, pid types.PID) error {
	owner, inside := d.agentOf(peer)
	if !inside || d.inSubtree(owner, pid) {
		return nil
	}
	e := types.Errorf(types.ErrPermission, op, "", "the caller runs inside process %d and may act on its own subtree only", owner)
	e.PID = pid
	return e
}
