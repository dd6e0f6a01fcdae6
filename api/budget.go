package api

import (
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
}

// BudgetView is the body of GET /aggnode/v1/budget: the settings in force and what follows from them now.
type BudgetView struct {
	BudgetSettings
	Tier   string  `json:"tier"`
	Cores  float64 `json:"cores"`  // granted to the prover
	Weight int     `json:"weight"` // of the prover's control group; 0 where the tier has none
	Reason string  `json:"reason"` // of the last decision
}

// budget is the CPU budget of the prover.
type budget interface {
	BudgetView() BudgetView
	// ChangeBudget applies a change whole or not at all; the error names the value and its range.
	ChangeBudget(change BudgetSettings) error
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
		writeError(w, http.StatusBadRequest, `want any of {"cores_min": 0.5, "cores_max": 2, "target_ms": 50, "calendar": true}`)
		return
	}
	if err := s.sources.Budget.ChangeBudget(change); err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, s.sources.Budget.BudgetView())
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

// withToken admits requests that carry the node's token. Without a token configured nothing is admitted.
func (s *Server) withToken(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || s.token == "" || subtle.ConstantTimeCompare([]byte(given), []byte(s.token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeError(w, http.StatusUnauthorized, "a change needs the token in the file "+TokenFile+" of the node's data directory, as Authorization: Bearer")
			return
		}
		next(w, r)
	})
}
