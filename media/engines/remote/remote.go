// Package remote calls engines at addresses: APIs like OpenAI's. Addresses are those
// that operators have written, as providers of the chat runtime are: they may be
// private, no redirect is followed, and what they answer is read up to a bound.
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// ErrUnreachable says that a call has reached nobody, or somebody who cannot work now.
var ErrUnreachable = errors.New("the engine cannot be reached")

// API is one address. It is safe for concurrent use.
type API struct {
	Model  string // as the operator has it; empty: the product's default
	base   string
	key    string
	client *http.Client
}

// maxError bounds what is read of an answer that is an error.
const maxError = 8 << 10

// New returns an API. An address without a path stands for its /v1. The error names
// neither the address nor the key.
func New(base, key, model string) (*API, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("an engine's address must look like https://host/v1")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1"
	}
	return &API{Model: model, base: strings.TrimRight(u.String(), "/"), key: key, client: client}, nil
}

// client keeps connections, and takes no key anywhere else.
var client = &http.Client{
	Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     90 * time.Second,
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Post sends body to a path below the address, such as /audio/speech, and returns an
// answer of status 200, which the caller must close. Other answers are errors:
// invalid_request for 400, 413, 415 and 422, with what the engine says of them;
// ErrUnreachable for nobody there and 502 to 504; TRANSCODE_001 for 429; bad_gateway
// for all others, 401 and 403 included, which are about the operator's key.
func (a *API) Post(ctx context.Context, path, contentType string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", contentType)
	res, err := a.do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	return nil, refused(res)
}

// PostJSON sends v and decodes what is answered into out, of which it reads most bytes.
func (a *API) PostJSON(ctx context.Context, path string, v, out any, most int64) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	res, err := a.Post(ctx, path, "application/json", strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return Decode(ctx, res.Body, out, most)
}

// Decode reads JSON of most bytes: bad_gateway when it is longer, or none.
func Decode(ctx context.Context, r io.Reader, out any, most int64) error {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("it is longer than %d bytes", most)
	}
	if err == nil {
		err = json.Unmarshal(b, out)
	}
	if err != nil {
		return &apierror.Error{Code: decision.BadGateway, Message: "The engine's answer cannot be read.", Cause: err}
	}
	return nil
}

// Check asks for the models, which costs nothing: whoever answers at all, and does not
// refuse the key, is well. version is the model that is asked for.
func (a *API) Check(ctx context.Context) (version string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+"/models", nil)
	if err != nil {
		return "", fmt.Errorf("make request: %w", err)
	}
	res, err := a.do(req)
	if err != nil {
		return a.Model, err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxError)) // so that the connection can be used again
	if s := res.StatusCode; s >= 500 || s == http.StatusUnauthorized || s == http.StatusForbidden {
		return a.Model, refused(res)
	}
	return a.Model, nil
}

func (a *API) do(req *http.Request) (*http.Response, error) {
	if a.key != "" {
		req.Header.Set("Authorization", "Bearer "+a.key)
	}
	res, err := a.client.Do(req)
	if err != nil {
		if ctx := req.Context(); ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, unreachable(err)
	}
	return res, nil
}

// unreachable is bad_gateway, without the address, which is the operator's to know.
func unreachable(err error) error {
	if long, ok := errors.AsType[*url.Error](err); ok {
		err = long.Err
	}
	return &apierror.Error{Code: decision.BadGateway, Message: "The engine cannot be reached.", Cause: fmt.Errorf("%w: %w", ErrUnreachable, err)}
}

// refused is what an answer means to the caller.
func refused(res *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxError)) // what came of it will do
	cause := fmt.Errorf("the engine answers %d: %s", res.StatusCode, decision.Cut(string(text), 500))
	switch res.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return &apierror.Error{Code: decision.InvalidRequest, Message: "The engine does not take this: " + said(text), Cause: cause}
	case http.StatusTooManyRequests:
		return &apierror.Error{Code: decision.Transcode001, Message: "The engine has too much to do.", RetryAfter: 30, Cause: cause}
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return unreachable(cause)
	}
	return &apierror.Error{Code: decision.BadGateway, Message: fmt.Sprintf("The engine answers %d.", res.StatusCode), Cause: cause}
}

// said is the message of an error in OpenAI's form, cut; else nothing in particular.
func said(text []byte) string {
	var e struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(text, &e) != nil || e.Error.Message == "" {
		return "it gives no reason."
	}
	return decision.Cut(e.Error.Message, 300)
}
