package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/controlplane/reseal"
	"sluice.dev/sluice/controlplane/sessions"
	"sluice.dev/sluice/controlplane/webhooks"
	"sluice.dev/sluice/runtime/media/legacy"
)

// sealedColumns are all places where secrets are stored sealed; a test holds them
// against the schema.
func sealedColumns() []reseal.Column {
	return append(append(webhooks.Sealed(), sessions.Sealed()), legacy.Sealed())
}

func resealCommand(env environment) *cobra.Command {
	return &cobra.Command{
		Use: "reseal", Short: "seal stored secrets anew with the first key of SLUICE_SECRETS_KEY, so that the others can be dropped", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			box, err := env.box()
			if err != nil {
				return err
			}
			pool, err := env.database(c.Context(), "sluice reseal", 2)
			if err != nil {
				return err
			}
			defer pool.Close()
			list, err := reseal.All(c.Context(), pool, box, sealedColumns())
			if err != nil {
				return err
			}
			lost := 0
			for _, r := range list {
				lost += r.Lost
				if _, err := fmt.Fprintf(c.OutOrStdout(), "%s: %d sealed anew, %d were already\n", r.Column, r.Resealed, r.Current); err != nil {
					return err
				}
			}
			if lost > 0 {
				return fmt.Errorf("%d secrets are opened by no key of SLUICE_SECRETS_KEY: add the one that sealed them", lost)
			}
			return nil
		},
	}
}
