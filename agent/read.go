package agent

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"unicode/utf8"

	"rnix/types"
)

// cut returns text as UTF-8 of at most limit bytes; what was longer ends on a character's edge and
// with a marker.
func cut(text []byte, limit int) string {
	if len(text) <= limit {
		return strings.ToValidUTF8(string(text), "\ufffd")
	}
	end := limit
	for end > limit-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.ToValidUTF8(string(text[:end]), "\ufffd") +
		"\n\n[cut here: the file is longer than " + itoa(limit>>10) + " KiB]"
}

// codeOf returns the code for a file that cannot be read.
func codeOf(err error) types.ErrCode {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return types.ErrNotFound
	case errors.Is(err, fs.ErrPermission):
		return types.ErrPermission
	}
	return types.ErrInvalid
}

func itoa(i int) string { return strconv.Itoa(i) }
