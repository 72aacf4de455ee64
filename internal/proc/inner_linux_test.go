package proc

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"rnix/internal/sandbox"
	"rnix/types"
)

// answering serves at a port of a box: who sends a line gets it back with a name before it, until the listener is closed.
func answering(name string, port uint16) Inner {
	return Inner{port, func(l net.Listener) {
		var all sync.WaitGroup
		defer all.Wait()
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				line, _ := bufio.NewReader(conn).ReadString('\n')
				fmt.Fprintf(conn, "%s: %s", name, line)
			})
		}
	}}
}

// says is a script that is confined, and where its output goes.
func says(script string, out *bytes.Buffer, work string, box *Box) Spec {
	spec := boxed(script, nil, work, box)
	spec.Stdout, spec.Stderr = out, out
	return spec
}

func written(out *bytes.Buffer) string {
	return strings.ReplaceAll(strings.TrimSpace(out.String()), "\n", "|")
}

// call is a command line that sends a line to a port and prints the answer.
func call(port int, text string) string {
	return fmt.Sprintf(`bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d && echo %s >&3 && cat <&3'`, port, text)
}

func TestChildFindsWhatIsServedForItAlone(t *testing.T) {
	boxes(t, func(t *testing.T, m *Manager, work string, box *Box) {
		if box.Plan.Rung != sandbox.RungBwrap {
			by := *box
			by.Inner = []Inner{answering("a", 3128)}
			if _, err := m.Start(t.Context(), boxed("true", nil, work, &by)); types.CodeOf(err) != types.ErrInvalid {
				t.Errorf("a listener inside of what has no network of its own: %v", err)
			}
			return
		}
		var children []*Child
		var outs []*bytes.Buffer
		for i := range 3 { // at once, each at the same ports
			by := *box
			name := fmt.Sprint("child", i)
			by.Inner = []Inner{answering(name, 3128), answering(name+"'s other", 3129)}
			by.Refused = func() []sandbox.Refusal { return []sandbox.Refusal{{Target: name}} }
			out := &bytes.Buffer{}
			child, err := m.Start(t.Context(), says(call(3128, "x")+"; "+call(3129, "y")+"; echo over", out, work, &by))
			if err != nil {
				t.Fatal(err)
			}
			children, outs = append(children, child), append(outs, out)
		}
		for i, child := range children {
			exit := child.Wait()
			want := fmt.Sprintf("child%d: x|child%d's other: y|over", i, i)
			if got := written(outs[i]); got != want || exit.Code != 0 || len(exit.Refused) != 1 || exit.Refused[0].Target != fmt.Sprint("child", i) {
				t.Errorf("%q %+v, want %q", got, exit, want)
			}
		}
	})
}

// The command cannot get the listeners, nor listen at their ports before it is served, nor reach those of another.
func TestListenersOfABoxAreNotItsCommands(t *testing.T) {
	boxes(t, func(t *testing.T, m *Manager, work string, box *Box) {
		if box.Plan.Rung != sandbox.RungBwrap {
			return
		}
		by := *box
		by.Inner = []Inner{answering("ours", 3128)}
		out := &bytes.Buffer{}
		script := `ls -l /proc/*/fd 2>/dev/null | grep -c socket: ; python3 -c '
import socket
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try:
    s.bind(("127.0.0.1", 3128))
    s.listen(1)
    print("taken")
except OSError as e:
    print("in use", e.errno)
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
try:
    s.bind(("127.0.0.1", 3128))
    print("taken")
except OSError as e:
    print("in use", e.errno)
'; ` + call(3128, "x")
		child, err := m.Start(t.Context(), says(script, out, work, &by))
		if err != nil {
			t.Fatal(err)
		}
		child.Wait()
		if got := written(out); got != "0|in use 98|in use 98|ours: x" {
			t.Errorf("%q", got)
		}
	})
}

func TestEndOfAChildEndsWhatIsServedForIt(t *testing.T) {
	boxes(t, func(t *testing.T, m *Manager, work string, box *Box) {
		if box.Plan.Rung != sandbox.RungBwrap {
			return
		}
		by := *box
		ended := make(chan struct{})
		by.Inner = []Inner{{3128, func(l net.Listener) {
			defer close(ended)
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_ = conn.Close()
			}
		}}}
		child, err := m.Start(t.Context(), boxed("exec sleep 1000", nil, work, &by))
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
			t.Error("it has ended before the child")
		default:
		}
		child.Kill()
		select {
		case <-ended:
		default:
			t.Error("it is served after the child has ended")
		}
		none := boxed("", nil, work, &Box{Plan: box.Plan, Inner: by.Inner})
		none.Path = "/none/such"
		if _, err := m.Start(t.Context(), none); err == nil { // what listened is closed, and served to nobody
			t.Error("a program was started that is not there")
		}
	})
}
