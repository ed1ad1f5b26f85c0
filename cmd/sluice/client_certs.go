package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/internal/app"
)

// revokedFields are shown of revoked certificates.
var revokedFields = []string{"id", "serial", "issuer", "reason", "created_at"}

// clientCertCommand is `sluice client-cert`.
func clientCertCommand(env app.Environment) *cobra.Command {
	const path = "/admin/v1/client-certificates/revoked"
	return group("client-cert", "map client certificates to accounts, and revoke them",
		call{
			use: "add [FILE.pem]", short: "let the holders of a client certificate act for an account", method: http.MethodPost, path: "/admin/v1/accounts/{account}/keys", args: cobra.MaximumNArgs(1),
			example: "  sluice client-cert add laptop.pem --name laptop --scope orders:read             # this certificate only\n" +
				"  sluice client-cert add --uri spiffe://acme.example/ci --name ci --scope orders:read   # every certificate with this name",
			flags: append([]option{
				{name: "name", fallback: "", help: "name under which it is listed", field: "name", required: true},
				{name: "scope", fallback: []string(nil), help: "scope of the certificate; may be repeated, or separated by commas", field: "scopes", required: true},
				{name: "sha256", fallback: "", help: "SHA-256 of the certificate, in hexadecimal"},
				{name: "uri", fallback: "", help: "URI in the subject alternative names, such as a SPIFFE id"},
				{name: "dns", fallback: "", help: "DNS name in the subject alternative names"},
				{name: "email", fallback: "", help: "e-mail address in the subject alternative names"},
				{name: "cn", fallback: "", help: "common name of the subject"},
			}, keyLimits(0, "days until the mapping expires (default: with the certificate in FILE.pem; else never)")...),
			edit: certificateBody, one: append(keyFields[:len(keyFields):len(keyFields)], "certificate"),
		}.command(env),
		call{
			use: "list", short: "list the keys and certificates of an account, newest first", path: "/admin/v1/accounts/{account}/keys", paged: true,
			list: append(keyFields[:len(keyFields):len(keyFields)], "certificate"),
		}.command(env),
		call{
			use: "remove ID", short: "let nobody in by a mapping, at once", args: cobra.ExactArgs(1),
			method: http.MethodDelete, path: "/admin/v1/keys/{0}", done: "is removed",
		}.command(env),
		call{
			use: "revoke [FILE.pem]", short: "refuse one certificate at every edge, whatever its names are mapped to", args: cobra.MaximumNArgs(1),
			example: "  sluice client-cert revoke laptop.pem --reason 'lost on a train'",
			method:  http.MethodPost, path: path, one: revokedFields,
			flags: []option{
				{name: "serial", fallback: "", help: "serial number in hexadecimal, of whichever authority, in place of FILE.pem"},
				{name: "reason", fallback: "", help: "why, for the list and the audit log", field: "reason"},
			},
			edit: func(c *cobra.Command, args []string, r *request) error {
				serial, _ := c.Flags().GetString("serial")
				if (serial == "") == (len(args) == 0) {
					return errors.New("give FILE.pem, or --serial")
				}
				if serial != "" {
					r.body["serial"] = strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(serial), "0x"), ":", "")
					return nil
				}
				return readCertificate(args[0], r.body)
			},
		}.command(env),
		call{use: "revoked", short: "list the revoked certificates, newest first", path: path, paged: true, list: revokedFields}.command(env),
		call{
			use: "restore ID", short: "take a certificate off the list of revoked ones", args: cobra.ExactArgs(1),
			method: http.MethodDelete, path: path + "/{0}", done: "is restored",
		}.command(env),
	)
}

// certificateBody adds the certificate, its limit and when its mapping expires.
func certificateBody(c *cobra.Command, args []string, r *request) error {
	certificate := map[string]any{}
	if len(args) > 0 {
		if err := readCertificate(args[0], certificate); err != nil {
			return err
		}
	}
	for _, kind := range []string{"sha256", "uri", "dns", "email", "cn"} {
		if value, _ := c.Flags().GetString(kind); value != "" {
			certificate[kind] = value
		}
	}
	if len(certificate) != 1 {
		return errors.New("give one of FILE.pem, --sha256, --uri, --dns, --email and --cn")
	}
	r.body["certificate"] = certificate
	return keyBody(c, nil, r)
}

// maxCertificateBytes bounds a file with a certificate.
const maxCertificateBytes = 48 << 10

// readCertificate puts the text of a file into body.
func readCertificate(file string, body map[string]any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if len(text) > maxCertificateBytes || strings.Contains(string(text), "PRIVATE KEY") {
		return fmt.Errorf("%s is not a certificate alone: give the file without its private key, which nobody else needs", file)
	}
	body["pem"] = string(text)
	return nil
}
