package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"sluice.dev/sluice/controlplane/accounts/keyfile"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/kong"
)

// importKongCommand is `sluice import kong`.
func importKongCommand() *cobra.Command {
	dir, force := "", false
	c := &cobra.Command{
		Use: "kong FILE|-", Short: "make sluice.yaml and a file of key hashes from Kong's declarative configuration", Args: cobra.ExactArgs(1),
		Long: "Reads kong.yml, or what `deck gateway dump` writes (formats 1.1, 2.1 and 3.0), and writes three files:\n" +
			"  sluice.yaml   products, routes, rate classes and scopes, for `sluice apply`\n" +
			"  keys.csv      SHA-256 of each API key, for `sluice key import`\n" +
			"  report.txt    everything that was not translated, with its line\n" +
			"Nothing is sent anywhere. Keys are hashed here; their text is in none of the files.\n" +
			"A route that is guarded by what Sluice cannot express is left out, not opened.",
		Example: "  sluice import kong kong.yml --out from-kong\n" +
			"  sluice apply --dry-run -f from-kong/sluice.yaml\n" +
			"  sluice key import --from kong --create-accounts from-kong/keys.csv",
		RunE: func(c *cobra.Command, args []string) error {
			in, err := openFile(args[0], c.InOrStdin())
			if err != nil {
				return err
			}
			defer func() { _ = in.Close() }()
			b, err := io.ReadAll(io.LimitReader(in, kong.MaxBytes+1))
			if err != nil {
				return err
			}
			r, err := kong.Import(b, time.Now())
			if err != nil {
				return err
			}
			return writeKong(c.OutOrStdout(), dir, force, r)
		},
	}
	c.Flags().StringVar(&dir, "out", ".", "folder to write to")
	c.Flags().BoolVar(&force, "force", false, "overwrite files that are there")
	return c
}

// writeKong writes the files of r into dir, and prints what there is.
func writeKong(out io.Writer, dir string, force bool, r kong.Result) error {
	doc, err := documentYAML(r.Document)
	if err != nil {
		return err
	}
	var keys, report bytes.Buffer
	if err := keyfile.Write(&keys, r.Keys); err != nil {
		return err
	}
	counts := map[kong.Severity]int{}
	for _, n := range r.Notes {
		counts[n.Severity]++
		place := "the file"
		if n.Line > 0 {
			place = fmt.Sprintf("line %d, %s", n.Line, n.Place)
		}
		_, _ = fmt.Fprintf(&report, "%s: %s: %s\n", n.Severity, place, n.Text)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{"sluice.yaml", doc}, {"keys.csv", keys.Bytes()}, {"report.txt", report.Bytes()}} {
		if err := writeNew(filepath.Join(dir, f.name), f.text, 0o600, force); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "%s: %d products, %d routes, %d keys\n%s: %d left out, %d by hand, %d differ, %d ignored\n",
		dir, len(r.Document.Products), len(r.Document.Routes), len(r.Keys), filepath.Join(dir, "report.txt"),
		counts[kong.LeftOut], counts[kong.ByHand], counts[kong.Differs], counts[kong.Ignored])
	return err
}

// documentYAML is a document as people write it.
func documentYAML(d config.Document) ([]byte, error) {
	js, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	text, err := yaml.JSONToYAML(js)
	if err != nil {
		return nil, err
	}
	head := "# Made by `sluice import kong`; report.txt says what is not in it. docs/config.md explains the fields.\n"
	return append([]byte(head), text...), nil
}
