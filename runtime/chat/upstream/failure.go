package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/runtime/chat"
)

// unreachable is the error for a call that got no answer.
func unreachable(err error) error {
	code := decision.BadGateway
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		code = decision.GatewayTimeout
	}
	return &apierror.Error{Code: code, Message: "The provider could not be reached.", Cause: err}
}

// refused turns a provider's answer that is not 200 into an error. What the
// caller can put right is a Refusal in the provider's words; about a key that
// is not the caller's, those are not for the caller.
func (p *Provider) refused(resp *http.Response, c chat.Caller) error {
	code, callers := codeFor(resp.StatusCode)
	// It is the operator who must act, and another provider may do better.
	if theirs, _ := p.Credential(c); theirs == "" && (resp.StatusCode == 401 || resp.StatusCode == 402 || resp.StatusCode == 403) {
		return &apierror.Error{Code: decision.BadGateway, Message: "The provider refused the runtime's key.",
			Cause: errors.New("provider answered " + resp.Status)}
	}
	err := apierror.Errorf(code, "%s", chat.ProviderMessage(message(resp.Body)))
	err.Cause = errors.New("provider answered " + resp.Status)
	// A date is allowed there too; nobody sends one, and a second is a fair guess.
	if s, e := strconv.Atoi(resp.Header.Get("Retry-After")); e == nil && s > 0 {
		err.RetryAfter = min(s, 3600)
	} else if code == decision.RateLimited || code == decision.Unavailable {
		err.RetryAfter = 1
	}
	if callers {
		return &chat.Refusal{Err: err}
	}
	return err
}

// codeFor maps a provider's status. callers reports whether the request is at
// fault, so that another provider would say the same.
func codeFor(status int) (code decision.Code, callers bool) {
	switch status {
	case 400, 422:
		return decision.InvalidRequest, true
	case 401:
		return decision.InvalidKey, true
	case 402:
		return decision.PaymentRequired, true
	case 403:
		return decision.ScopeMissing, true
	case 404:
		return decision.NotFound, true
	case 413:
		return decision.TooLarge, true
	case 429:
		return decision.RateLimited, false
	case 408, 504:
		return decision.GatewayTimeout, false
	case 503, 529:
		return decision.Unavailable, false
	}
	return decision.BadGateway, false
}

// message finds the words in an error body, which is either
// {"error":{"message":…}}, {"error":…}, {"message":…} or {"detail":…}.
func message(r io.Reader) string {
	b, _ := io.ReadAll(io.LimitReader(r, 64<<10)) // what came is enough
	var body struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	_ = json.Unmarshal(b, &body) // anything else has no words for us
	// error and detail are text in some providers and an object in others.
	var inner struct {
		Message string `json:"message"`
	}
	var text string
	for _, raw := range []json.RawMessage{body.Error, body.Detail} {
		if json.Unmarshal(raw, &text) == nil && text != "" {
			return text
		}
		if json.Unmarshal(raw, &inner) == nil && inner.Message != "" {
			return inner.Message
		}
	}
	return body.Message
}
