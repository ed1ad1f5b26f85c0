package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/dev/demo"
	"sluice.dev/sluice/dev/programs"
	"sluice.dev/sluice/internal/app"
	"sluice.dev/sluice/platform/certs"
	"sluice.dev/sluice/workers/cron/croncli"
)

func resealCommand(env app.Environment) *cobra.Command {
	return &cobra.Command{
		Use: "reseal", Short: "re-encrypt stored secrets with the first key of SLUICE_SECRETS_KEY, so that the others can be dropped", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := env.Reseal(c.Context())
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

// secretsCommand is `sluice secrets`.
func secretsCommand(env app.Environment) *cobra.Command {
	return group("secrets", "derive the secrets of one product from the platform's", &cobra.Command{
		Use: "product NAME", Short: "print SLUICE_IDENTITY_SECRETS of a product and, for media, SLUICE_SECRETS_KEY", Args: cobra.ExactArgs(1),
		Long: "Reads the platform's SLUICE_IDENTITY_SECRETS and, for media, SLUICE_SECRETS_KEY from the environment, and derives the product's own. A product with its own\n" +
			"secret can verify what edges sign for it, and cannot forge what they sign for other products. The worker uses those of media.",
		RunE: func(c *cobra.Command, args []string) error {
			if strings.ContainsAny(args[0], ";:,") {
				return fmt.Errorf("%q is no name of a product", args[0])
			}
			set, err := env.ProductSettings(args[0])
			if err != nil {
				return err
			}
			for _, name := range []string{"SLUICE_IDENTITY_SECRETS", "SLUICE_SECRETS_KEY"} {
				if set[name] == "" {
					continue
				}
				if _, err := fmt.Fprintf(c.OutOrStdout(), "%s=%s\n", name, set[name]); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

func certsCommand() *cobra.Command {
	var edges, hosts []string
	var each string
	c := &cobra.Command{
		Use: "certs DIR", Short: "create certificates for development: a CA, the control plane, each edge, and a gateway", Args: cobra.ExactArgs(1),
		Long: "Writes ca, controlplane, gateway and one pair for each edge into DIR, as NAME.pem and NAME.key.\n" +
			"With SLUICE_XDS_TLS_DIR=DIR, edges and the control plane use them for mutual TLS.\n" +
			"Run it again to renew the certificates under the same CA; running processes load the new ones by themselves.",
		RunE: func(c *cobra.Command, args []string) error {
			if err := certs.Make(certs.MakeConfig{Dir: args[0], Edges: edges, Hosts: hosts}); err != nil {
				return err
			}
			if each != "" {
				for _, name := range append([]string{certs.ControlPlane}, edges...) {
					if err := shareOut(args[0], filepath.Join(each, name), name); err != nil {
						return err
					}
				}
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "certificates for %d edges in %s, good for 90 days\n", len(edges), args[0])
			return err
		},
	}
	c.Flags().StringSliceVar(&edges, "edge", []string{"edge-1"}, "name of an edge; may be repeated")
	c.Flags().StringVar(&each, "each", "", "also write a folder for the control plane and one for each edge into this folder, each with ca.pem and its own pair only, to mount as SLUICE_XDS_TLS_DIR")
	c.Flags().StringSliceVar(&hosts, "host", []string{"localhost", "127.0.0.1"}, "name or address at which clients reach a gateway; may be repeated")
	return c
}

// shareOut gives one process, in a folder of its own, what it shows and whom it
// believes. The CA's key stays where it was made.
func shareOut(from, to, name string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, file := range []string{"ca.pem", name + ".key", name + ".pem"} {
		b, err := os.ReadFile(filepath.Join(from, file))
		if err != nil {
			return err
		}
		if err := app.WriteSecret(filepath.Join(to, file), b); err != nil {
			return err
		}
	}
	return nil
}

func cronCommand() *cobra.Command {
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
	return group("cron", "compute when cron expressions run", c)
}

// demoCommand is `sluice demo`.
func demoCommand(env app.Environment) *cobra.Command {
	seconds, all := 30, false
	c := &cobra.Command{
		Use: "demo", Short: "tour the local stack: publish a stream, watch it, stop it by schedule, receive webhooks", Args: cobra.NoArgs,
		Long: "Creates a stream on the local stack, publishes test video to it with ffmpeg, prints an address to watch it at, lets a schedule stop\n" +
			"it, and shows the signed webhooks as they arrive. The stack calls this machine only if it was started with\n" +
			"SLUICE_WEBHOOK_ALLOW_CIDRS=127.0.0.1/32; without it the tour goes on without webhooks.\n\n" +
			"With --all it makes a film: it has words spoken, publishes them with a tone, plays the stream by HLS, DASH and WebRTC, and has the\n" +
			"recording captioned, clipped and edited. It prints what it saw of each step, and ends with status 1 at the first that fails.",
		RunE: func(c *cobra.Command, _ []string) error {
			name := filepath.Join(env.Get("SLUICE_STATE_DIR"), "dev.env")
			local, err := app.ReadEnvFile(name)
			if err != nil {
				return err
			}
			if local["SLUICE_GATEWAY_URL"] == "" {
				return errors.New("there is no local stack: start one with `SLUICE_WEBHOOK_ALLOW_CIDRS=127.0.0.1/32 make up`; " + name + " names none")
			}
			tool, err := env.Program(c.Context(), programs.FFmpeg)
			if err != nil {
				return err
			}
			if tool == programs.Off {
				tool = ""
			}
			run := demo.Run
			if all {
				run = demo.RunAll
			}
			return run(c.Context(), demo.Config{Gateway: local["SLUICE_GATEWAY_URL"], Key: local["SLUICE_API_KEY"], FFmpeg: tool,
				On: time.Duration(seconds) * time.Second, Out: c.OutOrStdout()})
		},
	}
	c.Flags().IntVar(&seconds, "seconds", seconds, "how long the stream is live")
	c.Flags().BoolVar(&all, "all", all, "make a film: speech, HLS, DASH, WebRTC, captions, a clip, an edit")
	return c
}

// healthCommand is for images that hold nothing else with which to ask.
func healthCommand() *cobra.Command {
	return &cobra.Command{
		Use: "health URL", Short: "check the health of a process: exit status 0 if URL answers 200", Args: cobra.ExactArgs(1),
		Example: "  sluice health http://127.0.0.1:9902/health",
		RunE: func(c *cobra.Command, args []string) error {
			return app.Healthy(c.Context(), args[0], "", http.StatusOK, http.DefaultClient)
		},
	}
}
