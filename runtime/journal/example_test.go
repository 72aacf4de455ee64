package journal_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"rnix/runtime/internal/wiretest"
	"rnix/runtime/journal"
)

func keep(ctx context.Context, dir string) error {
	j, err := journal.Open(journal.Options{Session: "s1", Dir: dir})
	if err != nil {
		return err
	}
	defer j.Close()
	if _, err := j.Append(ctx, journal.Draft{Kind: "note", Data: "tests pass"}); err != nil {
		return err // durable when nil
	}
	c, err := j.Cursor("printer", "note")
	if err != nil {
		return err
	}
	defer c.Close()
	events, err := c.Next(ctx, 100, 1<<20) // waits for the first
	if err != nil {
		return err
	}
	for _, e := range events {
		fmt.Println(e.Seq, e.Kind, string(e.Data))
	}
	return c.Ack(events[len(events)-1].Seq) // these do not come again
}

func Example() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := keep(context.Background(), dir); err != nil {
		fmt.Println(err)
	}
	// Output: 1 note "tests pass"
}

func TestTheExampleOfTheReadmeCompiles(t *testing.T) { wiretest.Readme(t) }
