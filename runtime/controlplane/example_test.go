package controlplane_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rnix/runtime/controlplane"
	"rnix/runtime/heartbeat"
	"rnix/runtime/internal/wiretest"
)

func serveSessions(ctx context.Context, dir string, ready func(url, token string)) error {
	s, err := controlplane.Open(controlplane.Options{Dir: dir, TTL: time.Minute})
	if err != nil {
		return err // another process has the directory, or it is damaged
	}
	defer s.Close()
	token, err := controlplane.TokenFile(filepath.Join(dir, "token")) // made if it is missing
	if err != nil {
		return err
	}
	if err := s.AddToken(token); err != nil {
		return err
	}
	l, err := controlplane.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	ready(l.URL, token)
	return s.Serve(ctx, l) // until ctx ends
}

func Example() {
	dir, err := os.MkdirTemp("", "cp")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(context.Background())
	asked := make(chan struct{})
	err = serveSessions(ctx, dir, func(url, token string) {
		go func() {
			defer close(asked)
			defer cancel()
			lease, err := heartbeat.Claim(ctx, heartbeat.Config{SessionID: "s1", WorkerID: "w1", BaseURL: url, AuthToken: token})
			fmt.Println(lease.Owner, lease.FencingToken, err)
		}()
	})
	<-asked
	fmt.Println(err)
	// Output:
	// w1 1 <nil>
	// <nil>
}

func TestTheExampleOfTheReadmeCompiles(t *testing.T) { wiretest.Readme(t) }
