package webhooks

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/workers/webhooks/sender"
	"sluice.dev/sluice/workers/webhooks/signature"
)

// HealthHours is how far back Health looks, and HealthDeliveries how many deliveries of a
// subscription it looks at: the latest, so that what it costs does not grow with traffic.
const (
	HealthHours      = 24
	HealthDeliveries = 500
)

// Health is how the receiver of a subscription did with its latest deliveries.
type Health struct {
	Hours                [HealthHours]Tally // attempts by the hour that they began in, the oldest first
	LastStatus           int                // of the last attempt that has ended; 0: there was no response, or no attempt
	LastError            string             // of the last attempt
	LastAt               Timestamp          // when it began
	Succeeded, Attempted int64              // in all of Hours
}

// Tally counts attempts that have ended.
type Tally struct{ Succeeded, Failed int64 }

// Health tells how the receivers of an account's subscriptions did, by the ids of those that
// have tried anything.
func (s *Service) Health(ctx context.Context, account string, ids []string) (map[string]Health, error) {
	now := s.Now()
	rows, _ := s.DB.Query(ctx, `
		SELECT w.id, least(floor(extract(epoch FROM $3::timestamptz - a.started_at) / 3600), $4)::int AS ago,
			count(*) FILTER (WHERE a.outcome = 'succeeded'), count(*) FILTER (WHERE a.outcome <> 'succeeded'), max(a.started_at),
			(array_agg(coalesce(a.status_code, 0) ORDER BY a.started_at DESC))[1], (array_agg(coalesce(a.error, '') ORDER BY a.started_at DESC))[1]
		FROM webhook_subscriptions w CROSS JOIN LATERAL (SELECT d.id FROM webhook_deliveries d WHERE d.subscription_id = w.id ORDER BY d.event_seq DESC LIMIT $5) d
		JOIN webhook_attempts a ON a.delivery_id = d.id
		WHERE w.account_id = $1 AND w.id = ANY ($2) AND a.outcome IS NOT NULL
		GROUP BY 1, 2 ORDER BY 1, 2 DESC`, account, ids, now, HealthHours, HealthDeliveries)
	all := map[string]Health{}
	var (
		id, last string
		ago      int
		t        Tally
		at       time.Time
		status   int
	)
	_, err := pgx.ForEachRow(rows, []any{&id, &ago, &t.Succeeded, &t.Failed, &at, &status, &last}, func() error {
		h := all[id]
		if ago = max(ago, 0); ago < HealthHours { // a clock may be ahead
			sum := &h.Hours[HealthHours-1-ago]
			sum.Succeeded, sum.Failed = sum.Succeeded+t.Succeeded, sum.Failed+t.Failed
			h.Succeeded, h.Attempted = h.Succeeded+t.Succeeded, h.Attempted+t.Succeeded+t.Failed
		}
		h.LastStatus, h.LastError, h.LastAt = status, last, Timestamp{at.UTC()}
		all[id] = h
		return nil
	})
	return all, storeError(err, "read the health of receivers")
}

// Signer returns what makes the headers of a request for an event at a time, signed with the
// secrets that the subscription has now: what a receiver got before a rotation was signed
// with others. It fails with not_found.
func (s *Service) Signer(ctx context.Context, account, id string) (func(eventID string, body []byte, at time.Time) http.Header, error) {
	_, secrets, err := s.secrets(ctx, account, id)
	if err != nil {
		return nil, err
	}
	return func(eventID string, body []byte, at time.Time) http.Header {
		h := sender.Headers(eventID, at)
		signature.Set(h, secrets, eventID, at, body)
		return h
	}, nil
}
