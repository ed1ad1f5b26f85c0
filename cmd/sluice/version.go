package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"sluice.dev/sluice/cmd/sluice/output"
)

// build is what `sluice version` says of this program.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"` // from which it was built, if that is known
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func showVersion(p output.Printer, version string) error {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Commit = s.Value
			}
		}
	}
	if p.Quiet {
		_, err := fmt.Fprintln(p.Out, b.Version)
		return err
	}
	if p.Text() {
		_, err := fmt.Fprintf(p.Out, "sluice %s (%s, %s)\n", b.Version, b.Go, b.Platform)
		return err
	}
	raw, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return p.Document(raw)
}
