// Package rights seals what the record of a history says about the rights of its process: a resume obeys it, so nobody but this program is to write
// it. It owns the key, and the list of histories that are older than the key. Both lie beside the configuration, apart from the data directory: whoever
// can write histories can still write no seal.
package rights

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/types"
)

// KeyBytes is the length of the key.
const KeyBytes = 32

// version is the format of the files that this program writes, and of what is sealed.
const version = 1

// keyFile is the file with the key.
const keyFile = "key"

// key is that file. Part of the on-disk format.
type key struct {
	Version int       `json:"v"`
	Key     []byte    `json:"key"`
	Made    time.Time `json:"made"`
}

// older names the histories of a data directory that were there before the key: they have no seal. Part of the on-disk format.
type older struct {
	Version int          `json:"v"`
	Data    string       `json:"data"`
	Without []types.UUID `json:"without"`
}

// Seals makes and checks seals for one data directory. Safe for concurrent use. The nil *Seals makes none and accepts all.
type Seals struct {
	key     []byte
	made    time.Time
	without map[types.UUID]bool
}

// lockTime is how long another daemon is waited for that makes the key.
const lockTime = 5 * time.Second

// Open returns the seals of a data directory. dir is where the key lies, and is made if need be. there returns the histories of the data directory;
// it is called once for each data directory, ever. STORAGE if dir cannot be written or is damaged, VERSION if a newer program has written it.
func Open(fsys durable.FS, dir, data string, there func() ([]types.UUID, error)) (*Seals, error) {
	const op = "Rights"
	if err := durable.MkdirAll(fsys, dir); err != nil {
		return nil, err
	}
	lock, err := fsys.Lock(filepath.Join(dir, "lock"))
	for end := time.Now().Add(lockTime); types.CodeOf(err) == types.ErrConflict && time.Now().Before(end); {
		<-time.After(20 * time.Millisecond)
		lock, err = fsys.Lock(filepath.Join(dir, "lock"))
	}
	if err != nil {
		return nil, types.Errorf(types.ErrStorage, op, dir, "%w", err)
	}
	defer lock.Close()
	var k key
	path := filepath.Join(dir, keyFile)
	if err := load(fsys, path, &k, func() error {
		k = key{Version: version, Key: make([]byte, KeyBytes), Made: time.Now().UTC()}
		_, err := rand.Read(k.Key)
		return err
	}); err != nil {
		return nil, err
	}
	if k.Version > version {
		return nil, newer(path, k.Version)
	}
	if len(k.Key) != KeyBytes {
		return nil, damaged(path)
	}
	s := &Seals{key: k.Key, made: k.Made, without: map[types.UUID]bool{}}
	sum := sha256.Sum256([]byte(data))
	var o older
	path = filepath.Join(dir, hex.EncodeToString(sum[:8])+".json")
	if err := load(fsys, path, &o, func() error {
		ids, err := there()
		o = older{Version: version, Data: data, Without: slices.DeleteFunc(ids, func(id types.UUID) bool { return !born(id).Before(k.Made) })}
		return err
	}); err != nil {
		return nil, err
	}
	if o.Version > version {
		return nil, newer(path, o.Version)
	}
	for _, id := range o.Without {
		s.without[id] = true
	}
	return s, nil
}

// load reads a file, or writes it with what fill has put into v.
func load(fsys durable.FS, path string, v any, fill func() error) error {
	b, err := durable.ReadFile(fsys, path)
	switch {
	case err == nil:
		if json.Unmarshal(b, v) != nil {
			return damaged(path)
		}
		return nil
	case types.CodeOf(err) != types.ErrNotFound:
		return err
	}
	if err := fill(); err != nil {
		return err
	}
	if b, err = json.Marshal(v); err != nil {
		return types.Errorf(types.ErrInternal, "Rights", path, "%w", err)
	}
	return durable.WriteFile(fsys, path, append(b, '\n'), durable.Durable)
}

func damaged(path string) error {
	return types.Errorf(types.ErrStorage, "Rights", path, "is damaged; put it back from a copy, or move it away: then a new one is made, and each history that was sealed has to be accepted by a person when it is resumed")
}

func newer(path string, v int) error {
	return types.Errorf(types.ErrVersion, "Rights", path, "written in format %d by a newer program, this one reads up to %d", v, version)
}

// born is when a UUID was made: the first 48 bits of a version 7 are the milliseconds since 1970 (RFC 9562, section 5.7).
func born(id types.UUID) time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16))
}

// Unwritable reports whether an error of Open says that nothing can be kept there, and that nothing ever was: then there is no key to defend.
func Unwritable(err error, dir string) bool {
	_, serr := os.Lstat(filepath.Join(dir, keyFile))
	return errors.Is(serr, fs.ErrNotExist) && types.CodeOf(err) == types.ErrStorage
}

// Seal returns the seal of what a history says; "" for nil seals.
func (s *Seals) Seal(was *step.Settled) string {
	if s == nil {
		return ""
	}
	return base64.RawStdEncoding.EncodeToString(s.sum(was))
}

// Why the rights of a history are not believed.
var (
	errNone    = errors.New("it has no seal")
	errOther   = errors.New("they are those of another history")
	errChanged = errors.New("the seal is not the one that this configuration's key makes")
)

// Check returns why the rights that the record of a history says are not believed; nil = they are. A history that is older than the key needs no seal.
func (s *Seals) Check(id types.UUID, was *step.Settled) error {
	if s == nil || was.Seal == "" && s.without[id] {
		return nil
	}
	got, err := base64.RawStdEncoding.DecodeString(was.Seal)
	switch {
	case was.Seal == "":
		return errNone
	case was.UUID != id:
		return errOther
	case err != nil || !hmac.Equal(got, s.sum(was)):
		return errChanged
	}
	return nil
}

// sum is the keyed sum over what gives a process its rights, in a form in which no two contents are alike.
func (s *Seals) sum(was *step.Settled) []byte {
	b := make([]byte, 0, 1024)
	number := func(n uint64) { b = binary.BigEndian.AppendUint64(b, n) }
	text := func(t string) { number(uint64(len(t))); b = append(b, t...) }
	list := func(l []string) {
		if l == nil { // which is all for devices, and not the same as none
			number(math.MaxUint64)
			return
		}
		number(uint64(len(l)))
		for _, t := range l {
			text(t)
		}
	}
	text("rnix rights")
	number(version)
	b = append(b, was.UUID[:]...)
	b = append(b, was.ParentUUID[:]...)
	b = append(b, was.OriginUUID[:]...)
	b = append(b, was.Root[:]...)
	number(uint64(was.Depth))
	if was.ByAgent {
		number(1)
	} else {
		number(0)
	}
	for _, t := range []string{was.Agent, was.Kind, was.WorkDir, was.Provider, was.AskedModel, was.FallbackProvider, was.FallbackModel} {
		text(t)
	}
	list(was.AllowedDevices)
	list(was.DeniedDevices)
	list(was.ReadRoots)
	list(was.MCPMounts)
	number(uint64(was.MaxSteps))
	number(uint64(was.ContextBudget))
	number(math.Float64bits(was.BudgetUSD))
	number(uint64(was.Timeout))
	text(canonical(was.Settings))
	if was.Body != nil {
		text(was.Body.Kind)
		text(canonical(was.Body.Spec))
	}
	mac := hmac.New(sha256.New, s.key)
	mac.Write(b)
	return mac.Sum(nil)
}

// canonical writes JSON as a record has it, however often it was read and written again.
func canonical(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	b, err := json.Marshal(raw)
	if err != nil {
		return "\x00" + string(raw) // no JSON, which no record has
	}
	return string(b)
}
