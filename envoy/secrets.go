package envoy

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// SecretListener names the certificate that clients see. Envoy takes it from a
// file, by SDS.
const SecretListener = "listener"

// secretFile is the file of the secret in the folder of secrets.
func secretFile(dir string) string { return filepath.Join(dir, SecretListener+".json") }

// WriteSecret puts a certificate and its key, both PEM, into the folder of
// secrets. A running Envoy takes them at once for new connections and leaves the
// open ones alone. The two must fit: Envoy keeps the old ones if they do not.
func WriteSecret(dir string, cert, key []byte) error {
	inline := func(pem []byte) map[string]string { return map[string]string{"inline_string": string(pem)} }
	text, err := json.Marshal(map[string]any{"resources": []any{map[string]any{
		"@type":           "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
		"name":            SecretListener,
		"tls_certificate": map[string]any{"certificate_chain": inline(cert), "private_key": inline(key)},
	}}})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file := secretFile(dir) // replaced by another, which is what Envoy watches for
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
