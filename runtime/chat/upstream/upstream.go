// Package upstream calls providers that have the common chat completions API.
package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/sse"
	"sluice.dev/sluice/runtime/chat"
)

// maxBody bounds what is read of an answer that is not a stream.
const maxBody = 8 << 20

// Bounds of a provider's list of models.
const (
	maxList   = 1 << 20 // bytes
	maxModels = 10_000
)

// Config says where a provider is.
type Config struct {
	// BaseURL is the API's address, for instance https://host/v1. An address
	// without a path stands for its /v1.
	BaseURL string
	// Key goes to the provider as bearer token, for callers for whom an edge has
	// signed; empty: the caller's own, unless it is a credential of the platform's.
	Key string
	// ForwardCredentials sends callers' credentials of the platform on: for a
	// provider that is itself behind an edge of ours. It has no Key then.
	ForwardCredentials bool
	// OneLimit leaves max_tokens out where max_completion_tokens is there too:
	// some providers refuse both together.
	OneLimit bool
	// Client makes the calls; nil: one that keeps connections and never buffers.
	Client *http.Client
}

// Provider is one upstream.
type Provider struct {
	Config
	base string
}

// New checks c. The error does not repeat the URL, which may hold a password.
func New(c Config) (*Provider, error) {
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the provider's base URL must look like https://host/v1")
	}
	// https://host is what people write for https://host/v1.
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1"
	}
	if c.Client == nil {
		c.Client = &http.Client{Transport: Transport(), CheckRedirect: noRedirect}
	}
	return &Provider{Config: c, base: strings.TrimRight(u.String(), "/")}, nil
}

// Transport is how calls travel: compressed answers would come in blocks, so
// none is asked for.
func Transport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
		DisableCompression:  true,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        1024,
		MaxIdleConnsPerHost: 1024,
		IdleConnTimeout:     90 * time.Second,
		WriteBufferSize:     4 << 10,
		ReadBufferSize:      4 << 10,
	}
}

// noRedirect keeps a redirect from carrying the key somewhere else.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Stream starts a completion.
func (p *Provider) Stream(ctx context.Context, r chat.Request) (chat.Stream, error) {
	body := r.Body
	if p.OneLimit {
		body = oneLimit(body)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.base+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", sse.ContentType)
	if err := p.sign(req, r.Caller); err != nil {
		return nil, err
	}
	if r.ID != "" {
		req.Header.Set("X-Request-ID", r.ID)
	}
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{WroteRequest: func(w httptrace.WroteRequestInfo) { sent.Store(w.Err == nil) }}
	resp, err := p.Client.Do(req.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err != nil {
		if ctx.Err() != nil && sent.Load() {
			return nil, fmt.Errorf("%w: %w", chat.ErrUnanswered, err)
		}
		return nil, unreachable(err)
	}
	if resp.StatusCode/100 != 2 { // any 2xx says that it has begun
		defer resp.Body.Close()
		return nil, p.refused(resp, r.Caller)
	}
	// There are providers that do not stream whatever they are asked.
	if mt, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); mt == "application/json" {
		return &played{source: resp.Body}, nil
	}
	return &stream{body: resp.Body, in: sse.NewReader(resp.Body, 0)}, nil
}

// Credential is the caller's token where it is the provider's to check. A
// credential of the platform's opens more than models, so it stays here unless
// ForwardCredentials is set; the operator's key is for callers whom an edge has
// judged.
func (p *Provider) Credential(c chat.Caller) (string, error) {
	switch {
	case p.Key != "" && !c.Signed:
		return "", &apierror.Error{Code: decision.AuthRequired, Message: "This model is for callers who come through an edge."}
	case p.Key != "":
		return "", nil
	case !p.ForwardCredentials && (c.Signed || strings.HasPrefix(c.Bearer, apikey.Prefix)):
		return "", nil
	}
	return c.Bearer, nil
}

// sign adds the key.
func (p *Provider) sign(req *http.Request, c chat.Caller) error {
	key, err := p.Credential(c)
	if err != nil {
		return err
	}
	if p.Key != "" {
		key = p.Key
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return nil
}

// Models lists the names of the provider's models for a caller, at most
// maxModels of them. It costs time and memory in proportion to the provider's
// answer, of which maxList bytes are read.
func (p *Provider) Models(ctx context.Context, c chat.Caller) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+"/models", nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if err := p.sign(req, c); err != nil {
		return nil, err
	}
	resp, err := p.Client.Do(req)
	if err != nil {
		return nil, unreachable(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, p.refused(resp, c)
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxList)).Decode(&list); err != nil {
		return nil, &apierror.Error{Code: decision.BadGateway, Message: "The provider's list of models does not parse.", Cause: err}
	}
	names := make([]string, 0, len(list.Data))
	for _, m := range list.Data[:min(len(list.Data), maxModels)] {
		names = append(names, m.ID)
	}
	return names, nil
}

// stream reads a provider's events.
type stream struct {
	body io.ReadCloser
	in   *sse.Reader
	done bool
}

// lastWords is how long a provider that has said [DONE] may take to end its
// answer, which frees the connection for the next request.
const lastWords = 50 * time.Millisecond

// Next returns the next event's data.
func (s *stream) Next() ([]byte, error) {
	e, err := s.in.Next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	case string(e.Data) == "[DONE]":
		s.done = true
		return nil, io.EOF
	case e.Name == "error" && !bytes.Contains(e.Data, []byte(`"error"`)):
		return fmt.Appendf(nil, `{"error":%s}`, quoteUnlessJSON(e.Data)), nil
	}
	return e.Data, nil
}

// Ready reports whether an event waits in the buffer.
func (s *stream) Ready() bool { return s.in.Ready() }

// Close gives the connection back if the answer has ended, or ends right behind
// [DONE]; else it ends the connection too.
func (s *stream) Close() error {
	if s.done {
		late := time.AfterFunc(lastWords, func() { _ = s.body.Close() })
		_, _ = io.Copy(io.Discard, io.LimitReader(s.body, 64<<10)) // what is left says nothing
		late.Stop()
	}
	return s.body.Close()
}

// quoteUnlessJSON returns b if it is JSON, else as a JSON string.
func quoteUnlessJSON(b []byte) []byte {
	if json.Valid(b) {
		return b
	}
	quoted, _ := json.Marshal(string(b)) // a string: it cannot fail
	return quoted
}
