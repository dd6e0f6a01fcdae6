package devnet

import (
	"errors"
	"fmt"
	"io"
	"net"
)

// ports of one node.
type ports struct {
	gossip, api, metrics int
}

// freePorts asks the kernel for unused loopback ports, three a node. All of them are held until the last one is
// chosen, so no port is given twice; a second devnet that starts meanwhile gets others.
func freePorts(nodes int) ([]ports, error) {
	var held []io.Closer
	defer func() {
		for _, c := range held {
			_ = c.Close() // nothing was sent on it
		}
	}()
	tcp := func() (int, error) {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		held = append(held, l)
		return l.Addr().(*net.TCPAddr).Port, nil
	}
	udp := func() (int, error) {
		c, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		held = append(held, c)
		return c.LocalAddr().(*net.UDPAddr).Port, nil
	}
	out := make([]ports, nodes)
	for i := range out {
		var errs [3]error
		out[i].gossip, errs[0] = udp()
		out[i].api, errs[1] = tcp()
		out[i].metrics, errs[2] = tcp()
		if err := errors.Join(errs[:]...); err != nil {
			return nil, fmt.Errorf("find free ports for node %d: %w", i, err)
		}
	}
	return out, nil
}
