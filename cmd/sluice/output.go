package main

import (
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/cmd/sluice/output"
)

// persistentFlags are those of every command.
func persistentFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringP("output", "o", "text", "text, json, yaml, or wide: text with all columns and exact times")
	f.BoolP("quiet", "q", false, "only ids or names, one a line")
	f.StringP("account", "a", "", "account id (default: the account of the key)")
	f.String("context", "", "context to use, one of those that sluice context list shows (default: the environment's, else the current one)")
	cobra.CheckErr(root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(output.Formats, cobra.ShellCompDirectiveNoFileComp)))
}

// printing is how c is to show what it has to say. A command that has a --output of its
// own shows its own values of it.
func printing(c *cobra.Command) output.Printer {
	p := output.Printer{Out: c.OutOrStdout(), Now: time.Now()}
	p.Format, _ = c.Flags().GetString("output")
	p.Quiet, _ = c.Flags().GetBool("quiet")
	if f, ok := p.Out.(*os.File); ok {
		p.Terminal = terminal(f)
	}
	return p
}

// checkOutput refuses a value of --output that is none. Of some commands it is a file.
func checkOutput(c *cobra.Command) error {
	f := c.Flag("output")
	if f == nil || f != c.Root().PersistentFlags().Lookup("output") || slices.Contains(output.Formats, f.Value.String()) {
		return nil
	}
	return usageError{c, "--output is \"" + f.Value.String() + "\": expected " + strings.Join(output.Formats, ", ")}
}
