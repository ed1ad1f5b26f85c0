// Package keyfile reads and writes files of API keys that another system issued: CSV
// with a header, or JSON objects, one a line. A file has hashes of keys, or keys
// themselves, which are hashed as they are read: no text of a key leaves Read, not
// even in an error.
package keyfile

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/filters/credentials/apikey"
)

// Row is one key of a file.
type Row struct {
	Line       int               // on which it stands, from 1
	Sum        [sha256.Size]byte // SHA-256 of the key's text
	Name       string
	Account    string // id of an account, or what the other system calls it; empty: not said
	Scopes     []string
	ExpiresAt  *time.Time // nil: never
	PerMinute  *uint32    // nil: no limit of its own
	ExternalID string
	Disabled   bool // enabled is false
}

// Columns are what a row may say, in the order in which Write writes them. One of
// sha256 and key must be there.
var Columns = []string{"sha256", "key", "name", "account", "scopes", "expires_at", "rate_limit_per_minute", "external_id", "enabled"}

// fields are a row as text, by column.
type fields map[string]string

// row reads the values. Its error names what is wrong, never the key.
func (f fields) row(line int) (r Row, err error) {
	r = Row{Line: line, Name: f["name"], Account: f["account"], ExternalID: f["external_id"]}
	r.Scopes = strings.FieldsFunc(f["scopes"], func(c rune) bool { return c == ' ' || c == ',' || c == ';' || c == '\t' })
	if r.Sum, err = sum(f["sha256"], f["key"]); err != nil {
		return r, err
	}
	if text := f["enabled"]; text != "" {
		enabled, err := strconv.ParseBool(strings.ToLower(text))
		if err != nil {
			return r, errors.New("enabled is neither true nor false")
		}
		r.Disabled = !enabled
	}
	if text := f["rate_limit_per_minute"]; text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n == 0 {
			return r, errors.New("rate_limit_per_minute is not a positive integer")
		}
		limit := uint32(n)
		r.PerMinute = &limit
	}
	r.ExpiresAt, err = moment(f["expires_at"])
	return r, err
}

// moment reads a time of RFC 3339, or in unix seconds or milliseconds; "": none.
func moment(text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		t := time.Unix(n, 0).UTC()
		if n > 1<<36 { // in seconds the year 4147
			t = time.UnixMilli(n).UTC()
		}
		if t.Year() < 10_000 {
			return &t, nil
		}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1 || t.Year() > 9999 {
		return nil, errors.New("expires_at is not a time such as 2026-12-31T23:59:59Z")
	}
	return &t, nil
}

// sum returns the SHA-256 of a key, of which one of hash and key is given.
func sum(hash, key string) (s [sha256.Size]byte, err error) {
	switch {
	case hash == "" && key == "":
		return s, errors.New("sha256 is missing, and so is key")
	case hash != "" && key != "":
		return s, errors.New("sha256 stands beside key: give one of them")
	case key != "":
		if issue := Weak(key); issue != "" {
			return s, errors.New("key " + issue)
		}
		return sha256.Sum256([]byte(key)), nil
	}
	for _, decode := range []func(string) ([]byte, error){hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawStdEncoding.DecodeString,
		base64.URLEncoding.DecodeString, base64.RawURLEncoding.DecodeString} {
		if b, err := decode(strings.TrimPrefix(hash, "sha256:")); err == nil && len(b) == len(s) {
			return [sha256.Size]byte(b), nil
		}
	}
	return s, errors.New("sha256 is not a SHA-256: expected 64 hexadecimal digits, or its base64")
}

// leastDistinct is how many different characters a key must have.
const leastDistinct = 8

// Weak says why a key should not go on working: it is short enough to be guessed, or
// plainly not random, or no edge would accept it; "" for none of that. It cannot tell
// whether a long key is random.
func Weak(key string) string {
	if len(key) < apikey.MinImported {
		return fmt.Sprintf("has fewer than %d bytes: it can be guessed", apikey.MinImported)
	}
	if !apikey.Importable(key) {
		return fmt.Sprintf("has more than %d bytes, or characters other than visible ASCII without a comma", apikey.MaxImported)
	}
	seen, runs := [256]bool{}, 0
	distinct := 0
	for i := range len(key) {
		if !seen[key[i]] {
			seen[key[i]] = true
			distinct++
		}
		if i > 0 && (key[i]-key[i-1]+1) <= 2 { // the same, the next or the one before
			runs++
		}
	}
	if distinct < leastDistinct || runs*2 > len(key) {
		return "repeats or counts: it can be guessed"
	}
	return ""
}
