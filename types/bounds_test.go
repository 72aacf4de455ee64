package types

import (
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestBoundsAreReadAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]Memory{"4GiB": 4 << 30, " 512 MiB": 512 << 20, "16mib": MinMemory, "100MB": 1e8, "none": -1, "None": -1, "0": -1, "1024TiB": 1 << 50} {
		var m Memory
		if err := m.UnmarshalText([]byte(text)); err != nil || m != want {
			t.Errorf("%q is %d, %v", text, m, err)
		}
		var again Memory
		if err := again.UnmarshalText([]byte(m.String())); err != nil || again != m {
			t.Errorf("%q becomes %q, which is %d, %v", text, m, again, err)
		}
	}
	for text, want := range map[string]string{
		"": `"" is not a size; write a whole number of bytes, or one with a unit, such as 1GiB`, "4 gigs": `"4 gigs" is not a size; write a whole number of bytes, or one with a unit, such as 1GiB`,
		"4": "4 is too little memory for a command; write at least 16MiB, or none for no limit", "15MiB": "15MiB is too little memory for a command; write at least 16MiB, or none for no limit",
		"-1GiB": "-1GiB is negative; write 0 for no limit", "1025TiB": "1025TiB is more than 1024TiB; write 0 for no limit", "9223372036854775807KiB": "9223372036854775807KiB is more than 1024TiB; write 0 for no limit",
	} {
		var m Memory
		if err := m.UnmarshalText([]byte(text)); err == nil || err.Error() != want || m != 0 {
			t.Errorf("%q: %v, %d", text, err, m)
		}
	}
	for text, want := range map[string]string{
		"": `"" is not a number of processes; write a whole number, such as 512, or none for no limit`, "-5": "-5 is too few processes and threads for a command; write at least 32, or none for no limit",
		"31": "31 is too few processes and threads for a command; write at least 32, or none for no limit", "99999999999": `"99999999999" is not a number of processes; write a whole number, such as 512, or none for no limit`,
	} {
		var n Tasks
		if err := n.UnmarshalText([]byte(text)); err == nil || err.Error() != want || n != 0 {
			t.Errorf("%q: %v, %d", text, err, n)
		}
	}
	var b Bounds
	if err := json.Unmarshal([]byte(`{"memory":"4GiB","processes":"512"}`), &b); err != nil || b != (Bounds{4 << 30, 512}) {
		t.Errorf("%+v, %v", b, err)
	}
	if text, err := json.Marshal(struct {
		B Bounds `json:"b,omitzero"`
		C Bounds `json:"c,omitzero"`
	}{B: Bounds{Processes: -1}}); err != nil || string(text) != `{"b":{"processes":"none"}}` {
		t.Errorf("%s, %v", text, err)
	}
}

func TestMeetOfBoundsIsTheSmallerOfBoth(t *testing.T) {
	any := rapid.Custom(func(t *rapid.T) Bounds {
		return Bounds{rapid.SampledFrom([]Memory{0, -1, MinMemory, 1 << 30, 1 << 50}).Draw(t, "memory"), rapid.SampledFrom([]Tasks{0, -1, MinTasks, 512, UsualTasks, 4096}).Draw(t, "processes")}
	})
	held := func(n int64) int64 {
		if n == 0 {
			return math.MaxInt64
		}
		return n
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := any.Draw(t, "a"), any.Draw(t, "b"), any.Draw(t, "c")
		both := a.Meet(b)
		if both != b.Meet(a) || both.Meet(b) != both || a.Meet(a) != a || a.Meet(b.Meet(c)) != both.Meet(c) {
			t.Fatalf("%v and %v is %v", a, b, both)
		}
		x, y, z := a.Held(), b.Held(), both.Held()
		if held(int64(z.Memory)) != min(held(int64(x.Memory)), held(int64(y.Memory))) || held(int64(z.Processes)) != min(held(int64(x.Processes)), held(int64(y.Processes))) {
			t.Fatalf("%v and %v hold %v", a, b, z)
		}
	})
	if got := (Bounds{}).Held(); got != (Bounds{0, UsualTasks}) {
		t.Errorf("what nobody says is %v", got)
	}
	if got := (Bounds{Memory: 1 << 30, Processes: 64}).With(Bounds{Processes: -1}); got != (Bounds{1 << 30, -1}) || got.Held() != (Bounds{Memory: 1 << 30}) || got.Asked() != (Bounds{Memory: 1 << 30}) {
		t.Errorf("%v", got)
	}
}
