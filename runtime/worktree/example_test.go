package worktree_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"rnix/runtime/worktree"
)

func Example() {
	ctx := context.Background()
	trees, err := worktree.NewManager(worktree.Options{ParentDir: "/var/lib/agents/trees"})
	if err != nil {
		log.Fatal(err)
	}
	dir, err := trees.Provision(ctx, worktree.ProvisionSpec{
		SessionID:      "issue-12",
		Strategy:       worktree.StrategyWorktreeAdd,
		ParentRepoPath: "/srv/clones/project",
		Branch:         "agent/issue-12",
		BaseRef:        "main",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("work in", dir)

	var parked *worktree.ParkedError
	if err := trees.Teardown(ctx, "issue-12"); errors.As(err, &parked) {
		fmt.Println("kept, since", parked.Reasons, "- look at it with:", parked.Look)
	} else if err != nil {
		log.Fatal(err)
	}
}
