package state_test

import (
	"errors"
	"fmt"
	"log"
	"os"

	"rnix/runtime/state"
)

func Example() {
	worktree, err := os.MkdirTemp("", "state")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(worktree)

	store := state.NewStore()
	mine := &state.State{IssueIdentifier: "ENG-1", SessionID: "s-1", StartedAt: 1700000000000, CurrentStep: "spawning"}
	if err := store.Write(worktree, mine); err != nil {
		log.Fatal(err)
	}
	_, err = store.UpdateOwned(worktree, mine.Fence(), func(st *state.State) error {
		st.CurrentStep = "streaming"
		return nil
	})
	fmt.Println(err)

	found, err := store.ReadExpect(worktree, "ENG-2") // another session comes to this directory
	fmt.Println(errors.Is(err, state.ErrIdentifierMismatch), found.IssueIdentifier, found.CurrentStep)
	// Output:
	// <nil>
	// true ENG-1 streaming
}
