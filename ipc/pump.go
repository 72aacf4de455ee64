package ipc

import (
	"bytes"
	"strconv"
	"time"

	"rnix/types"
)

// pump writes what Send has added, until the stream is over. A lone event is written at once; of many
// that come in a row, each write takes 8 KiB, or what has come in 5 ms.
func (st *Stream) pump() {
	defer close(st.pumped)
	beat := time.NewTimer(acceptAfter)
	defer beat.Stop()
	pause := time.NewTimer(time.Hour)
	defer pause.Stop()
	var spare []byte
	var last time.Time
	for over := false; !over; {
		select {
		case <-st.wake:
		case <-beat.C:
			st.beat()
		case <-st.over:
			over = true
		}
		if wait := flushEvery - time.Since(last); !over && wait > 0 && !st.full() {
			pause.Reset(wait)
			select {
			case <-st.wake:
			case <-pause.C:
			case <-st.over:
				over = true
			}
		}
		spare = st.flush(spare)
		last = time.Now()
		beat.Reset(st.srv.opt.KeepAlive)
	}
}

// beat begins the stream if nothing has begun it, and else shows the client that it is alive.
func (st *Stream) beat() {
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case st.done || st.gone:
	case st.conn == nil:
		_ = st.startLocked() // Send reports it
	case len(st.buf) == 0:
		st.buf = append(st.buf, ":\n\n"...)
	}
}

func (st *Stream) full() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.buf) >= flushSize
}

// flush writes the buffer and puts spare in its place. It returns the old buffer, for the next time.
func (st *Stream) flush(spare []byte) []byte {
	st.mu.Lock()
	data, conn := st.buf, st.conn
	if len(data) == 0 || conn == nil {
		st.mu.Unlock()
		return spare
	}
	patience := st.srv.opt.StallTimeout
	if st.hurry {
		patience = lastWords
	}
	_ = conn.SetWriteDeadline(time.Now().Add(patience)) // under the lock, so that cut has the last word
	st.buf = spare[:0]
	st.room.Broadcast()
	st.mu.Unlock()
	if _, err := conn.Write(data); err != nil {
		st.lose(types.Errorf(types.ErrDisconnected, "Send", "", "the client takes no more: %w", err))
	}
	if cap(data) > keepBuffer {
		return nil
	}
	return data
}

// appendFrame appends one server-sent event. A zero seq stands for none. Line ends within data, which
// JSON has only between its tokens, begin a new data line, as the format asks.
func appendFrame(b []byte, seq uint64, kind string, data []byte) []byte {
	if seq != 0 {
		b = append(b, "id: "...)
		b = strconv.AppendUint(b, seq, 10)
		b = append(b, '\n')
	}
	if kind != "" {
		b = append(b, "event: "...)
		b = append(b, kind...)
		b = append(b, '\n')
	}
	for {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			break
		}
		b = append(b, "data: "...)
		b = append(b, data[:i]...)
		b = append(b, '\n')
		data = data[i+1:]
	}
	b = append(b, "data: "...)
	b = append(b, data...)
	return append(b, "\n\n"...)
}
