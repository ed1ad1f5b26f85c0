package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/media/legacy"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/reencrypt"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/webhooks"
)

// sealedColumns are all places where secrets are stored sealed; a test holds them
// against the schema.
func sealedColumns() []reencrypt.Column {
	return append(webhooks.Sealed(), schedules.Sealed(), sessions.Sealed(), legacy.Sealed())
}

// resealAll seals all of it anew: by the first key of SLUICE_SECRETS_KEY, and what
// the media product stores by its own.
func (e environment) resealAll(ctx context.Context, db postgres.DB) ([]reencrypt.Result, error) {
	box, err := e.box()
	if err != nil {
		return nil, err
	}
	own, err := e.ownBox()
	if err != nil {
		return nil, err
	}
	list, err := reencrypt.All(ctx, db, box, slices.DeleteFunc(sealedColumns(), isMedias))
	if err != nil {
		return list, err
	}
	more, err := reencrypt.All(ctx, db, own, []reencrypt.Column{legacy.Sealed()})
	return append(list, more...), err
}

func isMedias(c reencrypt.Column) bool { return c.Table == legacy.Sealed().Table }

func resealCommand(env environment) *cobra.Command {
	return &cobra.Command{
		Use: "reseal", Short: "re-encrypt stored secrets with the first key of SLUICE_SECRETS_KEY, so that the others can be dropped", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			pool, err := env.database(c.Context(), "sluice reseal", 2)
			if err != nil {
				return err
			}
			defer pool.Close()
			list, err := env.resealAll(c.Context(), pool)
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
