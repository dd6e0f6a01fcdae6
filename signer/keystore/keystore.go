package keystore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"runtime"

	"golang.org/x/sync/errgroup"

	"aggnode/wire"
	"aggnode/xmss"
)

// othersMode are the permissions that a key file should not give.
const othersMode fs.FileMode = 0o077

// Request names the key files of one validator and the public keys that the
// genesis registry has for it. An empty file name asks for no key of that role.
type Request struct {
	Index           wire.ValidatorIndex
	AttestationFile string
	ProposalFile    string
	Attestation     xmss.PublicKey
	Proposal        xmss.PublicKey
}

// Keys are the loaded keys of one validator; nil where none was asked for.
type Keys struct {
	Index       wire.ValidatorIndex
	Attestation *xmss.SecretKey
	Proposal    *xmss.SecretKey
}

// MismatchError says that a key file holds another key than genesis has.
type MismatchError struct {
	Index      wire.ValidatorIndex
	Role       string
	Path       string
	Have, Want xmss.PublicKey
}

// Error names the file, the validator and both public keys.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("key file %s has public key %x, but the genesis of this network has %x as the %s key of validator %d",
		e.Path, e.Have, e.Want, e.Role, e.Index)
}

// Load reads all keys, in the order of the requests, with one goroutine a core.
// The error joins the faults of all files. log may be nil.
func Load(ctx context.Context, scheme xmss.Scheme, requests []Request, log *slog.Logger) ([]Keys, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	keys := make([]Keys, len(requests))
	faults := make([]error, 2*len(requests))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range requests {
		r, k := &requests[i], &keys[i]
		k.Index = r.Index
		group.Go(func() error {
			k.Attestation, faults[2*i] = load(ctx, scheme, r.Index, "attestation", r.AttestationFile, r.Attestation, log)
			k.Proposal, faults[2*i+1] = load(ctx, scheme, r.Index, "proposal", r.ProposalFile, r.Proposal, log)

			return nil
		})
	}
	_ = group.Wait() // faults are kept in order instead
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}

	return keys, nil
}

// load reads one key and compares it with what is expected.
func load(ctx context.Context, scheme xmss.Scheme, v wire.ValidatorIndex, role, path string, want xmss.PublicKey, log *slog.Logger) (*xmss.SecretKey, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // no key was asked for
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	key, open, err := LoadFile(path)
	switch {
	case err != nil:
		return nil, err
	case key.Scheme() != scheme:
		return nil, fmt.Errorf("key file %s is of scheme %s, but the profile of this network has scheme %s", path, key.Scheme(), scheme)
	case key.PublicKey() != want:
		return nil, &MismatchError{Index: v, Role: role, Path: path, Have: key.PublicKey(), Want: want}
	}
	if open {
		log.Warn("key file can be read by other users; set its mode to 0600", "path", path)
	}

	return key, nil
}

// LoadFile reads one key file. open reports that its mode gives others access.
// A file that is no key, or longer than one, is refused after at most
// xmss.MaxKeyFileSize+1 bytes.
func LoadFile(path string) (key *xmss.SecretKey, open bool, err error) {
	info, err := os.Stat(path) // before opening: a pipe would block
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("open key file: %w", err)
	case !info.Mode().IsRegular():
		return nil, false, fmt.Errorf("key file %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, false, fmt.Errorf("open key file: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	b, err := io.ReadAll(io.LimitReader(f, int64(xmss.MaxKeyFileSize)+1))
	if err != nil {
		return nil, false, fmt.Errorf("read key file: %w", err)
	}
	defer clear(b) // the seed
	key, err = xmss.ParseSecretKey(b)
	if err != nil {
		return nil, false, fmt.Errorf("key file %s: %w", path, err)
	}

	return key, info.Mode().Perm()&othersMode != 0, nil
}
