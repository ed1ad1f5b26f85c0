package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/workers/cron/croncli"
)

func cronCommand() *cobra.Command {
	c := &cobra.Command{Use: "cron", Short: "compute when cron expressions run"}
	c.AddCommand(cronNext())
	return c
}

func cronNext() *cobra.Command {
	var p croncli.Preview
	var batch bool
	c := &cobra.Command{
		Use: "next [EXPRESSION]", Short: "print the next runs; with --batch, read JSON lines", Args: cobra.MaximumNArgs(1),
		Example: `  sluice cron next --tz America/New_York -n 3 "*/30 * * * *"`,
		RunE: func(c *cobra.Command, args []string) error {
			status := 0
			switch {
			case batch && len(args) == 0:
				status = croncli.Batch(c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr())
			case !batch && len(args) == 1:
				p.Expr = args[0]
				status = croncli.Next(p, time.Now(), c.OutOrStdout(), c.ErrOrStderr())
			default:
				return errors.New("give one expression in quotes, or --batch")
			}
			if status != 0 {
				return exitStatus(status)
			}
			return nil
		},
	}
	c.Flags().StringVar(&p.Zone, "tz", "", "IANA time zone of the expression (default UTC)")
	c.Flags().StringVar(&p.From, "from", "", "list runs after this RFC 3339 time (default now)")
	c.Flags().IntVarP(&p.Count, "count", "n", 1, "number of runs")
	c.Flags().BoolVar(&batch, "batch", false, `answer JSON lines {"tz","expr","from"} from standard input`)
	return c
}
