package types

import (
	"fmt"
	"strconv"
	"strings"
)

// maxSize is the largest size that ParseSize reads, in bytes.
const maxSize = 1 << 50

// sizeUnits are the units of sizes, in the order in which they are tried.
var sizeUnits = [...]struct {
	suffix string
	factor int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1},
}

// ParseSize reads a number of bytes, written as such or with a unit: 500MB, 1GiB. It must not be negative, nor more than 1024 TiB.
func ParseSize(text string) (int64, error) {
	s, factor := strings.TrimSpace(text), int64(1)
	for _, u := range sizeUnits {
		if n := len(s) - len(u.suffix); n > 0 && strings.EqualFold(s[n:], u.suffix) {
			s, factor = strings.TrimSpace(s[:n]), u.factor
			break
		}
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a size; write a whole number of bytes, or one with a unit, such as 1GiB", text)
	case n < 0:
		return 0, fmt.Errorf("%s is negative; write 0 for no limit", text)
	case n > maxSize/factor:
		return 0, fmt.Errorf("%s is more than 1024TiB; write 0 for no limit", text)
	}
	return n * factor, nil
}

// SizeText returns a number of bytes in the largest unit that divides it, as ParseSize reads it.
func SizeText(n int64) string {
	for _, u := range sizeUnits[:4] {
		if n != 0 && n%u.factor == 0 {
			return strconv.FormatInt(n/u.factor, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}

// SizeShort returns a number of bytes for people, in the largest unit that it fills.
func SizeShort(n int64) string {
	for _, u := range sizeUnits[:4] {
		if n >= u.factor {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(u.factor), u.suffix)
		}
	}
	return strconv.FormatInt(n, 10) + " B"
}
