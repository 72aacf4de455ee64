package trace

import (
	"rnix/internal/step"
	"rnix/types"
)

// saidLength is how much of the end of an answer is kept to see how a command ended, in bytes.
const saidLength = 1000

// ended notes that a call has answered.
func (c *callState) ended(text string) { c.said = text[max(len(text)-saidLength, 0):] }

// outcome says of a call that has ended how it failed, if it did.
func (b stepper) outcome(c *callState) {
	s := &c.span.Span
	if s.Open || s.Failure != "" {
		return
	}
	var problem string
	var code types.ErrCode
	if s.Status == Failed {
		problem, code = s.Err, s.Code
		if problem == "" && code == "" {
			problem = "it failed"
		}
	}
	f := step.FailureOf(s.Path, c.said, problem, code)
	if s.Failure, s.ExitCode = f.Kind, f.Exit; f.Kind == "" || s.Status == Failed {
		return
	}
	if s.Status, s.Err = Failed, bounded(f.Text); f.Answered {
		c.span.told = s.Err
	}
}

// code gives the request that ended the process the code of that end: the record of a step has none.
func code(p *node) {
	for i := len(p.kids) - 1; i >= 0; i-- {
		s := p.kids[i]
		if s.Kind != Step {
			continue
		}
		for _, k := range s.kids {
			if k.Kind == Model && k.Status == Failed && k.Code == "" && s.Status == Failed {
				k.Code = p.Code
			}
		}
		return
	}
}

// stepCodes gives each step that failed the code of what failed in it.
func stepCodes(p *node) {
	for _, s := range p.kids {
		if s.Kind != Step || s.Status != Failed || s.Code != "" {
			continue
		}
		if k := failingPart(s); k != nil {
			s.Code = k.Code
		}
	}
}
