package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aggnode/api"
)

// budgetClient asks a running node.
type budgetClient struct {
	url, dataDir, tokenFile string
	asJSON                  bool
}

func newBudgetCommand() *cobra.Command {
	c := &budgetClient{}
	cmd := &cobra.Command{
		Use:   "budget",
		Short: "Show or change the CPU budget of a running node's prover",
		Long: `budget talks to a running node. Changes take effect within half a second, without a restart, and need
the token that the node keeps in its data directory. docs/budget.md says how to read the figures.`,
	}
	f := cmd.PersistentFlags()
	f.StringVar(&c.url, "api", "http://127.0.0.1:5052", "API of the node, `URL`")
	f.StringVar(&c.dataDir, "data-dir", "", "data directory of the node, where its token is, `DIR`")
	f.StringVar(&c.tokenFile, "token-file", "", "file with the token, where it is not in --data-dir, `FILE`")
	f.BoolVar(&c.asJSON, "json", false, "print as JSON")
	cmd.AddCommand(c.showCommand(), c.setCommand())
	return cmd
}

func (c *budgetClient) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "Show the budget in force",
		Example: `  aggnode budget show --api http://127.0.0.1:5052`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			view, err := c.call(cmd.Context(), http.MethodGet, nil)
			if err != nil {
				return err
			}
			return c.print(cmd.OutOrStdout(), view)
		},
	}
}

func (c *budgetClient) setCommand() *cobra.Command {
	var coresMin, coresMax float64
	var target time.Duration
	var calendar bool
	var tier string
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Change what is given and leave the rest",
		Example: `  aggnode budget set --cores-max 2 --data-dir ~/.local/share/aggnode/nodes/aggnode_0
  aggnode budget set --cores-max 0            # no limit
  aggnode budget set --target 100ms --calendar=false
  aggnode budget set --tier T1                # running provers are moved`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var change api.BudgetSettings
			f := cmd.Flags()
			if f.Changed("cores-min") {
				change.CoresMin = &coresMin
			}
			if f.Changed("cores-max") {
				change.CoresMax = &coresMax
			}
			if f.Changed("target") {
				ms := float64(target.Microseconds()) / 1000
				change.TargetMS = &ms
			}
			if f.Changed("calendar") {
				change.Calendar = &calendar
			}
			if f.Changed("tier") {
				change.Tier = &tier
			}
			if change == (api.BudgetSettings{}) {
				return errors.New("nothing to change: give --cores-min, --cores-max, --target, --calendar or --tier")
			}
			view, err := c.call(cmd.Context(), http.MethodPatch, &change)
			if err != nil {
				return err
			}
			return c.print(cmd.OutOrStdout(), view)
		},
	}
	f := cmd.Flags()
	f.Float64Var(&coresMin, "cores-min", 0, "cores that the prover keeps under stress, `CORES`")
	f.Float64Var(&coresMax, "cores-max", 0, "hard limit in cores; 0: none, `CORES`")
	f.DurationVar(&target, "target", 0, "queue wait of votes at p99 that is defended, `DURATION`")
	f.StringVar(&tier, "tier", "", "placement of the prover: T0 (lowest priority), T1 (reserved cores), T2 (cgroup v2), or auto for the highest there is, `TIER`")
	f.BoolVar(&calendar, "calendar", true, "lower weight of the prover in intervals 0 and 1")
	return cmd
}

// token reads the node's token.
func (c *budgetClient) token() (string, error) {
	path := c.tokenFile
	if path == "" {
		if c.dataDir == "" {
			return "", errors.New("a change needs the node's token: give --data-dir DIR of the node, or --token-file FILE")
		}
		path = filepath.Join(c.dataDir, api.TokenFile)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the node's token: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

func (c *budgetClient) call(ctx context.Context, method string, change *api.BudgetSettings) (*api.BudgetView, error) {
	var body io.Reader
	if change != nil {
		b, err := json.Marshal(change)
		if err != nil {
			return nil, fmt.Errorf("encode the change: %w", err)
		}
		body = bytes.NewReader(b)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.url, "/")+"/aggnode/v1/budget", body)
	if err != nil {
		return nil, fmt.Errorf("--api %s: %w", c.url, err)
	}
	if change != nil {
		token, err := c.token()
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("--api %s: %w", c.url, err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		var fault struct {
			Error string `json:"error"`
		}
		_ = json.Unmarshal(b, &fault) // whatever it is, the status stands
		return nil, fmt.Errorf("the node answered %s: %s", resp.Status, fault.Error)
	}
	var view api.BudgetView
	if err := json.Unmarshal(b, &view); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return &view, nil
}

func (c *budgetClient) print(w io.Writer, v *api.BudgetView) error {
	if c.asJSON {
		return json.NewEncoder(w).Encode(v)
	}
	value := func(p *float64) float64 {
		if p == nil {
			return 0
		}
		return *p
	}
	limit := "none"
	if most := value(v.CoresMax); most > 0 {
		limit = fmt.Sprintf("%.2f cores", most)
	}
	if v.Moved != "" {
		if _, err := fmt.Fprintf(w, "moved     %s\n", v.Moved); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "tier      %s of %s asked (%s)\ngranted   %.2f cores, weight %d (%s)\nminimum   %.2f cores\nmaximum   %s\ntarget    %.0f ms queue wait of votes at p99\ncalendar  %t\n",
		v.Tier, v.TierAsked, v.TierReason, v.Cores, v.Weight, v.Reason, value(v.CoresMin), limit, value(v.TargetMS), v.Calendar != nil && *v.Calendar)
	return err
}
