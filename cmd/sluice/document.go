package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/internal/app"
	"sluice.dev/sluice/platform/apierror"
)

// Bounds of what is read: of one file, in bytes, and of files.
const (
	maxDocument = config.MaxBytes + 1
	maxFiles    = 1000
)

// filesFlag adds -f, which may be repeated.
func filesFlag(c *cobra.Command, files *[]string) {
	c.Flags().StringArrayVarP(files, "file", "f", nil, "configuration file in YAML or JSON, folder of .yaml files, or - for standard input; a later one is laid over those before it")
	cobra.CheckErr(c.MarkFlagRequired("file"))
}

// validateCommand checks a document as apply would, without a platform.
func validateCommand(env app.Environment) *cobra.Command {
	var files []string
	var profile string
	c := &cobra.Command{
		Use: "validate", Short: "check a configuration without a platform; exit status 1 if it has faults", Args: cobra.NoArgs,
		Example: "  sluice validate -f sluice.yaml\n  sluice validate -f sluice.yaml -f production.yaml --profile gateway",
		RunE: func(c *cobra.Command, _ []string) error {
			env := env.WithLocalProfile()
			if profile != "" {
				env = env.With(map[string]string{"SLUICE_PROFILE": profile})
			}
			if _, err := env.Profile(); err != nil {
				return err
			}
			d, src, err := readDocument(c.InOrStdin(), files)
			if err != nil {
				return err
			}
			whole, err := checked(env, d, src)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "no faults: %s and %s; %d more routes are built in\n", count(len(d.Products), "product"), count(len(d.Routes), "route"), len(whole.Routes)-len(d.Routes))
			return err
		},
	}
	filesFlag(c, &files)
	c.Flags().StringVar(&profile, "profile", "", "what `include: [builtin]` stands for: platform or gateway (default: the local stack's)")
	return c
}

// count is a number of things in words: 1 request, 2 requests.
func count[N ~int | ~int64](n N, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// configText is a document that was read, with what was wrong with its text: the values of
// such a one are looked at all the same, so that all faults are told at once.
type configText struct {
	config.Document
	text error
}

// readDocument reads the files of a document, and where what stands in them.
func readDocument(stdin io.Reader, files []string) (configText, config.Sources, error) {
	r := reader{stdin: stdin, seen: map[string]bool{}}
	for _, name := range files {
		if err := r.read(name); err != nil {
			return configText{}, config.Sources{}, err
		}
	}
	d, src, err := config.Merge(r.layers)
	if in, ok := errors.AsType[config.InFile](err); ok {
		e, _ := errors.AsType[*apierror.Error](in.Err)
		return configText{}, src, fmt.Errorf("%s: %s", in.Name, e.Message)
	}
	return configText{d, err}, src, nil
}

// checked expands d and returns every fault of it, with its place. What only the
// control plane knows, such as the plans that accounts have, is not looked at.
func checked(env app.Environment, d configText, src config.Sources) (config.Document, error) {
	profile, err := env.Profile()
	if err != nil {
		return d.Document, err
	}
	whole, more := d.Expand(profile)
	var text *apierror.Error
	if d.text != nil && !errors.As(d.text, &text) {
		return whole, d.text
	}
	list := more
	if text != nil {
		list = append(text.Details, more...)
	}
	if err := config.AllFaults(list, nil, whole); err != nil {
		return whole, placed(err, src)
	}
	if err := whole.Validate(); err != nil {
		return whole, placed(err, src)
	}
	return whole, placed(env.CheckDocument(whole), src)
}

// placed puts the file and line before each fault in err.
func placed(err error, src config.Sources) error {
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok {
		return err
	}
	if len(e.Details) == 0 {
		return errors.New(e.Message)
	}
	list := make([]error, len(e.Details))
	for i, d := range e.Details {
		text := d.Field + " " + d.Issue
		if place := src.Place(d.Field); place != "" {
			text = place + ": " + text
		}
		if d.Expected != "" {
			text += " (expected " + d.Expected + ")"
		}
		list[i] = errors.New(text)
	}
	return errors.Join(list...)
}

// reader reads files, and those that they include, as layers for config.Merge.
type reader struct {
	stdin  io.Reader
	seen   map[string]bool // read once
	layers [][]config.Text
}

// read reads a file, or a folder's, and before it what it includes.
func (r *reader) read(name string) error {
	names := []string{name}
	if info, err := os.Stat(name); name != "-" && err != nil {
		return err
	} else if name != "-" && info.IsDir() {
		if names, err = inFolder(name); err != nil {
			return err
		}
	}
	var layer []config.Text
	for _, name := range names {
		whole, err := filepath.Abs(name)
		if err != nil || r.seen[whole] {
			continue
		}
		r.seen[whole] = true
		if len(r.seen) > maxFiles {
			return fmt.Errorf("%s: is one file too many (at most %d)", name, maxFiles)
		}
		b, err := r.text(name)
		if err != nil {
			return err
		}
		for _, other := range config.Includes(b) {
			if !filepath.IsAbs(other) {
				other = filepath.Join(filepath.Dir(name), other)
			}
			if err := r.read(other); err != nil {
				return fmt.Errorf("%s: include: %w", name, err)
			}
		}
		layer = append(layer, config.Text{Name: name, YAML: b})
	}
	r.layers = append(r.layers, layer)
	return nil
}

// text is what stands in a file.
func (r *reader) text(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(r.stdin, maxDocument))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxDocument))
}

// inFolder are the .yaml and .yml files of a folder, by name.
func inFolder(name string) ([]string, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, filepath.Join(name, e.Name()))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: has no .yaml file", name)
	}
	slices.Sort(names)
	return names, nil
}
