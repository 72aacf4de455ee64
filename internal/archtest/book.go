package archtest

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Where the texts lie, from the root of the module.
const (
	floorsFile     = "internal/archtest/floors.txt"
	modulesFile    = "internal/archtest/modules.txt"
	exceptionsFile = "internal/archtest/exceptions.txt"
)

// Book is what the three texts say.
type Book struct {
	Floors     []Floor
	Only       []Only
	Never      []Never
	Sets       []Set
	Named      []Named
	Small      []Small
	Plain      []string // packages in which no type is nothing but another one
	Suites     []string // packages that tests of any floor may import
	Modules    []Module
	Exceptions []Exception
}

// Floor is one line "floor N name packages...".
type Floor struct {
	Number   int
	Name     string
	Patterns []string
}

// Only is one line "only packages... <- importers...": nobody else imports these packages.
type Only struct {
	Packages, Importers []string
}

// Never is one line "never importers... -> packages...": these do not import these packages, though they stand before them.
type Never struct {
	Importers, Packages []string
}

// Module is one line "module <- importers...: reason". The importer "tests" is every test file and
// every suite.
type Module struct {
	Path      string
	Importers []string
	Reason    string
	Pos       string
}

// Exception is one line "rule key: reason".
type Exception struct {
	Rule, Key, Reason, Pos string
}

func (e Exception) id() string { return e.Rule + " " + e.Key }

func (b *Book) exception(f Finding) (Exception, bool) {
	i := slices.IndexFunc(b.Exceptions, func(e Exception) bool { return e.Rule == f.Rule && e.Key == f.Key })
	if i < 0 {
		return Exception{}, false
	}
	return b.Exceptions[i], true
}

// ReadBook reads the texts. A line that cannot be read is an error that names it.
func ReadBook(fsys fs.FS) (*Book, error) {
	b := &Book{}
	for file, read := range map[string]func(line string) error{
		floorsFile: b.readFloors, modulesFile: b.readModule, exceptionsFile: b.readException,
	} {
		text, err := fs.ReadFile(fsys, file)
		if err != nil {
			return nil, err
		}
		for i, line := range strings.Split(string(text), "\n") {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if err := read(line); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
			}
			b.place(file, i+1)
		}
	}
	return b, nil
}

// place gives the entry that was read last its position.
func (b *Book) place(file string, line int) {
	pos := fmt.Sprintf("%s:%d", file, line)
	switch file {
	case modulesFile:
		b.Modules[len(b.Modules)-1].Pos = pos
	case exceptionsFile:
		b.Exceptions[len(b.Exceptions)-1].Pos = pos
	}
}

func (b *Book) readFloors(line string) error {
	words := strings.Fields(line)
	switch {
	case words[0] == "floor" && len(words) > 3:
		n, err := strconv.Atoi(words[1])
		if err != nil || n != len(b.Floors) {
			return fmt.Errorf("floor %q: the floors are numbered from 0, upwards", words[1])
		}
		b.Floors = append(b.Floors, Floor{Number: n, Name: words[2], Patterns: words[3:]})
	case words[0] == "only" && slices.Index(words, "<-") > 1:
		i := slices.Index(words, "<-")
		b.Only = append(b.Only, Only{Packages: words[1:i], Importers: words[i+1:]})
	case words[0] == "never" && slices.Index(words, "->") > 1:
		i := slices.Index(words, "->")
		b.Never = append(b.Never, Never{Importers: words[1:i], Packages: words[i+1:]})
	case words[0] == "set" && len(words) > 2:
		set, err := readSet(words)
		if err != nil {
			return err
		}
		b.Sets = append(b.Sets, set)
	case words[0] == "named":
		named, err := readNamed(words)
		if err != nil {
			return err
		}
		b.Named = append(b.Named, named)
	case words[0] == "small" && len(words) == 3:
		small, err := readSmall(words)
		if err != nil {
			return err
		}
		b.Small = append(b.Small, small)
	case words[0] == "plain" && len(words) > 1:
		b.Plain = append(b.Plain, words[1:]...)
	case words[0] == "suites":
		b.Suites = append(b.Suites, words[1:]...)
	default:
		return fmt.Errorf("%q: use \"floor N name packages\", \"only packages <- importers\", \"never importers -> packages\", \"set package Type.Field\", \"named package Names <- packages\", \"small package LINES\", \"plain packages\" or \"suites packages\"", line)
	}
	return nil
}

func (b *Book) readModule(line string) error {
	head, reason, ok := strings.Cut(line, ": ")
	words := strings.Fields(head)
	if !ok || len(words) < 3 || words[1] != "<-" {
		return fmt.Errorf("%q: use \"module <- importers: reason\"", line)
	}
	b.Modules = append(b.Modules, Module{Path: words[0], Importers: words[2:], Reason: reason})
	return nil
}

func (b *Book) readException(line string) error {
	head, reason, ok := strings.Cut(line, ": ")
	words := strings.Fields(head)
	if !ok || len(words) != 2 {
		return fmt.Errorf("%q: use \"rule key: reason\"", line)
	}
	if !slices.ContainsFunc(Rules(), func(r Rule) bool { return r.Name == words[0] }) {
		return fmt.Errorf("there is no rule %q", words[0])
	}
	b.Exceptions = append(b.Exceptions, Exception{Rule: words[0], Key: words[1], Reason: reason})
	return nil
}

// room is where a package stands: its floor and its place there.
type room struct{ floor, place int }

// before reports whether a package at r may be imported by one at o.
func (r room) before(o room) bool {
	return r.floor < o.floor || r.floor == o.floor && r.place < o.place
}

// find returns the room of a package. A name stands before every pattern.
func (b *Book) find(pkg string) (room, bool) {
	for _, exact := range []bool{true, false} {
		for _, f := range b.Floors {
			for i, p := range f.Patterns {
				if exact == (p == pkg) && matches(p, pkg) {
					return room{f.Number, i}, true
				}
			}
		}
	}
	return room{}, false
}

// matches reports whether pkg is pattern; a * stands for one element of a path.
func matches(pattern, pkg string) bool {
	ok, err := path.Match(pattern, pkg)
	return err == nil && ok
}

func matchesAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, pkg) })
}
