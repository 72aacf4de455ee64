package harness

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"rnix/internal/redact"
	"rnix/ipc"
)

func TestACredentialIsASecretForAsLongAsItOpensSomething(t *testing.T) {
	secrets := new(redact.Set)
	b := NewBridge("/opt/rnix", "/run/rnix.sock")
	b.Conceal(secrets)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	_, _, _, shut, err := b.open(&session{id: "s-1"}, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, credentialFile))
	if err != nil {
		t.Fatal(err)
	}
	var file ipc.SessionFile
	if err := json.Unmarshal(text, &file); err != nil || file.Credential == "" {
		t.Fatalf("%s: %v", text, err)
	}
	if got := secrets.String("it is " + file.Credential); got != "it is [secret session-credential]" {
		t.Error(got)
	}
	shut()
	if !secrets.Empty() {
		t.Error("what opens nothing is a secret still")
	}
}
