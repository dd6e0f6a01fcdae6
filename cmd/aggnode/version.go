package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// version is set by the linker (-X main.version=…) in release builds.
var version = "dev"

// buildVersion is the release, or the revision that the go command recorded.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if version != "dev" || !ok {
		return version
	}
	var revision, dirty string
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "-dirty"
			}
		}
	}
	if revision == "" {
		return version
	}
	return version + "-" + revision + dirty
}

func newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program and of the libraries that shape the wire",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := map[string]string{"aggnode": buildVersion(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, dep := range info.Deps {
					if strings.HasPrefix(dep.Path, "github.com/libp2p/go-libp2p") {
						v[strings.TrimPrefix(dep.Path, "github.com/libp2p/")] = dep.Version
					}
				}
			}
			out := cmd.OutOrStdout()
			if asJSON {
				return json.NewEncoder(out).Encode(v)
			}
			_, err := fmt.Fprintf(out, "aggnode %s (%s, %s/%s)\ngo-libp2p %s, go-libp2p-pubsub %s\n",
				v["aggnode"], v["go"], v["os"], v["arch"], v["go-libp2p"], v["go-libp2p-pubsub"])
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}
