package idempotency

import (
	"bytes"
	"context"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/platform/limits/refusals"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Names of headers.
const (
	Header         = "Idempotency-Key"
	ReplayedHeader = "Idempotent-Replayed" // true on a repeated answer
)

// Life is for how long an answer is kept.
const Life = 24 * time.Hour

// How requests with a key are bounded in one process, where Config names no number.
const (
	// DefaultConcurrent is how many run at once.
	DefaultConcurrent = 8
	// maxWaiting is how many of one account may wait for a place, each with its body.
	maxWaiting = 128
)

// Config says how answers are kept.
type Config struct {
	DB      postgres.DB
	Respond httpapi.Adapter
	// Secret goes into the keys that encrypt answers; zero: the client's key
	// alone protects them.
	Secret [32]byte
	// Former are secrets of before, by which answers are opened that were kept
	// then.
	Former [][32]byte
	// Concurrent bounds how many run at once, each on a connection of its own; the
	// pool should be larger. 0: DefaultConcurrent. One account has at most a quarter
	// of them. Requests that wait for others' answers do not count.
	Concurrent int
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Middleware makes POSTs with an Idempotency-Key safe to repeat. It stands
// behind what identifies the caller; a request of nobody passes through.
type Middleware struct {
	Config
	places  *fairshare.Pool // of requests that run
	calls   *fairshare.Pool // of those that wait for others' answers
	kept    *fairshare.Pool // of what is kept of answers to Stream while they are made, keptPlace each
	refused refusals.Memory // of the latter, by account and route
}

// New returns a Middleware, which may wrap any number of handlers.
func New(c Config) *Middleware {
	if c.Concurrent == 0 {
		c.Concurrent = DefaultConcurrent
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Middleware{Config: c, places: fairshare.New(fairshare.Config{Places: c.Concurrent, Waiting: maxWaiting}),
		calls: fairshare.New(fairshare.Config{Places: callPlaces, Share: maxCalls}), kept: fairshare.New(fairshare.Config{Places: keptPlaces})}
}

// Wrap is the middleware. The first request with a key runs; meanwhile others
// with the key get 409, afterwards its answer with ReplayedHeader. A request that
// differs from the first gets 422. An answer that is no final one (5xx, 408, 409,
// 425, 429) is not kept, and its effects are undone. An account with too many
// requests under way, or that wait for others' answers, gets 429; one that waits in
// vain for a place gets 503.
func (m *Middleware) Wrap(next http.Handler) http.Handler {
	return m.Respond.Handle(func(w http.ResponseWriter, r *http.Request) error {
		caller, known := identity.From(r.Context())
		if r.Method != http.MethodPost || !known || caller.Account == "" || len(r.Header.Values(Header)) == 0 {
			next.ServeHTTP(w, r)
			return nil
		}
		if err := m.refused.Last(routeOf(caller, r), m.Now()); err != nil {
			return err
		}
		q, err := read(w, r, caller)
		if err != nil {
			return err
		}
		err = m.run(w, r, next, q)
		if errors.Is(err, errMismatch) {
			m.Respond.Error(w, r, err)
			return nil
		}
		return err
	})
}

// request is what is remembered of a request.
type request struct {
	account string
	route   string // of the account
	key     string
	scope   []byte // of account, route and key
	content []byte // of everything that must be the same in a repetition
}

// read takes the request's body and gives it another, to be read again.
func read(w http.ResponseWriter, r *http.Request, caller identity.Caller) (request, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, httpapi.DefaultBodyLimit))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return request{}, apierror.Errorf(decision.TooLarge, "The request body is larger than %d bytes.", httpapi.DefaultBodyLimit)
	}
	if err != nil {
		return request{}, &apierror.Error{Code: decision.InvalidRequest, Message: "The request body could not be read.", Cause: err}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return requestOf(r, caller, body)
}

// routeOf is what the account asks for, whatever the key.
func routeOf(caller identity.Caller, r *http.Request) string {
	return caller.Account + " " + r.URL.Path
}

// valid reports whether key may be an Idempotency-Key.
//
// It takes time linear in key, and no memory.
func valid(key string) bool {
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return false
		}
	}
	return len(key) >= 1 && len(key) <= 255
}

// digest is unambiguous: each part's length goes into it.
func digest(parts ...string) []byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(p))))
		h.Write([]byte(p))
	}
	return h.Sum(nil)
}

var errMismatch error = &apierror.Error{Code: decision.KeyReused,
	Details: []decision.Detail{{Field: Header, Issue: "was used for another request", Expected: "a new key for each request"}}}

