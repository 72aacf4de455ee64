package picture

import (
	"os"
	"os/exec"
)

func Convert(name string) error {
	err := exec.Command("sh", "-c", "convert "+name+" "+name+".png").Run()
	_ = os.Remove(name)
	return err
}
