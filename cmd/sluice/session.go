package main

import (
	"net/http"

	"github.com/spf13/cobra"
)

// sessionCommand is `sluice session`.
func sessionCommand(env environment) *cobra.Command {
	c := &cobra.Command{Use: "session", Short: "create session tokens"}
	c.AddCommand(sessionCreate(env))
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
