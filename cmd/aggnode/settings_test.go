package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func flagsOf(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	f := pflag.NewFlagSet("run", pflag.ContinueOnError)
	addRunFlags(f)
	require.NoError(t, f.Parse(args))
	return f
}

func TestLaterLayersWin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.yaml")
	require.NoError(t, os.WriteFile(file, []byte("api-port: 1000\nmetrics-port: 1001\ngossipsub-port: 1002\nslot-duration: 8s\naggregate-subnet-ids: [1, 3]\n"), 0o600))
	t.Setenv("AGGNODE_METRICS_PORT", "2001")
	t.Setenv("AGGNODE_GOSSIPSUB_PORT", "2002")
	t.Setenv("AGGNODE_IS_AGGREGATOR", "true")
	t.Setenv("AGGNODE_BOOTNODES", "enr:-a,enr:-b")

	s, err := loadSettings(flagsOf(t, "--config", file, "--gossipsub-port", "3002"))
	require.NoError(t, err)
	require.Equal(t, 1000, s.APIPort, "file over default")
	require.Equal(t, 2001, s.MetricsPort, "environment over file")
	require.Equal(t, 3002, s.GossipsubPort, "flag over environment")
	require.True(t, s.IsAggregator)
	require.Equal(t, 8*time.Second, s.SlotDuration)
	require.Equal(t, []int{1, 3}, s.Subnets)
	require.Equal(t, []string{"enr:-a", "enr:-b"}, s.Bootnodes)
	require.Equal(t, "127.0.0.1", s.HTTPAddress, "default")
}

func TestWhatIsUnknownIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.yaml")
	require.NoError(t, os.WriteFile(file, []byte("api-prot: 1000\n"), 0o600))
	_, err := loadSettings(flagsOf(t, "--config", file))
	require.ErrorContains(t, err, "api-prot")
	require.ErrorContains(t, err, file)

	t.Setenv("AGGNODE_API_PROT", "1")
	_, err = loadSettings(flagsOf(t))
	require.ErrorContains(t, err, "AGGNODE_API_PROT")
}

func TestAMissingOrBrokenFileIsNamed(t *testing.T) {
	_, err := loadSettings(flagsOf(t, "--config", "/nonexistent.yaml"))
	require.ErrorContains(t, err, "/nonexistent.yaml")

	file := filepath.Join(t.TempDir(), "settings.yaml")
	require.NoError(t, os.WriteFile(file, []byte("api-port: [1\n"), 0o600))
	_, err = loadSettings(flagsOf(t, "--config", file))
	require.ErrorContains(t, err, file)

	require.NoError(t, os.WriteFile(file, []byte("api-port: many\n"), 0o600))
	_, err = loadSettings(flagsOf(t, "--config", file))
	require.ErrorContains(t, err, "api-port")
}
