package webhooks

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/process/pause"
	"sluice.dev/sluice/workers/webhooks/sender"
	"sluice.dev/sluice/workers/webhooks/signature"
)

// Bounds of listening.
const (
	// MaxListenWait is how long a listener may wait for events. Routes give an answer 30
	// seconds.
	MaxListenWait = 25 * time.Second
	// listenEvery is how often a listener's wait looks for events.
	listenEvery = 500 * time.Millisecond
	// maxHeard bounds the events of an answer, and maxHeardBytes their bodies, but for the
	// first.
	maxHeard, maxHeardBytes = 50, 1 << 20
	// listenPlaces is how many may listen at once, of which an account may have listenShare.
	listenPlaces, listenShare = 256, 8
	// listenEnter is how long a listener waits for one of them.
	listenEnter = 2 * time.Second
)

// Heard is an event as a listener gets it: what a receiver would be sent.
type Heard struct {
	ID    string `json:"id"`
	Event string `json:"event"`
	Body  string `json:"body"` // the bytes that are signed
	// Headers are those of a delivery to the subscription that was named; nil: none was.
	Headers map[string]string `json:"headers"`
}

// ListenFilter says what is listened to.
type ListenFilter struct {
	Events  []string      // names, groups such as stream.*, or *; none: all, or those of the subscription
	Webhook string        // a subscription, with whose secrets events are signed; "": they are not
	Cursor  string        // of the answer before; "": from now on
	Wait    time.Duration // how long to wait for the first event, at most MaxListenWait
}

// Listened is what came, and where to go on.
type Listened struct {
	Data   []Heard `json:"data"`
	Cursor string  `json:"cursor"`
}

// Listen returns events of account that were stored after a cursor, in the order of the
// transactions that stored them, and waits for one if there is none. It leaves the
// deliveries of subscriptions as they are.
//
// No event is left out, and none comes twice: one is shown only when every transaction
// that was begun before the one that stored it has ended, so that nothing can appear
// before a cursor. A long transaction on the server delays it. From now on means from the
// oldest transaction that is under way: what was stored beside it may be shown.
func (s *Service) Listen(ctx context.Context, account string, f ListenFilter) (Listened, error) {
	at, err := parsePlace(f.Cursor)
	if err != nil {
		return Listened{}, err
	}
	var secrets [][]byte
	if f.Webhook != "" {
		sub, err := s.Get(ctx, account, f.Webhook)
		if err != nil {
			return Listened{}, err
		}
		if len(f.Events) == 0 {
			f.Events = sub.Events
		}
		if _, secrets, err = s.secrets(ctx, account, f.Webhook); err != nil {
			return Listened{}, err
		}
	}
	end := s.Now().Add(min(f.Wait, MaxListenWait))
	for {
		out, next, err := s.heard(ctx, account, at, likes(f.Events))
		if err != nil {
			return Listened{}, err
		}
		if len(out) > 0 || f.Cursor == "" || !s.Now().Before(end) || !pause.For(ctx, listenEvery) {
			return Listened{sign(out, secrets, s.Now()), next.String()}, ctx.Err()
		}
		at = next
	}
}

// sign puts on each event what a delivery of it carries; without secrets nothing.
func sign(list []Heard, secrets [][]byte, at time.Time) []Heard {
	for i, e := range list {
		if secrets == nil {
			continue
		}
		h := sender.Headers(e.ID, at)
		signature.Set(h, secrets, e.ID, at, []byte(e.Body))
		list[i].Headers = make(map[string]string, len(h))
		for name := range h {
			list[i].Headers[name] = h.Get(name)
		}
	}
	return list
}

// place is where a listener is: behind an event, by the transaction that stored it and its
// number. The zero place is now.
type place struct{ xact, seq uint64 }

// String is the place as a cursor.
func (p place) String() string {
	return strconv.FormatUint(p.xact, 10) + "." + strconv.FormatUint(p.seq, 10)
}

// parsePlace reads a cursor in constant time: none is longer than 41 bytes.
func parsePlace(cursor string) (p place, err error) {
	if cursor == "" {
		return p, nil
	}
	xact, seq, _ := strings.Cut(cursor[:min(len(cursor), 42)], ".")
	p.xact, err = strconv.ParseUint(xact, 10, 64)
	if err == nil {
		p.seq, err = strconv.ParseUint(seq, 10, 63)
	}
	if err != nil || p.xact == 0 || p.String() != cursor {
		return p, badCursor
	}
	return p, nil
}

var badCursor error = &apierror.Error{Code: decision.InvalidRequest,
	Details: []decision.Detail{{Field: "cursor", Issue: "is not one of this platform's", Expected: "cursor of the answer before; without one, from now on"}}}

// likes are patterns of SQL for events.
func likes(events []string) []string {
	out := []string{}
	for _, e := range events {
		e = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(e)
		if group, wild := strings.CutSuffix(e, "*"); wild {
			e = group + "%"
		}
		out = append(out, e)
	}
	return out
}

// heardSQL reads what is behind a place, up to the oldest transaction that is under way,
// and says which that is: the snapshot of a statement is one.
const heardSQL = `
WITH now AS (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS oldest, pg_snapshot_xmax(pg_current_snapshot()) AS next)
SELECT now.oldest::text, now.next::text, coalesce(e.xact::text, ''), coalesce(e.seq, 0), coalesce(e.id, ''), coalesce(e.type, ''), e.body
FROM now LEFT JOIN LATERAL (
	SELECT xact, seq, id, type, body FROM account_events
	WHERE account_id = $1 AND (xact, seq) > ($2::text::xid8, $3) AND xact < now.oldest AND $2 <> '0'
		AND (cardinality($4::text[]) = 0 OR type LIKE ANY ($4))
	ORDER BY xact, seq LIMIT $5) e ON true
ORDER BY e.xact, e.seq`

// heard reads what is behind a place, and where that ends. It costs time linear in the
// events of the account behind the place, and memory for maxHeard of them.
func (s *Service) heard(ctx context.Context, account string, at place, like []string) (list []Heard, next place, err error) {
	list = []Heard{}
	rows, err := s.DB.Query(ctx, heardSQL, account, strconv.FormatUint(at.xact, 10), int64(min(at.seq, math.MaxInt64)), like, maxHeard)
	if err != nil {
		return nil, at, fmt.Errorf("listen: %w", err)
	}
	var oldest, newest, xact, id, event string
	var seq int64
	var body []byte
	size, full := 0, false
	next = at
	_, err = pgx.ForEachRow(rows, []any{&oldest, &newest, &xact, &seq, &id, &event, &body}, func() (err error) {
		if xact == "" || full {
			return nil
		}
		if size += len(body); len(list) > 0 && size > maxHeardBytes {
			full = true
			return nil
		}
		list = append(list, Heard{ID: id, Event: event, Body: string(body)})
		next.seq = uint64(seq)
		next.xact, err = strconv.ParseUint(xact, 10, 64)
		return err
	})
	if err != nil {
		return nil, at, fmt.Errorf("listen: %w", err)
	}
	horizon, err1 := strconv.ParseUint(oldest, 10, 64)
	end, err2 := strconv.ParseUint(newest, 10, 64)
	switch {
	case err1 != nil || err2 != nil:
		return nil, at, fmt.Errorf("listen: the database names no transactions: %q, %q", oldest, newest)
	case at.xact > end:
		return nil, at, badCursor // of another database, from before a restore
	case len(list) < maxHeard && !full && horizon > next.xact:
		next = place{horizon, 0}
	}
	return list, next, nil
}
