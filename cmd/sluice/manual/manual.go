// Package manual writes down the commands of a program: as one page of the documentation,
// and as manual pages.
package manual

import (
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

//go:embed intro.md
var intro string

// Marks of what a page says of products that a gateway alone does not have: see
// web/docsite.
const opens, closes = "<!-- platform -->", "<!-- /platform -->"

// ofProducts are commands on those products, and products is how others speak of them.
// The tests of web/docsite say what is missing here.
var (
	ofProducts = []string{"demo", "engine", "event", "media", "runtime", "schedule", "stream", "x402"}
	products   = regexp.MustCompile(`(?i)\bstreams?\b|stream\.|schedule|recording|\bclips?\b|media|runtime|ffmpeg|\bchat\b`)
)

// Markdown is the page of all commands below root.
func Markdown(root *cobra.Command) string {
	b := &strings.Builder{}
	b.WriteString(intro)
	fmt.Fprintf(b, "\n## Flags of every command\n\n%s", flags(root.PersistentFlags()))
	for _, g := range root.Groups() {
		fmt.Fprintf(b, "\n## %s\n", strings.TrimSuffix(g.Title, ":"))
		for _, c := range shown(root) {
			if c.GroupID != g.ID {
				continue
			}
			text := section(c)
			if slices.Contains(ofProducts, c.Name()) {
				text = "\n" + opens + "\n" + text + "\n" + closes + "\n"
			} else {
				text = marked(text)
			}
			b.WriteString(text)
		}
	}
	return b.String()
}

// marked is a text whose lines about products are marked.
func marked(text string) string {
	b := &strings.Builder{}
	for line := range strings.Lines(text) {
		if products.MatchString(line) && !strings.HasPrefix(line, "#") {
			usage, text, described := strings.Cut(line, "`: ")
			if line = strings.TrimSuffix(line, "\n") + " " + opens + "\n"; described && line[0] == '`' && !products.MatchString(usage) {
				line = usage + "`" + opens + ": " + strings.TrimSuffix(text, "\n") + closes + "\n" // the usage is shown
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

// shown are the commands below c that people are told of.
func shown(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(c.Commands()), func(c *cobra.Command) bool { return !c.IsAvailableCommand() || c.Name() == "help" })
}

// section is what there is to say of c, and of all below it.
func section(c *cobra.Command) string {
	b := &strings.Builder{}
	if c.Parent() == c.Root() {
		fmt.Fprintf(b, "\n### sluice %s\n", c.Name())
	}
	text := c.Short
	if c.Long != "" {
		text, _, _ = strings.Cut(strings.TrimSuffix(c.Long, "\n"), "\n\nIt reads these variables")
	}
	fmt.Fprintf(b, "\n`%s`: %s\n", c.UseLine(), escaped(strings.Join(strings.Fields(text), " ")))
	if len(c.Aliases) > 0 {
		fmt.Fprintf(b, "\nAlso called `%s`.\n", strings.Join(c.Aliases, "`, `"))
	}
	if c.HasAvailableLocalFlags() {
		b.WriteString("\n" + flags(c.LocalNonPersistentFlags()))
	}
	if c.Example != "" {
		b.WriteString("\n")
		for line := range strings.Lines(c.Example) {
			if line = strings.TrimSpace(line); line != "" {
				fmt.Fprintf(b, "- `%s`\n", strings.Join(strings.Fields(line), " "))
			}
		}
	}
	for _, below := range shown(c) {
		b.WriteString(section(below))
	}
	return b.String()
}

// flags are a table of flags.
func flags(s *pflag.FlagSet) string {
	b := &strings.Builder{}
	s.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		kind, help := pflag.UnquoteUsage(f)
		if kind != "" && kind != "bool" && !strings.Contains(kind, " ") {
			name += " " + kind
		} else {
			help = f.Usage
		}
		fallback := f.DefValue
		if fallback == "[]" || fallback == "false" || fallback == "0" || fallback == "0s" {
			fallback = ""
		} else if fallback != "" {
			fallback = "`" + fallback + "`"
		}
		if b.Len() == 0 {
			b.WriteString("| flag | default | meaning |\n| --- | --- | --- |\n")
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, fallback, escaped(help))
	})
	return b.String()
}

// escaped is a text in which nothing but code counts as Markdown.
func escaped(s string) string {
	parts := strings.Split(s, "`")
	if len(parts)%2 == 0 { // no pairs
		parts = []string{strings.ReplaceAll(s, "`", "'")}
	}
	for i := range parts {
		if i%2 == 0 {
			parts[i] = strings.NewReplacer("*", `\*`, "_", `\_`, "<", `\<`, "|", `\|`, "[", `\[`, "{", `\{`).Replace(parts[i])
		} else {
			parts[i] = strings.ReplaceAll(parts[i], "|", `\|`)
		}
	}
	return strings.Join(parts, "`")
}

// Man writes a manual page of each command into dir, which it makes. The pages have no
// date, so that those of one version are always the same.
func Man(root *cobra.Command, dir, version string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &doc.GenManHeader{Title: "SLUICE", Section: "1", Source: "sluice " + version, Manual: "Sluice", Date: &time.Time{}}, dir)
}
