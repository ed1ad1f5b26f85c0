// Package certs holds the certificates by which edges and the control plane know
// each other, and those that clients see: it reads them from files, follows the
// files as they change, makes them for development, and says which edge a
// connection comes from.
package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ControlPlane is the DNS name in the control plane's certificate, wherever it
// runs: edges ask for it. It is also the name of its files in a folder, and so no
// edge may have it.
const ControlPlane = "controlplane"

// maxFile bounds what is read of a file.
const maxFile = 1 << 20

// Files are PEM files. An empty CA means that nobody's certificate is checked.
type Files struct{ Cert, Key, CA string }

// In returns the files of name in a folder that Make wrote, or that has the same
// names in it: NAME.pem, NAME.key and ca.pem.
func In(dir, name string) Files {
	return Files{Cert: filepath.Join(dir, name+".pem"), Key: filepath.Join(dir, name+".key"), CA: filepath.Join(dir, "ca.pem")}
}

// Material is what Files hold, read at one time.
type Material struct{ Cert, Key, CA []byte }

// Read reads f. It returns an error when a file cannot be read, or when what they
// hold is of no use together: a key of another certificate, as while both are
// being replaced. The error shows nothing of a key.
func Read(f Files) (Material, error) {
	var m Material
	for _, part := range []struct {
		name string
		into *[]byte
	}{{f.Cert, &m.Cert}, {f.Key, &m.Key}, {f.CA, &m.CA}} {
		if part.name == "" {
			continue
		}
		b, err := readFile(part.name)
		if err != nil {
			return Material{}, err
		}
		*part.into = b
	}
	if _, err := tls.X509KeyPair(m.Cert, m.Key); err != nil {
		return Material{}, fmt.Errorf("%s and %s: %w", f.Cert, f.Key, err)
	}
	if f.CA != "" && !x509.NewCertPool().AppendCertsFromPEM(m.CA) {
		return Material{}, fmt.Errorf("%s holds no certificate", f.CA)
	}
	return m, nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if len(b) > maxFile {
		err = errors.Join(err, fmt.Errorf("%s is larger than %d bytes", name, maxFile))
	}
	return b, err
}

// Equal reports whether m and o are the same bytes.
func (m Material) Equal(o Material) bool {
	return bytes.Equal(m.Cert, o.Cert) && bytes.Equal(m.Key, o.Key) && bytes.Equal(m.CA, o.CA)
}

// pair is the certificate and its key; Read has seen that they fit.
func (m Material) pair() (tls.Certificate, error) { return tls.X509KeyPair(m.Cert, m.Key) }

// roots is what the other side's certificate must lead to.
func (m Material) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(m.CA)
	return pool
}
