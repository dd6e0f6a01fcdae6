package devnet

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// record is one aggregate as /aggnode/v1/aggregates lists it. Times are milliseconds.
type record struct {
	Seq      uint64  `json:"seq"`
	Slot     uint64  `json:"slot"`
	DataRoot string  `json:"data_root"`
	Source   string  `json:"source"` // own or gossip
	Indices  []int   `json:"indices"`
	AtMS     float64 `json:"at_ms"`    // from the start of the slot to publication or verdict
	CheckMS  float64 `json:"check_ms"` // from arrival to verdict
}

// client reads one node's API.
type client struct {
	http         *http.Client
	api, metrics string // base URLs
	next         uint64 // number of the next aggregate to ask for
}

func newClient(p ports) *client {
	return &client{
		http:    &http.Client{Timeout: 3 * time.Second},
		api:     fmt.Sprintf("http://127.0.0.1:%d", p.api),
		metrics: fmt.Sprintf("http://127.0.0.1:%d", p.metrics),
	}
}

func (c *client) get(ctx context.Context, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask a node: %w", err)
	}
	return resp, nil
}

// aggregates returns what came since the last call.
func (c *client) aggregates(ctx context.Context) ([]record, error) {
	var all []record
	for {
		resp, err := c.get(ctx, fmt.Sprintf("%s/aggnode/v1/aggregates?since=%d", c.api, c.next))
		if err != nil {
			return all, err
		}
		var body struct {
			Next       uint64   `json:"next"`
			Lost       uint64   `json:"lost"`
			More       bool     `json:"more"`
			Aggregates []record `json:"aggregates"`
		}
		err = json.NewDecoder(resp.Body).Decode(&body)
		_ = resp.Body.Close()
		switch {
		case resp.StatusCode != http.StatusOK:
			return all, fmt.Errorf("ask for aggregates: %s", resp.Status)
		case err != nil:
			return all, fmt.Errorf("read aggregates: %w", err)
		case body.Lost > 0:
			return all, fmt.Errorf("%d aggregates were lost between two questions", body.Lost)
		}
		c.next = body.Next
		all = append(all, body.Aggregates...)
		if !body.More {
			return all, nil
		}
	}
}

// ready asks /readyz.
func (c *client) ready(ctx context.Context) bool {
	resp, err := c.get(ctx, c.metrics+"/readyz")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// scrape visits all samples of /metrics: labels is the text in braces, empty without any.
func (c *client) scrape(ctx context.Context, visit func(name, labels string, value float64)) error {
	resp, err := c.get(ctx, c.metrics+"/metrics")
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	sc := bufio.NewScanner(resp.Body)
	for sc.Scan() {
		line := sc.Text()
		end := strings.LastIndexByte(line, ' ')
		if end < 0 || line[0] == '#' {
			continue
		}
		v, err := strconv.ParseFloat(line[end+1:], 64)
		if err != nil {
			return fmt.Errorf("read metric %q: %w", line, err)
		}
		name, labels, _ := strings.Cut(line[:end], "{")
		visit(name, labels, v)
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("read metrics: %w", err)
	}
	return nil
}

// counter sums the samples of a metric whose labels contain all of the given `name="value"` texts.
func (c *client) counter(ctx context.Context, name string, labels ...string) (float64, error) {
	var sum float64
	err := c.scrape(ctx, func(n, l string, v float64) {
		if n == name && containsAll(l, labels) {
			sum += v
		}
	})
	return sum, err
}

func containsAll(s string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}
