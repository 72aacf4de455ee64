package ash

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"rnix/types"
)

// maxJobs is how many background commands may run at the same time.
const maxJobs = 500

// Agent is a process that the shell has started.
type Agent struct {
	PID  types.PID  `json:"pid"`
	UUID types.UUID `json:"uuid"`
	Name string     `json:"name,omitempty"`
	Job  int        `json:"job,omitempty"` // 0 = in the foreground
}

// job is a command that was started with &.
type job struct {
	id      int
	parent  int    // the job that started it; 0 = the foreground
	kind    string // jobAgent, jobProgram, jobCompound
	text    string
	started chan struct{} // closed when its first agent is known, or it has ended without one
	done    chan struct{} // closed when it has ended

	// Guarded by the table's lock.
	agents   []Agent
	children map[int]*os.Process // programs of this system, by pid
	begun    bool                // started is closed
	ended    bool                // done is closed
	answered chan struct{}       // closed when starting becomes 0; nil = nobody waits for that
	starting int                 // agents that are asked for, and not there yet
	killed   bool                // its next command is not run any more
	waited   bool                // its end has been told
	release  func() bool         // ends the watching of what would end it
	code     int                 // exit status, when ended
}

// What a job is.
const (
	jobAgent    = "agent"    // spawn ...
	jobProgram  = "program"  // another single command
	jobCompound = "compound" // anything else: it needs the shell to go on
)

// jobs are the background commands of a shell, its subshells' included.
type jobs struct {
	mu   sync.Mutex
	list map[int]*job // +checklocks:mu
	next int          // +checklocks:mu
}

// add makes a job. It fails if too many run.
func (t *jobs) add(parent int, kind, text string) (*job, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	alive := 0
	for id, j := range t.list {
		if !j.ended {
			alive++
		} else if j.waited || len(t.list) > 2*maxJobs {
			delete(t.list, id)
		}
	}
	if alive >= maxJobs {
		return nil, types.Errorf(types.ErrExhausted, "", "", "%d background commands run already, and no more may; wait for some of them with: wait -n", alive)
	}
	t.next++
	j := &job{id: t.next, parent: parent, kind: kind, text: text, started: make(chan struct{}), done: make(chan struct{}), children: map[int]*os.Process{}}
	if t.list == nil {
		t.list = map[int]*job{}
	}
	t.list[j.id] = j
	return j, nil
}

func (t *jobs) get(id int) *job {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.list[id]
}

// agent notes an agent that a job has started.
func (t *jobs) agent(j *job, a Agent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j.agents = append(j.agents, a)
	if !j.begun {
		j.begun = true
		close(j.started)
	}
}

// until keeps what ends the watching of a context that would end a job.
func (t *jobs) until(j *job, release func() bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j.release = release
}

// end notes that a job has ended. Only the first call counts.
func (t *jobs) end(j *job, code int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j.ended {
		return
	}
	j.ended, j.code = true, code
	if j.release != nil {
		j.release()
	}
	if !j.begun {
		j.begun = true
		close(j.started)
	}
	close(j.done)
}

// word returns how a job is named by $!: the PID of its agent if that is what it is, else %n.
func (t *jobs) word(j *job) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j.kind == jobAgent && len(j.agents) > 0 {
		return j.agents[0].PID.String()
	}
	return "%" + strconv.Itoa(j.id)
}

// find returns the job that a word names: %n, or the PID or the name of one of its agents. The last job
// counts if several do.
func (t *jobs) find(word string) *job {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n, ok := strings.CutPrefix(word, "%"); ok {
		id, err := strconv.Atoi(n)
		if n == "" || n == "%" || n == "+" {
			id, err = t.next, nil
		}
		if err != nil {
			return nil
		}
		return t.list[id]
	}
	for _, id := range slices.SortedFunc(maps.Keys(t.list), func(a, b int) int { return cmp.Compare(b, a) }) {
		for _, a := range t.list[id].agents {
			if a.PID.String() == word || a.UUID.String() == word || a.Name != "" && a.Name == word {
				return t.list[id]
			}
		}
	}
	return nil
}

// of returns the jobs that a shell has started, in their order, those that are still to be waited for if
// pending is asked for.
func (t *jobs) of(parent int, pending bool) []*job {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*job
	for _, id := range slices.Sorted(maps.Keys(t.list)) {
		if j := t.list[id]; j.parent == parent && (!pending || !j.waited) {
			out = append(out, j)
		}
	}
	return out
}

// take notes that the end of a job has been told, and returns how it ended.
func (t *jobs) take(j *job) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	j.waited = true
	return j.code
}

// line describes a job for people.
func (t *jobs) line(j *job) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	state := "running"
	switch {
	case j.ended && j.code == 0:
		state = "done"
	case j.ended:
		state = fmt.Sprintf("exit %d", j.code)
	case j.killed:
		state = "ending"
	}
	pids := ""
	for _, a := range j.agents {
		pids += " " + a.PID.String()
	}
	if pids != "" {
		pids = "  PID" + pids
	}
	return fmt.Sprintf("[%d]  %-8s%s  %s", j.id, state, pids, j.text)
}

// child notes a program of this system that works for a job, until drop.
func (t *jobs) child(j *job, p *os.Process) (drop func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j.children[p.Pid] = p
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(j.children, p.Pid)
	}
}

// asking notes that a job has asked for an agent; answered is called when the answer has come, whatever
// it is.
func (t *jobs) asking(j *job) (answered func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j.starting++
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		j.starting--
		if j.starting == 0 && j.answered != nil {
			close(j.answered)
			j.answered = nil
		}
	})
}

// settled returns a channel that is closed when a job waits for no agent to be started, nil if none does.
func (t *jobs) settled(j *job) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j.starting == 0 || j.ended {
		return nil
	}
	if j.answered == nil {
		j.answered = make(chan struct{})
	}
	return j.answered
}

// reach returns what a job has started; a job that is to end runs no further command.
func (t *jobs) reach(j *job, end bool) (agents []Agent, programs []*os.Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j.killed = j.killed || end
	return slices.Clone(j.agents), slices.Collect(maps.Values(j.children))
}

func (t *jobs) isKilled(j *job) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return j.killed
}

// cut returns the jobs of which something is lost when the shell ends now.
func (t *jobs) cut() []*job {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*job
	for _, id := range slices.Sorted(maps.Keys(t.list)) {
		if j := t.list[id]; !j.ended && j.kind == jobCompound {
			out = append(out, j)
		}
	}
	return out
}

func (t *jobs) all() []*job {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.list))
}
