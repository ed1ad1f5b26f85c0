package main

import (
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/internal/app"
)

// certificatesCommand is `sluice certificates`.
func certificatesCommand(env app.Environment) *cobra.Command {
	const path = "/admin/v1/certificates"
	all := []string{"name", "source", "state", "hosts", "issuer", "fingerprint", "not_before", "not_after", "renew_at", "attempts", "next_attempt_at", "last_error"}
	one := func(use, short string, c call) *cobra.Command {
		c.use, c.short, c.args, c.complete = use, short, cobra.ExactArgs(1), completeNames(env, path)
		return c.command(env)
	}
	return group("certificates", "show, upload, renew and remove the certificates that edges show by host name",
		call{use: "list", short: "list certificates", path: path, list: []string{"name", "state", "source", "hosts", "not_after", "last_error"}}.command(env),
		one("show NAME", "show a certificate, without its key", call{path: path + "/{0}", one: all}),
		call{
			use: "add [NAME]", short: "upload a certificate and its key, in place of the one of its name", args: cobra.MaximumNArgs(1),
			example: "  sluice certificates add --cert fullchain.pem --key privkey.pem", method: http.MethodPost, path: path,
			flags: []option{
				{name: "cert", fallback: "", help: "PEM file of the certificate and its chain", required: true, field: "certificate"},
				{name: "key", fallback: "", help: "PEM file of its private key", required: true, field: "private_key"},
			},
			edit: func(_ *cobra.Command, args []string, r *request) error {
				for _, field := range []string{"certificate", "private_key"} {
					text, err := os.ReadFile(r.body[field].(string))
					if err != nil {
						return err
					}
					r.body[field] = string(text)
				}
				if len(args) > 0 {
					r.body["name"] = args[0]
				}
				return nil
			},
			one: all,
		}.command(env),
		one("renew NAME", "renew an issued certificate now, or try again at once after a failure", call{method: http.MethodPost, path: path + "/{0}/renew", one: all}),
		one("remove NAME", "remove an uploaded certificate", call{method: http.MethodDelete, path: path + "/{0}", done: "is removed"}),
	)
}
