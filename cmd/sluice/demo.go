package main

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/dev/demo"
	"sluice.dev/sluice/dev/programs"
)

// demoCommand is `sluice demo`.
func demoCommand(env environment) *cobra.Command {
	seconds := 30
	c := &cobra.Command{
		Use: "demo", Short: "tour the local stack: publish a stream, watch it, stop it by schedule, receive webhooks", Args: cobra.NoArgs,
		Long: "Creates a stream on the local stack, publishes test video to it with ffmpeg, prints an address to watch it at, lets a schedule stop\n" +
			"it, and shows the signed webhooks as they arrive. The stack calls this machine only if it was started with\n" +
			"SLUICE_WEBHOOK_ALLOW_CIDRS=127.0.0.1/32; without it the tour goes on without webhooks.",
		RunE: func(c *cobra.Command, _ []string) error {
			name := filepath.Join(env.get("SLUICE_STATE_DIR"), "dev.env")
			local, err := readEnvFile(name)
			if err != nil {
				return err
			}
			if local["SLUICE_GATEWAY_URL"] == "" {
				return errors.New("there is no local stack: start one with `SLUICE_WEBHOOK_ALLOW_CIDRS=127.0.0.1/32 make up`; " + name + " names none")
			}
			tool, err := env.program(c.Context(), programs.FFmpeg)
			if err != nil {
				return err
			}
			if tool == programs.Off {
				tool = ""
			}
			return demo.Run(c.Context(), demo.Config{Gateway: local["SLUICE_GATEWAY_URL"], Key: local["SLUICE_API_KEY"], FFmpeg: tool,
				On: time.Duration(seconds) * time.Second, Out: c.OutOrStdout()})
		},
	}
	c.Flags().IntVar(&seconds, "seconds", seconds, "how long the stream is live")
	return c
}
