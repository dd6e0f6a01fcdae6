//go:build !amd64 || purego

package lanes

func supportedPaths() []Path { return []Path{PathGeneric} }
