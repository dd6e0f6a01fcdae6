package api

import (
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// limitedListener closes connections above a limit at once: whoever opens many gets nothing, the others are served.
type limitedListener struct {
	net.Listener
	slots   chan struct{} // bounded to the limit; a held slot is an open connection; full: the connection is closed
	refused prometheus.Counter
}

func limitConnections(l net.Listener, limit int, refused prometheus.Counter) net.Listener {
	return &limitedListener{Listener: l, slots: make(chan struct{}, limit), refused: refused}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &limitedConn{Conn: c, release: sync.OnceFunc(func() { <-l.slots })}, nil
		default:
			l.refused.Inc()
			_ = c.Close() // nothing was promised to this client
		}
	}
}

// limitedConn gives its slot back when it is closed.
type limitedConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.release()
	return err
}
