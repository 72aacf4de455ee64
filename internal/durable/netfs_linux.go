package durable

import (
	"syscall"

	"rnix/types"
)

// networks are the file systems on which a lock or a rename of another machine may not be seen, by the
// magic number that statfs(2) gives. Source: include/uapi/linux/magic.h, and the file systems' own
// headers for Lustre, GPFS and BeeGFS.
var networks = map[uint32]string{
	0x6969: "NFS", 0x517B: "SMB", 0xFF534D42: "CIFS", 0xFE534D42: "SMB2", 0x5346414F: "AFS", 0x00C36400: "Ceph", 0x73757245: "Coda",
	0x564C: "NCP", 0x7461636F: "OCFS2", 0x01161970: "GFS2", 0x0BD00BD0: "Lustre", 0x47504653: "GPFS", 0x19830326: "BeeGFS",
}

// CheckLocal refuses a directory on a network file system: there a second daemon on another machine would
// not see the lock of the first. INVALID, with the mend. What cannot be asked for is taken as local.
func CheckLocal(dir string) error {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return nil
	}
	return refuse(dir, uint32(st.Type))
}

func refuse(dir string, magic uint32) error {
	name, ok := networks[magic]
	if !ok {
		return nil
	}
	return types.Errorf(types.ErrInvalid, "Open", dir, "the directory is on a network file system (%s), where two daemons would not see each other's locks and could destroy histories; choose a local directory with RNIX_DATA_DIR", name)
}
