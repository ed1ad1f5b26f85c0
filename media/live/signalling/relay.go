// Package signalling hands the requests by which WebRTC sessions begin, change and
// end on to the media engine: WHIP of publishers, WHEP of viewers. Pictures do not
// come this way.
package signalling

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// maxSDP bounds a session description, in bytes.
const maxSDP = 256 << 10

// sessionName is what the engine calls a session.
var sessionName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// Relay is the way to the engine.
type Relay struct {
	Base   string // below which it takes WebRTC requests; empty: there is no engine
	Client *http.Client
}

// Request is one request on its way.
type Request struct {
	Stream  string // playback id
	Verb    string // whip or whep
	Session string // empty: one begins
	Key     string // stream key; empty for viewers
	// Here is the public address of the stream's verb, to which sessions are added,
	// and Query what goes behind it.
	Here, Query string
}

// Check refuses what no engine need be asked: it is not_found for the name of no
// session, and not_implemented without an engine.
func (v Relay) Check(q Request) error {
	switch {
	case q.Session != "" && !sessionName.MatchString(q.Session):
		return &apierror.Error{Code: decision.NotFound}
	case v.Base == "":
		return apierror.Errorf(decision.NotImplemented, "There is no media engine here.")
	}
	return nil
}

// Body reads the session description of a request.
func Body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSDP))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, &apierror.Error{Code: decision.TooLarge}
	}
	if err != nil {
		return nil, &apierror.Error{Code: decision.InvalidRequest, Message: "The request body could not be read.", Cause: err}
	}
	return raw, nil
}

// Forward sends body on and returns the engine's answer; answer.Send passes it to
// the caller. A refusal is not_found, invalid_request or bad_gateway. No connection
// to the database is held meanwhile.
func (v Relay) Forward(r *http.Request, q Request, body []byte) (a Answer, err error) {
	held := postgres.Apart(r.Context(), func(ctx context.Context) { a, err = v.forward(ctx, r, q, body) })
	if held != nil {
		return Answer{}, held
	}
	return a, err
}

func (v Relay) forward(ctx context.Context, r *http.Request, q Request, body []byte) (Answer, error) {
	address := v.Base + "/" + q.Stream + "/" + q.Verb
	if q.Session != "" {
		address += "/" + q.Session
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, address, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	for _, name := range []string{"Content-Type", "If-Match"} {
		req.Header.Set(name, r.Header.Get(name))
	}
	if q.Key != "" {
		req.Header.Set("Authorization", "Bearer "+q.Key)
	}
	res, err := v.Client.Do(req)
	if err != nil {
		return Answer{}, &apierror.Error{Code: decision.BadGateway, Cause: err}
	}
	defer res.Body.Close()
	if err := refusal(res.StatusCode); err != nil {
		return Answer{}, err
	}
	said, err := io.ReadAll(io.LimitReader(res.Body, maxSDP))
	if err != nil {
		return Answer{}, &apierror.Error{Code: decision.BadGateway, Cause: err}
	}
	return Answer{res.StatusCode, res.Header, said, q}, nil
}

// refusal turns the engine's status into an error; nil for a success.
func refusal(status int) error {
	switch {
	case status < 300:
		return nil
	case status == http.StatusNotFound:
		return apierror.Errorf(decision.NotFound, "The stream is not on air, or the session is over.")
	case status == http.StatusBadRequest:
		return apierror.Errorf(decision.InvalidRequest, "The engine did not understand the session description.")
	}
	return &apierror.Error{Code: decision.BadGateway, Cause: fmt.Errorf("engine answered %d", status)}
}

// Answer is the engine's.
type Answer struct {
	status int
	header http.Header
	body   []byte
	asked  Request
}

// Send passes the answer to the caller, with the session's address here in place of
// the engine's.
func (a Answer) Send(w http.ResponseWriter) {
	h := w.Header()
	for _, name := range []string{"Content-Type", "ETag", "Accept-Patch"} {
		if value := a.header.Get(name); value != "" {
			h.Set(name, value)
		}
	}
	h.Set("Cache-Control", "no-store")
	h.Set("Access-Control-Allow-Origin", "*") // pages anywhere; token or key is the protection
	at := a.header.Get("Location")
	if session := at[strings.LastIndexByte(at, '/')+1:]; sessionName.MatchString(session) {
		address := a.asked.Here + "/" + session
		if a.asked.Query != "" {
			address += "?" + a.asked.Query
		}
		h.Set("Location", address)
		h.Set("Access-Control-Expose-Headers", "Location")
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // to a caller who may have gone
}
