package ash

import (
	"fmt"

	"mvdan.cc/sh/v3/syntax"
)

// The interpreter tells its handlers neither which background command they work for nor which loop they
// stand in, and knows a background command as g1. So the text is completed before it is interpreted, by
// commands of our own that keep this in shell variables; no line break is added, and at finds the
// places again.
const (
	varJob    = "_rnix_job"  // the job that the code belongs to; unset = none, it is in the foreground
	varLast   = "_rnix_last" // the job that was started last; what becomes of $!
	varLoop   = "_rnix_loop" // the standard input of the loop that the code stands in
	varSource = "_rnix_src"  // the source that the code comes from; unset = the first one

	cmdJob     = "_rnix_newjob"
	cmdStarted = "_rnix_started"
	cmdEnded   = "_rnix_ended"
	cmdLoop    = "_rnix_inloop"
	cmdFail    = "_rnix_fail"
	cmdWrote   = "_rnix_wrote"

	ownPrefix = "_rnix_"
)

// rewrite notes the edits that make of the text what is interpreted.
func (s *source) rewrite(file *syntax.File) {
	put := func(pos syntax.Pos, text string) { s.edits = append(s.edits, edit{at: int(pos.Offset()), put: text}) }
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			return !n.Backquotes // quoting has rules of its own there
		case *syntax.FuncDecl:
			if n.Name != nil {
				s.funcs = append(s.funcs, n.Name.Value)
			}
		case *syntax.Stmt:
			if n.Background && n.Cmd != nil {
				s.job(n, put)
			} else {
				s.written(n)
			}
		case *syntax.WhileClause:
			if len(n.Do) > 0 {
				put(n.Do[0].Pos(), cmdLoop+"; ")
			}
		case *syntax.ParamExp:
			if n.Param != nil && n.Param.Value == "!" && !n.Length && !n.Width {
				s.last(n)
			}
		}
		return true
	})
}

// job makes of `command &` a job of ours: it has a number, its end is noted however it comes, and $! is
// known when the next command runs.
func (s *source) job(n *syntax.Stmt, put func(syntax.Pos, string)) {
	from, to := n.Pos(), n.Semicolon
	text := s.text[from.Offset():to.Offset()]
	kind := jobCompound
	if c, ok := n.Cmd.(*syntax.CallExpr); ok && len(c.Args) > 0 {
		kind = jobProgram
		if c.Args[0].Lit() == "spawn" {
			kind = jobAgent
		}
	}
	put(from, fmt.Sprintf("%s %s %s; { %s=$%s; ( ", cmdJob, kind, quote(shorten(text)), varJob, varLast))
	s.written(n)
	put(to, fmt.Sprintf(" ) && %s 0 || %s $?; } </dev/null ", cmdEnded, cmdEnded))
	s.edits = append(s.edits, edit{at: int(to.Offset()) + 1, put: " " + cmdStarted + ";"})
}

// last makes of $! the variable that has the last job.
func (s *source) last(n *syntax.ParamExp) {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if n.Short {
		s.edits = append(s.edits, edit{at: from, cut: to - from, put: "${" + varLast + "}"})
		return
	}
	s.edits = append(s.edits, edit{at: int(n.Param.Pos().Offset()), cut: 1, put: varLast})
}

// written lets a command fail whose output could not be written to the name space: that is only known
// when the file is closed, and then the interpreter asks nobody any more.
func (s *source) written(n *syntax.Stmt) {
	if _, decl := n.Cmd.(*syntax.FuncDecl); decl || n.Cmd == nil || n.Negated || n.Coprocess {
		return
	}
	end, paths := n.Cmd.End(), ""
	for _, r := range n.Redirs {
		if r.Hdoc != nil || r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc {
			return // its text stands behind the line
		}
		if r.End().After(end) {
			end = r.End()
		}
		switch r.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll:
			if path := r.Word.Lit(); inSpace(path) {
				paths += " " + quote(path)
			}
		}
	}
	if paths != "" {
		s.edits = append(s.edits, edit{at: int(n.Pos().Offset()), put: "{ "}, edit{at: int(end.Offset()), put: " ; " + cmdWrote + " $?" + paths + "; }"})
	}
}

// shorten returns the beginning of a command, on one line, for people.
func shorten(text string) string {
	const most = 60
	out := make([]rune, 0, most)
	for _, r := range text {
		if r < ' ' {
			r = ' '
		}
		if len(out) == most {
			return string(out) + "..."
		}
		out = append(out, r)
	}
	for len(out) > 0 && out[len(out)-1] == ' ' {
		out = out[:len(out)-1]
	}
	return string(out)
}

// quote returns a word that the shell reads as text.
func quote(text string) string {
	q, err := syntax.Quote(text, syntax.LangBash)
	if err != nil { // a zero byte, which no source has
		return "''"
	}
	return q
}
