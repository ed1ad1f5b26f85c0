package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

func seedCommand(env environment) *cobra.Command {
	c := process(env, "seed", "initialise an empty database: schema, default configuration, first account", runSeed)
	c.Long = "Brings the database to this version's schema. In an empty one it also puts the default configuration, and makes a first account with an API key,\n" +
		"an admin key and somebody who can sign in, and writes them to dev.env in the state folder. Called again it changes nothing that is there."
	return c
}

// runSeed is what `up` does before it starts its processes, for a platform whose
// processes are started by others.
func runSeed(ctx context.Context, env environment) error {
	for _, name := range []string{"SLUICE_DATABASE_URL", "SLUICE_SECRETS_KEY"} {
		if _, err := env.require(name); err != nil {
			return err
		}
	}
	state, err := filepath.Abs(env.get("SLUICE_STATE_DIR"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(state, 0o755); err != nil {
		return err
	}
	l := &local{env: env, state: state, set: map[string]string{}}
	if err := l.placeEdges(); err != nil {
		return err
	}
	if err := l.migrate(ctx); err != nil {
		return err
	}
	return l.seed(ctx)
}
