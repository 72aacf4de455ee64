package clock

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// localtime is the time zone of this system: a link into a directory of zones, or a copy of one of its files.
const localtime = "/etc/localtime"

// zoneOf returns the time zone that an environment asks for, by the rules that commands have: TZ, else the
// system's, which is looked at each time, since a laptop travels and the daemon goes on; what nobody knows is
// UTC. The name is how people call it, with a reason if it is not the one that was asked for; it is empty
// where only its abbreviations are known.
func zoneOf(env []string) (*time.Location, string) {
	asked, said := "", false
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "TZ="); ok { // the last one counts
			asked, said = v, true
		}
	}
	if !said {
		return system(localtime)
	}
	name := below(strings.TrimPrefix(asked, ":"))
	if name == "" {
		return time.UTC, "UTC"
	}
	if z, err := time.LoadLocation(name); err == nil && name != "Local" { // which is the daemon's
		return z, name
	}
	return time.UTC, "UTC, since no zone of this system is called " + strconv.Quote(asked)
}

// system returns the zone in the file at path.
func system(path string) (*time.Location, string) {
	data, err := os.ReadFile(path)
	if err != nil {
		return time.UTC, "UTC" // as the C library has it
	}
	name := ""
	if to, err := os.Readlink(path); err == nil {
		name = below(to)
	}
	z, err := time.LoadLocationFromTZData(name, data)
	if err != nil {
		return time.UTC, "UTC, since " + path + " cannot be read"
	}
	return z, name
}

// below returns the name of a zone whose file is given.
func below(path string) string {
	_, name, ok := strings.Cut(path, "/zoneinfo/")
	if !ok {
		return path
	}
	return name
}

// named is the name of a zone, and the abbreviation that holds at a time, where there is one and it says more.
func named(t time.Time, name string) string {
	short, _ := t.Zone()
	switch {
	case name == "":
		return short
	case strings.HasPrefix(name, short), strings.HasPrefix(short, "+"), strings.HasPrefix(short, "-"):
		return name
	}
	return name + " (" + short + ")"
}
