// Package keyimport takes over the API keys of another system: hashes of them, since
// nobody has their texts any more, or should. It finds or makes the accounts that they
// belong to. Importing the same keys again changes nothing, so that an import that was
// interrupted is simply run again.
package keyimport

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

const (
	// MaxKeys bounds the keys of one request: other writers of the key feed wait while
	// its transaction ends.
	MaxKeys = 1000
	// maxFrom bounds the name of a system, in bytes.
	maxFrom = 40
	// maxReason bounds what is said of a refused key, in bytes.
	maxReason = 300
)

// Request asks for keys of one system to be imported.
type Request struct {
	// From names the system that issued the keys, such as kong.
	From string `json:"from"`
	// CreateAccounts makes an account, on Plan, for each external id that has none.
	CreateAccounts bool   `json:"create_accounts"`
	Plan           string `json:"plan"`
	Keys           []Key  `json:"keys"`
}

// BodyLimit bounds a request, in bytes.
func (Request) BodyLimit() int64 { return 4 << 20 }

// Key is one key to import.
type Key struct {
	SHA256 string `json:"sha256"` // of its text, in 64 hexadecimal digits
	Name   string `json:"name"`
	// Account is the id of an account, or what the other system calls it.
	Account    string     `json:"account"`
	Scopes     []string   `json:"scopes"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty"`            // nil: never
	PerMinute  *uint32    `json:"rate_limit_per_minute,omitempty"` // nil: no limit but the account's
	ExternalID string     `json:"external_id,omitempty"`
}

// Report says what became of the keys of a request.
type Report struct {
	Created         int       `json:"created"`
	Unchanged       int       `json:"unchanged"` // they were there already
	AccountsCreated int       `json:"accounts_created"`
	Refused         []Refusal `json:"refused"`
}

// Refusal is a key that was not imported.
type Refusal struct {
	Index  int    `json:"index"` // in the request's keys
	Reason string `json:"reason"`
}

// Service imports keys.
type Service struct {
	Keys     apikeys.Store
	Accounts accounts.Store
}

// check returns every fault of the request but those of its keys.
func (r Request) check() error {
	var details []decision.Detail
	if r.From == "" || len(r.From) > maxFrom || strings.ContainsFunc(r.From, func(c rune) bool { return c <= ' ' || c > '~' }) {
		details = append(details, decision.Detail{Field: "from", Issue: "is not a name", Expected: fmt.Sprintf("1 to %d visible characters, such as kong", maxFrom)})
	}
	if len(r.Keys) == 0 || len(r.Keys) > MaxKeys {
		details = append(details, decision.Detail{Field: "keys", Issue: "has too few or too many elements", Expected: fmt.Sprintf("1 to %d", MaxKeys)})
	}
	if r.CreateAccounts && r.Plan == "" {
		details = append(details, decision.Detail{Field: "plan", Issue: "is missing", Expected: "the plan of the accounts that are made"})
	}
	return apierror.Invalid(details)
}

// Import imports the keys of r. It fails as a whole with invalid_request for a bad
// name, number of keys or plan; a key that is at fault is refused by itself. Accounts
// that it makes stay when it fails afterwards, and are found again by the next.
func (s Service) Import(ctx context.Context, r Request) (Report, error) {
	report := Report{Refused: []Refusal{}}
	if err := r.check(); err != nil {
		return report, err
	}
	ids, err := s.accounts(ctx, r, &report)
	if err != nil {
		return report, err
	}
	list, index := make([]apikeys.Import, 0, len(r.Keys)), make([]int, 0, len(r.Keys))
	for i, k := range r.Keys {
		one, refused := k.resolve(ids, r.CreateAccounts)
		if refused != "" {
			report.refuse(i, refused)
			continue
		}
		list, index = append(list, one), append(index, i)
	}
	err = postgres.InTx(ctx, s.Keys.DB, func(tx pgx.Tx) error {
		out, err := s.Keys.ImportTx(ctx, tx, r.From, list)
		for i, o := range out {
			switch {
			case o.Refused != "":
				report.refuse(index[i], o.Refused)
			case o.ID != "":
				report.Created++
			default:
				report.Unchanged++
			}
		}
		return err
	})
	slices.SortFunc(report.Refused, func(a, b Refusal) int { return a.Index - b.Index })
	return report, err
}

// refuse notes that a key was not imported.
func (r *Report) refuse(index int, reason string) {
	r.Refused = append(r.Refused, Refusal{index, decision.Cut(reason, maxReason)})
}

// resolve is k for the account that it names; ids has those of external ids.
func (k Key) resolve(ids map[string]string, made bool) (one apikeys.Import, refused string) {
	sum, err := hex.DecodeString(k.SHA256)
	if err != nil || len(sum) != 32 {
		return one, "sha256 is not a SHA-256 (expected 64 hexadecimal digits)"
	}
	account := k.Account
	if isExternal(account) {
		account = ids[account]
	}
	switch {
	case account == "" && k.Account == "":
		return one, "account is missing (expected the id of an account, or an external one)"
	case account == "" && made:
		return one, fmt.Sprintf("account is not a name (expected 1 to %d printable characters)", apikeys.MaxExternalID)
	case account == "":
		return one, "account is not one there is (create_accounts makes those that are missing)"
	}
	return apikeys.Import{Sum: [32]byte(sum), Account: account, Name: k.Name, Scopes: k.Scopes, ExpiresAt: k.ExpiresAt,
		PerMinute: k.PerMinute, ExternalID: k.ExternalID}, ""
}

// isExternal reports whether an account is named by what another system calls it.
func isExternal(account string) bool {
	_, ours := keytable.ParseID(keytable.AccountPrefix, account)
	return !ours
}

// accounts returns the ids of the accounts that r names by external ids, and makes
// those that are missing if r says so.
func (s Service) accounts(ctx context.Context, r Request, report *Report) (map[string]string, error) {
	var names []string
	for _, k := range r.Keys {
		if isExternal(k.Account) && accounts.IsExternalID(k.Account) {
			names = append(names, k.Account)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return nil, nil
	}
	ids, err := s.Accounts.External(ctx, names)
	if err != nil || !r.CreateAccounts {
		return ids, err
	}
	for _, name := range names {
		if ids[name] != "" {
			continue
		}
		a, made, err := s.Accounts.CreateExternal(ctx, name, r.Plan)
		if err != nil {
			return nil, err
		}
		if ids[name] = a; made {
			report.AccountsCreated++
		}
	}
	return ids, nil
}
