package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/controlplane/accounts/seed"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/internal/app"
)

// upCommand runs a platform in the foreground.
func upCommand(env app.Environment) *cobra.Command {
	var profile string
	var files []string
	var opt app.UpOptions
	c := &cobra.Command{
		Use: "up", Short: "run a whole platform on this machine", Args: cobra.NoArgs,
		Example: "  sluice up --profile gateway\n  sluice up --profile gateway -f sluice.yaml",
		RunE: func(c *cobra.Command, _ []string) error {
			env := env
			if profile != "" {
				env = env.With(map[string]string{"SLUICE_PROFILE": profile})
			}
			var err error
			if opt.Document, err = ownDocument(c, env, files); err != nil {
				return err
			}
			return app.RunUp(c.Context(), env, opt, c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&profile, "profile", "", "platform: all of it; gateway: no media, chat, schedules and payments (default: SLUICE_PROFILE, or platform)")
	c.Flags().StringArrayVarP(&files, "file", "f", nil, "configuration to apply at the start, as `sluice apply` reads it; may be repeated")
	c.Flags().StringVar(&opt.Sources, "sources", "", "checkout in which a missing media engine is built")
	return c
}

// ownDocument is the document in files, expanded; nil: there are none.
func ownDocument(c *cobra.Command, env app.Environment, files []string) (*config.Document, error) {
	if len(files) == 0 {
		return nil, nil
	}
	d, src, err := readDocument(c.InOrStdin(), files)
	if err != nil {
		return nil, err
	}
	whole, err := checked(env, d, src)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(whole.PlanNames(), seed.Plan) {
		return nil, errors.New("the configuration has no plan " + seed.Plan + ", which the account of `sluice up` has: add `include: [builtin]`, or the plan")
	}
	return &whole, nil
}
