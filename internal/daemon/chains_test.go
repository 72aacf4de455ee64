package daemon_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"rnix/internal/soak"
	"rnix/internal/testenv"
)

// overChains are the tests that also run over histories which are committed elsewhere than in files: of each verb that starts a process, goes on
// with one, divides it, writes to it or takes it away.
var overChains = []string{
	"TestAnAgentIsTheSameWhoeverStartsIt", "TestStopSuspendsAndTheHistoryStaysReadable", // spawn
	"TestProcessGoesOnByItselfAfterTheDaemonWasKilled", "TestDeletingTheCheckpointChangesNothing", "TestTwoResumesOfOneHistoryOneWins", "TestFinishedProcessTakesNewInput", // resume
	"TestForkLeavesItsOriginByteForByte", "TestForkHasTheFilesOfItsStep", "TestForkHasNoneOfTheMessagesOfItsOrigin", // fork
	"TestAcknowledgedMessagesAreDeliveredOnceAfterAKill",                                                                                    // messages
	"TestOldHistoryIsArchivedAndCanBePutBack", "TestDeletedHistoryIsRemembered", "TestResumeAndCollectionDoNotMeet", "TestKeptHistoryStays", // gc
	"TestConversationIsReadPageByPage", "TestANewNameIsThereAfterEveryKill", "TestTornRecordIsMendedAndToldAtTheNextStart",
}

// gateOverChains are those that the gate runs: one of each verb.
var gateOverChains = []string{"TestStopSuspendsAndTheHistoryStaysReadable", "TestTwoResumesOfOneHistoryOneWins", "TestForkLeavesItsOriginByteForByte", "TestForkHasNoneOfTheMessagesOfItsOrigin",
	"TestOldHistoryIsArchivedAndCanBePutBack"}

// TestTheDaemonNeedsNoFilesToCommitTo runs tests of this package again, with daemons whose commit point is another one; see package chains.
func TestTheDaemonNeedsNoFilesToCommitTo(t *testing.T) {
	if os.Getenv(testenv.ChainsEnv) != "" {
		return // it is the one below
	}
	names := soak.Pick(t, "tests over histories that are committed in memory", gateOverChains, overChains)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^("+strings.Join(names, "|")+")$")
	cmd.Env = append(os.Environ(), testenv.ChainsEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range names {
		if !strings.Contains(string(out), "--- PASS: "+name+" ") {
			t.Errorf("%s has not run:\n%s", name, out)
		}
	}
}
