package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/platform/certs"
)

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
		if err := writeSecret(filepath.Join(to, file), b); err != nil {
			return err
		}
	}
	return nil
}
