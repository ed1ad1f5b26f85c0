package keyfile

import (
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"
)

// Write writes rows as CSV that Read reads, with hashes in place of keys.
func Write(w io.Writer, rows []Row) error {
	out := csv.NewWriter(w)
	columns := []string{"sha256", "name", "account", "scopes", "expires_at", "rate_limit_per_minute", "external_id"}
	if err := out.Write(columns); err != nil {
		return err
	}
	for _, r := range rows {
		end, limit := "", ""
		if r.ExpiresAt != nil {
			end = r.ExpiresAt.UTC().Format(time.RFC3339)
		}
		if r.PerMinute != nil {
			limit = fmt.Sprint(*r.PerMinute)
		}
		err := out.Write([]string{hex.EncodeToString(r.Sum[:]), plain(r.Name), plain(r.Account), strings.Join(r.Scopes, " "), end, limit, plain(r.ExternalID)})
		if err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// plain is s on one line: Read reads line by line.
func plain(s string) string {
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		if c < ' ' {
			return ' '
		}
		return c
	}, s))
}
