package profile

import (
	"path/filepath"

	"rnix/agent"
	"rnix/internal/trust"
)

// pin is the trust of a person in a project as its files were when the person looked at them.
type pin struct {
	book  trust.Book
	dir   string
	plain func() *Profile // reads the profile without that trust
}

// holds reports whether the files are still what they were.
func (t *pin) holds() bool {
	state, _, err := t.book.Status(t.dir)
	return err == nil && state == trust.Trusted
}

// trusted reports whether a person has trusted a project with rnix trust. problem is what people should know of that; "" if nothing.
func (r *Reader) trusted(project string) (t *pin, problem string) {
	dir, err := filepath.EvalSymlinks(project)
	if err != nil {
		return nil, ""
	}
	book := trust.In(r.UserDir)
	state, changes, err := book.Status(dir)
	const look = "; nothing of it is trusted until you look at it with: rnix trust "
	switch {
	case err != nil:
		return nil, "whether the project is trusted cannot be told: " + err.Error()
	case state == trust.Changed:
		return nil, "the project has changed since you trusted it (" + trust.Names(changes) + ")" + look + dir
	case state == trust.Trusted:
		return &pin{book: book, dir: dir}, ""
	}
	return nil, ""
}

// TrustAsked reports whether trust in the project was asked for with what was started, as with --trust-project. What a person has trusted with
// rnix trust is not asked for by anybody: it holds for all.
func (p *Profile) TrustAsked() bool { return p.Trust && p.pin == nil }

// Trusts reports whether the project is trusted at this moment: what rnix trust was asked for holds while its files are what they were.
func (p *Profile) Trusts() bool { return p.Trust && (p.pin == nil || p.pin.holds()) }

// load returns an agent as the files of the project say now, with the trust that they have.
func (p *Profile) load(name string, extraMCP []string) (*agent.Agent, error) {
	ag, err := p.Catalog.Load(name, agent.LoadOptions{WorkDir: p.Cwd, ProjectDir: p.project, Servers: p.Servers, ExtraMCP: extraMCP, TrustProject: p.Trust})
	if p.pin == nil || p.pin.holds() { // after they were read
		return ag, err
	}
	return p.pin.plain().load(name, extraMCP)
}
