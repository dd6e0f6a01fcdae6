package netconfig

import (
	"fmt"
	"os"
)

// LoadNodes reads a file of the form of nodes.yaml: a list of node records and
// multiaddrs. Names stay empty. A file that is not there is an error.
func LoadNodes(path string) ([]Node, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("read bootnodes: %w", err)
	}

	return loadNodes(path, nil)
}
