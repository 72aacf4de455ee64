package plumbing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// However long a way of links is that an agent lays from one directory to another, it is followed as far as git can follow it, and no further.
func TestALongWayOfLinksIsFollowedAsFarAsGitCan(t *testing.T) {
	dir := Resolved(t.TempDir())
	const leads = 200
	for i := range leads {
		if err := errors.Join(os.Mkdir(fmt.Sprintf("%s/d%d", dir, i), 0o700), os.Symlink(fmt.Sprintf("%s/d%d", dir, i+1), fmt.Sprintf("%s/d%d/l", dir, i))); err != nil {
			t.Fatal(err)
		}
	}
	end := fmt.Sprintf("%s/d%d", dir, leads)
	if err := errors.Join(os.Mkdir(end, 0o700), syscall.Mkfifo(end+"/pipe", 0o600)); err != nil {
		t.Fatal(err)
	}
	look := func(from int) bool {
		return Where{Gits: []string{fmt.Sprintf("%s/d%d", dir, from)}}.pipe(t.Context(), "") != nil
	}
	if look(0) {
		t.Errorf("%d links are followed", leads)
	}
	if !look(leads - mostLeads) {
		t.Errorf("%d links are not followed", mostLeads)
	}
}

// What an agent lets a repository borrow from is looked at and remembered within bounds, and not once the git has ended.
func TestAlternatesWithoutEndAreNotFollowedForEver(t *testing.T) {
	dir := Resolved(t.TempDir())
	var list strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&list, "a%d\n", i)
	}
	one := dir + "/0/objects/info/alternates"
	for i := range 20 {
		info := fmt.Sprintf("%s/%d/objects/info", dir, i)
		err := os.MkdirAll(info, 0o700)
		if i == 0 {
			err = errors.Join(err, os.WriteFile(one, []byte(list.String()), 0o600))
		} else {
			err = errors.Join(err, os.Link(one, info+"/alternates"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, p := range map[string]*pipes{
		"entries": {ctx: t.Context(), left: 1000, room: mostNames},
		"names":   {ctx: t.Context(), left: mostEntries, room: 1000 * heldName},
		"ended":   {ctx: ended, left: mostEntries, room: mostNames},
	} {
		p.seen = map[string]bool{}
		p.repository(dir, "", 0)
		if p.look(); len(p.seen) > 1000 || len(p.todo) > 1000 || name == "ended" && len(p.seen) > 1 {
			t.Errorf("%s: %d directories are remembered, %d are left", name, len(p.seen), len(p.todo))
		}
	}
	p := &pipes{ctx: ended, left: mostEntries, room: mostNames, seen: map[string]bool{}}
	if p.borrowed(filepath.Dir(filepath.Dir(one)), "", 0); len(p.seen) > 0 {
		t.Errorf("after the end of the git %d directories are remembered", len(p.seen))
	}
}

// A path that no system takes, as a repository can name, is not looked up in each of its parts.
func TestAPathThatIsTooLongIsNotLookedUp(t *testing.T) {
	dir := Resolved(t.TempDir())
	if err := os.Symlink("/", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	long := dir + "/link" + strings.Repeat("/a", mostPath/2)
	if got := Resolved(long); got != long {
		t.Errorf("%d bytes give %d", len(long), len(got))
	}
}
