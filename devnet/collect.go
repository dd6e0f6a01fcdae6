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

// record is one aggregate as /aggnode/v1/aggregates lists it. Times are milliseconds from the start of its slot.
type record struct {
	ID           uint64   `json:"id"`
	Slot         uint64   `json:"slot"`
	Source       string   `json:"source"`
	DataRoot     string   `json:"data_root"` // 0x and hex
	Participants []int    `json:"participants"`
	PublicKeys   []string `json:"public_keys"` // 0x and hex, ascending; with ?public_keys=1
	VerifiedMS   float64  `json:"verified_ms"`
	CheckMS      float64  `json:"check_ms"`
	PublishedMS  float64  `json:"published_ms"`
}

// client reads one node's API.
type client struct {
	http          *http.Client
	api, metrics  string // base URLs
	lastAggregate uint64 // highest id seen
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
	resp, err := c.get(ctx, c.api+"/aggnode/v1/aggregates?public_keys=1&after="+strconv.FormatUint(c.lastAggregate, 10))
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var body struct {
		Aggregates []record `json:"aggregates"`
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask for aggregates: %s", resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		return nil, fmt.Errorf("read aggregates: %w", err)
	}
	for _, r := range body.Aggregates {
		c.lastAggregate = max(c.lastAggregate, r.ID)
	}
	return body.Aggregates, nil
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

// counter sums the samples of a metric whose labels contain all of the given `name="value"` texts.
func (c *client) counter(ctx context.Context, name string, labels ...string) (float64, error) {
	resp, err := c.get(ctx, c.metrics+"/metrics")
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	var sum float64
	sc := bufio.NewScanner(resp.Body)
	for sc.Scan() {
		line := sc.Text()
		rest, ok := strings.CutPrefix(line, name)
		if !ok || (rest != "" && rest[0] != '{' && rest[0] != ' ') || !containsAll(rest, labels) {
			continue
		}
		v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("read metric %s: %w", name, err)
		}
		sum += v
	}
	if err := sc.Err(); err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	return sum, nil
}

func containsAll(s string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}
