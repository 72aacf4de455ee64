//go:build linux

package durable

import (
	"strings"
	"testing"

	"rnix/types"
)

func TestDataOnANetworkFileSystemIsRefusedWithTheReason(t *testing.T) { // C-3
	if err := refuse("/home/me/.rnix", 0x6969); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "NFS") || !strings.Contains(err.Error(), "RNIX_DATA_DIR") {
		t.Errorf("NFS: %v", err)
	}
	for name, magic := range map[string]uint32{"ext4": 0xEF53, "xfs": 0x58465342, "btrfs": 0x9123683E, "tmpfs": 0x01021994, "overlay": 0x794C7630} {
		if err := refuse("/data", magic); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := CheckLocal(t.TempDir()); err != nil {
		t.Errorf("here: %v", err)
	}
}
