// Package keystore reads the secret key files of this node's validators.
//
// A file is what xmss.SecretKey.MarshalBinary makes: the seed, the public key
// and one row of the tree, unencrypted, so its mode matters more than its place.
// The package neither makes nor writes keys, does not know the files of a
// network folder (package netconfig names them) and keeps no signing marks
// (package store).
//
// [Load] reads the files of all duties in parallel. Each key is compared with
// the scheme of the profile and with the public key that the genesis registry
// has for the validator and role; a key that does not fit stops the start of the
// node, with both values in the error. A file that others can read is used, with
// a warning. Load reports every fault that it finds, in the order of the
// requests, not only the first.
//
// Nothing here is concurrent after Load has returned, and nothing logs or puts
// into an error any part of a key but the public one.
package keystore
