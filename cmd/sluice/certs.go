package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/controlplane/certs"
)

func certsCommand() *cobra.Command {
	var edges, hosts []string
	c := &cobra.Command{
		Use: "certs DIR", Short: "make certificates for development: a CA, the control plane's, one for each edge, and a gateway's", Args: cobra.ExactArgs(1),
		Long: "Writes ca, controlplane, gateway and one pair for each edge into DIR, as NAME.pem and NAME.key.\n" +
			"SLUICE_XDS_TLS_DIR=DIR makes edges and the control plane show them to each other.\n" +
			"Called again it renews the certificates under the same CA; processes that run take the new ones by themselves.",
		RunE: func(c *cobra.Command, args []string) error {
			if err := certs.Make(certs.MakeConfig{Dir: args[0], Edges: edges, Hosts: hosts}); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "certificates for %d edges in %s, good for 90 days\n", len(edges), args[0])
			return err
		},
	}
	c.Flags().StringSliceVar(&edges, "edge", []string{"edge-1"}, "name of an edge; may be given several times")
	c.Flags().StringSliceVar(&hosts, "host", []string{"localhost", "127.0.0.1"}, "name or address under which clients reach a gateway; may be given several times")
	return c
}
