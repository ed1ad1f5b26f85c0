package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/cmd/sluice/manual"
	"sluice.dev/sluice/internal/app"
)

//go:generate go test -count=1 -run TestThePageOfCommandsIsCurrent . -update

// manCommand is `sluice man`.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "write manual pages of all commands into a folder", Args: cobra.ExactArgs(1),
		Example: "  sluice man /usr/local/share/man/man1",
		RunE: func(c *cobra.Command, args []string) error {
			if err := manual.Man(c.Root(), args[0], app.Version); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "manual pages are in %s\n", args[0])
			return err
		},
	}
}
