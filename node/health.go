package node

import (
	"fmt"
	"time"

	"aggnode/api"
	"aggnode/prover"
)

// stuckCheck is the age of a proof check in a child at which the node stops calling itself ready. Checks take 15 ms and
// have a deadline of 2 s.
const stuckCheck = 2 * time.Second

// Checks are the readiness checks, in a fixed order. Each answers from a snapshot.
func (n *Node) Checks() []api.Check {
	checks := []api.Check{n.checkP2P(), n.checkVerifier()}
	if n.backend.proverChild != nil {
		checks = append(checks, withSpare(childCheck("prover", n.backend.proverChild, false), n.backend.proverChild))
	}
	if n.aggregator.Enabled() {
		ok, why := n.aggregator.Ready()
		checks = append(checks, api.Check{Name: "aggregator", OK: ok, Detail: why})
	}
	place := n.sched.Placement()
	detail := place.Tier.String() + ": " + place.Reason
	if n.sched.RealTime() {
		detail += "; the node runs at real-time priority"
	}
	return append(checks, api.Check{Name: "placement", OK: true, Detail: detail})
}

func (n *Node) checkP2P() api.Check {
	ok, why := n.host.Ready()
	return api.Check{Name: "p2p", OK: ok, Detail: why}
}

// childCheck judges a child by its client's snapshot. A prover may run for long, a check may not.
func childCheck(name string, c *prover.Client, isShort bool) api.Check {
	s := c.Stats()
	switch {
	case !s.Ready && s.LastError != nil:
		return api.Check{Name: name, Detail: s.LastError.Error()}
	case !s.Ready:
		return api.Check{Name: name, Detail: "starting"}
	case isShort && !s.Oldest.IsZero() && time.Since(s.Oldest) > stuckCheck:
		return api.Check{Name: name, Detail: fmt.Sprintf("a check has run for %v", time.Since(s.Oldest).Round(time.Millisecond))}
	}
	return api.Check{Name: name, OK: true}
}

// withSpare says why a prover that serves has nobody to take over from it.
func withSpare(check api.Check, c *prover.Client) api.Check {
	if check.OK {
		check.Detail = c.Stats().NoSpare
	}
	return check
}

// aggregatorRole switches the aggregation duty for the API.
type aggregatorRole struct{ n *Node }

// IsAggregator reports whether the duty is on.
func (r aggregatorRole) IsAggregator() bool { return r.n.aggregator.Enabled() }

// SetAggregator switches the duty. A node that started without a prover cannot take it.
func (r aggregatorRole) SetAggregator(enabled bool) (previous bool, err error) {
	if _, absent := r.n.backend.maker.(absentMaker); absent && enabled {
		return r.n.aggregator.Enabled(), fmt.Errorf("this node was started without --is-aggregator and has no prover")
	}
	return r.n.aggregator.SetEnabled(enabled), nil
}
