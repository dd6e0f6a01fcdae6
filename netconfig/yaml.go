package netconfig

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// pathOr returns path, or the file of the folder where path is empty.
func pathOr(path, dir, name string) string {
	if path != "" {
		return path
	}

	return filepath.Join(dir, name)
}

// readYAML reads a file into v. Keys that v does not know are ignored, or are an
// error where strict. A file that is not there leaves v alone and ok false.
func readYAML(path string, v any, strict bool) (ok bool, err error) {
	b, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read network folder: %w", err)
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(strict)
	if err := d.Decode(v); err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("%s: %w", path, err)
	}

	return true, nil
}

// hexBytes is bytes in YAML: hexadecimal digits with or without 0x, quoted or
// not. The text is read as it stands, because YAML takes some of these texts for
// numbers.
type hexBytes []byte

// UnmarshalYAML reads the text of a scalar.
func (h *hexBytes) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: hexadecimal digits expected", n.Line)
	}
	b, err := hex.DecodeString(trimHexPrefix(n.Value))
	if err != nil {
		return fmt.Errorf("line %d: %q is not hexadecimal", n.Line, n.Value)
	}
	*h = b

	return nil
}
