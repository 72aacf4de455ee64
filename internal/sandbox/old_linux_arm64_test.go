package sandbox

func setuidOld(func(string) uintptr, uintptr) []func() error { return nil }
