package enter

import (
	"go/build"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func full() *Job {
	return &Job{
		Says: 5, Stderr: 6, Rules: 7, Adopts: true, Limits: []Limit{{"core", 4, 0}, {"memory", 2, 1 << 40}}, Filter: []byte{6, 0, 0, 0, 0, 0, 255, 127},
		Keep: []int{135, 300}, Listen: []uint16{3127, 65535}, Path: "/bin/sh", Dir: "/a\xffb", Args: []string{"sh", "", "-c"}, Env: []string{"A=\x80", "B="},
	}
}

func TestAJobComesAsItWent(t *testing.T) {
	for _, want := range []*Job{full(), {Filter: []byte{}, Args: []string{}, Env: []string{}}} {
		got, err := Decode(want.Encode())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v %v, want %+v", got, err, want)
		}
	}
}

// A job that was cut off, or has more at its end, is none.
func TestADamagedJobIsRefused(t *testing.T) {
	whole := full().Encode()
	for n := range whole {
		if j, err := Decode(whole[:n]); err == nil {
			t.Fatalf("%d of %d bytes are %+v", n, len(whole), j)
		}
	}
	if j, err := Decode(append(whole, 0)); err == nil {
		t.Errorf("one byte more is %+v", j)
	}
}

// A daemon runs on when the file of its program is replaced.
func TestAJobOfAnotherVersionSaysSo(t *testing.T) {
	whole := full().Encode()
	whole[0]++
	if _, err := Decode(whole); err == nil || !strings.Contains(err.Error(), "rnix daemon stop") {
		t.Errorf("%v", err)
	}
}

func FuzzJob(f *testing.F) {
	f.Add(full().Encode())
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		j, err := Decode(b)
		if err != nil {
			return
		}
		if again, err := Decode(j.Encode()); err != nil || !reflect.DeepEqual(j, again) {
			t.Errorf("%+v is %+v, %v", j, again, err)
		}
	})
}

// Each import would be initialized before, which is what this package is there to be without.
func TestItImportsNearlyNothing(t *testing.T) {
	linux := build.Default
	linux.GOOS, linux.GOARCH = "linux", "amd64"
	for dir, want := range map[string][]string{".": {"syscall", "unsafe"}, "early": {"rnix/internal/sandbox/enter"}} {
		p, err := linux.ImportDir(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Sort(p.Imports); !slices.Equal(p.Imports, want) {
			t.Errorf("%s imports %v, want %v alone", dir, p.Imports, want)
		}
	}
}
