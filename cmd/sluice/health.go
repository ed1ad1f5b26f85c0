package main

import (
	"net/http"

	"github.com/spf13/cobra"
)

// healthCommand is for images that hold nothing else with which to ask.
func healthCommand() *cobra.Command {
	return &cobra.Command{
		Use: "health URL", Short: "check the health of a process: exit status 0 if URL answers 200", Args: cobra.ExactArgs(1),
		Example: "  sluice health http://127.0.0.1:9902/health",
		RunE: func(c *cobra.Command, args []string) error {
			return healthy(c.Context(), args[0], "", http.DefaultClient)
		},
	}
}
