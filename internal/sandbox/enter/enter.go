// Package enter is the last step into a box: it gives up what a command must not have, and executes the command in the place of this program.
//
// It is a matter of how fast a confined command starts. That step is this program again, and before main all packages of a program are initialized, which
// takes ten times as long as the step itself. So package early does it while it is initialized, which is before nearly all others: the language
// initializes packages in the order of their import paths, each as soon as all that it imports are
// (https://go.dev/ref/spec#Program_initialization), and these two import nothing but syscall. For that they do without fmt, os and encoding/*.
// In another order it would be the same, later.
//
// What is decided, and made from names, was before, by package sandbox: this package takes numbers, descriptors and a program for the kernel's filter.
package enter

// Variable is the environment variable that has a program do this step: the number of the descriptor with the job. Whoever starts a box
// sets it, and the command does not have it.
const Variable = "RNIX_BOX_JOB"

// NotRun is the exit status if the command was not executed.
const NotRun = 125

// Running is what is written to Job.Says right before the command is executed.
const Running = 'R'

// Job is what is to be done.
type Job struct {
	// Says is the descriptor that Running is written to, or why the command was not executed. It is closed when the command was. With Listen it is a socket, and
	// the listeners come with Running.
	Says int
	// Stderr is the descriptor that is to be the command's standard error; 0 = it is that already.
	Stderr int
	// Rules is the descriptor of a ruleset of Landlock to be confined by; 0 = none.
	Rules int
	// Adopts says that what the command has started stays below it, also when what has started it has ended.
	Adopts bool
	Limits []Limit
	// Filter is a seccomp program: eight bytes for each instruction, in the order of this machine.
	Filter []byte
	Keep   []int    // descriptors that the command inherits beside its three streams
	Listen []uint16 // different ports of 127.0.0.1

	Path, Dir string // absolute
	Args, Env []string
}

// Limit is a limit of resources. One that is lower already stays; package syscall has raised the soft one of open files to the hard one before.
type Limit struct {
	Name  string // for errors
	Which int    // as RLIMIT_NOFILE
	Value uint64
}

// version begins each job, and is another one whenever the form of jobs is: the file of a program may be replaced by a newer one while its daemon runs.
const version = 0x1_786E_7221

// Encode returns a job as bytes, for Variable's descriptor.
func (j *Job) Encode() []byte {
	var e encoder
	e.number(version)
	e.number(uint64(j.Says))
	e.number(uint64(j.Stderr))
	e.number(uint64(j.Rules))
	if j.Adopts {
		e.number(1)
	} else {
		e.number(0)
	}
	e.number(uint64(len(j.Limits)))
	for _, l := range j.Limits {
		e.text(l.Name)
		e.number(uint64(l.Which))
		e.number(l.Value)
	}
	e.text(string(j.Filter))
	e.number(uint64(len(j.Keep)))
	for _, fd := range j.Keep {
		e.number(uint64(fd))
	}
	e.number(uint64(len(j.Listen)))
	for _, port := range j.Listen {
		e.number(uint64(port))
	}
	e.text(j.Path)
	e.text(j.Dir)
	e.list(j.Args)
	e.list(j.Env)
	return e
}

// Decode returns the job of which these are the bytes. They must be all of them and no more.
func Decode(b []byte) (*Job, error) {
	d := decoder{rest: b}
	if d.number() != version {
		return nil, failure("the job is of another version of rnix: its file was replaced while the daemon runs; stop that with: rnix daemon stop")
	}
	j := &Job{Says: int(d.number()), Stderr: int(d.number()), Rules: int(d.number()), Adopts: d.number() == 1}
	for range d.count() {
		j.Limits = append(j.Limits, Limit{Name: d.text(), Which: int(d.number()), Value: d.number()})
	}
	j.Filter = []byte(d.text())
	for range d.count() {
		j.Keep = append(j.Keep, int(d.number()))
	}
	for range d.count() {
		j.Listen = append(j.Listen, uint16(d.number()))
	}
	j.Path, j.Dir, j.Args, j.Env = d.text(), d.text(), d.list(), d.list()
	if d.bad || len(d.rest) > 0 {
		return nil, failure("the job is damaged")
	}
	return j, nil
}

// failure is an error that is only a text.
type failure string

func (f failure) Error() string { return string(f) }

const word = 8 // bytes of a number

// encoder is what was written: numbers of eight bytes, the lowest first, and texts behind their length.
type encoder []byte

func (e *encoder) number(n uint64) {
	for i := range word {
		*e = append(*e, byte(n>>(8*i)))
	}
}

func (e *encoder) text(s string) {
	e.number(uint64(len(s)))
	*e = append(*e, s...)
}

func (e *encoder) list(l []string) {
	e.number(uint64(len(l)))
	for _, s := range l {
		e.text(s)
	}
}

// decoder reads what an encoder wrote; bad = it did not.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) take(n uint64) []byte {
	if d.bad || n > uint64(len(d.rest)) {
		d.bad = true
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) number() (n uint64) {
	for i, b := range d.take(word) {
		n |= uint64(b) << (8 * i)
	}
	return n
}

// count is the number of what follows, each of which takes eight bytes or more.
func (d *decoder) count() uint64 {
	n := d.number()
	if n > uint64(len(d.rest))/word {
		d.bad = true
		return 0
	}
	return n
}

func (d *decoder) text() string { return string(d.take(d.number())) }

func (d *decoder) list() []string {
	l := []string{}
	for range d.count() {
		l = append(l, d.text())
	}
	return l
}
