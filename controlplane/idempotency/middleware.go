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
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/identity"
	"sluice.dev/sluice/controlplane/postgres"
	"sluice.dev/sluice/controlplane/respond"
	"sluice.dev/sluice/filters/decision"
)

// Names of headers.
const (
	Header         = "Idempotency-Key"
	ReplayedHeader = "Idempotent-Replayed" // true on a repeated answer
)

// Life is for how long an answer is kept.
const Life = 24 * time.Hour

// DefaultConcurrent is how many requests with a key run at once, in one process,
// when Config names no number.
const DefaultConcurrent = 8

// Config says how answers are kept.
type Config struct {
	DB      postgres.DB
	Respond respond.Adapter
	// Secret goes into the keys that encrypt answers; zero: the client's key
	// alone protects them.
	Secret [32]byte
	// Former are secrets of before, by which answers are opened that were kept
	// then.
	Former [][32]byte
	// Concurrent bounds how many run at once, each on a connection of its own; the
	// pool should be larger. 0: DefaultConcurrent.
	Concurrent int
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Middleware makes POSTs with an Idempotency-Key safe to repeat. It stands
// behind what identifies the caller; a request of nobody passes through.
type Middleware struct {
	Config
	slots chan struct{}
}

// New returns a Middleware, which may wrap any number of handlers.
func New(c Config) *Middleware {
	if c.Concurrent == 0 {
		c.Concurrent = DefaultConcurrent
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Middleware{c, make(chan struct{}, c.Concurrent)}
}

// Wrap is the middleware. The first request with a key runs; meanwhile others
// with the key get 409, afterwards its answer with ReplayedHeader. A request that
// differs from the first gets 422. An answer that is no final one (5xx, 408, 409,
// 425, 429) is not kept, and its effects are undone.
func (m *Middleware) Wrap(next http.Handler) http.Handler {
	return m.Respond.Handle(func(w http.ResponseWriter, r *http.Request) error {
		caller, known := identity.From(r.Context())
		if r.Method != http.MethodPost || !known || caller.Account == "" || len(r.Header.Values(Header)) == 0 {
			next.ServeHTTP(w, r)
			return nil
		}
		q, err := read(w, r, caller)
		if err != nil {
			return err
		}
		select {
		case m.slots <- struct{}{}:
			defer func() { <-m.slots }()
		case <-r.Context().Done():
			return &controlplane.Error{Code: decision.Unavailable, RetryAfter: 1, Cause: r.Context().Err()}
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
	key     string
	scope   []byte // of account, route and key
	content []byte // of everything that must be the same in a repetition
}

// read takes the request's body and gives it another, to be read again.
func read(w http.ResponseWriter, r *http.Request, caller identity.Caller) (request, error) {
	key := strings.Join(r.Header.Values(Header), ",")
	if !valid(key) {
		return request{}, controlplane.Invalid([]decision.Detail{{Field: Header, Issue: "is not valid", Expected: "1 to 255 printable ASCII characters"}})
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, respond.DefaultBodyLimit))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return request{}, controlplane.Errorf(decision.TooLarge, "The request body is larger than %d bytes.", respond.DefaultBodyLimit)
	}
	if err != nil {
		return request{}, &controlplane.Error{Code: decision.InvalidRequest, Message: "The request body could not be read.", Cause: err}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	// Scopes are content: someone of the account who may do less must not be shown
	// the answer to someone who may do more.
	return request{key,
		digest(caller.Account, r.Method, r.URL.Path, key),
		digest(r.URL.RawQuery, r.Header.Get("Content-Type"), strings.Join(caller.Scopes, " "), string(body))}, nil
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

var errMismatch error = &controlplane.Error{Code: decision.KeyReused,
	Details: []decision.Detail{{Field: Header, Issue: "was used for another request", Expected: "a new key for each request"}}}

// run answers q, by next or from the store.
func (m *Middleware) run(w http.ResponseWriter, r *http.Request, next http.Handler, q request) error {
	ctx := r.Context()
	aead, err := cipherFor(m.Secret, q.key, q.scope)
	if err != nil {
		return err
	}
	tx, err := m.DB.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", postgres.Unreachable(err))
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // nothing after a commit
	if err := lock(ctx, tx, q.scope); err != nil {
		return err
	}
	if stored, ok, err := m.load(ctx, tx, aead, q); err != nil || ok {
		if err != nil {
			return err
		}
		stored.Header.Set(ReplayedHeader, "true")
		stored.write(w)
		return nil
	}
	rec := newRecorder()
	next.ServeHTTP(rec, r.WithContext(context.WithValue(ctx, contextKey{}, tx)))
	a := rec.done()
	if err := m.settle(ctx, tx, aead, q, a); err != nil {
		return err
	}
	a.write(w)
	return nil
}

// settle commits the handler's effects with its answer. An answer that is not
// final, or comes after a statement that failed, is not kept; if it is not a
// success either, what was done is undone.
func (m *Middleware) settle(ctx context.Context, tx pgx.Tx, aead cipher.AEAD, q request, a answer) error {
	failed := tx.Conn().PgConn().TxStatus() != 'T'
	if failed && a.Status < 400 {
		return errors.New("the handler reports a success, yet its transaction has failed")
	}
	if failed || !a.final() {
		return nil
	}
	if len(a.Body) <= maxAnswer {
		if err := m.keep(ctx, tx, aead, q, a); err != nil {
			return err
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", postgres.Unreachable(err))
	}
	return nil
}

// lock makes sure that no other request with the same key runs, until tx ends
// in whatever way.
func lock(ctx context.Context, tx pgx.Tx, scope []byte) error {
	var mine bool
	err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, int64(binary.BigEndian.Uint64(scope))).Scan(&mine)
	if err != nil {
		return fmt.Errorf("lock: %w", postgres.Unreachable(err))
	}
	if !mine {
		return &controlplane.Error{Code: decision.Conflict, RetryAfter: 1, Message: "A request with this Idempotency-Key is still running."}
	}
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
		return a, false, fmt.Errorf("look for an answer: %w", postgres.Unreachable(err))
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
		return fmt.Errorf("keep an answer: %w", postgres.Unreachable(err))
	}
	return nil
}

// Purge drops answers older than Life and returns how many.
func Purge(ctx context.Context, db postgres.DB, now time.Time) (int, error) {
	tag, err := db.Exec(ctx, `DELETE FROM idempotent_answers WHERE created_at < $1`, now.Add(-Life))
	if err != nil {
		return 0, fmt.Errorf("purge answers: %w", postgres.Unreachable(err))
	}
	return int(tag.RowsAffected()), nil
}
