// Package product acts on streams through the API of the product that owns
// them, in the name of the account.
package product

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/clock"
	"sluice.dev/sluice/platform/process/telemetry/traces"
	"sluice.dev/sluice/workers/schedules/definition"
)

// maxAnswer bounds the answers that are read, in bytes.
const maxAnswer = 64 << 10

// Client calls the product's internal API.
type Client struct {
	// BaseURL is the product's internal address without a trailing slash.
	BaseURL string
	// Secret signs identity headers, as edges do: it is that of Product or, where
	// Product is empty, the platform's.
	Secret  []byte
	Product string
	// HTTP makes the calls; nil: http.DefaultClient. The context bounds them.
	HTTP *http.Client
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Caller is in whose name a call is made.
type Caller struct {
	Account  string
	Plan     string
	Schedule string // stands for the credential; of people, their session
}

// Outcome is what the product has done.
type Outcome struct {
	StreamID string `json:"stream_id"`
	Action   string `json:"action"` // in the past tense
	Message  string `json:"message"`
}

type request struct {
	Action   string            `json:"action"`
	Settings map[string]string `json:"settings,omitempty"`
}

// Act carries out an action. A failure that the product explains is a
// *apierror.Error with the product's code and message; bad_gateway stands
// for no answer, and for one that cannot be read.
//
// It reads at most 64 KiB of an answer, in linear time, with memory of at most 64
// bytes for each.
func (c Client) Act(ctx context.Context, by Caller, a definition.Action) (Outcome, error) {
	body, err := json.Marshal(request{a.Action, a.Settings})
	if err != nil {
		return Outcome{}, fmt.Errorf("write action: %w", err)
	}
	path := "/internal/v1/streams/" + url.PathEscape(a.StreamID) + "/actions"
	return call[Outcome](ctx, c, by, http.MethodPost, path, "streams:write", body, maxAnswer)
}

// call makes a request with a scope, and reads at most so many bytes of its answer.
func call[T any](ctx context.Context, c Client, by Caller, method, path, scope string, body []byte, most int64) (out T, err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		return out, fmt.Errorf("address of the product: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set(identityheader.Header, c.sign(identityheader.Caller{Account: by.Account, Key: by.Schedule, Plan: by.Plan, Scopes: []string{scope}}))
	traces.Inject(ctx, req.Header)
	resp, err := c.client().Do(req)
	if err != nil {
		return out, unanswered(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return out, unanswered(err)
	}
	return read[T](resp.StatusCode, answer)
}

func (c Client) sign(by identityheader.Caller) string {
	if c.Product == "" {
		return identityheader.Sign(c.Secret, by, c.now().Unix())
	}
	return identityheader.SignFor(c.Secret, c.Product, by, c.now().Unix())
}

func (c Client) client() *http.Client {
	if c.HTTP != nil {
		return c.HTTP
	}
	return http.DefaultClient
}

func (c Client) now() time.Time { return clock.Or(c.Now) }

func unanswered(cause error) error {
	return &apierror.Error{Code: decision.BadGateway, Message: "The product did not answer.", Cause: cause}
}

// read interprets an answer.
func read[T any](status int, body []byte) (out T, err error) {
	if status >= 200 && status < 300 {
		if err := json.Unmarshal(body, &out); err != nil {
			return out, unanswered(err)
		}
		return out, nil
	}
	var refused struct {
		Error struct {
			Code    decision.Code     `json:"code"`
			Message string            `json:"message"`
			Details []decision.Detail `json:"details"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &refused); err != nil || refused.Error.Code == "" {
		return out, unanswered(fmt.Errorf("status %d without an error envelope", status))
	}
	return out, &apierror.Error{Code: refused.Error.Code, Message: refused.Error.Message, Details: refused.Error.Details}
}

// Transient reports whether an error of Act may pass by itself, so that trying
// again makes sense.
func Transient(err error) bool {
	switch status := decision.Lookup(apierror.Code(err)).Status; status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	default:
		return status >= 500
	}
}
