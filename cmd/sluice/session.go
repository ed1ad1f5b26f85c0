package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

// sessionCommand is `sluice session`.
func sessionCommand(env environment) *cobra.Command {
	c := &cobra.Command{Use: "session", Short: "create session tokens, and replace the key that signs them"}
	c.AddCommand(sessionCreate(env), sessionReplaceKey(env))
	return c
}

// sessionCreate is `sluice session create`.
func sessionCreate(env environment) *cobra.Command {
	var email string
	var out printer
	c := &cobra.Command{
		Use: "create", Short: "create a session token for a user, without the password", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			answer, err := env.call(c.Context(), http.MethodPost, "/admin/v1/sessions", map[string]any{"email": email})
			if err != nil {
				return err
			}
			return out.one(c.OutOrStdout(), answer, "id", "token", "expires_at", "scopes")
		},
	}
	out.flag(c)
	c.Flags().StringVar(&email, "email", "", "e-mail address of the user")
	cobra.CheckErr(c.MarkFlagRequired("email"))
	return c
}

// sessionReplaceKey is `sluice session replace-key`. It works on the database, so
// that it needs no token that the leaked key may have signed.
func sessionReplaceKey(env environment) *cobra.Command {
	return &cobra.Command{
		Use: "replace-key", Short: "replace a leaked signing key; every session and OAuth token expires within two minutes", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			pool, err := env.database(c.Context(), "sluice replace-key", 2)
			if err != nil {
				return err
			}
			defer pool.Close()
			people, err := env.sessions(pool)
			if err != nil {
				return err
			}
			if err := people.Keyring.Replace(c.Context()); err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), "The new key signs from two minutes from now on. Sessions and tokens that others signed expire then: sign in again.")
			return err
		},
	}
}
