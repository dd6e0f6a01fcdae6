package api

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// BudgetSettings are what an operator may change while the node runs. In a change, nil leaves a value as it is.
type BudgetSettings struct {
	CoresMin *float64 `json:"cores_min,omitempty"` // that the prover keeps under stress
	CoresMax *float64 `json:"cores_max,omitempty"` // hard limit; 0: none
	TargetMS *float64 `json:"target_ms,omitempty"` // queue wait of votes at p99 that the controller defends
	Calendar *bool    `json:"calendar,omitempty"`  // lower weight in intervals 0 and 1
	Tier     *string  `json:"tier,omitempty"`      // placement to use: "T0", "T1", "T2", or "auto" for the highest there is
}

// BudgetView is the body of GET /aggnode/v1/budget: the settings in force and what follows from them now.
type BudgetView struct {
	BudgetSettings
	Tier       string  `json:"tier"`            // in force; it stands before that of the settings
	TierAsked  string  `json:"tier_asked"`      // that of the settings
	TierReason string  `json:"tier_reason"`     // what was found at each tier from T2 down to the one in force
	Moved      string  `json:"moved,omitempty"` // in the answer to a change of the tier: what it did to provers that run
	Cores      float64 `json:"cores"`           // granted to the prover
	Weight     int     `json:"weight"`          // of the prover's control group; 0 where the tier has none
	Reason     string  `json:"reason"`          // of the last decision
}

// budget is the CPU budget of the prover.
type budget interface {
	BudgetView() BudgetView
	// ChangeBudget applies a change whole or not at all, and says what a change of the tier did to provers that run. The
	// error names the value and its range, or why the tier is not to be had.
	ChangeBudget(ctx context.Context, change BudgetSettings) (moved string, err error)
}

func (s *Server) budget(w http.ResponseWriter, _ *http.Request) {
	if s.sources.Budget == nil {
		writeError(w, http.StatusServiceUnavailable, "this node has no prover to budget")
		return
	}
	writeJSON(w, http.StatusOK, s.sources.Budget.BudgetView())
}

func (s *Server) changeBudget(w http.ResponseWriter, r *http.Request) {
	if s.sources.Budget == nil {
		writeError(w, http.StatusServiceUnavailable, "this node has no prover to budget")
		return
	}
	var change BudgetSettings
	if !readJSON(r, &change) {
		writeError(w, http.StatusBadRequest, `want any of {"cores_min": 0.5, "cores_max": 2, "target_ms": 50, "calendar": true, "tier": "auto"}`)
		return
	}
	moved, err := s.sources.Budget.ChangeBudget(r.Context(), change)
	if err != nil {
		code := http.StatusBadRequest
		if errors.Is(err, context.DeadlineExceeded) {
			code = http.StatusServiceUnavailable
		}
		writeError(w, code, err.Error())
		return
	}
	view := s.sources.Budget.BudgetView()
	view.Moved = moved
	writeJSON(w, http.StatusOK, view)
}

// tokenSize is the length of the API token in bytes before encoding.
const tokenSize = 32

// TokenFile is the name of the token's file in a data directory.
const TokenFile = "api-token"

// LoadToken reads the API token of a data directory, and makes it (mode 0600) where there is none yet.
func LoadToken(dataDir string) (string, error) {
	path := filepath.Join(dataDir, TokenFile)
	b, err := os.ReadFile(path)
	switch {
	case err == nil:
		token := strings.TrimSpace(string(b))
		if len(token) < tokenSize {
			return "", fmt.Errorf("API token in %s is shorter than %d characters: remove the file to have a new one made", path, tokenSize)
		}
		return token, nil
	case !errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("read the API token: %w", err)
	}
	raw := make([]byte, tokenSize)
	if _, err := rand.Read(raw); err != nil {
		return "", fmt.Errorf("make an API token: %w", err)
	}
	token := hex.EncodeToString(raw)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("make an API token: %w", err)
	}
	_, err = f.WriteString(token + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("make an API token: %w", err)
	}
	return token, nil
}

// hasToken tells whether a request carries the node's token. Without a token configured none does.
func (s *Server) hasToken(r *http.Request) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && s.token != "" && subtle.ConstantTimeCompare([]byte(given), []byte(s.token)) == 1
}

// withTokenOrHere admits requests that carry the node's token or come from the same machine.
func (s *Server) withTokenOrHere(next http.HandlerFunc) http.Handler {
	here := sameMachine(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.hasToken(r) {
			next(w, r)
			return
		}
		here.ServeHTTP(w, r)
	})
}

// withToken admits requests that carry the node's token.
func (s *Server) withToken(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.hasToken(r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeError(w, http.StatusUnauthorized, "a change needs the token in the file "+TokenFile+" of the node's data directory, as Authorization: Bearer")
			return
		}
		next(w, r)
	})
}