// run answers q, by next or from the store.
func (m *Middleware) run(w http.ResponseWriter, r *http.Request, next http.Handler, q request) error {
	ctx := r.Context()
	aead, err := cipherFor(m.Secret, q.key, q.scope)
	if err != nil {
		return err
	}
	now := &running{m: m, request: q}
	defer now.stop(ctx)
	if err := now.start(ctx); err != nil {
		return err
	}
	if err := now.claim(ctx); err != nil {
		return err
	}
	if stored, ok, err := m.load(ctx, now.tx, aead, q); err != nil || ok {
		if err != nil {
			return err
		}
		stored.Header.Set(ReplayedHeader, "true")
		stored.write(w)
		return nil
	}
	rec := newRecorder()
	next.ServeHTTP(rec, r.WithContext(postgres.WithHolder(context.WithValue(ctx, contextKey{}, now), now)))
	a := rec.done()
	if err := now.settle(ctx, aead, a); err != nil {
		return err
	}
	now.stop(ctx) // before the client, who may be slow
	a.write(w)
	return nil
}

// settle commits the handler's effects with its answer. An answer that is not
// final, or comes after a statement that failed, is not kept; if it is not a
// success either, what was done is undone.
func (q *running) settle(ctx context.Context, aead cipher.AEAD, a answer) error {
	if q.err != nil {
		return q.err
	}
	failed := q.tx.Conn().PgConn().TxStatus() != 'T'
	if failed && a.Status < 400 {
		return errors.New("the handler reports a success, yet its transaction has failed")
	}
	if failed || !a.final() {
		return nil
	}
	if len(a.Body) <= max(q.most, maxAnswer) {
		if err := q.m.keep(ctx, q.tx, aead, q.request, a); err != nil {
			return err
		}
	}
	if q.token != nil {
		if err := q.unclaim(ctx); err != nil {
			return err
		}
	}
	if err := q.tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	q.tx, q.token = nil, nil
	return nil
}

// load returns the answer kept for q. It fails with errMismatch when that is the
// answer to another request.
func (m *Middleware) load(ctx context.Context, tx pgx.Tx, aead cipher.AEAD, q request) (a answer, found bool, err error) {
	var content, sealed []byte
	err = tx.QueryRow(ctx, `SELECT request, answer FROM idempotent_answers WHERE scope = $1 AND created_at > $2`,
		q.scope, m.Now().Add(-Life)).Scan(&content, &sealed)
	if errors.Is(err, pgx.ErrNoRows) {
		return a, false, nil
	}
	if err != nil {
		return a, false, fmt.Errorf("look for an answer: %w", err)
	}
	if !bytes.Equal(content, q.content) {
		return a, false, errMismatch
	}
	a, err = m.open(aead, q, sealed)
	return a, true, err
}

// open decrypts a kept answer, which may have been sealed before Secret changed.
func (m *Middleware) open(aead cipher.AEAD, q request, sealed []byte) (answer, error) {
	a, err := open(aead, q.scope, sealed)
	for i := 0; err != nil && i < len(m.Former); i++ {
		former, bad := cipherFor(m.Former[i], q.key, q.scope)
		if bad != nil {
			return a, bad
		}
		if older, bad := open(former, q.scope, sealed); bad == nil {
			return older, nil
		}
	}
	return a, err
}

// keep stores a, in place of an answer that is too old to count.
func (m *Middleware) keep(ctx context.Context, tx pgx.Tx, aead cipher.AEAD, q request, a answer) error {
	sealed, err := a.seal(aead, q.scope)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO idempotent_answers AS old (scope, request, answer, created_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (scope) DO UPDATE SET request = excluded.request, answer = excluded.answer, created_at = excluded.created_at`,
		q.scope, q.content, sealed, m.Now())
	if err != nil {
		return fmt.Errorf("keep an answer: %w", err)
	}
	return nil
}

// Purge drops answers older than Life and returns how many, and claims that have
// lapsed.
func Purge(ctx context.Context, db postgres.DB, now time.Time) (int, error) {
	if _, err := db.Exec(ctx, `DELETE FROM idempotent_claims WHERE until < $1`, now); err != nil {
		return 0, fmt.Errorf("purge claims: %w", err)
	}
	tag, err := db.Exec(ctx, `DELETE FROM idempotent_answers WHERE created_at < $1`, now.Add(-Life))
	if err != nil {
		return 0, fmt.Errorf("purge answers: %w", err)
	}
	return int(tag.RowsAffected()), nil
}
