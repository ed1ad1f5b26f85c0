package webhooks

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/workers/webhooks/sender"
)

// Delivery is one event on its way to one subscription.
type Delivery struct {
	ID            string        `json:"id"`
	WebhookID     string        `json:"webhook_id"`
	EventID       string        `json:"event_id"`
	Event         string        `json:"event"`
	Status        string        `json:"status"` // pending, held, succeeded or failed
	Attempts      int           `json:"attempts"`
	ErrorCode     decision.Code `json:"error_code,omitempty"` // WEBHOOK_001 once it has failed
	CreatedAt     Timestamp     `json:"created_at"`
	NextAttemptAt Timestamp     `json:"next_attempt_at"`
	FinishedAt    Timestamp     `json:"finished_at"`

	number, event int64
}

// Attempt is one request of a delivery, as logged.
type Attempt struct {
	Number        int             `json:"number"`
	Outcome       string          `json:"outcome"` // under_way, succeeded, failed or interrupted
	StartedAt     Timestamp       `json:"started_at"`
	DurationMS    *int            `json:"duration_ms"`
	Error         string          `json:"error,omitempty"`
	NextAttemptAt Timestamp       `json:"next_attempt_at"`
	Request       LoggedRequest   `json:"request"`
	Response      *LoggedResponse `json:"response"`
}

// LoggedRequest is what was sent, signatures left out. The body is that of the
// event: see DeliveryDetail.
type LoggedRequest struct {
	Method  string      `json:"method"`
	URL     string      `json:"url"`
	Headers http.Header `json:"headers"`
}

// LoggedResponse is the head of what came back, and the first bytes of its body.
type LoggedResponse struct {
	StatusCode int               `json:"status_code"`
	Headers    map[string]string `json:"headers"`
	BodyHead   string            `json:"body_head"`
}

// DeliveryDetail is a delivery with the body that is sent and every attempt.
type DeliveryDetail struct {
	Delivery
	Body       json.RawMessage `json:"body"`
	AttemptLog []Attempt       `json:"attempt_log"`
}

// DeliveryFilter chooses deliveries; zero fields choose all.
type DeliveryFilter struct {
	Status string
	Event  string
	Before int64 // only those older than this one
	Limit  int
}

// deliveryColumns are what scanDelivery reads, from webhook_deliveries as d and
// account_events as e. Attempts are counted in the log, which is what counts.
const deliveryColumns = `d.id, d.subscription_id, e.id, e.type, d.status,
	(SELECT count(*) FROM webhook_attempts a WHERE a.delivery_id = d.id), coalesce(d.error_code, ''), d.created_at, d.next_attempt_at, d.finished_at, d.event_seq`

// Deliveries is how deliveries are listed: newest first, in the order of their events.
var Deliveries = paging.Table[Delivery]{
	Columns: deliveryColumns, From: "webhook_deliveries d JOIN account_events e ON e.seq = d.event_seq", Scan: scanDelivery,
	Sorts:   []paging.Sort[Delivery]{paging.Number("created_at", "d.event_seq", func(d Delivery) int64 { return d.event })},
	Created: "d.created_at",
	Log:     true,
}

// DeliveryPage returns a page of those of a subscription of account.
func (s *Service) DeliveryPage(ctx context.Context, account, id string, f DeliveryFilter, p paging.Page) (paging.List[Delivery], error) {
	if _, err := s.Get(ctx, account, id); err != nil {
		return paging.List[Delivery]{}, err
	}
	return Deliveries.Read(ctx, s.DB, p, `d.subscription_id = $1 AND ($2 = '' OR d.status = $2) AND ($3 = '' OR e.type = $3)
		AND ($4::bigint = 0 OR d.event_seq < (SELECT event_seq FROM webhook_deliveries WHERE id = $4))`, id, f.Status, f.Event, f.Before)
}

// Deliveries lists those of a subscription of account, newest first. It
// returns one more than f.Limit if there are more.
func (s *Service) Deliveries(ctx context.Context, account, id string, f DeliveryFilter) ([]Delivery, error) {
	l, err := s.DeliveryPage(ctx, account, id, f, paging.Page{Limit: f.Limit + 1})
	return l.Data, err
}

// Delivery returns one with its attempts, or not_found.
func (s *Service) Delivery(ctx context.Context, account, id string, number int64) (DeliveryDetail, error) {
	var out DeliveryDetail
	rows, _ := s.DB.Query(ctx, `SELECT `+deliveryColumns+`
		FROM webhook_deliveries d JOIN account_events e ON e.seq = d.event_seq
		WHERE d.id = $1 AND d.subscription_id = $2 AND e.account_id = $3`, number, id, account)
	var err error
	if out.Delivery, err = pgx.CollectExactlyOneRow(rows, scanDelivery); err != nil {
		return out, postgres.NotFound(err, "read delivery")
	}
	err = s.DB.QueryRow(ctx, `SELECT e.body FROM webhook_deliveries d JOIN account_events e ON e.seq = d.event_seq WHERE d.id = $1`, number).Scan(&out.Body)
	if err != nil {
		return out, postgres.NotFound(err, "read event body")
	}
	out.AttemptLog, err = s.attempts(ctx, out.Delivery)
	return out, err
}

// attempts lists the latest of d, newest first. There are at most 200 in the
// answer: only resending again and again makes more.
func (s *Service) attempts(ctx context.Context, d Delivery) ([]Attempt, error) {
	rows, _ := s.DB.Query(ctx, `
		SELECT number, coalesce(outcome, 'under_way'), started_at, duration_ms, coalesce(error, ''), next_attempt_at,
			url, status_code, response_headers, response_body
		FROM webhook_attempts WHERE delivery_id = $1 ORDER BY number DESC LIMIT 200`, d.number)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Attempt, error) { return scanAttempt(row, d.EventID) })
	return list, storeError(err, "list attempts")
}

// scanAttempt puts the request together again from what is stored of it: the
// headers follow from the event and the time of the attempt.
func scanAttempt(row pgx.CollectableRow, eventID string) (Attempt, error) {
	var (
		a       Attempt
		status  *int
		headers map[string]string
		body    []byte
	)
	err := row.Scan(&a.Number, &a.Outcome, &a.StartedAt, &a.DurationMS, &a.Error, &a.NextAttemptAt, &a.Request.URL, &status, &headers, &body)
	a.Request.Method, a.Request.Headers = http.MethodPost, sender.Headers(eventID, a.StartedAt.Time)
	if status != nil {
		a.Response = &LoggedResponse{*status, headers, string(body)}
	}
	return a, err
}

// scanDelivery reads deliveryColumns.
func scanDelivery(row pgx.CollectableRow) (Delivery, error) {
	var d Delivery
	err := row.Scan(&d.number, &d.WebhookID, &d.EventID, &d.Event, &d.Status, &d.Attempts, &d.ErrorCode, &d.CreatedAt, &d.NextAttemptAt, &d.FinishedAt, &d.event)
	d.ID = DeliveryID(d.number)
	return d, err
}

// Number is the delivery's number, as jobs name it.
func (d Delivery) Number() int64 { return d.number }
