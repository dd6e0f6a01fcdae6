// Command gen makes the insecure keys that package devkeys embeds, or checks that the ones on disk are what it would make.
//
//	go run ./netconfig/devkeys/gen -scheme keccak -workers 2 [-check]
//
// A finished key is written at once to a file beside the final one, and a run that was interrupted goes on from there. With -check it
// makes every key again, compares, and exits 1 at the first difference. On one core the blake2s keys take about 9 minutes and the
// keccak keys 25.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"aggnode/netconfig/devkeys"
	"aggnode/xmss"
)

// lastEpoch makes the keys cover [0, 2^16): 72 hours of 4 s slots.
const lastEpoch = 1<<16 - 1

func main() {
	scheme := flag.String("scheme", "", "blake2s or keccak")
	workers := flag.Int("workers", 1, "cores to use")
	check := flag.Bool("check", false, "compare the keys on disk instead of writing them")
	dir := flag.String("dir", filepath.Join("netconfig", "devkeys", "data"), "folder of the key files")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *scheme, *dir, *workers, *check); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name, dir string, workers int, check bool) error {
	scheme, err := xmss.SchemeByName(name)
	if err != nil {
		return err
	}
	final := filepath.Join(dir, name+".bin")
	if check {
		return compare(ctx, scheme, final, workers)
	}
	if _, err := os.Stat(final); err == nil {
		return fmt.Errorf("%s exists: remove it to make the keys again, or use -check", final)
	}
	return write(ctx, scheme, final, workers)
}

// write makes the keys that are not yet in the partial file and gives it its final name.
func write(ctx context.Context, scheme xmss.Scheme, final string, workers int) error {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(final), "."+filepath.Base(final)+".partial"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer f.Close() // the success path closes it first and sees the error
	done, err := resume(f)
	if err != nil {
		return err
	}
	for i := done; i < 2*devkeys.Validators; i++ {
		k, err := generate(ctx, scheme, i, workers)
		if err != nil {
			return err
		}
		if _, err := f.Write(devkeys.AppendKey(nil, k)); err != nil {
			return err
		}
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), final)
}

// resume counts the whole keys in f, cuts off what follows them and leaves the offset at the end.
func resume(f *os.File) (keys int, err error) {
	b, err := io.ReadAll(f)
	if err != nil {
		return 0, err
	}
	whole := 0
	for keys < 2*devkeys.Validators {
		k, rest, err := devkeys.CutKey(b[whole:])
		if err != nil {
			break
		}
		if err := sameKey(k); err != nil {
			return 0, fmt.Errorf("key %d in %s: %w", keys, f.Name(), err)
		}
		whole = len(b) - len(rest)
		keys++
	}
	if err := f.Truncate(int64(whole)); err != nil {
		return 0, err
	}
	_, err = f.Seek(int64(whole), io.SeekStart)
	return keys, err
}

// sameKey checks that the public key beside a key file is the one in it.
func sameKey(k devkeys.Key) error {
	sk, err := xmss.ParseSecretKey(k.File)
	if err != nil {
		return err
	}
	if sk.PublicKey() != k.PublicKey {
		return errors.New("public key and key file differ")
	}
	return nil
}

// compare makes every key again.
func compare(ctx context.Context, scheme xmss.Scheme, final string, workers int) error {
	b, err := os.ReadFile(final)
	if err != nil {
		return err
	}
	for i := range 2 * devkeys.Validators {
		var have devkeys.Key
		if have, b, err = devkeys.CutKey(b); err != nil {
			return fmt.Errorf("key %d in %s: %w", i, final, err)
		}
		want, err := generate(ctx, scheme, i, workers)
		if err != nil {
			return err
		}
		if have.PublicKey != want.PublicKey || !bytes.Equal(have.File, want.File) {
			return fmt.Errorf("key %d in %s is not the one of its seed", i, final)
		}
	}
	if len(b) != 0 {
		return fmt.Errorf("%d bytes after the last key in %s", len(b), final)
	}
	return nil
}

// generate makes key i: the attestation keys of all validators, then their proposal keys.
func generate(ctx context.Context, scheme xmss.Scheme, i, workers int) (devkeys.Key, error) {
	role, validator := "attestation", i
	if i >= devkeys.Validators {
		role, validator = "proposal", i-devkeys.Validators
	}
	began := time.Now()
	sk, err := xmss.Generate(ctx, scheme, seed(scheme, role, validator), 0, lastEpoch, xmss.GenerateOptions{Workers: workers})
	if err != nil {
		return devkeys.Key{}, err
	}
	file, err := sk.MarshalBinary()
	if err != nil {
		return devkeys.Key{}, err
	}
	pk := sk.PublicKey()
	fmt.Printf("%s %s key of validator %d (%d of %d): %x in %.1f s\n",
		scheme, role, validator, i+1, 2*devkeys.Validators, pk[:4], time.Since(began).Seconds())
	return devkeys.Key{PublicKey: pk, File: file}, nil
}

// seed is public by construction: SHA-256("aggnode insecure devnet key" | scheme | role | validator u32 little-endian).
func seed(scheme xmss.Scheme, role string, validator int) [xmss.SeedSize]byte {
	b := []byte("aggnode insecure devnet key" + scheme.String() + role)
	return sha256.Sum256(binary.LittleEndian.AppendUint32(b, uint32(validator)))
}
