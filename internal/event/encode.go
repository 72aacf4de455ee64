package event

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"rnix/types"
)

// AppendJSON appends e to dst as one JSON object, without a newline. encoding/json decodes it to the
// same value as it would its own encoding of e; it takes about a sixth of the time and no memory.
func AppendJSON(dst []byte, e *Event) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, e.Seq, 10)
	dst = appendTime(append(dst, `,"time":`...), e.Time)
	dst = append(dst, `,"pid":`...)
	dst = strconv.AppendUint(dst, uint64(e.PID), 10)
	dst = appendUUID(append(dst, `,"uuid":"`...), e.UUID)
	dst = appendString(append(dst, `","kind":`...), string(e.Kind))
	if e.PPID != 0 {
		dst = strconv.AppendUint(append(dst, `,"ppid":`...), uint64(e.PPID), 10)
	}
	dst = appendInt(dst, `,"step":`, int64(e.Step))
	dst = appendInt(dst, `,"total":`, int64(e.Total))
	dst = appendField(dst, `,"name":`, e.Name)
	dst = appendField(dst, `,"path":`, e.Path)
	dst = appendField(dst, `,"args":`, e.Args)
	dst = appendField(dst, `,"result":`, e.Result)
	dst = appendField(dst, `,"error":`, e.Err)
	dst = appendField(dst, `,"code":`, string(e.Code))
	dst = appendInt(dst, `,"dur_ns":`, int64(e.Dur))
	dst = appendField(dst, `,"text":`, e.Text)
	dst = appendInt(dst, `,"tokens":`, int64(e.Tokens))
	if e.CostUSD != 0 && !math.IsNaN(e.CostUSD) && !math.IsInf(e.CostUSD, 0) { // what is no number has no form in JSON
		dst = strconv.AppendFloat(append(dst, `,"cost_usd":`...), e.CostUSD, 'g', -1, 64)
	}
	if !e.Until.IsZero() {
		dst = appendTime(append(dst, `,"until":`...), e.Until)
	}
	if e.From != 0 {
		dst = appendString(append(dst, `,"from":`...), e.From.String())
	}
	if e.To != 0 {
		dst = appendString(append(dst, `,"to":`...), e.To.String())
	}
	if e.Exit != nil {
		dst = appendExit(append(dst, `,"exit":`...), e.Exit)
	}
	dst = appendField(dst, `,"intent":`, e.Intent)
	dst = appendField(dst, `,"agent":`, e.Agent)
	dst = appendField(dst, `,"provider":`, e.Provider)
	dst = appendField(dst, `,"model":`, e.Model)
	if e.Answer != 0 {
		dst = strconv.AppendUint(append(dst, `,"answer":`...), e.Answer, 10)
	}
	dst = appendInt(dst, `,"at":`, int64(e.At))
	if e.Begin != 0 {
		dst = strconv.AppendUint(append(dst, `,"begin":`...), e.Begin, 10)
	}
	return append(dst, '}')
}

// appendInt appends a number with its key unless it is zero.
func appendInt(dst []byte, key string, n int64) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendInt(append(dst, key...), n, 10)
}

// appendField appends a string with its key unless it is empty.
func appendField(dst []byte, key, s string) []byte {
	if s == "" {
		return dst
	}
	return appendString(append(dst, key...), s)
}

func appendTime(dst []byte, t time.Time) []byte {
	dst = append(dst, '"')
	dst = t.AppendFormat(dst, time.RFC3339Nano)
	return append(dst, '"')
}

const hexDigits = "0123456789abcdef"

// appendUUID appends the usual form without quotes.
func appendUUID(dst []byte, id types.UUID) []byte {
	for i, b := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, hexDigits[b>>4], hexDigits[b&15])
	}
	return dst
}

// appendString appends s as a JSON string. Bytes that are no UTF-8 become U+FFFD, as in
// encoding/json; the separators U+2028 and U+2029 are escaped, so that a script may hold the text.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' && c != 0x7f {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				dst = append(append(dst, s[start:i]...), `\ufffd`...)
			case r == '\u2028' || r == '\u2029':
				dst = append(append(dst, s[start:i]...), `\u202`...)
				dst = append(dst, hexDigits[r&15])
			default:
				i += n
				continue
			}
			i += n
			start = i
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

func appendExit(dst []byte, x *types.ExitStatus) []byte {
	dst = strconv.AppendInt(append(dst, `{"code":`...), int64(x.Code), 10)
	dst = appendString(append(dst, `,"reason":`...), x.Reason)
	if x.Err != nil {
		w, _ := json.Marshal(types.ToWire(x.Err)) // strings and a number always marshal
		dst = append(append(dst, `,"error":`...), w...)
	}
	return append(dst, '}')
}
