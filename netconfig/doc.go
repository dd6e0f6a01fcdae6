// Package netconfig reads and writes the folder that describes a network: the
// genesis time and the public keys of the validators (config.yaml), who runs
// which of them (validators.yaml, annotated_validators.yaml), where the nodes
// are (nodes.yaml, validator-config.yaml) and what line of the protocol they
// speak (aggnode.yaml). The files are those of lean-quickstart; aggnode.yaml is
// ours, and a folder without it is of the profile devnet5. Its keys are profile,
// scheme, backend and, for the profile local alone, registry_limit: how many
// validators lists on the wire have room for, 1 to 16,384, by default the 4,096 of
// all other networks. All nodes of a network must agree on it, as roots depend on
// it.
//
// [Load] answers with one immutable [Network], or with an error that names the
// file and what is wrong in it. It is lenient where clients differ (both
// spellings of the key fields, with or without 0x, quoted or not, keys that it
// does not know) and strict where a mistake would only show later: a profile
// that does not fit the keys, the same key twice, an entry that nobody can dial.
// [Network.Duties] finds the key files of one node. [Write] makes a whole folder
// from a [GenesisSpec]; the same spec gives the same bytes.
//
// Node records ([ENR]) and peer ids are decoded here too, so that nothing but the
// network layer needs libp2p. Records may come from strangers: the decoder is
// bounded by the 300 bytes of a record and never panics. The other files belong
// to the operator and are trusted not to be hostile, but not to be right.
//
// The package knows no signature scheme: secret keys are opaque files whose
// paths it returns, public keys are bytes whose length the profile fixes. It
// starts no goroutine, opens no socket and logs nothing; all functions may be
// called concurrently.
package netconfig
