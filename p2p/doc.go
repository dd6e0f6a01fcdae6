// Package p2p connects the node to its peers: a libp2p host on QUIC, the gossip
// topics of the network, and the Status exchange.
//
// It decodes no container and judges no content. Bytes go to the pipeline, the
// pipeline's verdict goes to gossipsub: this package is the only place where a
// pipeline.Verdict becomes a pubsub.ValidationResult.
//
// The path of one gossip message: the event loop of pubsub computes its id
// (wire.MessageID) and drops what was seen; one of two workers runs stage 1
// (screen): it decompresses, asks the pipeline's Screen and puts the item into
// its queue, neither of which waits; a goroutine of the topic then runs stage 2
// (submit), which waits for the pipeline's verdict. After an ignore of stage 1
// pubsub still calls stage 2, which finds no item in ValidatorData and returns at
// once. A message that was accepted is forwarded by pubsub; nothing is ever published
// a second time by hand, except a parked vote whose head arrived late (Republish).
// The pipeline knows a peer by the bytes of its id; people see the text.
//
// Peers are judged on this package's own record and on the pipeline's count of
// rejects, never by gossipsub scores: peer scoring is not configured at all, as
// in the other clients, because neighbours relay before they check and P3/P4
// would punish them for a forger's bytes. A peer with rejects and without one
// verified item that it was first to deliver, within two slots, is disconnected
// and kept away for a time that grows with each offence and decays. Breaking a
// protocol of one's own (request framing, limits, stalled streams) counts
// whatever else the peer delivers.
//
// Concurrency: New starts nothing. Run opens the socket, joins the topics, and
// blocks; every goroutine that it starts has ended when it returns. All other
// exported methods may be called from any goroutine, before, during and after
// Run. Publishing outside Run answers ErrNotRunning.
//
// Failure policy: what peers send is counted and dropped, never an error of
// ours. A panic in a validator is an ignore and a counter. A reject that
// coincides with an expired deadline is an ignore. Only a socket that cannot be
// opened, or a library that refuses its configuration, ends Run with an error.
package p2p
