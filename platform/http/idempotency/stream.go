package idempotency

import (
	"bytes"
	"context"
	"encoding/hex"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/identity"
)

const (
	// maxStream bounds an answer of Stream that is kept, in bytes.
	maxStream = 4 << 20
	// keptPlace is how much of such an answer a place of Middleware.kept stands for, in
	// bytes: of keptPlaces an account has a quarter, which is maxCalls whole answers.
	keptPlace, keptPlaces = 64 << 10, 4096
)

// tooLong stands in for an answer that is longer, or for which there was no room: it was sent
// once, and is not made again.
var tooLong error = &apierror.Error{Code: decision.InvalidRequest,
	Message: "The request with this Idempotency-Key was answered, and the answer was too long to be kept: send a new key to ask again."}

// Stream is Wrap for a request whose body, content, has been read, and whose answer goes to
// the client while it is made. The request takes effect once: it goes on when its client
// leaves, so that a repetition gets the whole answer. Meanwhile repetitions get 409. Of
// a process that is killed the claim lapses after ClaimLife, and a repetition runs;
// both have the same ID. A request without the header, or of nobody, is handed to next.
//
// An account has at most 16 such requests under way in a process, each with up to 4 MiB
// of its answer, and all accounts together 256 MiB of answers. What does not fit is sent and not kept.
func (m *Middleware) Stream(w http.ResponseWriter, r *http.Request, content []byte, next http.HandlerFunc) error {
	caller, known := identity.From(r.Context())
	if r.Method != http.MethodPost || !known || caller.Account == "" || len(r.Header.Values(Header)) == 0 {
		next(w, r)
		return nil
	}
	q, err := requestOf(r, caller, content)
	if err != nil {
		return err
	}
	aead, err := cipherFor(m.Secret, q.key, q.scope)
	if err != nil {
		return err
	}
	now := &running{m: m, request: q, most: maxStream}
	defer now.stop(r.Context())
	var ok bool
	if now.hangUp, ok = m.calls.TryEnter(q.account); !ok {
		return errCalls
	}
	if err := now.start(r.Context()); err != nil {
		return err
	}
	if err := now.claim(r.Context()); err != nil {
		return err
	}
	if stored, ok, err := m.load(r.Context(), now.tx, aead, q); err != nil || ok {
		if err == nil {
			now.stop(r.Context())
			stored.Header.Set(ReplayedHeader, "true")
			stored.write(w)
		}
		return err
	}
	if err := now.pause(r.Context()); err != nil {
		return err
	}
	ctx := context.WithoutCancel(r.Context())
	renewing, stop := context.WithCancel(ctx)
	defer stop()
	go now.renew(renewing, now.token)
	t := &tee{w: w, header: http.Header{}, place: func() (func(), bool) { return m.kept.TryEnter(q.account) }}
	defer t.drop()
	next(t, r.WithContext(context.WithValue(ctx, idKey{}, hex.EncodeToString(digest(string(q.scope), string(q.content))))))
	stop()
	if err := now.resume(ctx); err != nil {
		slog.WarnContext(ctx, "an answer with an Idempotency-Key was sent and is not kept", "cause", err)
		return nil
	}
	a := t.done()
	if t.over {
		rec := newRecorder()
		m.Respond.Error(rec, r, tooLong)
		a = rec.done()
	}
	if err := now.settle(ctx, aead, a); err != nil {
		slog.WarnContext(ctx, "an answer with an Idempotency-Key was sent and is not kept", "cause", err)
	}
	return nil
}

// idKey is under what a context has the ID.
type idKey struct{}

// ID is the same for the request that Stream hands on and for its repetitions, after a
// crash too: what is noted under it is noted once. "" elsewhere.
func ID(ctx context.Context) string {
	id, _ := ctx.Value(idKey{}).(string)
	return id
}

// requestOf is what read remembers, of a request whose body is content.
func requestOf(r *http.Request, caller identity.Caller, content []byte) (request, error) {
	key := strings.Join(r.Header.Values(Header), ",")
	if !valid(key) {
		return request{}, apierror.Invalid([]decision.Detail{{Field: Header, Issue: "is not valid", Expected: "1 to 255 printable ASCII characters"}})
	}
	// Scopes are content: someone of the account who may do less must not be shown
	// the answer to someone who may do more.
	return request{caller.Account, routeOf(caller, r), key,
		digest(caller.Account, r.Method, r.URL.Path, key),
		digest(r.URL.RawQuery, r.Header.Get("Content-Type"), strings.Join(caller.Scopes, " "), string(content))}, nil
}

// renew keeps the claim from lapsing until ctx ends.
func (q *running) renew(ctx context.Context, token []byte) {
	tick := time.NewTicker(ClaimLife / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_, err := q.m.DB.Exec(ctx, `UPDATE idempotent_claims SET until = $3 WHERE scope = $1 AND token = $2`, q.scope, token, q.m.Now().Add(ClaimLife))
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "the claim of a request is not renewed", "cause", err)
		}
	}
}

// tee sends an answer to the client, as long as they are there, and keeps it.
type tee struct {
	w      http.ResponseWriter
	header http.Header // of the answer, without what stands around the handler
	status int
	body   bytes.Buffer
	over   bool // the answer is longer than maxStream, or there is no room for it
	gone   bool // the client has left
	place  func() (leave func(), ok bool)
	places []func() // what gives back those that body has
}

// Header gives the headers to be sent with the answer.
func (t *tee) Header() http.Header { return t.header }

// WriteHeader sends the header; as with a real writer, only the first call counts.
func (t *tee) WriteHeader(status int) {
	if t.status == 0 {
		t.status = status
		maps.Copy(t.w.Header(), t.header)
		t.w.WriteHeader(status)
	}
}

// Write sends b and keeps it. It does not fail when the client has left.
func (t *tee) Write(b []byte) (int, error) {
	t.WriteHeader(http.StatusOK)
	if !t.gone {
		_, err := t.w.Write(b)
		t.gone = err != nil
	}
	if t.over = t.over || !t.room(t.body.Len()+len(b)); t.over {
		t.drop()
		return len(b), nil
	}
	return t.body.Write(b)
}

// room takes places for an answer of n bytes.
func (t *tee) room(n int) bool {
	for n <= maxStream && len(t.places)*keptPlace < n {
		leave, ok := t.place()
		if !ok {
			return false
		}
		t.places = append(t.places, leave)
	}
	return n <= maxStream
}

// drop forgets the answer and gives its places back.
func (t *tee) drop() {
	t.body = bytes.Buffer{}
	for _, leave := range t.places {
		leave()
	}
	t.places = nil
}

// FlushError sends what has gathered.
func (t *tee) FlushError() error {
	t.WriteHeader(http.StatusOK)
	if !t.gone {
		t.gone = http.NewResponseController(t.w).Flush() != nil
	}
	return nil
}

// SetWriteDeadline bounds the writes to the client.
func (t *tee) SetWriteDeadline(until time.Time) error {
	if t.gone {
		return nil
	}
	return http.NewResponseController(t.w).SetWriteDeadline(until)
}

// done returns the answer once the handler has returned.
func (t *tee) done() answer {
	t.WriteHeader(http.StatusOK)
	return answer{t.status, t.header, t.body.Bytes()}
}
