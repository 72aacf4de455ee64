package agent

import (
	"embed"
	"io/fs"
)

//go:embed builtin
var builtin embed.FS

// BuiltIn returns the agents and skills that are in the program: agents/<name>/ and skills/<name>/.
func BuiltIn() fs.FS {
	sub, err := fs.Sub(builtin, "builtin")
	if err != nil {
		panic(err) // the name is a constant
	}
	return sub
}
