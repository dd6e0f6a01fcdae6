// Package devkeys holds the signing keys of local devnets: 64 validators with an attestation and a proposal key each, for
// either signature scheme, good for the epochs [0, 2^16). They ship inside the binary so that a devnet starts at once instead
// of after minutes of key generation.
//
// They are insecure on purpose: their seeds are hashes of public text (see gen), so anybody can sign with them. Nothing but
// a devnet may use them, and a network folder that holds their public keys is a devnet.
//
// The package hands out opaque bytes and imports nothing of this module: a key is a public key and the key file of package xmss,
// which the caller parses. The files under data/ are made and checked by the command in gen; a file is a list of records
//
//	public key 32 | length u32 little-endian | key file
//
// the attestation keys of validators 0..63 first, then their proposal keys.
//
// Load copies the embedded file (0.3 or 0.7 MB), so the caller owns what it gets. Safe for concurrent use. It fails only for an unknown
// scheme or a damaged build.
package devkeys
