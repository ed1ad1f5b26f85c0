package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/authorize"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/credentials/token"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/filters/policy"
	"sluice.dev/sluice/filters/recording"
	"sluice.dev/sluice/platform/storage/postgres"
)

// records are those of the key feed, as they are now. What has been read once is
// remembered: 64 bytes for each key and account among the requests.
type records struct {
	ctx   context.Context
	db    postgres.DB
	byTag map[keytable.Tag]keytable.Record // KindNone: there is none
	keys  map[string]keytable.Record       // by ids of keys
	certs map[string]bool                  // those of keys that are client certificates
	err   error                            // the first
}

func newRecords(ctx context.Context, db postgres.DB) *records {
	return &records{ctx: ctx, db: db, byTag: map[keytable.Tag]keytable.Record{}, keys: map[string]keytable.Record{}, certs: map[string]bool{}}
}

// load reads the records of the keys of some requests, in one go.
func (k *records) load(list []recording.Request) error {
	var ids []string
	for i := range list {
		id := list[i].Credential
		if _, known := k.keys[id]; !known && strings.HasPrefix(id, keytable.KeyPrefix) {
			k.keys[id] = keytable.Record{}
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, _ := k.db.Query(k.ctx, `SELECT k.id, r.record, k.certificate IS NOT NULL FROM api_keys k JOIN edge_records r ON r.tag = substring(k.hash FOR 16) WHERE k.id = ANY($1) AND r.record IS NOT NULL`, ids)
	var id string
	var raw []byte
	var certificate bool
	_, err := pgx.ForEachRow(rows, []any{&id, &raw, &certificate}, func() error {
		if r, ok := keytable.Decode(raw); ok {
			k.keys[id], k.certs[id] = r, certificate
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the records of keys: %w", err)
	}
	return nil
}

// find reads one record. After an error it finds none: the caller looks at err.
func (k *records) find(t keytable.Tag) (keytable.Record, bool) {
	r, known := k.byTag[t]
	if known || k.err != nil {
		return r, r.Kind != keytable.KindNone
	}
	var raw []byte
	err := k.db.QueryRow(k.ctx, `SELECT record FROM edge_records WHERE tag = $1`, t[:]).Scan(&raw)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		k.err = fmt.Errorf("read a record: %w", err)
	}
	r, _ = keytable.Decode(raw)
	k.byTag[t] = r
	return r, r.Kind != keytable.KindNone
}

// caller is what is known of who made a request.
type caller struct {
	authorize.Credential
	paid bool
	// unseen says that the edge did not look whether there was a credential.
	unseen bool
}

// callerOf reads what the edge has recorded of a caller. was is the route that the
// request had in the document in force; nil: none of it.
func (k *records) callerOf(r *recording.Request, was *config.Route, p *policy.Policy) (c caller) {
	switch code := decision.Code(r.Code); {
	case strings.HasPrefix(r.Credential, keytable.KeyPrefix):
		c.Kind, c.Record = authorize.Key, k.keys[r.Credential]
		if k.certs[r.Credential] {
			c.Kind = authorize.Certificate
		}
	case strings.HasPrefix(r.Credential, identityheader.PayerPrefix):
		c.paid = true
	case r.Credential == authorize.PresentsNothing:
	case r.Credential == authorize.PresentsBad:
		c.Kind = authorize.Bad
	case r.Account != "":
		c.Kind = authorize.Token
		c.Bearer = token.Bearer{Own: !strings.HasPrefix(r.Credential, token.Prefix), Credential: r.Credential, Scopes: scopesOf(r.Scopes, p)}
		c.Bearer.Account, _ = keytable.ParseID(keytable.AccountPrefix, r.Account)
		if _, ended := k.find(keytable.TagOfToken(r.Credential)); ended {
			c.Kind, c.Code = authorize.Bad, decision.InvalidToken
		}
	case code == decision.InvalidKey, code == decision.InvalidToken, code == decision.TokenExpired:
		c.Kind, c.Code = authorize.Bad, code
	case code == decision.AuthRequired, code == decision.RateLimited && was != nil && !onlyOpen(was), r.Status == 402:
	case was == nil, onlyOpen(was):
		c.unseen = true
	case code == "" && has(was.Auth, "session"): // it brought what only the product can read
		c.Kind = authorize.Bad
	}
	return c
}

// onlyOpen reports whether a route lets anybody in without a look at credentials.
func onlyOpen(r *config.Route) bool { return len(r.Auth) == 1 && r.Auth[0] == "none" }

func has(list []string, s string) bool {
	for _, one := range list {
		if one == s {
			return true
		}
	}
	return false
}

// scopesOf are the bits of names.
func scopesOf(names string, p *policy.Policy) (s keytable.Scopes) {
	for name := range strings.SplitSeq(names, ",") {
		for _, known := range p.Scopes {
			if known.Name == name {
				s = s.With(int(known.Bit))
			}
		}
	}
	return s
}

// quotas marks accounts by the quotas of a document that is not in force.
type quotas struct {
	records *records
	now     time.Time
	monthly map[string]int64 // by plans; without one there is none
	used    map[uint64]bool
}

// quotasOf is nil if the plans of two documents have the same quotas.
func quotasOf(inForce, proposed config.Document, k *records, now time.Time) *quotas {
	before, after := monthly(inForce), monthly(proposed)
	same := len(before) == len(after)
	for name, n := range after {
		same = same && before[name] == n
	}
	if same {
		return nil
	}
	return &quotas{k, now, after, map[uint64]bool{}}
}

func monthly(d config.Document) map[string]int64 {
	m := map[string]int64{}
	for _, p := range d.Plans {
		if p.Quota != nil && p.Quota.Requests > 0 {
			m[p.Name] = p.Quota.Requests
		}
	}
	return m
}

// mark is flags with the mark that an account's quota is used up, or without.
func (q *quotas) mark(account uint64, flags uint8) uint8 {
	used, known := q.used[account]
	if !known && q.records.err == nil {
		var plan string
		var n int64
		month := time.Date(q.now.Year(), q.now.Month(), 1, 0, 0, 0, 0, time.UTC)
		err := q.records.db.QueryRow(q.records.ctx, `SELECT plan, (SELECT coalesce(sum(requests), 0)::bigint FROM usage_totals WHERE account_id = a.id AND month = $2) FROM accounts a WHERE a.id = $1`,
			keytable.FormatID(keytable.AccountPrefix, account), month).Scan(&plan, &n)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			q.records.err = fmt.Errorf("read the usage of an account: %w", err)
		}
		most, limited := q.monthly[plan]
		used = limited && n >= most
		q.used[account] = used
	}
	if used {
		return flags | keytable.FlagQuotaUsed
	}
	return flags &^ keytable.FlagQuotaUsed
}
